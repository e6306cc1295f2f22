"""Who else on the machine holds the other end of what a tree has open: one look at every process that may be read.

A proof that nobody can end a wait needs all holders, so what could not be read is told, too. Three facts spare most of it:
a process that began before the tree cannot have what the tree made, except by being sent it over a socket; one that began
later has it only if it descends from the tree, and whose parent ended was adopted by an ancestor of the tree (a subreaper
or init), not by anybody else; kernel threads have no descriptors.
"""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH110, PTH208

from __future__ import annotations

import os
import time
from typing import Any, Collection, Dict, List, Optional, Set

from ...foreign.numbers import is_decimal
from . import fdinfo, parsers

#: Seconds for all of it. 250 processes with 2,000 descriptors take 10 ms.
MOST_S = 0.5
_INITIAL_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, <linux/proc_ns.h>
_MOST_ENDS = 1024
_MOST_DESCRIBED = 64
_DEEPEST = 64


class Holders:
    """The processes beyond a tree that hold one of the ``wanted`` files, named as links in /proc/PID/fd name them."""

    def __init__(self, wanted: Collection[str], members: Set[int], began: int, proc: str = "/proc") -> None:
        """``members``: the tree; ``began``: when its root did, in clock ticks since boot."""
        self._wanted, self._members, self._began, self._proc = frozenset(wanted), members, began, proc
        self._ancestors: Optional[Set[int]] = None
        self._ends: Dict[str, List[List[Any]]] = {}
        self._described: Dict[str, Dict[str, Any]] = {}
        self._unread: Dict[str, int] = {"younger": 0, "unrelated": 0, "older": 0}
        self._looked_at = self._not_looked_at = 0

    def look(self, seconds: float = MOST_S) -> None:
        """Raises OSError when there is no /proc."""
        if not self._wanted:
            return
        until = time.monotonic() + seconds
        own = {*self._members, os.getpid()}
        pids = sorted((int(n) for n in os.listdir(self._proc) if is_decimal(n) and int(n) not in own), reverse=True)
        for number, pid in enumerate(pids):
            if time.monotonic() > until:
                self._not_looked_at = len(pids) - number
                break
            self._look_at(pid)

    def as_json(self) -> Dict[str, Any]:
        """``ends``: file → [pid, descriptor, mode]; ``unread``: how many processes, those apart who could
        have inherited from the tree ("younger"); ``all_visible``: no
        process of this machine is hidden from us."""
        return {
            "ends": self._ends,
            "processes": self._described,
            "looked_at": self._looked_at,
            "not_looked_at": self._not_looked_at,
            "unread": self._unread,
            "all_visible": self._all_visible(),
        }

    def _look_at(self, pid: int) -> None:
        base = f"{self._proc}/{pid}"
        try:
            names = os.listdir(f"{base}/fd")
        except PermissionError:
            self._note_unread(base)
            return
        except OSError:
            return  # it has ended
        self._looked_at += 1
        for name in names:
            try:
                target = os.readlink(f"{base}/fd/{name}")
            except OSError:
                continue
            if target in self._wanted:
                self._note(pid, name, target)

    def _note(self, pid: int, fd: str, target: str) -> None:
        ends = self._ends.setdefault(parsers.text(os.fsencode(target)), [])
        if len(ends) >= _MOST_ENDS:
            self._not_looked_at += 1
            return
        try:
            mode: Optional[str] = fdinfo.read(pid, fd).mode
        except OSError:
            mode = None
        ends.append([pid, int(fd), mode])
        if str(pid) not in self._described and len(self._described) < _MOST_DESCRIBED:
            self._described[str(pid)] = _describe(pid)

    def _note_unread(self, base: str) -> None:
        try:
            stat = parsers.stat(base)
        except (OSError, ValueError):
            return
        if stat.has_memory:
            if stat.start < self._began:
                self._unread["older"] += 1
            else:
                self._unread["younger" if self._may_descend(stat) else "unrelated"] += 1

    def _may_descend(self, stat: parsers.Stat) -> bool:
        """Does the way up from a process that began after the tree lead to somebody who adopts what the tree leaves?"""
        if self._ancestors is None:
            self._ancestors = self._above(self._members)
        for _level in range(_DEEPEST):
            if stat.ppid in self._members or stat.ppid in self._ancestors or stat.ppid <= 1:
                return True
            try:
                stat = parsers.stat(f"{self._proc}/{stat.ppid}")
            except (OSError, ValueError):
                return True
            if stat.start < self._began:
                return False
        return True

    def _above(self, members: Set[int]) -> Set[int]:
        """Everybody above the tree, and us, who adopt for it."""
        found: Set[int] = {os.getpid()}
        for member in members:
            current = member
            for _level in range(_DEEPEST):
                try:
                    current = parsers.stat(f"{self._proc}/{current}").ppid
                except (OSError, ValueError):
                    break
                if current in found or current <= 0:
                    break
                found.add(current)
        return found - members

    def _all_visible(self) -> bool:
        try:
            return os.readlink("/proc/self/ns/pid") == _INITIAL_NAMESPACE and os.path.exists(f"{self._proc}/1")
        except OSError:
            return False


def _describe(pid: int) -> Dict[str, Any]:
    """Its name, parent and age, and what it waits in: a descriptor's name goes with a call that has one."""
    try:
        stat = parsers.stat(f"/proc/{pid}")
    except (OSError, ValueError):
        return {}
    found: Dict[str, Any] = {
        "name": parsers.text(stat.comm),
        "ppid": stat.ppid,
        "start_ticks": stat.start,
        "call": None,
        "file": None,
    }
    try:
        call = parsers.parse_syscall(parsers.read(f"/proc/{pid}/syscall"))
        if call is not None and call.number >= 0:
            found["call"] = call.name
            if call.name in ("read", "write", "readv", "writev"):
                found["file"] = parsers.text(os.fsencode(os.readlink(f"/proc/{pid}/fd/{call.args[0]}")))
    except (OSError, ValueError):
        pass
    return found
