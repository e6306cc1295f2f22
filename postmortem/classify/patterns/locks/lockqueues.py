"""Queues for a lock: the number of waiters over the window, how many got it, and where the program acquires it."""

from __future__ import annotations

from typing import Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ....evidence import HeldLock, Process, PythonFrame, Resource, Thread
from ...facts import knowledge
from ...facts.knowledge import own_frame
from ...facts.view import View


class LockQueue(NamedTuple):
    """The waiters and the holder of one lock."""

    lock: Resource
    waiters: List[Thread]
    holder: Optional[Thread]
    held: Optional[HeldLock]
    average: float  # average number of waiters over the window
    moved: int  # number of waiters that were elsewhere at times, so had got the lock
    handed: bool = False  # the holder was seen to wait for it earlier in the window
    share: float = 0.0  # mean share of the window for which those who wait now waited for it

    @property
    def under(self) -> Optional[PythonFrame]:
        """Return the program's outermost line called by the `with` block of the holder; None if unknown."""
        if self.holder is None or self.held is None:
            return None
        return next((f for f in reversed(self.holder.python[: self.held.depth]) if not knowledge.is_library(f)), None)

    def inside(self, view: View) -> List[PythonFrame]:
        """Return up to two lines at which waiters were sampled while they held the lock.

        They are other lines of the function that acquires it.
        """
        seen = []
        for thread in self.waiters:
            taking = own_frame(thread.python)
            for _count, frames in view.samples(thread):
                own = own_frame(frames)
                if own is not None and taking is not None and own != taking and own.function == taking.function:
                    seen.append(own)
        return list(dict.fromkeys(f for f in seen if not knowledge.is_stdlib(f)))[:2]


def wanted(view: View, kinds: Collection[str]) -> Iterator[Tuple[Process, Resource, List[Thread], List[Process]]]:
    """Yield contended locks: (a process that has it, the lock, its waiters, all processes that share it)."""
    shared: Dict[str, List[Tuple[Process, Resource]]] = {}
    for process in view.pythons:
        for lock in process.resources:
            if lock.kind == "shared-semaphore" and lock.key and lock.kind in kinds:
                shared.setdefault(lock.key, []).append((process, lock))
            elif lock.kind in kinds and lock.waiters:
                yield process, lock, view.threads(process, lock.waiters), [process]
    for several in shared.values():
        if all(lock.owner_pid is None and lock.owner_tid is None for _process, lock in several):
            continue  # no process holds it: a semaphore internal to a Condition or Barrier
        waiters = [t for process, lock in several for t in view.threads(process, lock.waiters)]
        yield (*several[0], waiters, [process for process, _lock in several])


def queue_of(
    view: View, process: Process, lock: Resource, waiters: List[Thread], crowd: Sequence[Process] = ()
) -> LockQueue:
    """Return the queue of a lock; ``crowd``: the processes that share it."""
    places = {_key(frame) for t in waiters for frame in [own_frame(t.python)] if frame is not None}
    average, moved = 0.0, 0
    shares: List[float] = []
    for thread in (t for one in crowd or (process,) for t in one.threads):
        total = sum(count for count, _frames in view.samples(thread))
        inside = sum(n for n, frames in view.samples(thread) for f in [own_frame(frames)] if f and _key(f) in places)
        average += inside / total if total else 0.0
        shares += [inside / total] if total and thread in waiters else []
    for thread in waiters:
        keys = {_key(f) for _n, frames in view.samples(thread) for f in [own_frame(frames)] if f is not None}
        moved += bool(keys - places) or view.moves(thread)
    holders = (view.thread(one, lock.owner_tid) for one in crowd or (process,))
    holder = next((one for one in holders if one is not None), None)
    held = next((h for h in holder.holds if h.resource == lock.id), None) if holder is not None else None
    waited = [own_frame(frames) for _n, frames in view.samples(holder)] if holder is not None else []
    turns = lock.kind == "shared-semaphore"  # as those of a pool's workers, who take turns at waiting for a job
    handed = not turns and any(frame is not None and _key(frame) in places for frame in waited)
    share = sum(shares) / len(shares) if shares else 0.0
    return LockQueue(lock, waiters, holder, held, average, moved + handed, handed, share)


def _key(frame: PythonFrame) -> Tuple[str, Optional[int], str]:
    return frame.file, frame.line, frame.function
