"""A thread that wants a lock which it holds further down its own stack, and what led it there.

Three causes look alike: the program calls itself back (self-deadlock), a finalizer or weakref callback runs in the
middle of the block (finalizer-deadlock), a Python signal handler does (signal-handler-deadlock). The frames between
the two ends tell them apart: by name or role in Python, by CPython's own functions in the native stack where there are
symbols.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Optional, Tuple

from ....evidence import HeldLock, NativeFrame, Process, PythonFrame, Resource, Thread
from ....waitgraph import Agent
from ...facts import knowledge
from ...facts.view import View


class Reentry(NamedTuple):
    process: Process
    thread: Thread
    resource: Resource
    held: HeldLock
    via: str  # "call" | "finalizer" | "signal"
    entered: Optional[PythonFrame]  # the finalizer or handler: the frame that nobody called by name
    stuck: bool  # nothing else can end its wait

    @property
    def sure(self) -> bool:
        """Read, not guessed, and without an end of its own."""
        wait = self.thread.wait
        return self.stuck and self.held.basis != "inferred" and wait is not None and wait.endless is not False


def reentries(view: View) -> Iterator[Reentry]:
    for process in view.pythons:
        resources = {r.id: r for r in process.resources}
        for thread in process.threads:
            resource = resources.get(thread.wait.resource or "") if thread.wait else None
            if resource is None or resource.owner_tid != thread.tid or resource.kind == "rlock":
                continue
            held = next((h for h in thread.holds if h.resource == resource.id), None)
            if held is not None:
                via, entered = _via(thread, held.depth)
                stuck = _is_stuck(view, process, thread, entered if via == "signal" else None)
                yield Reentry(process, thread, resource, held, via, entered, stuck)


def _is_stuck(view: View, process: Process, thread: Thread, handler: Optional[PythonFrame]) -> bool:
    """A signal handler might come in between and let the lock go: not the one that waits for it, were it to come again."""
    told = view.graph.stuck(Agent(process.pid, thread.tid))
    if told == "proven" or told is None or handler is None or process.signal_handlers is None:
        return told == "proven"
    known = [h.function for h in process.signal_handlers]
    return all(f is not None and (f.file, f.function) == (handler.file, handler.function) for f in known)


def _via(thread: Thread, depth: int) -> Tuple[str, Optional[PythonFrame]]:
    """What led from the frame that holds (at ``depth``) to the one that waits."""
    seen = -1
    above: Optional[PythonFrame] = None
    for frame in thread.stack:
        if isinstance(frame, NativeFrame):
            name = (frame.function or "").partition(".")[0]  # without what compilers add: .lto_priv.0, .part.1
            if name in knowledge.NATIVE_SIGNAL and above is not None:
                return "signal", above
            if name in knowledge.NATIVE_FINALIZER and above is not None:
                return "finalizer", above
            continue
        seen += 1
        if seen >= depth:
            break
        above = frame
        if frame.role == "signal-handler":
            return "signal", frame
        if knowledge.is_finalizer(frame):
            return "finalizer", frame
    return "call", None
