"""Threads that are all woken by each ``notify_all()`` of one Condition, after which nearly all wait again."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread
from ....findings import Template, Text
from ...facts.knowledge import own_frame
from ...facts.view import View

#: Least number of threads: of two that take turns, each wakes the other, which is the right one.
_MANY = 3
_NOTIFIES = 3

WAKE_ONE = Template(
    "Give each thread a Condition, an Event or a queue of its own and wake the one whose turn it is, or let one thread do the "
    "work of all: notify_all() on one Condition wakes every waiter, and all but one of them wait again."
)
_SAYS = Template(
    "{count:n thread} wait on {condition} at {waits} and wake {wakes:,.0f} times a second in all; notify_all() at {notifies} "
    "wakes every one of them"
)


class Crowd(NamedTuple):
    """The threads that wait on one Condition, with their lines."""

    resource: Resource
    threads: Tuple[Thread, ...]
    wakes: float  # wake-ups of all of them, per second
    waits: Tuple[PythonFrame, ...]  # the program's lines that wait
    notifies: Tuple[PythonFrame, ...]  # the program's lines that wake all

    @property
    def places(self) -> Tuple[PythonFrame, ...]:
        """Return the lines that wake, then the lines that wait."""
        return (*self.notifies, *self.waits)

    @property
    def says(self) -> Text:
        """Return a text on the threads, their wake-ups and lines."""
        return _SAYS(
            count=len(self.threads),
            condition=self.resource.description,
            waits=self.waits[0],
            wakes=self.wakes,
            notifies=self.notifies[0],
        )


def crowds(view: View, process: Process, pace: float) -> List[Crowd]:
    """Return the Conditions with at least three frequently woken waiters and a sampled ``notify_all``, largest first.

    Each waiter wakes more than ``pace`` times a second and spends its time at a line where threads wait; at the moment of
    capture it may be elsewhere.
    """
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
    """Return the lines that called ``notify_all`` in the samples."""
    found = []
    for thread in threads:
        for _count, frames in view.samples(thread):
            for callee, frame in zip(frames, frames[1:]):
                if callee.function in ("notify_all", "notifyAll") and callee.file.endswith("/threading.py"):
                    found.append(frame)
    return tuple(dict.fromkeys(found))[:_NOTIFIES]
