"""Threads that wait for results of a pool of processes, or for its end."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ...evidence import Pool, Process, Resource, Thread
from .knowledge import multiprocessing

#: A thread, and the result that it waits for; None: the pool's end.
PoolWaiter = Tuple[Thread, Optional[Resource]]
_FILE = multiprocessing("pool")
#: Innermost frames of a thread among which ``join`` is.
_NEAR = 6


def pool_waiters(process: Process, pool: Pool) -> List[PoolWaiter]:
    """Return the threads of a process that wait for a pool, those that join it first."""
    joining: List[PoolWaiter] = [(thread, None) for thread in process.threads if _joins(pool, thread)]
    awaited = ((thread, result_of(process, pool, thread)) for thread in process.threads)
    return joining + [(thread, result) for thread, result in awaited if result is not None]


def result_of(process: Process, pool: Pool, thread: Thread) -> Optional[Resource]:
    """Return the result of this pool that a thread waits for; None if it waits for none."""
    wanted = thread.wait.resource if thread.wait is not None else None
    return next((r for r in process.resources if r.id == wanted and r.part_of == pool.id), None) if wanted else None


def _joins(pool: Pool, thread: Thread) -> bool:
    """Return whether a thread is in Pool.join, which waits for every result."""
    inner = thread.python[:_NEAR]
    return thread.tid not in pool.threads and any(f.function == "join" and f.file.endswith(_FILE) for f in inner)
