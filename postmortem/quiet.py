"""Background work at low priority: on one CPU, and only with the time that other processes leave.

After its target is released a capture still has cores to write, gdb to run and reports to make. It does so on the least
busy CPU, at idle priority; everything started from then on (gdb) inherits both.

On a CPU that is never idle, idle priority means hardly ever running, and a verdict has a budget. Measured with two busy
loops on two cores (Linux 6.18; the diagnosis of a process of four threads, 0.4 s without the loops; several runs):

    unchanged                           0.6 to 0.8 s
    one CPU, SCHED_IDLE                 1.9 s to more than 25 s
    one CPU, nice 19, SCHED_BATCH       0.6 to 2.2 s; 8 to 16 s where the session's autogroup is at 19, too
    one CPU, nice 10, SCHED_BATCH       1.3 to 3 s, gdb's autogroup at 10; 6.8 s with more load beside the loops

So idle priority is used on a CPU that is half free, else nice 10, a tenth of a CPU against a busy thread; SCHED_BATCH
preempts nothing at wake-up. Where more threads are busy than there are CPUs, a tenth is kept by less niceness: at nice 10
against five busy loops on two cores, searches for who else could end a wait ran out of time in ten of ten captures. If a
free CPU becomes busy later, the analysis loses its native stacks, but keeps its budget, which is in elapsed time
(extract.schedule).
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from typing import Dict, NamedTuple, Optional, Set

from .foreign.numbers import is_decimal

#: Share of the time for which a free CPU was idle.
FREE_SHARE = 0.5
#: Seconds for which the CPUs are watched; /proc/stat counts in hundredths of a second.
_LOOK_S = 0.06
_NICE = 10
#: By how much one level of niceness changes a process's share (kernel/sched/core.c, sched_prio_to_weight, Linux 2.6.23 on).
_LEVEL = 1.25


class Choice(NamedTuple):
    """The CPU to use, None when unknown, and whether to use idle priority."""

    cpu: Optional[int]
    idle: bool


def be_quiet() -> None:
    """Lower the priority of this process, and of all that it starts from now on.

    It cannot be undone without privileges, so it is for the last work of a process: a process that stops targets must
    not call it, since they would stay stopped for as long as it waits for a CPU. With further captures to make, call it
    in a child process. Takes 60 ms, and raises nothing: whatever is refused stays unchanged.
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
        os.nice(max(0, niceness(_running() / max(len(before), 1)) - os.getpriority(os.PRIO_PROCESS, 0)))
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def pass_on(pid: int) -> None:
    """Lower the priority of a process that we start in a session of its own.

    Where the kernel makes an autogroup of each session, our priority counts only inside that session, and the session's
    counts against all others (sched(7), CONFIG_SCHED_AUTOGROUP).
    """
    policy, nice = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    if policy == os.SCHED_IDLE or (policy == os.SCHED_BATCH and nice > 0):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as stream:
            stream.write(str(_NICE if policy == os.SCHED_IDLE else min(nice, _NICE)))


def niceness(busy: float) -> int:
    """Return the niceness that leaves a tenth of a CPU against ``busy`` threads that run on it."""
    return max(0, _NICE - math.ceil(math.log(max(busy, 1.0), _LEVEL)))


def choose(allowed: Set[int], before: Dict[int, int], after: Dict[int, int], seconds: float) -> Choice:
    """Return the CPU that was idle for most of the time, and whether that suffices for idle priority.

    ``before``, ``after``: idle clock ticks by CPU at both ends of ``seconds``.
    """
    idle = {cpu: after[cpu] - before[cpu] for cpu in sorted(allowed) if cpu in before and cpu in after}
    if not idle:
        return Choice(None, False)
    freest = max(idle, key=lambda cpu: (idle[cpu], cpu))  # the last one of equals: the first handles interrupts
    return Choice(freest, idle[freest] >= FREE_SHARE * seconds * os.sysconf("SC_CLK_TCK"))


def _running() -> int:
    """Return the number of threads that run or could run, without this one (proc(5), /proc/stat: procs_running)."""
    try:
        with open("/proc/stat", "rb") as stream:
            found = next((line.split()[1] for line in stream if line.startswith(b"procs_running")), b"1")
        return max(0, int(found) - 1)
    except (OSError, ValueError, IndexError):
        return 0


def _idle_ticks() -> Dict[int, int]:
    """Return CPU → idle clock ticks (proc(5), /proc/stat: the fields idle and iowait)."""
    try:
        with open("/proc/stat", "rb") as stream:
            lines = [line.split() for line in stream if line.startswith(b"cpu")]
        rows = {line[0][3:]: sum(map(int, line[4:6])) for line in lines}
        return {int(cpu): ticks for cpu, ticks in rows.items() if is_decimal(cpu)}
    except (OSError, ValueError):
        return {}
