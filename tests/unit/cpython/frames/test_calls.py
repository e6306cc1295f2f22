"""What a frame was called with."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

import pytest

from postmortem.cpython.frames.calls import is_signal_handler
from postmortem.cpython.objects.builtins import NotThat

NUMBER, FRAME, SELF, BOTH, ALONE, MANY = range(6)
KINDS = {NUMBER: "int", FRAME: "frame", SELF: "Metrics", BOTH: "tuple", ALONE: "tuple", MANY: "tuple"}
ITEMS: Dict[int, Tuple[int, ...]] = {BOTH: (NUMBER, FRAME), ALONE: (FRAME,)}


class Objects:
    def type_name(self, address: int) -> str:
        return KINDS[address]

    def items(self, address: int, limit: int) -> Tuple[int, ...]:
        if address not in ITEMS:
            raise NotThat("implausibly long")
        return ITEMS[address]


class Frames:
    objects = Objects()

    def locals(self, frame: Tuple[int, ...]) -> Iterator[Tuple[str, int]]:
        return ((f"v{n}", value) for n, value in enumerate(frame))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((NUMBER, FRAME), True),
        ((SELF, NUMBER, FRAME), True),
        ((BOTH,), True),  # lambda *arguments
        ((SELF, BOTH), True),
        ((NUMBER, ALONE), True),  # def handler(number, *rest)
        ((NUMBER, SELF, FRAME), False),
        ((FRAME, NUMBER), False),
        ((MANY, NUMBER), False),
        ((), False),
    ],
)
def test_signal_handlers_have_a_number_and_a_frame(values: Tuple[int, ...], expected: bool) -> None:
    """As arguments one after the other, wherever the function keeps them."""
    frames: Any = Frames()
    frame: Any = values
    assert is_signal_handler(frames, frame) is expected
