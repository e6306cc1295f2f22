"""Limits on the time of a search. Other programs on the same machine hardly use them up.

A limit in seconds of the clock would make the result depend on the load: on a machine whose processors are shared with ten
others, a search would end after a tenth of its work. So a limit counts processor time of the searching thread, and the clock
bounds it only from afar.
"""

from __future__ import annotations

import math
import time
from typing import Optional

#: How many times its seconds a limit may take on the clock; quiet work (``quiet``) has a tenth of a busy CPU.
PATIENCE = 10.0


class TimeLimit:
    """A limit of ``seconds`` of processor time of the calling thread, from now on, and of PATIENCE times as many on the clock.

    It is checked in the thread that made it. ``within``: a limit that must not have passed either.
    """

    __slots__ = ("_latest", "_until", "_within")

    def __init__(self, seconds: float, within: Optional[TimeLimit] = None) -> None:
        self._until = time.thread_time() + seconds
        self._latest = time.monotonic() + PATIENCE * seconds
        self._within = within

    @classmethod
    def on_the_clock(cls, until: float) -> TimeLimit:
        """Return a limit for work that somebody waits for: it passes at ``until``, in time.monotonic() seconds."""
        limit = cls(math.inf)
        limit._latest = until
        return limit

    def passed(self) -> bool:
        """Return whether the time is over."""
        if time.thread_time() >= self._until or time.monotonic() >= self._latest:
            return True
        return self._within is not None and self._within.passed()
