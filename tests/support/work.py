"""Measure work by counting it, and bound hangs: no test depends on how fast the machine is at the moment."""

from __future__ import annotations

import contextlib
import signal
import sys
from types import FrameType
from typing import Any, Callable, Iterator

HANG_S = 120.0


def lines_run(function: Callable[[], object]) -> int:
    """Return how many lines of Python a call executes, in whichever function. What C does within a line is not seen."""
    count = 0

    def local(_frame: FrameType, event: str, _value: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    before = sys.gettrace()
    sys.settrace(lambda frame, event, value: local)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@contextlib.contextmanager
def ends(seconds: float = HANG_S) -> Iterator[None]:
    """Fail a block that has not ended after so long, which is many times what it takes on the slowest machine."""

    def give_up(_number: int, _frame: object) -> None:
        raise AssertionError(f"no end after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, give_up)
    left, _interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)  # of a block around this one; 0: none
        signal.signal(signal.SIGALRM, before)
