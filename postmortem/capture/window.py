"""What only time can show: counters of every thread over a window, and a dozen looks at what each one does.

Nothing is stopped for it. States, system calls and kernel wait channels are read before any freeze, because a ptrace
stop changes all three. Sources: proc(5); /proc/PID/task/TID/schedstat is (CPU ns, run delay ns, slices).
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from . import procfs

_LOOKS = 15
#: Looking may take this share of the time: with thousands of threads there are fewer looks.
_MOST_LOAD = 0.15
_MOST_THREADS = 4096
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Totals(NamedTuple):
    """A thread's counters since it began; None: not readable."""

    cpu_s: Optional[float]
    run_delay_s: Optional[float]
    voluntary: Optional[int]
    involuntary: Optional[int]


_NOTHING = Totals(0.0, 0.0, 0, 0)


class ThreadWatch:
    """One thread during the window."""

    def __init__(self, name: str, first: Totals) -> None:
        self.name = name
        self.first = first
        self.last: Optional[Totals] = None
        self.state: Optional[str] = None
        self.states: Dict[str, int] = {}
        self.syscalls: Dict[str, int] = {}
        self.wchan: Dict[str, int] = {}
        self.last_syscall: Optional[procfs.SystemCall] = None

    def as_json(self) -> Dict[str, Any]:
        call = self.last_syscall
        return {
            "name": self.name,
            "state": self.state,
            **self._differences(),
            "states": self.states,
            "syscalls": self.syscalls,
            "last_syscall": None
            if call is None
            else {"nr": call.number, "name": call.name, "args": list(call.args), "sp": call.sp, "pc": call.pc},
            "wchan": self.wchan,
        }

    def _differences(self) -> Dict[str, Optional[float]]:
        last = self.last or Totals(None, None, None, None)
        return {
            "cpu_s": _minus(last.cpu_s, self.first.cpu_s),
            "voluntary_switches": _minus(last.voluntary, self.first.voluntary),
            "involuntary_switches": _minus(last.involuntary, self.first.involuntary),
            "run_delay_s": _minus(last.run_delay_s, self.first.run_delay_s),
        }


class ProcessWatch:
    """One process during the window. Everything that vanishes meanwhile keeps what was seen of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.threads: Dict[int, ThreadWatch] = {}
        self.began = time.monotonic()
        self._io = _io(pid)
        self._rss = _rss(pid)
        self.seconds = 0.0
        self._io_after: Optional[Dict[str, int]] = None
        self._rss_after: Optional[int] = None
        self.probes: Dict[str, Any] = {}
        self._find_threads(first=True)

    def look(self) -> None:
        self._find_threads(first=False)
        for tid, thread in self.threads.items():
            try:
                self._look_at(f"/proc/{self.pid}/task/{tid}", thread)
            except (OSError, ValueError):
                continue  # it has ended, or may not be read

    def finish(self) -> None:
        self.seconds = time.monotonic() - self.began
        for tid, thread in self.threads.items():
            thread.last = totals(f"/proc/{self.pid}/task/{tid}")
        self._io_after, self._rss_after = _io(self.pid), _rss(self.pid)

    def as_json(self) -> Dict[str, Any]:
        threads = {str(tid): thread.as_json() for tid, thread in self.threads.items()}
        spent = [thread["cpu_s"] for thread in threads.values() if thread["cpu_s"] is not None]
        return {
            "seconds": round(self.seconds, 6),
            "cpu_s": round(sum(spent), 6) if spent else None,
            "threads": threads,
            "io": None
            if self._io is None or self._io_after is None
            else {key: value - self._io.get(key, 0) for key, value in self._io_after.items()},
            "rss_growth": _minus(self._rss_after, self._rss),
            "probes": self.probes,
        }

    def _find_threads(self, first: bool) -> None:
        try:
            tids = procfs.threads(self.pid)
        except OSError:
            return
        for tid in tids[:_MOST_THREADS]:
            if tid in self.threads:
                continue
            path = f"/proc/{self.pid}/task/{tid}"
            before = totals(path) if first else _NOTHING  # what began in the window did all of it in the window
            try:
                name = procfs.text(procfs.read(f"{path}/comm")).rstrip("\n")
            except OSError:
                continue
            if before is not None:
                self.threads[tid] = ThreadWatch(name, before)

    @staticmethod
    def _look_at(path: str, thread: ThreadWatch) -> None:
        thread.state = procfs.stat(path).state
        _count(thread.states, thread.state)
        try:
            call = procfs.parse_syscall(procfs.read(f"{path}/syscall"))
            thread.last_syscall = call
            _count(thread.syscalls, call.name if call else "running")
        except (OSError, ValueError):
            thread.last_syscall = None  # not permitted: unknown, not "running"
        channel = procfs.text(procfs.read(f"{path}/wchan"))
        if channel not in ("", "0"):
            _count(thread.wchan, channel)


def observe(watches: List[ProcessWatch], seconds: float, pause: Callable[[float], bool]) -> None:
    """Looks at the processes for so long; ``pause(seconds)`` returns False when the window is to end early."""
    until = time.monotonic() + seconds
    step = seconds / _LOOKS
    while True:
        began = time.monotonic()
        for watch in watches:
            watch.look()
        cost = time.monotonic() - began
        left = until - time.monotonic()
        if left <= 0 or not pause(min(left, max(step, cost / _MOST_LOAD))):
            break
    for watch in watches:
        watch.look()
        watch.finish()


def totals(path: str) -> Optional[Totals]:
    """Counters of a thread (/proc/PID/task/TID); None when it is gone."""
    try:
        status = procfs.status(path)
    except OSError:
        return None
    cpu: Optional[float]
    delay: Optional[float]
    try:
        fields = procfs.read(f"{path}/schedstat").split()
        cpu, delay = int(fields[0]) / 1e9, int(fields[1]) / 1e9
    except (OSError, ValueError, IndexError):
        delay = None
        try:  # without CONFIG_SCHED_INFO: clock ticks, a hundredth of a second each
            stat = procfs.stat(path)
            cpu = (stat.utime + stat.stime) / _TICKS
        except (OSError, ValueError):
            cpu = None
    return Totals(cpu, delay, _number(status, "voluntary_ctxt_switches"), _number(status, "nonvoluntary_ctxt_switches"))


def _number(status: Dict[str, str], key: str) -> Optional[int]:
    value = status.get(key, "")
    return int(value) if value.isdigit() else None


def _io(pid: int) -> Optional[Dict[str, int]]:
    try:
        rows = procfs.text(procfs.read(f"/proc/{pid}/io")).splitlines()
        return {key: int(value) for key, _colon, value in (row.partition(":") for row in rows)}
    except (OSError, ValueError):
        return None


def _rss(pid: int) -> Optional[int]:
    try:
        return int(procfs.read(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


def _count(counts: Dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1


def _minus(after: Optional[float], before: Optional[float]) -> Optional[float]:
    if after is None or before is None:
        return None
    return round(after - before, 9)
