"""Re-entry: a thread waits for a lock that it holds further down its own stack.

``Interruption`` is the same without the re-entry: a finalizer that a thread runs in the middle of other code.

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

#: Waits of a thread that the collector's native finalizers wait for.
_NATIVE_WAITS = ("lock", "mutex", "semaphore", "futex", "condition")

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


class Interruption(NamedTuple):
    """A finalizer that a thread runs, and the code that it interrupted."""

    entered: Optional[PythonFrame]  # the finalizer; None: native code, such as a tp_dealloc
    below: Tuple[PythonFrame, ...]  # the interrupted frames, the innermost first
    depth: int  # index of the first of them in Thread.python
    collecting: bool  # the garbage collector runs it


def interruption(thread: Thread) -> Optional[Interruption]:
    """Return the finalizer in which a thread waits; None if it is in none, as far as its stack shows."""
    seen, entered = 0, None
    above: Optional[PythonFrame] = None
    inside = False
    for frame in thread.stack:
        if isinstance(frame, PythonFrame):
            if inside:
                break
            above, seen = frame, seen + 1
            inside, entered = knowledge.is_finalizer(frame), frame
        elif not inside and (frame.function or "").partition(".")[0] in knowledge.NATIVE_FINALIZER:
            inside, entered = True, above
    if not inside and thread.gc and thread.wait is not None and thread.wait.kind in _NATIVE_WAITS:
        return Interruption(None, thread.python, 0, True)  # the collector, without symbols: no finalizer in Python runs
    return Interruption(entered, thread.python[seen:], seen, thread.gc is True) if inside else None


def reentries(view: View) -> Iterator[Reentry]:
    """Yield each thread that waits for a lock that it holds."""
    for process in view.pythons:
        resources = {r.id: r for r in process.resources}
        for thread in process.threads:
            resource = resources.get(thread.wait.gate or thread.wait.resource or "") if thread.wait else None
            if resource is None or resource.owner_tid != thread.tid or resource.kind == "rlock":
                continue
            held = next((h for h in thread.holds if h.resource == resource.id), None)
            if held is not None:
                via, entered = _via(thread, held.depth)
                stuck = _is_stuck(view, process, thread, entered if via == "signal" else None)
                yield Reentry(process, thread, resource, held, via, entered, stuck)


#: Modules of primitives between processes whose signals wait for those who are woken.
_SYNCHRONIZE = knowledge.multiprocessing("synchronize")


class Interrupted(NamedTuple):
    """A thread that waits, in a signal handler, for a lock whose holder no frame shows, and the code that it interrupted."""

    process: Process
    thread: Thread
    resource: Resource
    handler: PythonFrame
    below: Tuple[PythonFrame, ...]  # the frames of the interrupted code, most recent call first


def interrupted(view: View) -> Iterator[Interrupted]:
    """Yield each thread whose signal handler waits for a lock that only the interrupted code can hold.

    A signal may arrive when a lock is just acquired or about to be released, where no frame shows its holder. The
    interrupted code was inside the same function as the wait, or inside the lock's own methods, and no other thread is.
    """
    for process in view.pythons:
        resources = {r.id: r for r in process.resources}
        for thread in process.threads:
            resource = resources.get(thread.wait.resource or "") if thread.wait else None
            if (
                resource is None
                or resource.kind not in ("lock", "mutex", "semaphore", "shared-semaphore")
                or resource.owner_tid not in (None, thread.tid)
                or (resource.owner_tid is not None and resource.kind != "shared-semaphore")
            ):
                continue
            frames = thread.python
            at = next((i for i, frame in enumerate(frames) if frame.role == "signal-handler"), None)
            if at is not None and _is_inside(frames[: at + 1], frames[at + 1 :]) and not resource.owner_gone:
                yield Interrupted(process, thread, resource, frames[at], frames[at + 1 :])


def _is_inside(above: Tuple[PythonFrame, ...], below: Tuple[PythonFrame, ...]) -> bool:
    """Return whether interrupted code is in a function that waits above it, or in a method that takes or releases a lock.

    Or in the module whose function waits above it: an event of multiprocessing that is set waits for its waiters to wake.
    """
    if above and below and above[0].file == below[0].file and above[0].file.endswith(_SYNCHRONIZE):
        return True
    waiting = {(f.file, f.function) for f in above}
    taking = bool(below) and below[0].function in ("__enter__", "__exit__", "acquire", "release")
    return taking or any((f.file, f.function) in waiting for f in below[:4])


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
