"""Which processes belong to the command: its descendants, and those that were handed to us when their parents ended.

(See ``subreaper``: such processes become children of ours.)
"""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH112, PTH208

from __future__ import annotations

import os
from typing import Collection, Dict, List, NamedTuple, Optional, Set

from . import procfs


class Member(NamedTuple):
    """A process of the tree. ``start`` (clock ticks since boot) tells it from a later one with the same id."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    state: str
    start: int

    @property
    def alive(self) -> bool:
        """A zombie whose other threads still run counts as alive: only its leader has ended."""
        return self.state not in "ZX" or _has_live_threads(self.pid)


def all_processes() -> Dict[int, Member]:
    """Every process that /proc shows."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            member = look(int(name))
            if member is not None:
                found[member.pid] = member
    return found


def look(pid: int) -> Optional[Member]:
    """One process, None when it is gone."""
    try:
        stat = procfs.stat(f"/proc/{pid}")
    except (OSError, ValueError):
        return None
    return Member(pid, stat.ppid, stat.pgid, stat.sid, stat.state, stat.start)


def members(
    root: int, *, adopted_by: Optional[int] = None, group: Optional[int] = None, without: Collection[int] = ()
) -> List[Member]:
    """The tree below ``root``, parents before children.

    ``adopted_by``: our own pid, when we are the subreaper: all its children belong, but those in ``without``
    (helpers, with what they started). ``group``: a process group that we made: all of its members belong.
    """
    processes = all_processes()
    children: Dict[int, List[int]] = {}
    for member in processes.values():
        children.setdefault(member.ppid, []).append(member.pid)
    starts = [root]
    if adopted_by is not None:
        starts += sorted(children.get(adopted_by, ()))
    if group is not None:
        starts += sorted(m.pid for m in processes.values() if m.pgid == group)
    seen: Set[int] = set(without) | {os.getpid()}
    order: List[Member] = []
    queue = starts
    while queue:
        pid = queue.pop(0)
        if pid in seen:
            continue
        seen.add(pid)
        if pid in processes:
            order.append(processes[pid])
        queue += sorted(children.get(pid, ()))
    return order


def children_of(pid: int) -> List[int]:
    """The children of a process, without looking at all others where the kernel offers that (CONFIG_PROC_CHILDREN)."""
    found: List[int] = []
    for tid in procfs.threads(pid):
        try:
            found += map(int, procfs.read(f"/proc/{pid}/task/{tid}/children").split())
        except FileNotFoundError:
            if os.path.isdir(f"/proc/{pid}/task/{tid}"):
                return [m.pid for m in all_processes().values() if m.ppid == pid]
    return found


def _has_live_threads(pid: int) -> bool:
    try:
        tids = procfs.threads(pid)
    except OSError:
        return False
    for tid in tids:
        try:
            if tid != pid and procfs.stat(f"/proc/{pid}/task/{tid}").state not in "ZX":
                return True
        except (OSError, ValueError):
            continue
    return False
