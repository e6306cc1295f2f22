"""What makes postmortem capture a command that it started: its time is up, it gets nowhere, or somebody asks for it.

*Getting nowhere* (``--stall``) is judged from two counters of the whole tree that only work can move: bytes given to
write(2) and its kin (``wchar`` of /proc/PID/io) and CPU time. A process that only wakes up now and then to look at a
clock uses some CPU as well, so a little of that is allowed. The counters of a child that has ended and was waited for
become its parent's (``cutime`` and ``cstime`` of /proc/PID/stat, and ``wchar`` itself: kernel/exit.c,
wait_task_zombie), at the top of the tree ours. So the sum over the tree and us does not move when a process comes or
goes. Where it falls nevertheless (children that nobody waits for), what remains is the new measure, and processes that
are new and have written count for themselves.
"""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH112

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set

from ..options import Options
from ..procfs import parsers, tree
from .command import Command

#: As much of a core, over the time without progress, is taken for housekeeping.
_IDLE_SHARE = 0.005
#: CPU times are whole ticks of the clock, and moving them to a parent rounds them again.
_IDLE_LEAST_S = 0.03
#: Looks in the time without progress, and the longest time between two.
_LOOKS = 10
_LONGEST_STEP_S = 10.0
#: Looking may take this share of the time: with thousands of processes there are fewer looks.
_MOST_LOAD = 0.005
_MOST_PROCESSES = 20_000
_TICKS = os.sysconf("SC_CLK_TCK")

Trigger = Dict[str, Any]


def trigger(kind: str, seconds: Optional[float] = None, number: Optional[int] = None) -> Trigger:
    """As the manifest has it; ``number`` is a signal's."""
    return {"kind": kind, "seconds": seconds, "signal": None if number is None else signal_name(number)}


def signal_name(number: int) -> str:
    """SIGUSR1; SIGRTMIN+3 for those that have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


class Triggers:
    """Waits for the next reason to capture; deadlines count from the command's start, in ``command.now()``."""

    def __init__(self, command: Command, options: Options) -> None:
        self._command = command
        self._timeout = options.timeout or None
        self._deadline = command.began + self._timeout if self._timeout else None
        self._stall = Stall(command, options.stall) if options.stall is not None else None

    def wait(self) -> Optional[Trigger]:
        """None: the command has ended."""
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
        """The processes whose written bytes could not be counted."""
        return sorted(self._stall.unreadable) if self._stall is not None else []


class Progress(NamedTuple):
    """The tree's counters, those of ended processes included. ``fresh``: bytes written by processes that the look before
    did not find. ``whole``: no process came or went meanwhile."""

    cpu_s: float
    written: int
    fresh: int
    whole: bool


class Stall:
    """Tells when a tree has made no progress for ``seconds``. Call ``look`` every ``step_s`` seconds or less often."""

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
        """True when it is time to capture. Looks that come too early are not made."""
        now = self._command.now()
        since = now - self._looked
        if since < self.step_s * 0.9:
            return False
        self._looked = now
        found = self._read()
        if self._advanced(found):
            self._idle_s, self._mark = 0.0, found
        else:
            # a gap in our own running (a stop, a suspended machine) is none of the command's
            self._idle_s += min(since, 2 * self.step_s)
            if found.whole:
                cpu_s, written = min(found.cpu_s, self._mark.cpu_s), min(found.written, self._mark.written)
                self._mark = found._replace(cpu_s=cpu_s, written=written)
        return self._idle_s >= self.seconds

    def _advanced(self, found: Progress) -> bool:
        spent = found.cpu_s - self._mark.cpu_s
        return found.fresh > 0 or found.written > self._mark.written or spent > self._allowed_s

    def _read(self) -> Progress:
        """Parents are read before their children: one that is waited for in between is missed, never counted twice."""
        began = time.monotonic()
        before = self._tree()
        ticks, written, fresh = _of_our_children(), _written(os.getpid()) or 0, 0
        for pid in before:
            try:
                ticks += _ticks(parsers.read(f"/proc/{pid}/stat"))
            except (OSError, ValueError, IndexError):
                continue
            bytes_written = _written(pid)
            if bytes_written is None and os.path.isdir(f"/proc/{pid}"):
                self.unreadable.add(pid)
            written += bytes_written or 0
            fresh += (bytes_written or 0) if pid not in self._known else 0
        self._known = set(before)
        found = Progress(ticks / _TICKS, written, fresh, self._tree() == before)
        cost = time.monotonic() - began
        self.step_s = max(min(self.seconds / _LOOKS, _LONGEST_STEP_S), cost / _MOST_LOAD)
        return found

    def _tree(self) -> List[int]:
        """The processes below us, parents before children, without helpers of ours."""
        seen: Set[int] = set(self._command.helpers)
        found: List[int] = [os.getpid()]
        for pid in found:  # grows as it goes
            try:
                children = [child for child in tree.children_of(pid) if child not in seen]
            except OSError:
                continue
            seen.update(children)
            found += children[: _MOST_PROCESSES - len(found)]
        return found[1:]


def _ticks(line: bytes) -> int:
    """CPU time of a process and of its children that it has waited for (proc(5): fields 14 to 17)."""
    fields = line[line.rindex(b")") + 2 :].split()
    return sum(map(int, fields[11:15]))


def _of_our_children() -> int:
    line = parsers.read("/proc/self/stat")
    fields = line[line.rindex(b")") + 2 :].split()
    return int(fields[13]) + int(fields[14])


def _written(pid: int) -> Optional[int]:
    """``wchar``, that of waited-for children included; None when it may not be read (another user's process)."""
    try:
        for line in parsers.read(f"/proc/{pid}/io").splitlines():
            if line.startswith(b"wchar:"):
                return int(line[6:])
    except (OSError, ValueError):
        pass
    return None
