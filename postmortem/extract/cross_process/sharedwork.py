"""Semaphores and process pools that a process shares with others."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...evidence import Pool, Resource, Wait
from ..ownership.pools import FutureFacts
from ..process.context import ProcessContext, PythonContext
from ..waits.threadwaits import FutexFacts
from .forks import LockPlace, Trace, origin_of
from .semaphores import SemaphoreBook, SemaphoreHoldings
from .workers import WorkerBook


class SharedWork:
    """One process's semaphores and process pools.

    While threads are read, ``futex``, ``told`` and ``note`` are called for each; the others then return results.
    """

    def __init__(self, context: PythonContext) -> None:
        self.semaphores = SemaphoreBook(context)
        self._workers = WorkerBook(context)

    def futex(self, word: int, tid: int, frames: Sequence[Frame]) -> Optional[FutexFacts]:
        """Return the facts of a futex word; None if it belongs to neither.

        ``frames``: most recent call first.
        """
        return self.semaphores.wait(word, tid, frames) or self._workers.wait(tid, frames)

    def told(self, wait: Wait, frames: Sequence[Frame]) -> Wait:
        """Return the wait, completed by the child process that the thread joins, if it joins one."""
        return self._workers.joined(wait, frames)

    def note(self, wait: Optional[Wait], frames: Sequence[Frame]) -> None:
        """Note a thread's wait; one that runs or waits for the GIL may hold a semaphore that it has not counted yet."""
        if wait is None or wait.kind == "gil":
            self.semaphores.runs(frames)

    def resources(self, holdings: SemaphoreHoldings) -> Tuple[Resource, ...]:
        """Return semaphores and pool results as resources."""
        return (*self.semaphores.resources(holdings), *self._workers.resources())

    @property
    def pools(self) -> Tuple[Pool, ...]:
        """Return the process pools as evidence."""
        return self._workers.pools()

    def runner(self, future: int) -> Optional[FutureFacts]:
        """Return the agents that complete a process pool's future; None for any other."""
        return self._workers.future(future)


def trace_of(
    context: ProcessContext,
    locks: Mapping[str, LockPlace],
    shared: Optional[SemaphoreBook],
    holdings: Optional[SemaphoreHoldings],
) -> Trace:
    """Return what is known here about other processes: ``forks`` and ``sharing`` complete their evidence with it.

    ``locks``: by resource id.
    """
    idents = {ident: row.tid for ident, row in context.threads.by_ident.items()}
    pointers = {row.pointer: row.tid for row in context.threads.by_tid.values() if row.pointer}
    known = Trace(origin_of(context.core), idents, locks, pointers=pointers)
    if shared is None or holdings is None:
        return known._replace(complete=False)
    return known._replace(claims=shared.claims(holdings), complete=shared.complete, unsettled=shared.unsettled)
