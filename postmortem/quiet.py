"""Work that nobody waits for is to disturb nobody: one CPU, and of that what others leave.

A capture lets its target go and then still has cores to write, gdb to run and reports to make. That is to happen on the
CPU that has the least to do, at idle priority; everything that is started from then on (gdb) inherits both.

Idle priority on a CPU that never is idle means hardly ever running, and a verdict has a budget. Measured with two busy
loops on two cores (Linux 6.18; the diagnosis of a process of four threads, 0.4 s without the loops; several runs):

    as before                           0.6 to 0.8 s
    one CPU, SCHED_IDLE                 1.9 s to more than 25 s
    one CPU, nice 19, SCHED_BATCH       0.6 to 2.2 s; 8 to 16 s where the session's autogroup is at 19, too
    one CPU, nice 10, SCHED_BATCH       1.3 to 3 s, gdb's autogroup at 10; 6.8 s with more load beside the loops

So idle priority is for a CPU of which half is free, and where there is none it is nice 10, a tenth of a CPU against a
busy thread; SCHED_BATCH interrupts nobody on waking up. What had been free and is taken later on costs the analysis its
native stacks, not the budget: that goes by the clock (extract.schedule).
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Dict, NamedTuple, Optional, Set

from .foreign.numbers import is_decimal

#: A CPU is free when so much of it was idle lately.
FREE_SHARE = 0.5
#: How long the CPUs are looked at; /proc/stat counts in hundredths of a second.
_LOOK_S = 0.06
_NICE = 10


class Choice(NamedTuple):
    """``cpu``: None when nothing tells them apart."""

    cpu: Optional[int]
    idle: bool


def be_quiet() -> None:
    """This process, and what it starts from now on, gives way to everybody.

    It cannot be undone without privileges. So it is for the last thing that a process does: it must never stop a target
    again, which would stand still for as long as we do; whoever has further captures to make calls it in a child
    process. Takes 60 ms, and raises nothing: where something is refused the work goes on as it was.
    """
    allowed = os.sched_getaffinity(0)
    before = _idle_ticks()
    began = time.monotonic()
    time.sleep(_LOOK_S)
    choice = choose(allowed, before, _idle_ticks(), time.monotonic() - began)
    with contextlib.suppress(OSError):
        if choice.cpu is not None:
            os.sched_setaffinity(0, {choice.cpu})
    if choice.idle:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            return
    with contextlib.suppress(OSError):
        os.nice(max(0, _NICE - os.getpriority(os.PRIO_PROCESS, 0)))
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def pass_on(pid: int) -> None:
    """For a process that we start in a session of its own: where the kernel makes an autogroup of each session, our
    priority counts inside that session alone, and the session's against all others (sched(7), CONFIG_SCHED_AUTOGROUP)."""
    if os.sched_getscheduler(0) == os.SCHED_IDLE or os.getpriority(os.PRIO_PROCESS, 0) >= _NICE:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as stream:
            stream.write(str(_NICE))


def choose(allowed: Set[int], before: Dict[int, int], after: Dict[int, int], seconds: float) -> Choice:
    """The CPU that was idle for the longest of the time (ticks by CPU, at both of its ends), and whether that was enough
    for working in what is left of it."""
    idle = {cpu: after[cpu] - before[cpu] for cpu in sorted(allowed) if cpu in before and cpu in after}
    if not idle:
        return Choice(None, False)
    freest = max(idle, key=lambda cpu: (idle[cpu], cpu))  # of equal ones the last: the first has the interrupts
    return Choice(freest, idle[freest] >= FREE_SHARE * seconds * os.sysconf("SC_CLK_TCK"))


def _idle_ticks() -> Dict[int, int]:
    """CPU → clock ticks in which it had nothing to do (proc(5), /proc/stat: the fields idle and iowait)."""
    try:
        with open("/proc/stat", "rb") as stream:
            lines = [line.split() for line in stream if line.startswith(b"cpu")]
        rows = {line[0][3:]: sum(map(int, line[4:6])) for line in lines}
        return {int(cpu): ticks for cpu, ticks in rows.items() if is_decimal(cpu)}
    except (OSError, ValueError):
        return {}
