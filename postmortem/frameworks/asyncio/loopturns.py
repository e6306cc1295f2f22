"""How far asyncio's event loop is in its present turn, from the variables of ``_run_once`` on the stack of its thread.

A turn begins when ``select`` comes back: ``end_time`` is the loop's clock then (time.monotonic, plus its resolution),
``ntodo`` the callbacks that it will run, ``i`` the one that it is at, ``handle`` that callback (Lib/asyncio/base_events.py of
3.8-3.15, alike in all). A loop that is written in C has no such frame.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple, Optional, Sequence

from ...cpython.frames.frame import Frame, Frames
from ...cpython.objects.builtins import NotThat
from ...memory import Fault

_BASE_EVENTS, _EVENTS = "asyncio/base_events.py", "asyncio/events.py"


class Turn(NamedTuple):
    loop: int  # address
    began: float  # seconds of time.monotonic()
    callbacks: Optional[int]
    done: Optional[int]
    handle: int  # address of the callback that runs


def turn_of(frames: Frames, stack: Sequence[Frame]) -> Optional[Turn]:
    """Of a thread's frames, most recent first: the innermost loop that runs a callback. None when none does."""
    for inner, outer in zip(stack, stack[1:]):
        if outer.is_in("_run_once", _BASE_EVENTS):
            return _read(frames, outer) if inner.is_in("_run", _EVENTS) else None
    return None


def _read(frames: Frames, frame: Frame) -> Optional[Turn]:
    loop, end_time, handle = (frames.local(frame, name) for name in ("self", "end_time", "handle"))
    if not loop or not end_time or not handle:
        return None
    try:
        began = float(frames.objects.number(end_time))
    except (Fault, NotThat):
        return None
    return Turn(loop, began, _integer(frames, frame, "ntodo"), _integer(frames, frame, "i"), handle)


def _integer(frames: Frames, frame: Frame, name: str) -> Optional[int]:
    value = frames.local(frame, name)
    with contextlib.suppress(Fault, NotThat):
        return frames.objects.integer(value) if value else None
    return None
