"""What a deep stack repeats."""

from __future__ import annotations

import random
from array import array

import pytest

from postmortem.cpython.frames.recursion import MAX_PERIOD, Repeat, find_repeat


def test_one_function_that_calls_itself() -> None:
    """The stretch begins and ends where it does, not where the search began."""
    assert find_repeat(array("I", [9, 8] + [1] * 1000 + [7])) == Repeat(2, 1, 1000)


@pytest.mark.parametrize("period", [2, 3, 50, MAX_PERIOD])
def test_functions_that_call_each_other(period: int) -> None:
    """The shortest period is found, whole turns counted, a turn cut short at the end left out."""
    turn = list(range(period))
    found = find_repeat(array("I", [900, 901] + turn * 40 + turn[: period // 2] + [902]))
    assert found == Repeat(2, period, 40)


def test_a_turn_that_calls_one_function_twice() -> None:
    """f f g is one turn of three, not one of one."""
    assert find_repeat(array("I", [1, 1, 2] * 100)) == Repeat(0, 3, 100)


@pytest.mark.parametrize("size", [0, 1, 3, 31, 200, 5000])
def test_no_repetition_is_none(size: int) -> None:
    """A stack that never does the same twice in a row has nothing to sum up."""
    assert find_repeat(array("I", range(size))) is None


def test_a_chance_is_no_recursion() -> None:
    """A random walk through two functions is none, although short stretches of it repeat."""
    numbers = random.Random(7)
    assert find_repeat(array("I", [numbers.randrange(2) for _ in range(5000)])) is None


def test_a_million_frames_are_soon_done() -> None:
    """Long stretches are compared as memory, not item by item for every period."""
    found = find_repeat(array("I", [1, 2, 3, 4] * 250_000))
    assert found == Repeat(0, 4, 250_000)
