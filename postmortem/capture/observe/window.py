"""The observation window: counters of every thread over a period, and a dozen looks at what each one does.

Nothing is stopped. States, system calls and kernel wait channels are read before any freeze, because a ptrace stop
changes all three. The machine may be overloaded already: the time spent on looking is bounded, for all processes
together.

Load of one core, over a window of a second:
- 4 threads: 1 %
- 100 threads: 7 %
- 2,000 threads: 27 %, of which 14 are the counters at both ends
- 500 processes: 17 %
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional

from ..procfs import counters, parsers
from ..procfs.cgroups import Groups, places
from ..procfs.pressure import machine_facts
from .timelines import Course

_LOOKS = 25
_GOLDEN = (5**0.5 - 1) / 2
#: Share of the time that looking may take: with thousands of threads there are fewer looks.
_MOST_LOAD = 0.1
#: Budget for reading the counters at each end of the window. CPU seconds that are allowed in any case, even beyond
#: _MOST_LOAD: without counters the window is worth little. And elapsed seconds at most, since a busy machine delays us.
_LEAST_FOR_COUNTERS_S = 0.2
_LONGEST_FOR_COUNTERS_S = 2.0
_MOST_THREADS = 4096
_MOST_NEWCOMERS = 1000  # a tree may fork without pause


class Allowance:
    """A budget of our CPU time and of elapsed time, in seconds from now."""

    def __init__(self, cpu_s: float = float("inf"), wall_s: float = float("inf")) -> None:
        self._cpu, self._wall = time.thread_time() + cpu_s, time.monotonic() + wall_s

    @property
    def used_up(self) -> bool:
        """Whether either time is over."""
        return time.thread_time() > self._cpu or time.monotonic() > self._wall


class ThreadWatch:
    """The observations of one thread."""

    def __init__(self, name: str, first: counters.Totals) -> None:
        self.name = name
        self.first = first
        self.last = counters.UNKNOWN
        self.state: Optional[str] = None
        self.states: Dict[str, int] = {}
        self.syscalls: Dict[str, int] = {}
        self.wchan: Dict[str, int] = {}
        self.last_syscall: Optional[parsers.SystemCall] = None
        self.course = Course()

    def as_json(self) -> Dict[str, Any]:
        """Return the thread's part of window.json."""
        call = self.last_syscall
        return {
            "name": self.name,
            "state": self.state,
            **self.last.since(self.first),
            "states": self.states,
            "syscalls": self.syscalls,
            "last_syscall": None
            if call is None
            else {"nr": call.number, "name": call.name, "args": list(call.args), "sp": call.sp, "pc": call.pc},
            "wchan": self.wchan,
            "course": self.course.as_json(),
        }


class ProcessWatch:
    """The observations of one process; threads that end keep what was seen of them.

    - ``allowance``: threads not reached when it is used up are not watched
    - ``delays``: whether the kernel accounts for delays
    - ``new``: the process began within the window, and so did all of its counters
    """

    def __init__(
        self, pid: int, allowance: Optional[Allowance] = None, delays: bool = False, new: bool = False
    ) -> None:
        self.pid = pid
        self.threads: Dict[int, ThreadWatch] = {}
        self.seconds = 0.0
        self.probes: Dict[str, Any] = {}
        self._delays = delays
        self._began = time.monotonic()
        self._first = _Ends(counters.Whole(0.0, 0, 0), {}, 0) if new else _Ends.of(pid)
        self._last = _Ends(counters.Whole(), None, None)
        self.all_found = self._find_threads(allowance or Allowance(), new)

    def look(self) -> None:
        """Look once at each thread, new ones included."""
        if self.all_found:
            self._find_threads(Allowance(), new=True)
        for tid, thread in self.threads.items():
            now = time.monotonic() - self._began
            try:
                self._look_at(f"/proc/{self.pid}/task/{tid}", thread, now)
            except (OSError, ValueError):
                thread.course.gone(now)  # it has ended, or may not be read

    def finish(self, allowance: Allowance) -> None:
        """Read the counters at the end of the window."""
        self.seconds = time.monotonic() - self._began
        for tid, thread in self.threads.items():
            if allowance.used_up:
                break
            thread.last = counters.totals(f"/proc/{self.pid}/task/{tid}", self._delays) or counters.UNKNOWN
        self._last = _Ends.of(self.pid)  # outside of its threads' two readings: never less than theirs

    def as_json(self) -> Dict[str, Any]:
        """Return the process's part of window.json."""
        first, last = self._first, self._last
        threads = {str(tid): thread.as_json() for tid, thread in self.threads.items()}
        spent = [thread["cpu_s"] for thread in threads.values() if thread["cpu_s"] is not None]
        known = last.whole.since(first.whole)
        if spent and self.all_found:  # finer than the process's clock ticks, but without threads that have ended
            known["cpu_s"] = max(round(sum(spent), 6), known["cpu_s"] or 0.0)
        return {
            "began": round(self._began, 6),  # time.monotonic(), as the probes have it
            "seconds": round(self.seconds, 6),
            **known,
            "threads": threads,
            "io": None
            if first.io is None or last.io is None
            else {key: value - first.io.get(key, 0) for key, value in last.io.items()},
            "rss_growth": counters.minus(last.resident, first.resident),
            "probes": self.probes,
        }

    def _find_threads(self, allowance: Allowance, new: bool) -> bool:
        """Add the threads not yet watched; return False when the allowance was too small for all."""
        try:
            tids = parsers.threads(self.pid)
        except OSError:
            return True
        for tid in tids[:_MOST_THREADS]:
            if tid in self.threads:
                continue
            if allowance.used_up:
                return False
            path = f"/proc/{self.pid}/task/{tid}"
            # a thread that began within the window did all of it within the window
            before = counters.NOTHING if new else counters.totals(path, self._delays)
            try:
                name = parsers.text(parsers.read(f"{path}/comm")).rstrip("\n")
            except OSError:
                continue
            if before is not None:
                self.threads[tid] = ThreadWatch(name, before)
        return len(tids) <= _MOST_THREADS

    @staticmethod
    def _look_at(path: str, thread: ThreadWatch, now: float) -> None:
        thread.state = parsers.stat(path).state
        _count(thread.states, thread.state)
        name = None
        try:
            call = parsers.parse_syscall(parsers.read(f"{path}/syscall"))
            thread.last_syscall = call
            name = call.name if call else "running"
            _count(thread.syscalls, name)
        except (OSError, ValueError):
            thread.last_syscall = None  # not permitted: unknown, not "running"
        thread.course.note(now, thread.state, name, thread.last_syscall)
        channel = parsers.text(parsers.read(f"{path}/wchan"))
        if channel not in ("", "0"):
            _count(thread.wchan, channel)


class _Ends(NamedTuple):
    """Counters of a process as a whole at one end of the window."""

    whole: counters.Whole
    io: Optional[Dict[str, int]]
    resident: Optional[int]

    @classmethod
    def of(cls, pid: int) -> _Ends:
        return cls(counters.whole(pid), counters.io(f"/proc/{pid}"), counters.resident(pid))


class Window:
    """The window of a whole tree: its processes, their control groups, the machine."""

    def __init__(self, pids: Iterable[int], seconds: float, now: Callable[[], Iterable[int]] = tuple) -> None:
        """Read the counters at the beginning.

        - ``pids``: the last ones are left out when the time does not suffice
        - ``seconds``: length of the window
        - ``now()``: returns the current processes of the tree; new ones are watched from then on
        """
        self._seconds = seconds
        self._now = now
        self._began = time.monotonic()
        self._machine = machine_facts()
        self._groups = Groups()
        self._places: Dict[str, Dict[str, str]] = {}
        self.watches: Dict[int, ProcessWatch] = {}
        self.left_out: List[int] = []
        self._delays = counters.delays_are_counted()
        allowance = self._allowance()
        for pid in pids:
            self._note_groups(pid)
            if allowance.used_up:
                self.left_out.append(pid)
            else:
                self.watches[pid] = ProcessWatch(pid, allowance, self._delays)
        self._newcomers = 0

    def observe(self, pause: Callable[[float], bool]) -> None:
        """Look at the processes until the window is over; ``pause(seconds)`` returns False to end it early."""
        until = time.monotonic() + self._seconds
        steps = _uneven(self._seconds / _LOOKS)
        wanted = 2 if self._seconds else 1  # the report shows the last look: it should not be as old as the first
        while True:
            cost = self._look()
            wanted -= 1
            left = until - time.monotonic()
            rest = max(next(steps), cost / _MOST_LOAD)
            if (left <= 0 and wanted <= 0) or not pause(max(0.0, min(left, rest))):
                break
        allowance = self._allowance()
        for watch in self.watches.values():
            watch.finish(allowance)

    def note(self, pid: int, probes: Dict[str, Any]) -> None:
        """Add what was read of the interpreter, by the name of the probe."""
        if pid in self.watches:
            self.watches[pid].probes.update(probes)

    def machine_json(self) -> Dict[str, Any]:
        """Return the machine and the control groups at both ends; to be called once, at the end of the window."""
        self._groups.finish()
        return {
            "seconds": round(time.monotonic() - self._began, 6),
            "machine": {"before": self._machine, "after": machine_facts()},
            "cgroups": self._groups.as_json(),
            "processes": self._places,
        }

    def shortcoming(self) -> str:
        """Return a sentence on what was not watched; "" when everything was."""
        watched = self.watches.values()
        parts = [
            text
            for number, text in (
                (len(self.left_out), f"{len(self.left_out)} of {len(self.left_out) + len(watched)} processes"),
                (sum(not watch.all_found for watch in watched), "some threads of processes with thousands of them"),
            )
            if number
        ]
        threads = sum(len(watch.threads) for watch in watched)
        return (
            f"could not watch {' and '.join(parts)}: {threads} thread{'' if threads == 1 else 's'} took all the time allowed"
            if parts
            else ""
        )

    def _look(self) -> float:
        """Look once at every process; return the CPU seconds that it took."""
        began = time.thread_time()
        allowance = self._allowance()
        for pid in self._now():
            if pid not in self.watches and pid not in self.left_out and self._newcomers < _MOST_NEWCOMERS:
                self._newcomers += 1
                self._note_groups(pid)
                self.watches[pid] = ProcessWatch(pid, allowance, self._delays, new=True)
        for watch in self.watches.values():
            watch.look()
        return time.thread_time() - began

    def _note_groups(self, pid: int) -> None:
        found = places(parsers.lines(f"/proc/{pid}/cgroup") or ())
        self._groups.add(found)
        self._places[str(pid)] = dict(found)

    def _allowance(self) -> Allowance:
        """Return the budget for the counters at one end of the window."""
        return Allowance(max(_LEAST_FOR_COUNTERS_S, _MOST_LOAD * self._seconds), _LONGEST_FOR_COUNTERS_S)


def _uneven(step: float) -> Iterator[float]:
    """Yield pauses of ``step`` seconds on average, each different from the last (multiples of the golden ratio).

    With a regular rhythm, a periodic process, such as one stopped and continued by a timer, would always be seen in the
    same phase.
    """
    looks = 0
    while True:
        looks += 1
        yield step * (0.5 + looks * _GOLDEN % 1.0)


def _count(counts: Dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1
