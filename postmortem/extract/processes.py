"""The processes of a bundle, each from its core, several gdbs at a time; within a budget when there is one."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..cores.executable import take_executable
from ..errors import PostmortemError
from ..evidence import Gap, Process
from . import schedule
from .coreless import read_without_core
from .cores import Begun, How, begin, finish, open_core
from .process import Raw

_NAMED = 8  # processes that a gap names before it only counts them


class _Waiting(NamedTuple):
    pid: int
    begun: Begun


def read_processes(
    folder: Path, raws: Mapping[int, Raw], how: How, until: Optional[float] = None
) -> Tuple[List[Process], List[Gap]]:
    """In the order of ``raws``, the root first. ``until``: see schedule.Budget."""
    readings = _Readings(folder, raws, how, schedule.Budget(until, len(raws)))
    order = schedule.most_telling_first(raws)
    for place, pid in enumerate(order):
        readings.read(pid, len(order) - place - 1)
    readings.drain(0)
    processes = [readings.processes[pid] for pid in raws]
    return processes, [*(gap for pid in raws for gap in readings.gaps.get(pid, ())), *readings.left_out()]


class _Readings:
    """One reading after the other; while gdb works for one, the next is begun."""

    def __init__(self, folder: Path, raws: Mapping[int, Raw], how: How, budget: schedule.Budget) -> None:
        self.processes: Dict[int, Process] = {}
        self.gaps: Dict[int, List[Gap]] = {}
        self._folder, self._raws, self._how, self._budget = folder, raws, how, budget
        self._at_once = schedule.at_once()
        self._waiting: Deque[_Waiting] = deque()
        self._without_gdb: List[int] = []
        self._unread: List[int] = []

    def read(self, pid: int, others: int) -> None:
        """Begins with one process; ``others`` are still to come."""
        self.drain(self._at_once - 1)
        self._how.progress(f"process {pid}")
        path = self._folder / "raw" / "cores" / f"{pid}.core"
        if not path.is_file():
            self._read_without_core(pid, [])
        elif not (self.processes or self._waiting) or self._budget.may_read():  # the first one is read in any case
            self._begin(pid, path, others)
        else:
            self._unread.append(pid)
            self._read_without_core(pid, [])

    def drain(self, kept: int) -> None:
        """Finishes the oldest ones until no more than so many are waiting."""
        while len(self._waiting) > kept:
            pid, begun = self._waiting.popleft()
            self.processes[pid], self.gaps[pid] = finish(begun, self._how)

    def left_out(self) -> List[Gap]:
        """One gap for each cause, for what there was no time for."""
        remedy = f"`postmortem analyze {self._folder}` takes all the time that it needs"
        found = []
        if self._without_gdb:
            reason = "the budget left no time for gdb; their Python side is complete"
            found.append(Gap("gdb", f"native stacks of {_listed(self._without_gdb)}", reason, remedy))
        if self._unread:
            reason = "the budget was used up before their cores were read: /proc and py-spy alone speak of them"
            found.append(Gap("core", _listed(self._unread), reason, remedy))
        return found

    def _begin(self, pid: int, path: Path, others: int) -> None:
        how = self._how._replace(gdb_s=self._budget.gdb_s(others))
        began = time.monotonic()
        try:
            core = open_core(path, how.sysroot)
            kept = self._folder / "raw" / "exe" / str(pid)
            if kept.is_file():  # the file was gone while the program ran: nobody else has it
                take_executable(core, kept)
            self._waiting.append(_Waiting(pid, begin(core, pid, self._raws[pid], how)))
        except PostmortemError as exc:
            self._read_without_core(pid, [Gap("core", f"process {pid}", str(exc), exc.next or None)])
            return
        self._budget.note_reading(time.monotonic() - began)
        if not how.gdb_s:
            self._without_gdb.append(pid)

    def _read_without_core(self, pid: int, why: Sequence[Gap]) -> None:
        self.processes[pid], gaps = read_without_core(pid, self._raws[pid])
        self.gaps[pid] = [*why, *gaps]


def _listed(pids: Sequence[int]) -> str:
    shown = ", ".join(map(str, pids[:_NAMED]))
    more = f" and {len(pids) - _NAMED} more" if len(pids) > _NAMED else ""
    return f"process {shown}" if len(pids) == 1 else f"processes {shown}{more}"
