"""How far a loop is in its turn, by its own clock and what was seen when the window began."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from postmortem.evidence import Loop
from postmortem.extract.waits.loopturns import with_turn
from postmortem.frameworks.asyncio.eventloops import LoopState
from postmortem.frameworks.asyncio.loopturns import Turn

LOOP = Loop("loop-1", 1, ready=0, scheduled=1)


def state(turn: Optional[Turn], timer: Optional[float] = None) -> LoopState:
    return LoopState(0x10, "asyncio", 1, first_timer=timer, turn=turn)


def turn(began: float = 90.0, callbacks: Optional[int] = 5, handle: int = 0x77) -> Turn:
    return Turn(0x10, began, callbacks, 2, handle)


def probe(seen: Optional[Dict[str, Any]] = None) -> Dict[str, object]:
    return {"now": 100.0, "seconds": 2.0, "loops": seen}


def test_a_turn_of_before_the_window() -> None:
    """The loop has not turned; the callback is the same by its handle, or because it is the only one."""
    told = with_turn(LOOP, state(turn()), probe({"16": [90.0, 0x77]}))
    assert (told.turn_s, told.turn_callbacks, told.turn_done, told.turned, told.callback_lasts_s) == (
        10.0,
        5,
        2,
        False,
        2.0,
    )
    only = with_turn(LOOP, state(turn(callbacks=1)), probe({}))
    assert only.callback_lasts_s == 2.0


@pytest.mark.parametrize("seen", [{"16": [90.0, 0x78]}, {"17": [90.0, 0x77]}, {"16": [90.0]}, {"16": "x"}, {}, None])
def test_another_callback_of_the_same_turn(seen: Any) -> None:
    """The turn is long, and what is in it is not one callback, or not known to be."""
    told = with_turn(LOOP, state(turn()), probe(seen))
    assert (told.turned, told.callback_lasts_s) == (False, None)


def test_the_only_callback_with_others_behind_it_may_be_the_second() -> None:
    """A callback alone in its turn, while more stand ready, may have been the second; no duration is known."""
    crowded = Loop("loop-1", 1, ready=3, scheduled=0)
    assert with_turn(crowded, state(turn(callbacks=1)), probe({})).callback_lasts_s is None


def test_a_turn_of_the_window() -> None:
    """It began in it: the loop turns."""
    told = with_turn(LOOP, state(turn(98.5)), probe({"16": [98.0, 0x77]}))
    assert (told.turned, told.turn_s, told.callback_lasts_s) == (True, 1.5, None)


def test_a_loop_that_waits_now() -> None:
    """It turned if it ran something when the window began; else nothing is known."""
    assert with_turn(LOOP, state(None), probe({"16": [90.0, 0x77]})).turned is True
    assert with_turn(LOOP, state(None), probe({})).turned is None
    assert with_turn(LOOP, state(None), {}).turned is None


def test_timers_are_told_by_the_same_clock() -> None:
    """Negative: overdue. Without a clock nothing is."""
    assert with_turn(LOOP, state(None, 97.5), probe()).next_timer_s == -2.5
    assert with_turn(LOOP, state(turn(), 103.0), probe()).next_timer_s == 3.0
    bare = with_turn(LOOP, state(turn(), 103.0), {})
    assert (bare.next_timer_s, bare.turn_s, bare.turned, bare.turn_callbacks) == (None, None, None, 5)


def test_clocks_that_do_not_agree() -> None:
    """A loop's clock is rounded up: no turn lasts less than nothing."""
    assert with_turn(LOOP, state(turn(100.01)), probe()).turn_s == 0.0
