"""Order and depth of reading processes when a verdict has a deadline.

Cost per process (500 small interpreters, two cores): own gdb with a warm index 0.17 s, shared gdb 0.04 s, Python side 3
ms. Native stacks are therefore what time runs out for. They are read for the root, then for one process of each kind,
then for others while time is left; time for the Python side of the others is reserved.
"""

from __future__ import annotations

import os
import re
import time
from typing import Dict, Hashable, List, Mapping, Optional

from ..recorded.raw import Raw, last_call
from .how import GDB_DEADLINE_S

#: Seconds below which no gdb is started: it takes 0.2 s on an idle machine, more on a busy one, and would be killed.
_SHORTEST_GDB_S = 1.0
#: Share of the remaining time for one process's gdb while others wait.
_SHARE = 0.5
#: Seconds for what follows extraction (patterns, two reports, writing): measured 0.1 s for 500 processes on idle cores.
_AFTER_S, _AFTER_EACH_S = 0.3, 0.002
#: Seconds for the Python side of a process before any has been measured.
_READING_S = 0.01
#: Number of gdbs; each needs a CPU and about 100 MB.
_MOST_AT_ONCE = 4
#: Processes that share a gdb; it keeps about 6 MB of each, and more gain little.
_MOST_TOGETHER = 8

_NUMBER = re.compile(r"\d+")


class Budget:
    """The time until a verdict is due.

    ``until``: in time.monotonic() seconds; None: no deadline.
    """

    def __init__(self, until: Optional[float], processes: int) -> None:
        self._until = until
        self._after = _AFTER_S + _AFTER_EACH_S * processes
        self._spent = 0.0
        self._readings = 0

    @property
    def limited(self) -> bool:
        """Return whether there is a deadline."""
        return self._until is not None

    def gdb_s(self, others: int, together: int = 1) -> float:
        """Return the seconds for a gdb of the next ``together`` processes; 0: do not start it.

        ``others``: number of processes that follow.
        """
        if self._until is None:
            return GDB_DEADLINE_S * together
        left = self._left() - self._reading_s * (others + together)
        allowed = min(left * _SHARE if others else left, GDB_DEADLINE_S)
        return allowed if allowed >= _SHORTEST_GDB_S else 0.0

    def may_read(self) -> bool:
        """Return whether there is time for the Python side of one more process."""
        return self._until is None or self._left() > self._reading_s

    def note_reading(self, seconds: float) -> None:
        """Record the seconds that the Python side of a process took."""
        self._spent += seconds
        self._readings += 1

    @property
    def _reading_s(self) -> float:
        return (self._spent + _READING_S) / (self._readings + 1)

    def _left(self) -> float:
        assert self._until is not None
        return self._until - self._after - time.monotonic()


def at_once() -> int:
    """Return the number of gdbs that may run at the same time: one per available CPU."""
    return max(1, min(_MOST_AT_ONCE, len(os.sched_getaffinity(0))))


def together(processes: int) -> int:
    """Return the most processes that share a gdb; using every CPU has priority."""
    return max(1, min(_MOST_TOGETHER, -(-processes // at_once())))


def most_telling_first(raws: Mapping[int, Raw]) -> List[int]:
    """Return the PIDs: the root, then one of each kind (largest first), then the others in order."""
    kinds: Dict[Hashable, List[int]] = {}
    for pid, raw in raws.items():
        kinds.setdefault(_kind(pid, raw), []).append(pid)
    largest_first = sorted(kinds.values(), key=len, reverse=True)
    return list(dict.fromkeys([*list(raws)[:1], *(members[0] for members in largest_first), *raws]))


def _kind(pid: int, raw: Raw) -> Hashable:
    """Return a process's kind: its command line without numbers, and the wait of its main thread."""
    argv = raw.process.get("argv")
    words = _NUMBER.sub("#", " ".join(map(str, argv))) if isinstance(argv, list) else None
    threads = raw.process.get("threads")
    call = last_call(raw.window, pid)
    return (
        str(raw.process.get("exe")),
        words,
        len(threads) if isinstance(threads, dict) else None,
        call.name if call else None,
    )
