"""Who else on the machine has the semaphores of a tree in memory: a lock may be held by a process that is not captured.

The tree's own mappings stand in each ``process.json``. Only when a tree has semaphores at all, the mappings of all other
processes that may be read are looked through: a millisecond each at most.
"""

# Paths below /proc are plain strings, formatted thousands of times:
# ruff: noqa: PTH208

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set

from ...foreign.numbers import is_decimal
from . import parsers

#: Seconds for all of it.
MOST_S = 0.5
#: Where the C library puts them (extract/semaphores.py says which one): sem_open(3).
_SEMAPHORE = ("/dev/shm/sem.", "/dev/shm/tmp-", "/dev/shm/mp-")  # noqa: S108


def files_of(maps: Optional[Iterable[str]]) -> Set[str]:
    """``device:inode`` of the semaphores among the lines of /proc/PID/maps."""
    found = set()
    for line in maps or ():
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith(_SEMAPHORE):
            found.add(f"{words[3]}:{words[4]}")
    return found


def sharers_json(root: int, maps: Mapping[int, Optional[List[str]]], proc: str = "/proc") -> Optional[Dict[str, Any]]:
    """``maps``: of the processes of the tree. ``beyond``: semaphore → pids outside of the tree that have it; ``unread``:
    how many processes, no older than the tree's root, could not be looked into; ``not_looked_at``: for want of time. None
    when the tree has no semaphores. Raises OSError when there is no /proc."""
    wanted: Set[str] = set().union(*map(files_of, maps.values())) if maps else set()
    if not wanted:
        return None
    beyond: Dict[str, List[int]] = {}
    unread = not_looked_at = 0
    until, began = time.monotonic() + MOST_S, _start(f"{proc}/{root}")
    pids = sorted(int(n) for n in os.listdir(proc) if is_decimal(n) and int(n) not in maps and int(n) != os.getpid())
    for number, pid in enumerate(pids):
        if time.monotonic() > until:
            not_looked_at = len(pids) - number
            break
        lines = parsers.lines(f"{proc}/{pid}/maps")
        if lines is None:
            unread += _may_share(f"{proc}/{pid}", began)
        for name in files_of(lines) & wanted:
            beyond.setdefault(name, []).append(pid)
    return {"beyond": beyond, "unread": unread, "not_looked_at": not_looked_at}


def _start(base: str) -> int:
    """0 when it is not known: then nobody is older."""
    try:
        return parsers.stat(base).start
    except (OSError, ValueError):
        return 0


def _may_share(base: str, began: int) -> bool:
    """Does it live, as a program, and may it have been made within the tree?"""
    try:
        stat = parsers.stat(base)
    except (OSError, ValueError):
        return False
    return stat.has_memory and stat.start >= began
