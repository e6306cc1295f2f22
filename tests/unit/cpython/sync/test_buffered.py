"""The lock inside a buffered file, on synthesised memory."""

from __future__ import annotations

import pytest

from postmortem.cpython.objects.builtins import Objects
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.cpython.sync.buffered import awaited_buffer
from postmortem.memory import Segments
from postmortem.timelimits import TimeLimit

LAYOUT = LAYOUTS[(3, 12)]
TYPE, NAME, OBJECT, LOCK = 0x10000, 0x18000, 0x20000, 0x40000
RANGES = [(OBJECT, OBJECT + 0x200)]


def memory(kind: bytes = b"_io.BufferedReader", offset: int = 104, owner: int = 0x7F00) -> Segments:
    made = Segments({TYPE: b"\0" * 2048, NAME: kind + b"\0" * 100, OBJECT: b"\0" * 0x200, LOCK: b"\0" * 64})
    made.put_words(TYPE + LAYOUT.ob_type, TYPE)
    made.put_words(TYPE + LAYOUT.tp_name, NAME)
    made.put_words(TYPE + LAYOUT.tp_basicsize, 160)
    made.put_words(OBJECT + LAYOUT.ob_type, TYPE)
    made.put_words(OBJECT + offset, LOCK, owner)
    return made


@pytest.mark.parametrize("offset", [104, 112, 88])
def test_the_file_around_a_lock(offset: int) -> None:
    """Wherever in the struct it is, its owner stands next to it."""
    found = awaited_buffer(Objects(memory(offset=offset), LAYOUT), LOCK, RANGES, TimeLimit(5.0))
    assert found is not None
    assert (found.address, found.type, found.owner_ident, found.name) == (OBJECT, "BufferedReader", 0x7F00, None)


def test_other_objects_with_that_word_are_none() -> None:
    """By their type; and a word that stands nowhere is nobody's lock."""
    assert awaited_buffer(Objects(memory(b"dict"), LAYOUT), LOCK, RANGES, TimeLimit(5.0)) is None
    assert awaited_buffer(Objects(memory(), LAYOUT), LOCK + 8, RANGES, TimeLimit(5.0)) is None


def test_without_time_it_stays_unknown() -> None:
    """A search that is not done says nothing."""
    assert awaited_buffer(Objects(memory(), LAYOUT), LOCK, RANGES, TimeLimit(-1.0)) is None
