"""Re-entry: a thread waits for a lock that it holds further down its own stack.

Three causes look alike: the program calls itself (self-deadlock), or a finalizer or weakref callback
(finalizer-deadlock) or a Python signal handler (signal-handler-deadlock) runs in the middle of the block. The frames
between acquisition and wait distinguish them: by name or role in Python, or by CPython's own functions in the native
stack if symbols are available.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Optional, Tuple

from ....evidence import HeldLock, NativeFrame, Process, PythonFrame, Resource, Thread
from ....findings import Template, Text
from ....waitgraph import Agent
from ...facts import clauses, knowledge
from ...facts.knowledge import own_frame
from ...facts.view import View

_TAKEN = Template("{thread} acquired {lock} at {frame} ({basis:known})")
_WANTED_AGAIN = Template("it waits for the same lock{at}")


class Reentry(NamedTuple):
    """A thread, the lock that it holds and waits for, and the cause of the re-entry."""

    process: Process
    thread: Thread
    resource: Resource
    held: HeldLock
    via: str  # "call" | "finalizer" | "signal"
    entered: Optional[PythonFrame]  # the finalizer or handler, which no code called explicitly
    stuck: bool  # True: nothing else can end its wait

    @property
    def sure(self) -> bool:
        """Return whether every fact was read rather than inferred, and the wait has no timeout."""
        wait = self.thread.wait
        return self.stuck and self.held.basis != "inferred" and wait is not None and wait.endless is not False

    @property
    def taken(self) -> Text:
        """Return the text on where the thread took the lock."""
        held = self.held
        return _TAKEN(
            thread=clauses.named(self.thread), lock=self.resource.description, frame=held.frame, basis=held.basis
        )

    @property
    def wanted_again(self) -> Text:
        """Return the text on where the code that was entered wants the lock."""
        return _WANTED_AGAIN(at=clauses.at(own_frame(self.thread.python)))


def reentries(view: View) -> Iterator[Reentry]:
    """Yield each thread that waits for a lock that it holds."""
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
    """Return whether nothing can end the wait; another run of the signal handler that waits cannot."""
    told = view.graph.stuck(Agent(process.pid, thread.tid))
    if told == "proven" or told is None or handler is None or process.signal_handlers is None:
        return told == "proven"
    known = [h.function for h in process.signal_handlers]
    return all(f is not None and (f.file, f.function) == (handler.file, handler.function) for f in known)


def _via(thread: Thread, depth: int) -> Tuple[str, Optional[PythonFrame]]:
    """Return the cause of the call from the holding frame (at ``depth``) to the waiting one, and its first frame."""
    seen = -1
    above: Optional[PythonFrame] = None
    for frame in thread.stack:
        if isinstance(frame, NativeFrame):
            name = (frame.function or "").partition(".")[0]  # without suffixes added by compilers: .lto_priv.0, .part.1
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
