"""How far an event loop is in its turn, and whether it turned at all during the window."""

from __future__ import annotations

from typing import Mapping

from ..cpython.eventloops import LoopState
from ..evidence import Loop, replace
from .window import integer, number


def with_turn(loop: Loop, state: LoopState, probe: Mapping[str, object]) -> Loop:
    """``probe``: what was seen when the window began, and the clock at its end (``capture.probes``)."""
    now, turn = number(probe.get("now")), state.turn
    timer = state.first_timer - now if state.first_timer is not None and now is not None else None
    known = replace(loop, next_timer_s=None if timer is None else round(timer, 3))
    seen = probe.get("loops")
    before = seen.get(str(state.address)) if isinstance(seen, dict) else None
    if turn is None:
        return replace(known, turned=True) if isinstance(seen, dict) and before is not None else known
    known = replace(
        known,
        turn_s=None if now is None else max(0.0, round(now - turn.began, 4)),
        turn_callbacks=turn.callbacks,
        turn_done=turn.done,
    )
    if not isinstance(seen, dict):
        return known
    if not isinstance(before, list) or len(before) != 2:
        return replace(known, turned=True)
    same_turn = number(before[0]) == turn.began
    same_callback = same_turn and integer(before[1]) == turn.handle
    return replace(known, turned=not same_turn, callback_lasts_s=number(probe.get("seconds")) if same_callback else None)
