"""The processes that belong to the command: its descendants, and orphans that were reparented to us (see ``subreaper``)."""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH112, PTH208

from __future__ import annotations

import collections
import functools
import os
from typing import Collection, Dict, Iterable, List, NamedTuple, Optional, Set

from ...foreign.numbers import is_decimal
from . import parsers


class Member(NamedTuple):
    """A process of the tree; ``start`` (clock ticks since boot) tells it from a later one with the same pid."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    state: str
    start: int

    @property
    def alive(self) -> bool:
        """Whether any thread still runs; a zombie leader may have other threads."""
        return self.state not in "ZX" or _has_live_threads(self.pid)


def look(pid: int, proc: str = "/proc") -> Optional[Member]:
    """Return one process, None when it is gone."""
    try:
        stat = parsers.stat(f"{proc}/{pid}")
    except (OSError, ValueError):
        return None
    return Member(pid, stat.ppid, stat.pgid, stat.sid, stat.state, stat.start)


class Tree:
    """The processes of one tree, for repeated look-ups that skip all other processes of the machine.

    A process belongs to the tree for good, even after its parent has ended; the process that adopts it does not. A
    process seen to descend from elsewhere never belongs: it is recognised by its pid and its inode below /proc, which
    no later process shares, and is not read again. With 5,000 others a look-up takes a few milliseconds instead of a
    hundred.

    The root's pid may be reused, for a process or a group, once the root has been waited for and the group and session
    that it made are empty. What has the pid then is not of the tree.
    """

    def __init__(self, root: int, adopted_by: Optional[int], group: Optional[int], proc: str = "/proc") -> None:
        self._root, self._adopted_by, self._group, self._proc = root, adopted_by, group, proc
        self._began: Optional[int] = None  # start of the root when it was first seen
        self._known: Dict[int, int] = {}  # pid → its start
        self._inside: Dict[int, int] = {}  # the same, of those in the group or session that the root made
        self._outside: Dict[int, int] = {}  # pid → inode

    def members(self, without: Collection[int], ended: bool = False) -> List[Member]:
        """Return the current processes, parents before children.

        - ``without``: helpers of ours, left out with their descendants
        - ``ended``: the root has been waited for
        """
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
        """Return the id of the group that we made, or of the group and session that the root made; None if it may be reused.

        It is certain while the root exists, if only as a zombie, or a process that was in it at the last look still is.
        """
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
        """Return whether a process belongs to the tree whatever its parent is.

        It is in the group that we made, in a group or session that the root made (whose id is not reused while it has a
        member), or was seen before.
        """
        return group in (member.pgid, member.sid) or self._known.get(member.pid) == member.start

    def _pass_over(self, inodes: Dict[int, int], children: Dict[int, List[int]]) -> None:
        """Record the processes outside of the tree, which descend from the first process by others outside of it.

        A process whose parent has just ended stays undecided, and is read again.
        """
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
    """Return the tree below ``root``, parents before children.

    - ``adopted_by``: our own pid, when we are the subreaper: all its children belong, except those in ``without``
    - ``group``: a process group that we made: all of its members belong
    - ``without``: helpers, left out with their descendants
    - ``ended``: the root has been waited for
    """
    return _tree(root, adopted_by, group).members(without, ended)


def hidden_children(found: Iterable[Member]) -> Dict[int, int]:
    """Return child → parent, for children that the kernel lists but /proc hides from us (mounted with ``hidepid``)."""
    hidden = {}
    for member in found:
        try:
            unseen = [pid for pid in children_of(member.pid) if look(pid) is None]
            # a child that has ended meanwhile is not listed again
            hidden.update(dict.fromkeys(set(unseen) & set(children_of(member.pid)), member.pid) if unseen else {})
        except OSError:
            continue
    return hidden


def children_of(pid: int) -> List[int]:
    """Return the children of a process; reads all processes only where the kernel lacks CONFIG_PROC_CHILDREN."""
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
