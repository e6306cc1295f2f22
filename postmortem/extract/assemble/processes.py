"""The processes of a bundle, read from their cores with several gdbs at a time, within a budget if there is one."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from pathlib import Path
from typing import Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cores.executable import take_executable
from ...errors import PostmortemError
from ...evidence import Gap, Process
from ...foreign.held import Folder
from ...foreign.processfiles import NO_FILES, Files
from ...memory import ElfCore
from ...native import Unwinding, may_share
from ..cross_process.ended import with_ended
from ..cross_process.forks import Trace, with_kinship
from ..cross_process.serving import with_serving_tasks
from ..cross_process.sharing import with_shared_owners, with_sharers
from ..cross_process.shells import with_child_waits
from ..cross_process.workers import with_workers
from ..process.coreless import read_without_core
from ..recorded import documents
from ..recorded.raw import Raw, kept_root
from . import schedule
from .cores import Begun, Opened, begin, finish, of_error, open_to_read, start_gdb, unusable, with_program
from .how import How

_SHARERS = "raw/proc/sharers.json"
_NAMED = 8  # processes named in a gap; others are counted


class Cores(NamedTuple):
    """The cores of a bundle.

    - ``place``: path of the bundle, for gdb
    - ``files``: files of its processes, by PID
    """

    folder: Folder
    place: Path
    files: Mapping[int, Files]

    def has(self, pid: int) -> bool:
        """Return whether there is a core of a process."""
        return self.folder.has(_name(pid))

    def root(self, process: Mapping[str, object]) -> Optional[Path]:
        """Return the directory for a process's files, existing or not; nothing replaces it. None: the machine's root."""
        kept = kept_root(process)
        return (self.place / kept).absolute() if kept is not None else None

    def open(self, pid: int) -> ElfCore:
        """Open a process's core. Raises NotACore."""
        path = self.place / _name(pid)
        try:
            descriptor = self.folder.open(_name(pid))
        except OSError as exc:
            raise unusable(path, exc) from None
        return open_to_read(path, self.files.get(pid, NO_FILES), descriptor=descriptor)


def _name(pid: int) -> str:
    return f"raw/cores/{pid}.core"


def read_processes(
    cores: Cores, raws: Mapping[int, Raw], how: How, until: Optional[float] = None
) -> Tuple[List[Process], List[Gap]]:
    """Return the processes in the order of ``raws``, the root first, and the gaps.

    ``until``: as in schedule.Budget.
    """
    order = schedule.most_telling_first(raws)
    readings = _Readings(cores, raws, how, schedule.Budget(until, len(raws)))
    try:
        for pid in order:
            readings.take(pid)
        readings.begin()
        readings.drain(0)
    finally:
        readings.close()
    processes = with_kinship([readings.processes[pid] for pid in raws], readings.traces, cores.open)
    processes = with_shared_owners(processes, readings.traces)
    maps = {pid: raw.process.get("maps") for pid, raw in raws.items()}
    processes = with_sharers(
        processes, readings.traces, maps, documents.read(cores.folder, _SHARERS, documents.SHARERS)
    )
    processes = with_child_waits(with_ended(with_workers(processes), readings.traces))
    processes = with_serving_tasks(processes)
    return processes, [*(gap for pid in raws for gap in readings.gaps.get(pid, ())), *readings.left_out()]


class _Readings:
    """A reading of processes.

    Processes of one program share a gdb; while it works, the next are begun.
    """

    def __init__(self, cores: Cores, raws: Mapping[int, Raw], how: How, budget: schedule.Budget) -> None:
        self.processes: Dict[int, Process] = {}
        self.traces: Dict[int, Trace] = {}
        self.gaps: Dict[int, List[Gap]] = {}
        self._cores, self._raws, self._how, self._budget = cores, raws, how, budget
        self._programs: List[int] = []  # descriptors
        self._at_once, self._together = schedule.at_once(), schedule.together(len(raws))
        self._others = len(raws)  # not taken yet
        self._opened: List[Opened] = []
        self._waiting: Deque[List[Begun]] = deque()
        self._without_gdb: List[int] = []
        self._unread: List[int] = []

    def take(self, pid: int) -> None:
        """Take the next process: read it now, or together with the following ones."""
        self._others -= 1
        is_first = not (self.processes or self._waiting or self._opened)  # it is read in any case
        if not self._cores.has(pid):
            self._read_without_core(pid, [])
        elif is_first or self._budget.may_read():
            self._open(pid)
        else:
            self._unread.append(pid)
            self._read_without_core(pid, [])

    def begin(self) -> None:
        """Start gdb for the processes taken, and read their Python side meanwhile."""
        several, self._opened = self._opened, []
        if not several:
            return
        self.drain(self._at_once - 1)
        how = self._how_for(several[0].pid, self._budget.gdb_s(self._others, len(several)))
        unwinding = start_gdb(several, how) if how.gdb_s else None
        if not how.gdb_s:
            self._without_gdb += [opened.pid for opened in several]
        self._waiting.append([self._begun(opened, unwinding) for opened in several])

    def drain(self, kept: int) -> None:
        """Finish the oldest processes until at most ``kept`` gdbs are working."""
        while len(self._waiting) > kept:
            for begun in self._waiting.popleft():
                self._finish(begun)

    def left_out(self) -> List[Gap]:
        """Return a gap for each kind of reading that there was no time for."""
        place = str(self._cores.place)
        found = []
        if self._without_gdb:
            subject = f"native stacks of {_listed(self._without_gdb)}"
            found.append(Gap.of("gdb", subject, "no-time-for-gdb", place=place))
        if self._unread:
            found.append(Gap.of("core", _listed(self._unread), "no-time-for-core", place=place))
        return found

    def _open(self, pid: int) -> None:
        self._how.progress(f"process {pid}")
        how = self._how_for(pid)
        try:
            core = self._cores.open(pid)
        except PostmortemError as exc:
            self._read_without_core(pid, [of_error("core", f"process {pid}", "core-unread", exc)])
            return
        with contextlib.suppress(OSError):  # the file was deleted while the program ran: no other copy exists
            self._programs.append(self._cores.folder.open(f"raw/exe/{pid}"))
            take_executable(core, Path(f"/proc/{os.getpid()}/fd/{self._programs[-1]}"))
        opened = with_program(core, pid, self._raws[pid], self._cores.files.get(pid, NO_FILES), how)
        shares = may_share(opened.file, opened.program, how.sysroot)
        if self._opened and not (shares and opened.program == self._opened[0].program):
            self.begin()
        self._opened.append(opened)
        if not shares or len(self._opened) >= self._together:
            self.begin()

    def _how_for(self, pid: int, gdb_s: float = 0.0) -> How:
        """Return options for one process; one with another root is read with that root's files unless told otherwise."""
        sysroot = self._how.sysroot or self._cores.root(self._raws[pid].process)
        return self._how._replace(sysroot=sysroot, gdb_s=gdb_s)

    def _begun(self, opened: Opened, unwinding: Optional[Unwinding]) -> Begun:
        began = time.monotonic()
        try:
            return begin(opened, self._how_for(opened.pid), unwinding)
        finally:
            self._budget.note_reading(time.monotonic() - began)

    def _finish(self, begun: Begun) -> None:
        pid = begun.opened.pid
        how = self._how_for(pid, self._budget.gdb_s(self._others))
        if self._budget.limited and begun.unwinding is not None and begun.unwinding.too_late_for(begun.opened.path):
            begun = begun._replace(unwinding=None)
            self._without_gdb.append(pid)
        self.processes[pid], self.gaps[pid], self.traces[pid] = finish(begun, how)

    def close(self) -> None:
        """Close what was opened for gdb."""
        while self._programs:
            os.close(self._programs.pop())

    def _read_without_core(self, pid: int, why: Sequence[Gap]) -> None:
        self.processes[pid], gaps = read_without_core(pid, self._raws[pid])
        self.gaps[pid] = [*why, *gaps]


def _listed(pids: Sequence[int]) -> str:
    shown = ", ".join(map(str, pids[:_NAMED]))
    more = f" and {len(pids) - _NAMED} more" if len(pids) > _NAMED else ""
    return f"process {shown}" if len(pids) == 1 else f"processes {shown}{more}"
