"""Which processes belong to the command: its descendants, and those that were handed to us when their parents ended.

(See ``subreaper``: such processes become children of ours.)
"""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH112, PTH208

from __future__ import annotations

import collections
import functools
import os
from typing import Collection, Dict, Iterable, List, NamedTuple, Optional, Set

from ...foreign.numbers import is_decimal
from . import parsers


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


def look(pid: int, proc: str = "/proc") -> Optional[Member]:
    """One process, None when it is gone."""
    try:
        stat = parsers.stat(f"{proc}/{pid}")
    except (OSError, ValueError):
        return None
    return Member(pid, stat.ppid, stat.pgid, stat.sid, stat.state, stat.start)


class Tree:
    """The processes of one tree, looked up again and again while all others on the machine are passed over.

    A process belongs for good: also when its parent ends, and whoever adopts it is not of the tree. One that is seen to
    descend from elsewhere never will: it is known by its id and its inode below /proc, which no later process shares,
    and is not read again. With 5,000 others a look-up takes a few milliseconds instead of a hundred.

    The root's id may be given to another process, or become another group's, once the root has been waited for and
    nobody is left in the group and session that it made. What has the id then is not of the tree.
    """

    def __init__(self, root: int, adopted_by: Optional[int], group: Optional[int], proc: str = "/proc") -> None:
        self._root, self._adopted_by, self._group, self._proc = root, adopted_by, group, proc
        self._began: Optional[int] = None  # the root, as it was first seen
        self._known: Dict[int, int] = {}  # pid → when it began
        self._inside: Dict[int, int] = {}  # of these: who was in the group or session that the root made
        self._outside: Dict[int, int] = {}  # pid → inode

    def members(self, without: Collection[int], ended: bool = False) -> List[Member]:
        """Parents before children. ``without``: helpers of ours, with what they started. ``ended``: the root has been
        waited for."""
        inodes = self._listed()
        processes = self._read(inodes)
        root = None if ended else self._root_of(processes)
        children: Dict[int, List[int]] = {}
        for member in processes.values():
            children.setdefault(member.ppid, []).append(member.pid)
        group = self._group_of(processes, root)
        order = self._descend(processes, children, without, root, group)
        self._known = {member.pid: member.start for member in order}
        self._inside = {m.pid: m.start for m in order if group is not None and group in (m.pgid, m.sid)}
        self._pass_over(inodes, children)
        return order

    def _listed(self) -> Dict[int, int]:
        with os.scandir(self._proc) as entries:
            return {int(entry.name): entry.inode() for entry in entries if is_decimal(entry.name)}

    def _read(self, inodes: Dict[int, int]) -> Dict[int, Member]:
        wanted = (pid for pid, inode in inodes.items() if self._outside.get(pid) != inode)
        return {member.pid: member for member in (look(pid, self._proc) for pid in wanted) if member is not None}

    def _root_of(self, processes: Dict[int, Member]) -> Optional[Member]:
        found = processes.get(self._root)
        if found is not None and self._began is None:
            self._began = found.start
        return found if found is not None and found.start == self._began else None

    def _group_of(self, processes: Dict[int, Member], root: Optional[Member]) -> Optional[int]:
        """The id of the group that we made, or of the group and session that the root made, as long as it is certainly
        theirs: the root is there, if only as a zombie, or somebody who was in it at the last look still is."""
        ours = self._root if self._group is None else self._group
        if root is not None:
            return ours
        for pid, start in self._inside.items():
            member = processes.get(pid)
            if member is not None and member.start == start and ours in (member.pgid, member.sid):
                return ours
        return None

    def _descend(
        self,
        processes: Dict[int, Member],
        children: Dict[int, List[int]],
        without: Collection[int],
        root: Optional[Member],
        group: Optional[int],
    ) -> List[Member]:
        starts = [] if root is None else [self._root]
        if self._adopted_by is not None:
            starts += sorted(children.get(self._adopted_by, ()))
        starts += sorted(pid for pid, member in processes.items() if self._belongs(member, group))
        seen: Set[int] = set(without) | {os.getpid()}
        order: List[Member] = []
        queue = collections.deque(starts)
        while queue:
            pid = queue.popleft()
            if pid in seen:
                continue
            seen.add(pid)
            if pid in processes:
                order.append(processes[pid])
            queue += sorted(children.get(pid, ()))
        return order

    def _belongs(self, member: Member, group: Optional[int]) -> bool:
        """Wherever its parent is: it is in the group that we made, or in a group or session that the root made (the id of
        either is its maker's, and is given to no other process as long as somebody is in it), or was seen before."""
        return group in (member.pgid, member.sid) or self._known.get(member.pid) == member.start

    def _pass_over(self, inodes: Dict[int, int], children: Dict[int, List[int]]) -> None:
        """Notes who is outside: not of the tree, like everybody above it up to the first process. Whose parent ended just
        now is in doubt, and is read again."""
        outside = {pid: inode for pid, inode in self._outside.items() if inodes.get(pid) == inode}
        queue = collections.deque([0, *outside])
        while queue:
            for pid in children.get(queue.popleft(), ()):
                if pid not in self._known and pid not in outside:
                    outside[pid] = inodes[pid]
                    queue.append(pid)
        self._outside = outside


@functools.lru_cache(maxsize=4)
def _tree(root: int, adopted_by: Optional[int], group: Optional[int]) -> Tree:
    return Tree(root, adopted_by, group)


def members(
    root: int,
    *,
    adopted_by: Optional[int] = None,
    group: Optional[int] = None,
    without: Collection[int] = (),
    ended: bool = False,
) -> List[Member]:
    """The tree below ``root``, parents before children. ``ended``: the root has been waited for.

    ``adopted_by``: our own pid, when we are the subreaper: all its children belong, but those in ``without``
    (helpers, with what they started). ``group``: a process group that we made: all of its members belong.
    """
    return _tree(root, adopted_by, group).members(without, ended)


def hidden_children(found: Iterable[Member]) -> Dict[int, int]:
    """Child → parent, of children that the kernel names and /proc does not show us: it is mounted with ``hidepid``."""
    hidden = {}
    for member in found:
        try:
            unseen = [pid for pid in children_of(member.pid) if look(pid) is None]
            # one that has ended meanwhile is not named again
            hidden.update(dict.fromkeys(set(unseen) & set(children_of(member.pid)), member.pid) if unseen else {})
        except OSError:
            continue
    return hidden


def children_of(pid: int) -> List[int]:
    """The children of a process, without looking at all others where the kernel offers that (CONFIG_PROC_CHILDREN)."""
    found: List[int] = []
    for tid in parsers.threads(pid):
        try:
            found += map(int, parsers.read(f"/proc/{pid}/task/{tid}/children").split())
        except FileNotFoundError:
            if os.path.isdir(f"/proc/{pid}/task/{tid}"):
                return [m.pid for m in map(look, _pids()) if m is not None and m.ppid == pid]
    return found


def _pids() -> List[int]:
    return [int(name) for name in os.listdir("/proc") if is_decimal(name)]


def _has_live_threads(pid: int) -> bool:
    try:
        tids = parsers.threads(pid)
    except OSError:
        return False
    for tid in tids:
        try:
            if tid != pid and parsers.stat(f"/proc/{pid}/task/{tid}").state not in "ZX":
                return True
        except (OSError, ValueError):
            continue
    return False
