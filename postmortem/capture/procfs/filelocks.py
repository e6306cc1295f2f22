"""File locks with their holders and waiters: the kernel's table /proc/locks.

- A row ``N:`` is a lock that is held; the rows ``N: ->`` below it wait for it.
- The process of a flock is the one that took it, which may have ended while a child still holds it; for an OFD lock it
  is -1.

Sources: proc_locks(5), fs/locks.c (lock_get_status, locks_show).
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Optional, Set, Tuple

from . import parsers

_MOST_GROUPS = 256

FileId = Tuple[int, int, int]  # numbers of the device, inode


def file_locks(members: Set[int], files: Collection[FileId] = ()) -> List[Dict[str, Any]]:
    """Return the locks on ``files``, and those that a process of ``members`` holds or waits for.

    - ``waits``: the locks that wait for it
    - ``alive``: whether the process that took it still lives

    Empty where the table cannot be read.
    """
    found = parse(parsers.lines("/proc/locks") or [], members, files)
    for lock in found:
        lock["alive"] = parsers.lines(f"/proc/{lock['pid']}/stat") is not None
    return found


def parse(rows: List[str], members: Set[int], files: Collection[FileId] = ()) -> List[Dict[str, Any]]:
    """Parse the rows of /proc/locks, see ``file_locks``."""
    groups: Dict[str, Dict[str, Any]] = {}
    for row in rows:
        number, _colon, rest = row.partition(":")
        words = rest.split()
        waits = words[:1] == ["->"]
        lock = _lock(words[1:] if waits else words)
        if lock is None:
            continue
        if not waits:
            groups[number] = {**lock, "waits": []}
        elif number in groups:
            groups[number]["waits"].append(lock)
    return [
        group
        for group in groups.values()
        if group["pid"] in members
        or any(one["pid"] in members for one in group["waits"])
        or (*group["device"], group["inode"]) in files
    ][:_MOST_GROUPS]


def _lock(words: List[str]) -> Optional[Dict[str, Any]]:
    """Parse a lock such as ``POSIX ADVISORY WRITE 3568 fd:00:2531452 0 EOF``; None if malformed."""
    if len(words) < 7:
        return None
    try:
        pid, first = int(words[3]), int(words[5])
        last = None if words[6] == "EOF" else int(words[6])
        major, minor, inode = words[4].split(":")
        device = [int(major, 16), int(minor, 16)]
        return {
            "kind": words[0],
            "mode": words[2],
            "pid": pid,
            "device": device,
            "inode": int(inode),
            "first": first,
            "last": last,
        }
    except ValueError:
        return None
