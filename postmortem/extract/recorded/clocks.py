"""The clocks at the moment that a core shows: what the deadlines in its memory are compared with.

``raw/proc/PID/stop.json`` is written by ``capture`` for each core. A core alone holds no "now".
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from ...foreign.held import Folder
from . import documents
from .shapes import number

#: Clock ticks a second: USER_HZ (include/asm-generic/param.h).
_TICKS = 100


class Clocks(NamedTuple):
    """Seconds of CLOCK_REALTIME and CLOCK_MONOTONIC at the stop; None if unknown.

    - ``digits``: of the fraction that can be relied on; 0 for an estimate
    - ``started``: seconds of CLOCK_MONOTONIC at the start of the process, or more if the machine slept since; None if unknown
    """

    realtime: Optional[float] = None
    monotonic: Optional[float] = None
    digits: int = 3
    started: Optional[float] = None

    def until(self, monotonic: Optional[float]) -> Optional[float]:
        """Return the seconds until a time of CLOCK_MONOTONIC, negative once it has passed; None if unknown."""
        return _left(monotonic, self.monotonic, self.digits)

    def until_date(self, realtime: Optional[float]) -> Optional[float]:
        """Return the seconds until a time of CLOCK_REALTIME, negative once it has passed; None if unknown."""
        return _left(realtime, self.realtime, self.digits)


NO_CLOCKS = Clocks()


def _left(then: Optional[float], now: Optional[float], digits: int) -> Optional[float]:
    return round(then - now, digits) if then is not None and now is not None else None


def read_clocks(folder: Folder, pid: int, start_ticks: Optional[int] = None) -> Clocks:
    """Return the clocks of a process's core; unknown if ``stop.json`` is missing or damaged.

    - ``start_ticks``: of the process, since the machine's start
    """
    found = documents.read(folder, f"raw/proc/{pid}/stop.json", documents.STOP)
    started = start_ticks / _TICKS if start_ticks is not None else None
    return Clocks(number(found.get("realtime")), number(found.get("monotonic")), started=started)
