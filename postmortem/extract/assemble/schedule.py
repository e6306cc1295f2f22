"""Who is looked into first, and how thoroughly, when a verdict is wanted by a certain time.

A process costs a gdb of its own 0.17 s with a warm index, one that it shares with others of the same program 0.04 s, its
Python side alone 3 ms (500 small interpreters, two cores), so the native stacks are what there is no time for. They are
had of the root, then of one of each kind of process, then of the others for as long as there is time; the Python side
of the others takes what is kept back for it.
"""

from __future__ import annotations

import os
import re
import time
from typing import Dict, Hashable, List, Mapping, Optional

from ..recorded.raw import Raw, last_call
from .cores import GDB_DEADLINE_S

#: With less than this it would be killed half-way on a busy machine: it takes .2 s on an idle one.
_SHORTEST_GDB_S = 1.0
#: Of the time that is left, gdb may have so much for one process while others wait.
_SHARE = 0.5
#: What comes after the extraction (patterns, two reports, writing): measured .1 s for 500 processes on idle cores.
_AFTER_S, _AFTER_EACH_S = 0.3, 0.002
#: The Python side of a process before any has been measured.
_READING_S = 0.01
#: gdbs at a time: each needs a CPU, and some 100 MB.
_MOST_AT_ONCE = 4
#: Processes that share a gdb: it keeps some 6 MB of each, and with more of them there is little to gain.
_MOST_TOGETHER = 8

_NUMBER = re.compile(r"\d+")


class Budget:
    """The time until a verdict is wanted. ``until`` in time.monotonic() seconds; None: there is no hurry."""

    def __init__(self, until: Optional[float], processes: int) -> None:
        self._until = until
        self._after = _AFTER_S + _AFTER_EACH_S * processes
        self._spent = 0.0
        self._readings = 0

    @property
    def limited(self) -> bool:
        return self._until is not None

    def gdb_s(self, others: int, together: int = 1) -> float:
        """How long a gdb may take for the next ``together`` processes while ``others`` wait behind them; 0: it is not to
        be started."""
        if self._until is None:
            return GDB_DEADLINE_S * together
        left = self._left() - self._reading_s * (others + together)
        allowed = min(left * _SHARE if others else left, GDB_DEADLINE_S)
        return allowed if allowed >= _SHORTEST_GDB_S else 0.0

    def may_read(self) -> bool:
        """Is there time for the Python side of one more process?"""
        return self._until is None or self._left() > self._reading_s

    def note_reading(self, seconds: float) -> None:
        """What the Python side of one process took."""
        self._spent += seconds
        self._readings += 1

    @property
    def _reading_s(self) -> float:
        return (self._spent + _READING_S) / (self._readings + 1)

    def _left(self) -> float:
        assert self._until is not None
        return self._until - self._after - time.monotonic()


def at_once() -> int:
    """gdbs that may run at the same time: as many as there are CPUs for us."""
    return max(1, min(_MOST_AT_ONCE, len(os.sched_getaffinity(0))))


def together(processes: int) -> int:
    """How many of so many processes share a gdb at most: enough gdbs for every CPU come first."""
    return max(1, min(_MOST_TOGETHER, -(-processes // at_once())))


def most_telling_first(raws: Mapping[int, Raw]) -> List[int]:
    """The first process (the root), then one of each kind, the largest kind first, then the others in their order."""
    kinds: Dict[Hashable, List[int]] = {}
    for pid, raw in raws.items():
        kinds.setdefault(_kind(pid, raw), []).append(pid)
    largest_first = sorted(kinds.values(), key=len, reverse=True)
    return list(dict.fromkeys([*list(raws)[:1], *(members[0] for members in largest_first), *raws]))


def _kind(pid: int, raw: Raw) -> Hashable:
    """Processes of one kind run the same program with the same words, but for numbers, and their main threads wait
    alike."""
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
