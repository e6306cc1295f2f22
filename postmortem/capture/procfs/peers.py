"""Processes outside of the tree that have the other end of its files open, found in one pass over all readable processes.

That nothing can end a wait is proven only if all holders are known, so the processes that cannot be read are counted.
Three facts exclude most of them:
- a process older than the tree has a file of the tree only if it was sent over a socket
- a younger one has it only if it descends from the tree; if its parent ended, it was adopted by an ancestor of the tree
  (a subreaper or init)
- kernel threads have no descriptors
"""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH110, PTH208

from __future__ import annotations

import os
import time
from typing import Any, Collection, Dict, List, Optional, Set

from ...foreign.numbers import is_decimal
from . import fdinfo, parsers

#: Seconds for the whole pass; 250 processes with 2,000 descriptors take 10 ms.
MOST_S = 0.5
_INITIAL_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, <linux/proc_ns.h>
_MOST_ENDS = 1024
_MOST_DESCRIBED = 64
_DEEPEST = 64
_LONGEST_TITLE = 256


class DescriptorHolders:
    """The processes outside of a tree that have one of the ``wanted`` files open, named like links in /proc/PID/fd."""

    def __init__(self, wanted: Collection[str], members: Set[int], began: int, proc: str = "/proc") -> None:
        """Prepare a pass; ``members``: pids of the tree; ``began``: start of its root in clock ticks since boot."""
        self._wanted, self._members, self._began, self._proc = frozenset(wanted), members, began, proc
        self._ancestors: Optional[Set[int]] = None
        self._ends: Dict[str, List[List[Any]]] = {}
        self._described: Dict[str, Dict[str, Any]] = {}
        self._unread: Dict[str, int] = {"younger": 0, "unrelated": 0, "older": 0}
        self._looked_at = self._not_looked_at = 0

    def look(self, seconds: float = MOST_S) -> None:
        """Make the pass, within so many seconds. Raises OSError without a /proc."""
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
        """Return the part of net.json about processes outside of the tree.

        - ``ends``: file → [pid, descriptor, mode]
        - ``processes``: description of the processes in ``ends``
        - ``unread``: number of unreadable processes; "younger" are those that may descend from the tree
        - ``all_visible``: whether no process of this machine is hidden from us
        """
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
        """Return whether a process younger than the tree has an ancestor in the tree, or one that adopts the tree's orphans."""
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
        """Return all ancestors of the tree, and our own pid: we adopt its orphans."""
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
    """Return a process's name, title, parent, start and system call, and the file that the call reads or writes."""
    try:
        stat = parsers.stat(f"/proc/{pid}")
    except (OSError, ValueError):
        return {}
    found: Dict[str, Any] = {
        "name": parsers.text(stat.comm),
        "ppid": stat.ppid,
        "start_ticks": stat.start,
        "title": _title(f"/proc/{pid}", stat.comm),
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


def _title(base: str, comm: bytes) -> Optional[str]:
    """Return what a process says of itself in place of its arguments, as setproctitle(3) writes it: "NAME: WHAT IT DOES".

    None for ordinary arguments, which may hold secrets of others.
    """
    try:
        said = parsers.read(f"{base}/cmdline", _LONGEST_TITLE)[:_LONGEST_TITLE].rstrip(b"\0 ")
    except OSError:
        return None
    return parsers.text(said) if said.startswith(comm + b": ") and b"\0" not in said else None
