"""What is seen of the workers of a pool of processes, beside what they do."""

from __future__ import annotations

from typing import Iterator

from ....evidence import Pool
from ...facts.view import View, do, plural


def lost_lock(view: View, pid: int) -> bool:
    """Does this worker wait for a lock whose holder is no more?"""
    worker = view.by_pid.get(pid)
    if worker is None:
        return False
    wanted = {t.wait.resource for t in worker.threads if t.wait is not None}
    return any(r.id in wanted and r.kind == "shared-semaphore" and r.owner_gone for r in worker.resources)


def replaced(view: View, pool: Pool) -> Iterator[str]:
    """What says that workers have ended, and that others stand in for them."""
    ages = sorted(
        (p.age_s, p.pid) for pid in pool.processes for p in [view.by_pid.get(pid)] if p and p.age_s is not None
    )
    if pool.gone:
        yield f"worker {', '.join(map(str, pool.gone))} has ended"
    if pool.replaced and ages:
        yield (
            f"{plural(pool.replaced, 'worker')} {do(pool.replaced, 'stand')} in for others that ended: process {ages[0][1]} "
            f"is {ages[-1][0] - ages[0][0]:.2f} s younger than process {ages[-1][1]}"
        )
