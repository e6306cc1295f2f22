"""Rates of GIL hand-offs, compared with the rate that the switch timer alone can force."""

from __future__ import annotations

from typing import FrozenSet, List, NamedTuple, Optional

from ...evidence import Process, Thread
from ...evidence.vocabulary import WaitKind
from ...findings import Template, Text
from .view import View

#: The interpreter's default (sys.setswitchinterval), seconds: a waiter asks for the GIL after waiting this long.
SWITCH_INTERVAL = 0.005

#: A forced switch comes at most once per switch interval, however many threads compete: 100-200/s measured. Polling
#: loops measure 5,000-24,000/s. Ten times the forced rate separates the two.
RATIO = 10

#: Forced hand-offs a second that no interval exceeds, however short it is set: each takes a wake-up of the next thread.
MOST_PACE = 1000.0

#: Switch intervals: code in Python lets go of the GIL within one or two if another thread wants it.
LONG_HOLD = 20
#: Least share of the window in which it is kept for so long that calls are to blame which do not heed the timer.
MIN_KEPT = 0.8
#: Hand-overs in that time, on average, from which looks at the holder tell nothing of what is between them.
MOST_HANDED = 5.0

#: Least share of a core that a computing thread wants, and least share of what all of them got; less is housekeeping.
MIN_SHARE = 0.1
_LOCKS: FrozenSet[WaitKind] = frozenset(("lock", "rlock", "mutex", "semaphore"))

RUNS_WITHOUT = Template("process {pid} is a free-threaded Python that runs without the GIL")
_BEHIND_A_LOCK = Template("{waiting} of {busy} busy threads wait for a lock, not for the GIL")


class Rates(NamedTuple):
    """Rates of a process's GIL activity, in events per second."""

    handoffs: float  # changes of the GIL's holder
    wakes: float  # voluntary context switches of all Python threads
    pace: float  # hand-offs that the switch timer alone can force
    cpu: Optional[float]  # CPU used, in cores

    @property
    def part(self) -> float:
        """Return the CPU used, as a share of one core (0.05 to 1): on a loaded machine all rates drop with it."""
        return 1.0 if self.cpu is None else min(1.0, max(0.05, self.cpu))

    @property
    def fast(self) -> bool:
        """Return whether hand-offs are too frequent to be forced by the timer."""
        return self.handoffs >= RATIO * self.pace * self.part

    @property
    def most(self) -> float:
        """Return how often the GIL was released, per second: hand-offs, or wake-ups if the releasing thread won it back."""
        return self.handoffs if self.fast else self.wakes


def runs_without(process: Process) -> bool:
    """Return whether a process is a free-threaded build that runs without the GIL, so that threads use several cores."""
    return process.python is not None and process.python.free_threaded and process.gil is None


def rates_of(view: View, process: Process) -> Optional[Rates]:
    """Return a process's GIL rates; None if the interpreter's count was not read over a window."""
    gil = process.gil
    if gil is None or gil.handoffs_per_s is None:
        return None
    wakes = sum(view.switches(t) or 0 for t in process.threads if t.python)
    pace = min(MOST_PACE, 1 / (gil.switch_interval or SWITCH_INTERVAL))
    return Rates(gil.handoffs_per_s, wakes, pace, view.cpu(process))


def waited(view: View, thread: Thread) -> float:
    """Return the share of the window in which a thread was seen to wait for the GIL; 0 without a window."""
    waits = sum(s.last_s - s.first_s for s in thread.timeline if s.doing == "waits")
    return waits / view.window if view.window else 0.0


def kept_long(view: View, process: Process) -> bool:
    """Return whether threads had the GIL for many switch intervals at a time, for nearly all of the window.

    Not with many hand-overs: looks that found it with the same thread may then have missed others in between.
    """
    gil = process.gil
    interval = max(SWITCH_INTERVAL, (gil.switch_interval if gil is not None else None) or 0.0)
    often = (gil.handoffs_per_s if gil is not None else None) or 0.0
    if not view.window or often * LONG_HOLD * interval >= MOST_HANDED:
        return False
    held = (s.last_s - s.first_s for t in process.threads for s in t.timeline if s.doing == "holds")
    return sum(each for each in held if each >= LONG_HOLD * interval) >= MIN_KEPT * view.window


def computing(view: View, threads: List[Thread]) -> List[Thread]:
    """Return the threads that compute, measured against the CPU that all of them got together.

    On a loaded machine each thread gets less of a core than it wants.
    """
    part = min(1.0, sum(view.cpu_share(t) or 0 for t in threads))
    return [
        t for t in threads if (view.wanted_share(t) or 0) >= MIN_SHARE and (view.cpu_share(t) or 0) >= MIN_SHARE * part
    ]


def behind_a_lock(hot: List[Thread]) -> Optional[Text]:
    """Return a text if most of these threads wait for a lock of the program, which then serialises them; else None."""
    waiting = [t for t in hot if t.wait is not None and t.wait.kind in _LOCKS and t.wait.resource is not None]
    return _BEHIND_A_LOCK(waiting=len(waiting), busy=len(hot)) if len(waiting) * 2 > len(hot) else None
