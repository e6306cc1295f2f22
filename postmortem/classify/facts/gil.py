"""How often the interpreter lock (GIL) changes hands, against how often its timer can force it to."""

from __future__ import annotations

from typing import FrozenSet, List, NamedTuple, Optional

from ...evidence import Process, Thread
from ...evidence.vocabulary import WaitKind
from .view import View

#: The interpreter's default (sys.setswitchinterval), seconds: a waiter asks for the GIL after waiting this long.
SWITCH_INTERVAL = 0.005

#: A forced switch comes at most once per switch interval, however many threads compete: 100-200/s measured. Polling
#: loops measure 5,000-24,000/s. Ten times the forced pace lies well between.
RATIO = 10

#: Of a core each, wanted; and of what all of them got: what is below is housekeeping.
MIN_SHARE = 0.1
_LOCKS: FrozenSet[WaitKind] = frozenset(("lock", "rlock", "mutex", "semaphore"))


class Rates(NamedTuple):
    """Each a second."""

    handoffs: float  # changes of the GIL's holder
    wakes: float  # voluntary switches of all Python threads
    pace: float  # what the switch timer alone can force
    cpu: Optional[float]  # cores that the process got

    @property
    def part(self) -> float:
        """Of the one core that Python threads could have: on a loaded machine everything happens less often."""
        return 1.0 if self.cpu is None else min(1.0, max(0.05, self.cpu))

    @property
    def fast(self) -> bool:
        return self.handoffs >= RATIO * self.pace * self.part

    @property
    def most(self) -> float:
        """How often the GIL was given away: counted as hand-overs, or, when the giver won it back, as wake-ups."""
        return self.handoffs if self.fast else self.wakes


def runs_without(process: Process) -> bool:
    """A free-threaded build at work without the GIL: its threads use as many cores as there are."""
    return process.python is not None and process.python.free_threaded and process.gil is None


def rates_of(view: View, process: Process) -> Optional[Rates]:
    """None when the interpreter's own count was not taken over a window."""
    gil = process.gil
    if gil is None or gil.handoffs_per_s is None:
        return None
    wakes = sum(view.switches(t) or 0 for t in process.threads if t.python)
    return Rates(gil.handoffs_per_s, wakes, 1 / (gil.switch_interval or SWITCH_INTERVAL), view.cpu(process))


def computing(view: View, threads: List[Thread]) -> List[Thread]:
    """Who wants to compute: on a loaded machine each gets less of a core, and has to be measured by what all get."""
    part = min(1.0, sum(view.cpu_share(t) or 0 for t in threads))
    return [
        t for t in threads if (view.wanted_share(t) or 0) >= MIN_SHARE and (view.cpu_share(t) or 0) >= MIN_SHARE * part
    ]


def behind_a_lock(hot: List[Thread]) -> Optional[str]:
    """Do most of them wait for a lock of the program? Then that is what lets one go on at a time."""
    waiting = [t for t in hot if t.wait is not None and t.wait.kind in _LOCKS and t.wait.resource is not None]
    return (
        f"{len(waiting)} of {len(hot)} busy threads wait for a lock, not for the GIL"
        if len(waiting) * 2 > len(hot)
        else None
    )
