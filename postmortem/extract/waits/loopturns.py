"""Progress of an event loop within its turn and during the window of observation."""

from __future__ import annotations

from typing import Mapping

from ...evidence import Loop, replace
from ...frameworks.asyncio.eventloops import LoopState
from ..recorded.clocks import NO_CLOCKS, Clocks
from ..recorded.shapes import integer, number


def with_turn(loop: Loop, state: LoopState, probe: Mapping[str, object], clocks: Clocks = NO_CLOCKS) -> Loop:
    """Return a loop with the facts of its current turn.

    - ``probe``: loops seen when the window began, and the clock at its end (``capture.observe.probes``)
    - ``clocks``: at the stop; without them, the clock at the window's end
    """
    now, turn = number(probe.get("now")), state.turn
    stop = clocks.monotonic if clocks.monotonic is not None else now
    timer = state.first_timer - stop if state.first_timer is not None and stop is not None else None
    known = replace(loop, next_timer_s=None if timer is None else round(timer, 3))
    seen = probe.get("loops")
    if turn is None:
        was_in_one = isinstance(seen, dict) and str(state.address) in seen
        return replace(known, turned=True) if was_in_one else known
    seconds = number(probe.get("seconds"))
    known = replace(
        known,
        turn_s=None if stop is None else max(0.0, round(stop - turn.began, 4)),
        turn_callbacks=turn.callbacks,
        turn_done=turn.done,
        turned=None if now is None or seconds is None else turn.began > now - seconds,
    )
    if known.turned is not False:
        return known
    before = seen.get(str(state.address)) if isinstance(seen, dict) else None
    seen_same = isinstance(before, list) and len(before) == 2 and integer(before[1]) == turn.handle
    same = seen_same or (turn.callbacks == 1 and not known.ready)
    return replace(known, callback_lasts_s=seconds if same else None)
