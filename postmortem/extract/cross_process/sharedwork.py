"""What a process has in common with others: semaphores, and pools of processes."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.state.interpreter import Python
from ...evidence import Gap, HeldLock, Pool, Resource, Wait
from ...memory import ElfCore
from ..ownership.acquires import Lines
from ..ownership.pools import FutureFacts
from ..process.threadtable import ThreadTable
from ..waits.threadwaits import FutexFacts
from .forks import LockPlace, Trace, origin_of
from .semaphores import SemaphoreBook
from .workers import WorkerBook


class SharedWork:
    """One process's side of it; nothing when there is no interpreter. ``maps``: lines of /proc/PID/maps."""

    def __init__(
        self,
        python: Optional[Python],
        core: ElfCore,
        maps: Any,
        threads: ThreadTable,
        lines: Lines,
        gaps: List[Gap],
    ) -> None:
        self._core = core
        self._semaphores = SemaphoreBook(python, core, maps, threads, lines, gaps) if python else None
        self._workers = WorkerBook(python, threads) if python else None

    def futex(self, word: int, tid: int, frames: Sequence[Frame]) -> Optional[FutexFacts]:
        """What a futex word means to a thread with these frames; None when it is nothing of this."""
        if self._semaphores is None or self._workers is None:
            return None
        return self._semaphores.wait(word, tid, frames) or self._workers.wait(tid, frames)

    def told(self, wait: Wait, frames: Sequence[Frame]) -> Wait:
        """A wait, with the child that is joined in it."""
        return self._workers.joined(wait, frames) if self._workers is not None else wait

    def note(self, wait: Optional[Wait], frames: Sequence[Frame]) -> None:
        """What each thread was found in, however it is described."""
        if self._semaphores is not None and (wait is None or wait.kind == "gil"):
            self._semaphores.runs(frames)

    def settle(self) -> None:
        """After all threads: who holds what."""
        if self._semaphores is not None:
            self._semaphores.settle()

    def held_by(self, tid: int) -> Tuple[HeldLock, ...]:
        return self._semaphores.held_by(tid) if self._semaphores is not None else ()

    def resources(self) -> Tuple[Resource, ...]:
        if self._semaphores is None or self._workers is None:
            return ()
        return (*self._semaphores.resources(), *self._workers.resources())

    @property
    def pools(self) -> Tuple[Pool, ...]:
        return self._workers.pools() if self._workers is not None else ()

    def runner(self, future: int) -> Optional[FutureFacts]:
        """Who finishes a concurrent.futures.Future of a pool of processes; None for any other."""
        return self._workers.future(future) if self._workers is not None else None

    def trace(self, idents: Mapping[int, int], locks: Mapping[str, LockPlace]) -> Trace:
        """What the evidence of other processes is completed with. ``idents``: threading.get_ident() → tid; ``locks``: by
        the id of the resource."""
        known = Trace(origin_of(self._core), idents, locks)
        shared = self._semaphores
        if shared is None:
            return known._replace(complete=False)
        return known._replace(claims=shared.claims(), complete=shared.complete, unsettled=shared.unsettled)
