"""What a deep stack repeats: a recursion of 100,000 frames is two lines to read, not 100,000."""

from __future__ import annotations

from array import array
from typing import NamedTuple, Optional

#: Functions in one turn of a recursion; whoever has more of them is not helped by their list.
MAX_PERIOD = 200
#: So many frames in a row, and so many turns, are no chance.
_LEAST_FRAMES, _LEAST_TURNS = 32, 4


class Repeat(NamedTuple):
    """A stretch of a sequence: ``times`` turns of ``period`` items from ``start`` on. What is left of a turn at its
    end is not counted."""

    start: int
    period: int
    times: int


def find_repeat(sequence: array[int]) -> Optional[Repeat]:
    """The stretch around the middle that repeats itself, with its shortest period; None when nothing does.

    A recursion makes up nearly all of a stack that is deep enough to be cut, so it covers the middle.
    """
    size = len(sequence)
    middle = size // 2
    for period in range(1, min(MAX_PERIOD, size // _LEAST_TURNS) + 1):
        least = max(period * (_LEAST_TURNS - 1), _LEAST_FRAMES)
        begin = max(0, min(middle, size - least - period))
        if sequence[begin : begin + least] == sequence[begin + period : begin + period + least]:
            return _grown(sequence, begin, begin + least, period)
    return None


def _grown(sequence: array[int], begin: int, end: int, period: int) -> Optional[Repeat]:
    """As far as every item of [begin, end) equals the one a period behind it."""
    while begin > 0 and sequence[begin - 1] == sequence[begin - 1 + period]:
        begin -= 1
    while end + period < len(sequence) and sequence[end] == sequence[end + period]:
        end += 1
    times = (end + period - begin) // period
    return Repeat(begin, period, times) if times >= _LEAST_TURNS else None
