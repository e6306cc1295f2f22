"""Who waits for a lock on a file, and who has it: the kernel's table.

Sources: proc_locks(5), fs/locks.c (lock_get_status, locks_show): a row ``N:`` is a lock that is held, the rows ``N: ->``
below it are those that wait for it. A flock's process is the one that took it, which may have ended while a child still
holds it; an OFD lock's is -1.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Optional, Set, Tuple

from . import parsers

_MOST_GROUPS = 256

FileId = Tuple[int, int, int]  # numbers of the device, inode


def file_locks(members: Set[int], files: Collection[FileId] = ()) -> List[Dict[str, Any]]:
    """The locks that somebody of ``members`` holds or waits for, or that lie on ``files``, each with ``waits``: those who wait
    for it, and ``alive``: does the process still live that took it? Empty where the table may not be read."""
    found = parse(parsers.lines("/proc/locks") or [], members, files)
    for lock in found:
        lock["alive"] = parsers.lines(f"/proc/{lock['pid']}/stat") is not None
    return found


def parse(rows: List[str], members: Set[int], files: Collection[FileId] = ()) -> List[Dict[str, Any]]:
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
    """``POSIX ADVISORY WRITE 3568 fd:00:2531452 0 EOF``."""
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
