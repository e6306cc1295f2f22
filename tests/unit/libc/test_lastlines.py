"""Lines printed to stderr before abort(), from the unused part of a stack."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem.libc.lastlines import last_line
from postmortem.memory import Segments

SP = 0x7FFC_0000_8000


def below(text: bytes) -> Segments:
    return Segments({SP - 0x4000: bytes(0x1000) + text.ljust(0x3000, b"\0") + bytes(0x1000)})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"\1\2Bad file descriptor (src/signaler.cpp:157)\n\0\0", "Bad file descriptor (src/signaler.cpp:157)"),
        (b"opened the store\n\0the store is empty, aborting\n", "the store is empty, aborting"),
        (b"check failed at last\n\0check failed: a.cc:12 x\n", "check failed: a.cc:12 x"),
        (b"opened the store\n", None),
        (b"fatal: cut off without its end", None),
        (b"", None),
    ],
)
def test_only_lines_that_tell_of_a_failure(text: bytes, line: Optional[str]) -> None:
    """A whole line with a source line or a word of failure; one that cites a source line is the most telling."""
    assert last_line(below(text), SP) == line


def test_missing_pages_are_skipped() -> None:
    """A core without the pages below the stack pointer has no such line."""
    assert last_line(Segments({}), SP) is None
