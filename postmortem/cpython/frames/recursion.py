"""Repetition in a deep stack, so that a recursion of 100,000 frames is reported once."""

from __future__ import annotations

from array import array
from typing import NamedTuple, Optional

#: Most functions in one turn of a recursion; a longer list would not help the reader.
MAX_PERIOD = 200
#: Fewest frames and turns that count as a recursion, not a coincidence.
_LEAST_FRAMES, _LEAST_TURNS = 32, 4


class Repeat(NamedTuple):
    """A stretch of a sequence: ``times`` turns of ``period`` items from ``start`` on.

    A partial turn at its end is not counted.
    """

    start: int
    period: int
    times: int


def find_repeat(sequence: array[int]) -> Optional[Repeat]:
    """Return the repeating stretch around the middle, with its shortest period; None if there is none.

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
    """Extend [begin, end) while every item equals the one a period later; None if there are too few turns."""
    while begin > 0 and sequence[begin - 1] == sequence[begin - 1 + period]:
        begin -= 1
    while end + period < len(sequence) and sequence[end] == sequence[end + period]:
        end += 1
    times = (end + period - begin) // period
    return Repeat(begin, period, times) if times >= _LEAST_TURNS else None
