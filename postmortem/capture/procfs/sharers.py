"""Processes outside of the tree that map its semaphores: a lock may be held by a process that is not captured.

The tree's own mappings are in each ``process.json``. If it has semaphores, the mappings of all other
readable processes are searched as well, which takes at most a millisecond each.
"""

# Paths below /proc are plain strings, since thousands of them are made:
# ruff: noqa: PTH208

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set

from ...foreign.numbers import is_decimal
from . import parsers

#: Seconds for the whole search.
MOST_S = 0.5
#: Beginnings of the paths of named semaphores, sem_open(3); which are glibc's and which musl's says
#: extract/cross_process/semaphores.py.
_SEMAPHORE = ("/dev/shm/sem.", "/dev/shm/tmp-", "/dev/shm/mp-")  # noqa: S108


def files_of(maps: Optional[Iterable[str]]) -> Set[str]:
    """Return ``device:inode`` of the semaphores among lines of /proc/PID/maps."""
    found = set()
    for line in maps or ():
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith(_SEMAPHORE):
            found.add(f"{words[3]}:{words[4]}")
    return found


def sharers_json(root: int, maps: Mapping[int, Optional[List[str]]], proc: str = "/proc") -> Optional[Dict[str, Any]]:
    """Search the other processes for the tree's semaphores; return None when the tree has none.

    ``maps``: lines of /proc/PID/maps for each process of the tree. Keys of the result:
    - ``beyond``: semaphore → pids outside of the tree that map it
    - ``unread``: number of unreadable processes that are no older than the tree's root
    - ``not_looked_at``: number of processes for which time was short

    Raises OSError without a /proc.
    """
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
    """Return a process's start in clock ticks; 0 if unknown, so that no process counts as older."""
    try:
        return parsers.stat(base).start
    except (OSError, ValueError):
        return 0


def _may_share(base: str, began: int) -> bool:
    """Return whether a process is a living program that may have been started within the tree."""
    try:
        stat = parsers.stat(base)
    except (OSError, ValueError):
        return False
    return stat.has_memory and stat.start >= began
