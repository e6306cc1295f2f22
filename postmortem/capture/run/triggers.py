"""Reasons to capture a started command: a deadline, a stall, a signal.

A *stall* (``--stall``) is judged from counters of the whole tree that only work increases: bytes moved, which are those
passed to write(2) and its like (``wchar`` of /proc/PID/io) and those fetched from storage, for pages of programs, too
(``read_bytes``: a program whose code is still being loaded gets somewhere), and CPU time, of which a little is allowed for
processes that wake up to check a clock. The counters of a child that was waited for are added to its parent's (``cutime``
and ``cstime`` of /proc/PID/stat, and those of /proc/PID/io themselves: kernel/exit.c, wait_task_zombie), and at the top of
the tree to ours. So the sum over the tree and us does not change when a process begins, or ends and is waited for. What a
process had counted that nobody waits for is lost: then the lower sum becomes the new reference, and bytes moved by a new
process count as progress by themselves.

Time in which a process of the tree was ready to run and got no core counts neither as progress nor as time without it: on
a loaded machine a program that starts may wait longer for a core than the whole time allowed.
"""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH112

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set

from ...signalnames import signal_name
from ..options import Options
from ..procfs import parsers, tree
from .command import Command

#: Share of one core, over the time without progress, that counts as idle.
_IDLE_SHARE = 0.005
#: CPU seconds that count as idle in any case: they are whole clock ticks, rounded again when added to a parent's.
_IDLE_LEAST_S = 0.03
#: Counters of /proc/PID/io (proc_pid_io(5)).
_COUNTED = (b"wchar:", b"read_bytes:")
#: Number of looks in the time without progress, and the maximum of seconds between two.
_LOOKS = 10
_LONGEST_STEP_S = 10.0
#: Share of the time that looking may take: with thousands of processes there are fewer looks.
_MOST_LOAD = 0.005
_MOST_PROCESSES = 20_000
_TICKS = os.sysconf("SC_CLK_TCK")

Trigger = Dict[str, Any]


def trigger(kind: str, seconds: Optional[float] = None, number: Optional[int] = None) -> Trigger:
    """Return a reason to capture, as in the manifest; ``number``: a signal."""
    return {"kind": kind, "seconds": seconds, "signal": None if number is None else signal_name(number)}


class Triggers:
    """The reasons to capture, waited for; deadlines count from the command's start, in ``command.now()``."""

    def __init__(self, command: Command, options: Options) -> None:
        self._command = command
        self._timeout = options.timeout or None
        self._deadline = command.began + self._timeout if self._timeout else None
        self._stall = Stall(command, options.stall) if options.stall is not None else None

    def wait(self) -> Optional[Trigger]:
        """Wait for the next reason; return None when the command has ended."""
        command = self._command
        while True:
            left = None if self._deadline is None else self._deadline - command.now()
            if command.cancelled is not None:
                return trigger("signal", None, command.cancelled)
            if left is not None and left <= 0:
                return trigger("timeout", self._timeout)
            step = None if self._stall is None else self._stall.step_s
            waits = [seconds for seconds in (left, step) if seconds is not None]
            if command.wait(min(waits) if waits else None) is not None:
                return None
            if command.cancelled is None and command.demanded:
                command.demanded = False
                return trigger("signal", None, command.demand)
            if self._stall is not None and self._stall.look():
                return trigger("stall", self._stall.seconds)

    @property
    def unreadable(self) -> List[int]:
        """The processes whose moved bytes could not be counted."""
        return sorted(self._stall.unreadable) if self._stall is not None else []


class Progress(NamedTuple):
    """The tree's counters, including ended processes.

    - ``moved``: bytes
    - ``fresh``: bytes moved by processes that the last look did not find
    - ``whole``: whether no process began or ended meanwhile
    - ``runnable``: whether the main thread of one of them runs, or waits for a core (state R)
    """

    cpu_s: float
    moved: int
    fresh: int
    whole: bool
    runnable: bool


class Stall:
    """The detection of ``seconds`` without progress; call ``look`` every ``step_s`` seconds or less often."""

    def __init__(self, command: Command, seconds: float) -> None:
        self._command = command
        self.seconds = seconds
        self.step_s = min(seconds / _LOOKS, _LONGEST_STEP_S)
        self.unreadable: Set[int] = set()
        self._allowed_s = max(_IDLE_SHARE * seconds, _IDLE_LEAST_S)
        self._idle_s = 0.0
        self._looked = command.now()
        self._known: Set[int] = set()
        self._mark = self._read()

    def look(self) -> bool:
        """Read the counters; return True when it is time to capture. Does nothing when called too early."""
        now = self._command.now()
        since = now - self._looked
        if since < self.step_s * 0.9:
            return False
        self._looked = now
        found = self._read()
        if self._advanced(found):
            self._idle_s, self._mark = 0.0, found
        else:
            # a gap in our own execution (a stop, a suspended machine) does not count against the command
            if not found.runnable:
                self._idle_s += min(since, 2 * self.step_s)
            if found.whole:
                cpu_s, moved = min(found.cpu_s, self._mark.cpu_s), min(found.moved, self._mark.moved)
                self._mark = found._replace(cpu_s=cpu_s, moved=moved)
        return self._idle_s >= self.seconds

    def _advanced(self, found: Progress) -> bool:
        spent = found.cpu_s - self._mark.cpu_s
        return found.fresh > 0 or found.moved > self._mark.moved or spent > self._allowed_s

    def _read(self) -> Progress:
        """Read the counters, parents before children: a child waited for in between is missed, never counted twice."""
        began = time.monotonic()
        before = self._tree()
        ticks, moved, fresh, runnable = _of_our_children(), _moved(os.getpid()) or 0, 0, False
        for pid in before:
            try:
                line = parsers.read(f"/proc/{pid}/stat")
                ticks += _ticks(line)
                runnable = runnable or _is_runnable(line)
            except (OSError, ValueError, IndexError):
                continue
            bytes_moved = _moved(pid)
            if bytes_moved is None and os.path.isdir(f"/proc/{pid}"):
                self.unreadable.add(pid)
            moved += bytes_moved or 0
            fresh += (bytes_moved or 0) if pid not in self._known else 0
        self._known = set(before)
        found = Progress(ticks / _TICKS, moved, fresh, self._tree() == before, runnable)
        cost = time.monotonic() - began
        self.step_s = max(min(self.seconds / _LOOKS, _LONGEST_STEP_S), cost / _MOST_LOAD)
        return found

    def _tree(self) -> List[int]:
        """Return the processes below us, parents before children, without our helpers."""
        seen: Set[int] = set(self._command.helpers)
        found: List[int] = [os.getpid()]
        for pid in found:  # the list grows meanwhile
            try:
                children = [child for child in tree.children_of(pid) if child not in seen]
            except OSError:
                continue
            seen.update(children)
            found += children[: _MOST_PROCESSES - len(found)]
        return found[1:]


def _ticks(line: bytes) -> int:
    """Return the CPU time of a process and of its waited-for children (proc(5): fields 14 to 17)."""
    fields = line[line.rindex(b")") + 2 :].split()
    return sum(map(int, fields[11:15]))


def _is_runnable(line: bytes) -> bool:
    """Return whether a process's main thread runs, or waits for a core (proc(5): field 3)."""
    return line[line.rindex(b")") + 2 :].startswith(b"R")


def _of_our_children() -> int:
    line = parsers.read("/proc/self/stat")
    fields = line[line.rindex(b")") + 2 :].split()
    return int(fields[13]) + int(fields[14])


def _moved(pid: int) -> Optional[int]:
    """Return the bytes written, and those fetched from storage, including waited-for children's.

    None when they cannot be read (another user's process).
    """
    try:
        lines = parsers.read(f"/proc/{pid}/io").splitlines()
        found = [int(line.partition(b":")[2]) for line in lines if line.startswith(_COUNTED)]
    except (OSError, ValueError):
        return None
    return sum(found) if found else None
