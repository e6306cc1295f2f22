"""A panic of Rust code, found by what the stack refers to."""

from __future__ import annotations

import struct
from typing import Tuple

import pytest

from postmortem.libc.rustpanics import Panic, panic
from postmortem.memory import Segments

FILE, LOCATION, HEAP, BOXED = 0x7000, 0x7100, 0x50_0000, 0x51_0000
SAID = b"index out of bounds: the len is 4 but the index is 9"
MEMORY = Segments({
    FILE: b"src/shelf.rs".ljust(0x100, b"\0"),
    LOCATION: struct.pack("<QQII", FILE, 12, 88, 5),
    HEAP: SAID.ljust(0x100, b"\0"),
    BOXED: struct.pack("<QQQ", 64, HEAP, len(SAID)),
})  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        (LOCATION, 0, 64, HEAP, len(SAID)),
        (LOCATION, 0, HEAP, 64, len(SAID), 0),
        (0, BOXED, 1, LOCATION),
        (HEAP, len(SAID), LOCATION),
    ],
)
def test_place_and_message(words: Tuple[int, ...]) -> None:
    """A String in whatever order of its words, on the stack or one step away, or a str."""
    assert panic(MEMORY, words) == Panic("src/shelf.rs:88:5", SAID.decode())


def test_the_outermost_line_is_the_place() -> None:
    """Inner frames may cite lines of the standard library; the one that panicked is the oldest."""
    other = Segments({0x7200: struct.pack("<QQII", FILE + 4, 8, 3, 1), FILE: b"src/shelf.rs".ljust(0x100, b"\0"),
                      LOCATION: struct.pack("<QQII", FILE, 12, 88, 5)})  # fmt: skip
    assert panic(other, (0x7200, 0, LOCATION)) == Panic("src/shelf.rs:88:5", None)


@pytest.mark.parametrize("words", [(), (0, 1 << 63), (HEAP, len(SAID)), (FILE, 12)])
def test_without_a_line_there_is_no_panic(words: Tuple[int, ...]) -> None:
    """Texts alone are no sign of Rust."""
    assert panic(MEMORY, words) is None
