"""Counters that the kernel keeps of a thread or a process since it began; parsed fast, since thousands are read.

Sources: proc(5); /proc/PID/task/TID/schedstat is (CPU ns, run delay ns, slices),
Documentation/scheduler/sched-stats.rst; delayacct_blkio_ticks counts only with kernel.task_delayacct:
Documentation/accounting/delay-accounting.rst.
"""

from __future__ import annotations

import os
from typing import Dict, NamedTuple, Optional, Tuple

from ...foreign.numbers import is_decimal
from . import parsers

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SWITCHES = b"\nvoluntary_ctxt_switches:"  # the last two rows of status


class Totals(NamedTuple):
    """A thread's counters since it began, in seconds and numbers of events; None: not readable."""

    cpu_s: Optional[float] = None
    run_delay_s: Optional[float] = None
    voluntary_switches: Optional[int] = None
    involuntary_switches: Optional[int] = None
    minor_faults: Optional[int] = None
    major_faults: Optional[int] = None
    io_delay_s: Optional[float] = None  # waiting for block devices, and for pages from them
    read_calls: Optional[int] = None  # read(2) and its like, without recv(2)
    write_calls: Optional[int] = None

    def since(self, before: Totals) -> Dict[str, Optional[float]]:
        """Return the differences by name."""
        return {name: minus(mine, theirs) for name, mine, theirs in zip(self._fields, self, before)}


NOTHING = Totals(0.0, 0.0, 0, 0, 0, 0, 0.0, 0, 0)
UNKNOWN = Totals()


def totals(path: str, delays: bool) -> Optional[Totals]:
    """Return the counters of a thread (/proc/PID/task/TID); None when it is gone.

    ``delays``: whether the kernel accounts for delays.
    """
    try:
        stat = parsers.stat(path)
        status = parsers.read(f"{path}/status")
    except (OSError, ValueError):
        return None
    try:
        fields = parsers.read(f"{path}/schedstat").split()
        cpu, delay = int(fields[0]) / 1e9, int(fields[1]) / 1e9
    except (OSError, ValueError, IndexError):
        # without CONFIG_SCHED_INFO: clock ticks, a hundredth of a second each
        cpu, delay = (stat.utime + stat.stime) / _TICKS, None
    voluntary, involuntary = _switches(status)
    calls = _calls(path)
    blocked = stat.io_delay / _TICKS if delays and stat.io_delay is not None else None
    return Totals(cpu, delay, voluntary, involuntary, stat.minor_faults, stat.major_faults, blocked, *calls)


def delays_are_counted() -> bool:
    """Return whether kernel.task_delayacct (Linux 5.14) is on; without it the field is 0.

    False on older kernels, which do not show whether they count.
    """
    try:
        return parsers.read("/proc/sys/kernel/task_delayacct").strip() == b"1"
    except OSError:
        return False


def io(path: str) -> Optional[Dict[str, int]]:
    """Return /proc/PID/io as a dict; None where it cannot be read."""
    try:
        rows = parsers.text(parsers.read(f"{path}/io")).splitlines()
        return {key: int(value) for key, _colon, value in (row.partition(":") for row in rows)}
    except (OSError, ValueError):
        return None


def resident(pid: int) -> Optional[int]:
    """Return the resident memory of a process in bytes."""
    try:
        return int(parsers.read(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


class Whole(NamedTuple):
    """A process's counters, including threads that have ended."""

    cpu_s: Optional[float] = None
    minor_faults: Optional[int] = None
    major_faults: Optional[int] = None

    def since(self, before: Whole) -> Dict[str, Optional[float]]:
        """Return the differences by name."""
        return {name: minus(mine, theirs) for name, mine, theirs in zip(self._fields, self, before)}


def whole(pid: int) -> Whole:
    """Return a process's counters, its CPU time to a hundredth of a second."""
    try:
        stat = parsers.stat(f"/proc/{pid}")
    except (OSError, ValueError):
        return Whole()
    return Whole((stat.utime + stat.stime) / _TICKS, stat.minor_faults, stat.major_faults)


def minus(after: Optional[float], before: Optional[float]) -> Optional[float]:
    """Return the difference, None when either value is unknown."""
    if after is None or before is None:
        return None
    return round(after - before, 9)


def _switches(status: bytes) -> Tuple[Optional[int], Optional[int]]:
    fields = status[status.rfind(_SWITCHES) :].split()
    if len(fields) < 4 or fields[0] != _SWITCHES.strip() or not (is_decimal(fields[1]) and is_decimal(fields[3])):
        return None, None
    return int(fields[1]), int(fields[3])


def _calls(path: str) -> Tuple[Optional[int], Optional[int]]:
    """Return syscr and syscw, the third and fourth row of /proc/PID/io."""
    try:
        fields = parsers.read(f"{path}/io").split()
        return int(fields[5]), int(fields[7])
    except (OSError, ValueError, IndexError):
        return None, None
