"""Facts about the workers of a process pool, beyond what they do at the moment."""

from __future__ import annotations

from typing import Iterator

from ....evidence import Pool
from ....findings import Template, Text
from ...facts.view import View

_ENDED = Template("worker {pids: and worker } ended")
_STAND_IN = Template(
    "{count:n worker} {count:v replaces one|replace others} that ended: process {young} is {younger:.2f} s younger than "
    "process {old}"
)


def lost_lock(view: View, pid: int) -> bool:
    """Return whether a worker waits for a lock whose holder has ended."""
    worker = view.by_pid.get(pid)
    if worker is None:
        return False
    wanted = {t.wait.resource for t in worker.threads if t.wait is not None}
    return any(r.id in wanted and r.kind == "shared-semaphore" and r.owner_gone for r in worker.resources)


def replaced(view: View, pool: Pool) -> Iterator[Text]:
    """Yield texts on workers that have ended, and on those started to replace them."""
    ages = sorted(
        (p.age_s, p.pid) for pid in pool.processes for p in [view.by_pid.get(pid)] if p and p.age_s is not None
    )
    if pool.gone:
        yield _ENDED(pids=pool.gone)
    if pool.replaced and ages:
        (least, young), (most, old) = ages[0], ages[-1]
        yield _STAND_IN(count=pool.replaced, young=young, younger=most - least, old=old)
