"""Suspended generators that a frame iterates over, and those that these iterate over.

A loop keeps its iterator on the value stack of its frame. What a generator holds while it yields, it holds for whoever
runs the loop.
"""

from __future__ import annotations

import contextlib
from typing import Iterator, Optional

from ...memory import Fault
from ..objects.builtins import NotThat
from .callheights import least_height
from .frame import Frame, Frames

_KINDS = ("generator", "async_generator")
_MOST_NESTED = 8


def iterated(
    frames: Frames, frame: Frame, inner: Optional[Frame] = None, nested: int = _MOST_NESTED
) -> Iterator[Frame]:
    """Yield the frames of the suspended generators that a frame has on its value stack, each before those that it has.

    - ``inner``: the frame that it has called; None if it is suspended, or calls C code

    Frames of which the height of the value stack is unknown have none. Never raises.
    """
    height = frames.height(frame)
    if height is None:
        height = least_height(frames, frame, inner)
    if height is None or not nested:
        return
    for value in frames.value_stack(frame)[: height - frame.code.nlocalsplus]:
        if value and frames.objects.type_name(value) in _KINDS:
            with contextlib.suppress(Fault, NotThat):
                found = frames.generator(value)
                if found.state == "suspended" and found.frame is not None:
                    yield found.frame
                    yield from iterated(frames, found.frame, None, nested - 1)
