"""The wait of each thread, as far as known without native stacks."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Sequence

from ...cpython.frames.calls import first_number
from ...cpython.frames.frame import Frame as PyFrame
from ...cpython.state.interpreter import Python
from ...evidence import Gap, Wait
from ...evidence import replace as changed
from ...libc import FutexCall
from ...memory import CoreThread
from ..cross_process.sharedwork import SharedWork
from ..recorded.raw import last_call
from ..waits import threadwaits
from ..waits.aarch64_calls import Untold
from ..waits.buffered import BufferBook
from ..waits.endpoints import DescriptorBook
from ..waits.locks import LockWaits
from ..waits.polls import polled_lock
from ..waits.tasks import TasksRead
from .context import ProcessContext
from .gil import wanted_gil


class Books(NamedTuple):
    """An interpreter and the collectors of waits in it."""

    python: Python
    tasks: TasksRead
    shared: SharedWork
    locks: LockWaits
    buffers: BufferBook


class WaitReader:
    """A reader of waits and collector of their resources.

    - ``books``: None without an interpreter
    - ``calls``: by tid, futex waits that nothing in the interpreter explains
    """

    def __init__(self, context: ProcessContext, books: Optional[Books], descriptors: DescriptorBook) -> None:
        self._core, self._raw, self._gaps = context.core, context.raw, context.gaps
        self._books, self._descriptors = books, descriptors
        self.calls: Dict[int, FutexCall] = {}

    def read(self, thread: CoreThread, frames: Sequence[PyFrame]) -> Optional[Wait]:
        """Return a thread's wait; None if it runs or its call is unknown."""
        wait = self._wait(self._call(thread), thread.tid, frames)
        if self._books is not None:
            self._books.shared.note(wait, frames)
        return wait

    def _call(self, thread: CoreThread) -> Optional[threadwaits.SystemCall]:
        """Return a thread's system call; None if it ran code or, with a gap, if it is unknown."""
        try:
            call = threadwaits.in_core(thread.regs, last_call(self._raw.window, thread.tid), self._core)
        except Untold as exc:
            self._gaps.append(Gap("core", f"system call of thread {thread.tid}", str(exc), code="call-unread"))
            return None
        if not threadwaits.is_known(call):
            self._gaps.append(Gap("core", f"system call of thread {thread.tid}", code="restarted-call"))
        return call

    def _wait(self, call: Optional[threadwaits.SystemCall], tid: int, frames: Sequence[PyFrame]) -> Optional[Wait]:
        if call is None:
            return None
        books = self._books
        wait = threadwaits.describe(
            call, self._core, self._raw.descriptors, lambda word: self._futex(word, tid, frames), frames
        )
        wait = books.shared.told(wait, frames) if books is not None else wait
        if wait.kind in ("futex", "semaphore") and wait.resource is None:
            self.calls[tid] = FutexCall.of(call.args)
        runs_loop = books is not None and wait.kind == "event-loop" and books.tasks.runs(tid)
        if wait.resource is None and not runs_loop:
            wait = changed(wait, resource=self._descriptors.awaited(wait, call, self._core, tid))
        if wait.kind == "sleep" and books is not None and frames:
            asked = first_number(books.python.frames, frames[0], "sleep")
            asks = polled_lock(books.python, self._descriptors, wait, tid, frames, asked)
            if asks is not None:
                return asks
            # the kernel overwrites select's timeout with the remaining time
            if asked is not None and asked >= (wait.timeout_s or 0.0):
                return changed(wait, timeout_s=asked)
        return wait

    def _futex(self, word: int, tid: int, frames: Sequence[PyFrame]) -> Optional[threadwaits.FutexFacts]:
        books = self._books
        if books is None:
            return None
        wanted = wanted_gil(books.python, word)
        if wanted is not None:
            return threadwaits.FutexFacts("gil", wanted, "the interpreter lock (GIL)", "wants")
        shared = books.shared.futex(word, tid, frames)
        if shared is not None or not frames:
            return shared
        return books.locks.wait(word, tid, frames) or books.buffers.futex(word, tid)
