"""Facts about the workers of a process pool, beyond what they do at the moment."""

from __future__ import annotations

from typing import Iterator

from ....evidence import Pool
from ...facts.view import View, do, plural


def lost_lock(view: View, pid: int) -> bool:
    """Return whether a worker waits for a lock whose holder has ended."""
    worker = view.by_pid.get(pid)
    if worker is None:
        return False
    wanted = {t.wait.resource for t in worker.threads if t.wait is not None}
    return any(r.id in wanted and r.kind == "shared-semaphore" and r.owner_gone for r in worker.resources)


def replaced(view: View, pool: Pool) -> Iterator[str]:
    """Yield sentences on workers that have ended, and on those started to replace them."""
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
