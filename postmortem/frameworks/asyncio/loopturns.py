"""Progress of an event loop within its current turn, from the locals of ``_run_once``.

A turn begins when ``select`` returns:
- ``end_time``: the loop's clock then (time.monotonic plus its resolution).
- ``ntodo``: number of callbacks to run.
- ``i``: index of the current one.
- ``handle``: the current callback.

A loop written in C has no such frame.

Source: Lib/asyncio/base_events.py of 3.8-3.15.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple, Optional, Sequence

from ...cpython.frames.frame import Frame, Frames
from ...cpython.objects.builtins import NotThat
from ...memory import Fault

_BASE_EVENTS, _EVENTS = "asyncio/base_events.py", "asyncio/events.py"


class Turn(NamedTuple):
    """The current turn of a loop."""

    loop: int  # address
    began: float  # start, seconds of time.monotonic()
    callbacks: Optional[int]
    done: Optional[int]
    handle: int  # address of the running callback's handle


def turn_of(frames: Frames, stack: Sequence[Frame]) -> Optional[Turn]:
    """Return the turn of the innermost loop on a stack that runs a callback; None if there is none.

    ``stack``: frames, most recent first.
    """
    for inner, outer in zip(stack, stack[1:]):
        if outer.is_in("_run_once", _BASE_EVENTS):
            return _read(frames, outer) if inner.is_in("_run", _EVENTS) else None
    return None


def _read(frames: Frames, frame: Frame) -> Optional[Turn]:
    """Read a turn from the locals of ``_run_once``."""
    loop, end_time, handle = (frames.local(frame, name) for name in ("self", "end_time", "handle"))
    if not loop or not end_time or not handle:
        return None
    try:
        began = float(frames.objects.number(end_time))
    except (Fault, NotThat):
        return None
    return Turn(loop, began, _integer(frames, frame, "ntodo"), _integer(frames, frame, "i"), handle)


def _integer(frames: Frames, frame: Frame, name: str) -> Optional[int]:
    """Return an integer local; None if unreadable."""
    value = frames.local(frame, name)
    with contextlib.suppress(Fault, NotThat):
        return frames.objects.integer(value) if value else None
    return None
