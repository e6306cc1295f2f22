"""Surroundings of the processes during the window: control groups and machine.

``raw/proc/machine.json`` contains the kernel's files at both ends of the window. Sources:

- Documentation/admin-guide/cgroup-v2.rst (cpu.stat, cpu.max, memory.events, cgroup.events)
- scheduler/sched-bwc.rst (version 1: throttled_time in ns, quota -1 for none)
- accounting/psi.rst (total in µs)
- cgroup-v1/memory.rst (a limit near 2^63 means none)
- proc_stat(5), proc_vmstat(5) (pswpin, pswpout count pages)
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...evidence import ControlGroup, Machine, Process, replace
from ...foreign.held import Folder
from . import documents
from .shapes import digits, number
from .window import Window, whole

_PAGE = 4096  # bytes; of kernels that swap: x86-64, and most of aarch64
_NO_LIMIT = 1 << 60  # version 1: 2^63 minus a page
_MOST_LEVELS = 32
_LARGEST = 1 << 63  # limit of evidence
_PERIODS = range(1_000, 1_000_001)  # µs: periods that the kernel accepts (kernel/sched/core.c: 1 ms to 1 s)


class Ends(NamedTuple):
    """Files of one directory before and after the window: name → text."""

    before: Mapping[str, str]
    after: Mapping[str, str]

    def growth(self, file: str, key: str) -> Optional[int]:
        """Return the growth of a counter in a file of ``name number`` lines; None if unknown or shrunk."""
        first, last = _keyed(self.before.get(file)).get(key), _keyed(self.after.get(file)).get(key)
        return last - first if first is not None and last is not None and last >= first else None

    def number(self, file: str) -> Optional[int]:
        """Return the only number in a file; None for ``max`` and other texts."""
        text = self.after.get(file, "").strip()
        return digits(text)


class Surroundings:
    """The content of a bundle's ``raw/proc/machine.json``; empty if missing or damaged."""

    def __init__(self, folder: Folder) -> None:
        self._data = documents.read(folder, "raw/proc/machine.json", documents.MACHINE)
        self._seconds = number(self._data.get("seconds"))

    def completed(self, process: Process, window: Window, facts: Dict[str, Any]) -> Process:
        """Return a process with its counters, its control group and its tracer."""
        tracer, name, stopped_by = (facts.get(key) for key in ("tracer_pid", "tracer_name", "stopped_by"))
        cwd = facts.get("cwd")
        return replace(
            process,
            counters=whole(window),
            cwd=cwd if isinstance(cwd, str) and cwd.startswith("/") and not cwd.endswith(" (deleted)") else None,
            tracer=tracer if isinstance(tracer, int) and tracer > 0 else None,
            tracer_name=name if isinstance(name, str) else None,
            stopped_by=stopped_by if isinstance(stopped_by, int) and stopped_by > 0 else None,
            cgroup=self.control_group(process.pid),
        )

    def machine(self) -> Optional[Machine]:
        """Return the machine's state; None if unknown."""
        ends = _ends(self._data.get("machine"))
        if not ends.after:
            return None
        memory = _kilobytes(ends.after.get("meminfo"))
        load = ends.after.get("loadavg", "").split()
        return Machine(
            load=_decimal(load[0]) if load else None,
            memory=memory.get("MemTotal"),
            available=memory.get("MemAvailable"),
            swap_free=memory.get("SwapFree"),
            swapped_in=_bytes(ends.growth("vmstat", "pswpin")),
            swapped_out=_bytes(ends.growth("vmstat", "pswpout")),
            oom_kills=ends.growth("vmstat", "oom_kill"),
            steal=_steal(ends),
            stalls=self._stalls(ends, "pressure/{}"),
            refaulted=_refaulted(ends, "vmstat"),
        )

    def control_group(self, pid: int) -> Optional[ControlGroup]:
        """Return a process's control group; None if unknown."""
        members = self._data.get("processes")
        mine = members.get(str(pid)) if isinstance(members, dict) else None
        if not isinstance(mine, dict):
            return None
        places = {str(h): str(path) for h, path in mine.items()}
        levels = {hierarchy: self._levels(hierarchy, path) for hierarchy, path in places.items()}
        unified = levels.get("", [])
        if not any(levels.values()):
            return None
        cpu = _tightest_quota(unified + levels.get("cpu", []))
        memory = _nearest_limit(unified + levels.get("memory", []))
        return ControlGroup(
            path=_telling(places),
            frozen=self._frozen(places),
            cpu_quota=cpu.quota,
            throttled=cpu.throttled,
            throttled_s=cpu.throttled_s,
            memory_limit=memory[0],
            memory_used=memory[1],
            oom_kills=_oom_kills(unified, levels.get("memory", [])),
            stalls=self._stalls(unified[0], "{}.pressure") if unified else {},
            refaulted=_most(_refaulted(own, "memory.stat") for own in unified[:1] + levels.get("memory", [])[:1]),
        )

    def _frozen(self, places: Mapping[str, str]) -> Optional[bool]:
        """Return whether either version's group is frozen; both files include freezing from above."""
        answers = []
        for hierarchy in [h for h in ("", "freezer") if h in places]:
            group = self._group(hierarchy, places[hierarchy])
            if group is not None:
                answers.append(_says_frozen(group, places[hierarchy]))
            elif places[hierarchy].strip("/"):
                answers.append(None)
        if any(answers):
            return True
        return None if None in answers or not answers else False

    def _group(self, hierarchy: str, path: str) -> Optional[Ends]:
        groups = self._data.get("cgroups")
        table = groups.get(hierarchy) if isinstance(groups, dict) else None
        return _ends(table[path]) if isinstance(table, dict) and path in table else None

    def _levels(self, hierarchy: str, path: str) -> List[Ends]:
        """Return the group at ``path`` and those above it, as far as read."""
        found = []
        for _level in range(_MOST_LEVELS):
            found.append(self._group(hierarchy, path))
            if not path.strip("/"):
                break
            path = path.rstrip("/").rpartition("/")[0] or "/"
        return [group for group in found if group is not None]

    def _stalls(self, ends: Ends, form: str) -> Dict[str, float]:
        """Return the share of the window that was stalled, by ``cpu some`` and so on.

        ``form``: format of the file's name.
        """
        found = {}
        for kind, row in itertools.product(("cpu", "memory", "io"), ("some", "full")):
            first, last = (_total(texts.get(form.format(kind)), row) for texts in ends)
            if first is not None and last is not None and self._seconds and last >= first:
                found[f"{kind} {row}"] = round(min((last - first) / 1e6 / self._seconds, 1.0), 3)
        return found


class _Quota(NamedTuple):
    quota: Optional[float]
    throttled: Optional[float]
    throttled_s: Optional[float]


def _tightest_quota(levels: Sequence[Ends]) -> _Quota:
    """Return the smallest quota, and the throttling of the most throttled level."""
    quotas = [quota for quota in map(_cpus, levels) if quota is not None]
    held = []
    for level in levels:
        periods, times = level.growth("cpu.stat", "nr_periods"), level.growth("cpu.stat", "nr_throttled")
        if periods is None or times is None:
            continue
        micro, nano = level.growth("cpu.stat", "throttled_usec"), level.growth("cpu.stat", "throttled_time")
        seconds = micro / 1e6 if micro is not None else nano / 1e9 if nano is not None else None
        held.append((times / periods if periods else 0.0, seconds))
    most = max(held, key=lambda pair: pair[0], default=(None, None))
    share = None if most[0] is None else round(min(most[0], 1.0), 3)
    return _Quota(min(quotas, default=None), share, None if most[1] is None else round(most[1], 6))


def _cpus(level: Ends) -> Optional[float]:
    words = level.after.get("cpu.max", "").split()  # version 2: "50000 100000", or "max 100000"
    if not words:
        words = [level.after.get("cpu.cfs_quota_us", ""), level.after.get("cpu.cfs_period_us", "")]
    quota, period = (digits(word) for word in words) if len(words) == 2 else (None, None)
    return round(quota / period, 4) if quota is not None and period is not None and period in _PERIODS else None


def _says_frozen(group: Ends, path: str) -> Optional[bool]:
    events = _keyed(group.after.get("cgroup.events"))
    if "frozen" in events:
        return events["frozen"] == 1
    if "freezer.state" in group.after:
        return group.after["freezer.state"] != "THAWED"
    return None if path.strip("/") else False  # the top has no such file, and cannot be frozen


def _nearest_limit(levels: Sequence[Ends]) -> Tuple[Optional[int], Optional[int]]:
    """Return (limit, use) of the level with the least left; without a limit, the use of the process's group."""
    limits = []
    for level in levels:
        caps = (level.number("memory.max"), level.number("memory.high"), level.number("memory.limit_in_bytes"))
        limit = min((cap for cap in caps if cap is not None), default=None)  # above `high` it is throttled
        used = _either(level, "memory.current", "memory.usage_in_bytes")
        if limit is not None and used is not None and limit < _NO_LIMIT:
            limits.append((limit - used, limit, used))
    if limits:
        return min(limits)[1:]
    own = (_either(level, "memory.current", "memory.usage_in_bytes") for level in levels)
    return None, next((used for used in own if used is not None), None)


def _refaulted(ends: Ends, file: str) -> Optional[int]:
    """Return the growth of the workingset_refault counters in bytes; they count pages.

    One counter up to Linux 5.8, two since; version 1 groups have sums (total_) that include the groups below.
    """
    names = [f"{sums}workingset_refault{kind}" for sums in ("total_", "") for kind in ("", "_anon", "_file")]
    grown = [ends.growth(file, name) for name in names]
    mine = next((three for three in (grown[:3], grown[3:]) if any(n is not None for n in three)), None)
    return _bytes(sum(n for n in mine if n is not None)) if mine else None


def _oom_kills(unified: Sequence[Ends], memory: Sequence[Ends]) -> Optional[int]:
    counts = [level.growth("memory.events", "oom_kill") for level in unified]
    return _most(counts + [level.growth("memory.oom_control", "oom_kill") for level in memory])


def _most(counts: Iterable[Optional[int]]) -> Optional[int]:
    return max((count for count in counts if count is not None), default=None)


def _either(level: Ends, *files: str) -> Optional[int]:
    return next((n for n in map(level.number, files) if n is not None), None)


def _telling(places: Mapping[str, str]) -> str:
    """Return the most specific path: the unified one, else a controller's, the top last."""
    paths = [places[""]] if "" in places else []
    paths += [path for hierarchy, path in sorted(places.items()) if hierarchy]
    return next((path for path in paths if path.strip("/")), "/")


# ---------------------------------------------------------------------- texts


def _ends(value: Any) -> Ends:
    def texts(side: str) -> Dict[str, str]:
        found = value.get(side) if isinstance(value, dict) else None
        return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}

    return Ends(texts("before"), texts("after"))


def _rows(text: Optional[str]) -> Iterable[List[str]]:
    return (row.split() for row in (text or "").splitlines())


def _keyed(text: Optional[str]) -> Dict[str, int]:
    """Parse lines of ``name number``."""
    return _numbers((row[0], digits(row[1])) for row in _rows(text) if len(row) == 2)


def _kilobytes(text: Optional[str]) -> Dict[str, int]:
    """Parse /proc/meminfo into bytes."""
    rows = ((row[0].rstrip(":"), digits(row[1], _LARGEST >> 10)) for row in _rows(text) if len(row) == 3)
    return {name: count << 10 for name, count in _numbers(rows).items()}


def _numbers(rows: Iterable[Tuple[str, Optional[int]]]) -> Dict[str, int]:
    return {name: count for name, count in rows if count is not None}


def _total(text: Optional[str], row_name: str) -> Optional[int]:
    """Return the total of a row in µs: ``some avg10=0.00 avg60=0.00 avg300=0.00 total=0``."""
    for row in _rows(text):
        if row[:1] == [row_name] and row[-1].startswith("total="):
            return digits(row[-1][6:])
    return None


def _steal(ends: Ends) -> Optional[float]:
    """Return the share of stolen time.

    Fields of the row ``cpu``: user nice system idle iowait irq softirq steal …; guests are part of user.
    """
    first, last = _cpu_row(ends.before), _cpu_row(ends.after)
    if len(first) < 8 or len(last) < 8:
        return None
    spent = [b - a for a, b in zip(first[:8], last[:8])]
    return round(spent[7] / sum(spent), 3) if sum(spent) > 0 and spent[7] >= 0 else None


def _cpu_row(texts: Mapping[str, str]) -> List[int]:
    row = next((row for row in _rows(texts.get("stat")) if row[:1] == ["cpu"]), [])
    fields = (digits(field) for field in row[1:])
    return [field for field in fields if field is not None]


def _decimal(text: str) -> Optional[float]:
    try:
        return number(float(text))
    except ValueError:
        return None


def _bytes(pages: Optional[int]) -> Optional[int]:
    return pages * _PAGE if pages is not None and pages < _LARGEST // _PAGE else None
