"""Threads that are all woken by each ``notify_all()`` of one Condition, and nearly all go back to wait."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread
from ...facts.knowledge import own_frame, short
from ...facts.view import View, plural

#: Two that take turns wake each other, and nobody in vain.
_MANY = 3
_NOTIFIES = 3
WAKE_ONE = (
    "Give each thread a Condition, an Event or a queue of its own and wake the one whose turn it is, or let one thread do the "
    "work of all: notify_all() on one Condition wakes every waiter, of whom all but one go back to wait."
)


class Crowd(NamedTuple):
    resource: Resource
    threads: Tuple[Thread, ...]
    wakes: float  # of all of them, a second
    waits: Tuple[PythonFrame, ...]  # lines of the program
    notifies: Tuple[PythonFrame, ...]  # lines of the program that wake all

    @property
    def places(self) -> Tuple[PythonFrame, ...]:
        return (*self.notifies, *self.waits)

    @property
    def says(self) -> str:
        return (
            f"{plural(len(self.threads), 'thread')} wait on {self.resource.description} at {short(self.waits[0])} and wake "
            f"{self.wakes:,.0f} times a second in all; notify_all() at {short(self.notifies[0])} wakes every one of them"
        )


def crowds(view: View, process: Process, pace: float) -> List[Crowd]:
    """Of the Conditions of the program at whose lines threads wait that each wake more often than ``pace`` times a second, and
    of which one was seen to wake all: the largest first. Just now some may be on their way."""
    found = []
    for resource in process.resources:
        if resource.kind != "condition":
            continue
        waits = [
            f for t in process.threads if t.tid in resource.waiters for f in [own_frame(t.python)] if f is not None
        ]
        places = {_place(f) for f in waits}
        moving = [(t, view.hot_frame(t)) for t in process.threads if (view.switches(t) or 0.0) > pace]
        waiting = [t for t, hot in moving if hot is not None and _place(hot) in places]
        if len(waiting) < _MANY:
            continue
        notifies = _notifies(view, waiting)
        if waits and notifies:
            wakes = sum(view.switches(t) or 0.0 for t in waiting)
            found.append(Crowd(resource, tuple(waiting), wakes, tuple(dict.fromkeys(waits)), notifies))
    return sorted(found, key=lambda crowd: -len(crowd.threads))


def _place(frame: PythonFrame) -> Tuple[str, Optional[int], str]:
    return frame.file, frame.line, frame.function


def _notifies(view: View, threads: List[Thread]) -> Tuple[PythonFrame, ...]:
    """The lines that called ``notify_all`` when the samples had them in it."""
    found = []
    for thread in threads:
        for _count, frames in view.samples(thread):
            for callee, frame in zip(frames, frames[1:]):
                if callee.function in ("notify_all", "notifyAll") and callee.file.endswith("/threading.py"):
                    found.append(frame)
    return tuple(dict.fromkeys(found))[:_NOTIFIES]
