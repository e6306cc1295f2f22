"""Loops of client libraries, each in a thread of its own: a callback of the program that waits for what the same loop would do.

A client for messages reads its connection on a thread and calls the program's code there. If that calls the client again, and
waits until the peer has confirmed something, nothing reads the confirmation.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ....evidence import Process, PythonFrame, Thread
from ....evidence.vocabulary import WaitKind
from ....findings import Confidence, Template
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import in_table, is_library, is_stdlib, own_frame
from ...facts.view import View
from ...pattern import Match
from ...roots.rest import DISPATCHES

#: Waits of a thread that code of the same process ends.
_SIGNALLED: FrozenSet[WaitKind] = frozenset(("condition", "event", "semaphore", "futex"))

_SUMMARY = Template(
    "{thread}, on which {module} calls the program back, waits{at} in {inside} of the same module: for what that thread would "
    "have to do"
)
_CALLED = Template("{thread} is in {loop} of {module}, which has called the program's {function}")
_WAITS = Template("that has called {inside}, which waits for {what}, without a time limit")
_NONE_ELSE = Template("no other thread of the process is in {module}")
_ABLE = Template("other code of the program may end that wait")
_OTHERS = Template(
    "{count:n other thread} {count:v is|are} in {module}, too: whether one may end the wait is not known"
)
_REMEDY = Template(
    "Do not wait inside a callback for what the client's own thread has to receive: hand the work to another thread or a queue, "
    "or let the client's callback for the confirmation do the rest."
)


class _Nested(NamedTuple):
    """A callback in the middle of a library's code."""

    inside: PythonFrame  # the library's function that waits, called by the program
    called: PythonFrame  # the program's function that the library has called
    loop: PythonFrame  # the library's outermost function of the same module


def blocked_clients(view: View, process: Process) -> Iterator[Tuple[Agent, Match]]:
    """Yield (agent, match) for each thread of a library that waits, in a callback, inside the same module."""
    for thread in process.threads:
        nested = _nested(thread)
        wait, frame = thread.wait, own_frame(thread.python)
        if nested is None or wait is None or frame is None or not _is_held_up(view, thread):
            continue
        module = "/".join(nested.loop.file.split("/")[-2:])
        others = [t for t in process.threads if t is not thread and any(f.file == nested.loop.file for f in t.python)]
        resource = view.graph.places.resource(process.pid, wait.resource)
        able = resource is None or any(w.grade != "refers" and w.tid != thread.tid for w in resource.wakers)
        confidence: Confidence = "possible" if others or able else "likely"
        found = Match(
            confidence=confidence,
            summary=_SUMMARY(
                thread=clauses.named(thread), module=module, at=clauses.at(frame), inside=nested.inside.function
            ),
            evidence=(
                _CALLED(
                    thread=clauses.named(thread),
                    loop=nested.loop.function,
                    module=module,
                    function=nested.called.function,
                ),
                _WAITS(
                    inside=nested.inside.function,
                    what=resource.description if resource is not None else wait.phrase or wait.kind,
                ),
                *((_ABLE(),) if able else ()),
                _OTHERS(count=len(others), module=module) if others else _NONE_ELSE(module=module),
            ),
            culprits=(view.culprit(process, frame, thread),),
            victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
            remedy=_REMEDY(),
            pid=process.pid,
        )
        yield Agent(process.pid, thread.tid), found


def _is_held_up(view: View, thread: Thread) -> bool:
    """Return whether a thread waits to be signalled, without a time limit, and not for a part of a pool."""
    wait = thread.wait
    return wait is not None and wait.kind in _SIGNALLED and bool(wait.endless) and not (wait.gate or view.moves(thread))


def _nested(thread: Thread) -> Optional[_Nested]:
    """Return the callback in which a thread of a library waits inside the same module of it; None if it is in none."""
    frames = thread.python
    begun = next((frame for frame in reversed(frames) if not is_stdlib(frame)), None)
    if begun is None or not is_library(begun) or any(in_table(frame, DISPATCHES) for frame in frames):
        return None
    own = [at for at, frame in enumerate(frames) if not is_library(frame)]
    inside = _of_packages(frames[: own[0]]) if own else []
    around = _of_packages(frames[own[-1] :]) if own else []
    if not inside or inside[0].file not in {frame.file for frame in around}:
        return None
    same = [frame for frame in around if frame.file == inside[0].file]
    return _Nested(inside[-1], frames[own[-1]], same[-1])


def _of_packages(frames: Sequence[PythonFrame]) -> List[PythonFrame]:
    """Return the frames of installed packages."""
    return [frame for frame in frames if is_library(frame) and not is_stdlib(frame)]
