"""Objects on synthesised memory, sound and damaged."""

from __future__ import annotations

import struct
from typing import List, Tuple

import pytest

from postmortem.cpython.objects.builtins import MAX_SPENT, NotThat, Objects
from postmortem.cpython.runtime import layouts as L
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.memory import Segments

TYPE, NAME, OBJECT, TABLE, VALUE = 0x10000, 0x10400, 0x20000, 0x30000, 0x40000


class Target:
    """One object of one type, in memory that a test may damage."""

    def __init__(self, version: Tuple[int, int], name: str, flag: int) -> None:
        self.layout = LAYOUTS[version]
        self.memory = Segments({TYPE: b"\0" * 2048, OBJECT: b"\0" * 512, TABLE: b"\0" * 4096})
        self.memory.put_words(TYPE + self.layout.tp_name, NAME)
        self.memory.put_words(TYPE + self.layout.tp_basicsize, 64)
        self.memory.put_words(TYPE + self.layout.tp_flags, flag)
        self.memory.put(NAME, name.encode())
        self.memory.put_words(OBJECT + self.layout.ob_type, TYPE)

    @property
    def objects(self) -> Objects:
        return Objects(self.memory, self.layout)


def dict_with(version: Tuple[int, int], slots: int, entries: int) -> Target:
    """A dict whose header says so many slots and entries; the first ones are there. ``slots``: log2 since 3.11."""
    target = Target(version, "dict", L.FLAG_DICT)
    layout = target.layout
    target.memory.put_words(OBJECT + layout.dict_keys, TABLE)
    if layout.dk_log2:
        target.memory.put(TABLE + 8, struct.pack("<BBBBI", slots & 0xFF, slots & 0xFF, 0, 0, 0))
        target.memory.put_words(TABLE + 24, entries)
        start = TABLE + 32 + (1 << slots if slots < 10 else 0)
    else:
        target.memory.put_words(TABLE + 8, slots)
        target.memory.put_words(TABLE + 32, entries)
        start = TABLE + 40 + (slots if slots < 1000 else 0)
    for index in range(3):
        target.memory.put_words(start + 24 * index, 0, VALUE + 16 * index, VALUE + 16 * index + 8)
    return target


@pytest.mark.parametrize("version, slots", [((3, 10), 8), ((3, 12), 3)])
def test_a_dict_is_read_to_its_last_entry(version: Tuple[int, int], slots: int) -> None:
    """What follows the entries that the header counts is not the dict's."""
    found = list(dict_with(version, slots, 2).objects.dict_items(OBJECT))
    assert found == [(VALUE, VALUE + 8), (VALUE + 16, VALUE + 24)]


@pytest.mark.parametrize(
    "version, damaged",
    [
        ((3, 10), [(0, 0), (7, 1), (8, 6), (8, 1 << 40), (1 << 33, 1), ((1 << 64) - 1, 1)]),
        ((3, 12), [(3, 6), (0, 1), (3, 1 << 40), (33, 1), (255, 1)]),
    ],
)
def test_a_dict_that_cannot_be_is_none(version: Tuple[int, int], damaged: List[Tuple[int, int]]) -> None:
    """No slots, not a power of two, more entries than two thirds of the slots, more than anybody has."""
    for slots, entries in damaged:
        with pytest.raises(NotThat):
            list(dict_with(version, slots, entries).objects.dict_items(OBJECT))


def test_a_str_that_decodes_to_nothing_is_none() -> None:
    """Four bytes a character that are no code point: like all damage, NotThat and nothing else."""
    target = Target((3, 12), "str", L.FLAG_UNICODE)
    layout = target.layout
    target.memory.put_words(OBJECT + layout.str_length, 2)
    target.memory.put(OBJECT + layout.str_state, struct.pack("<I", (4 | 1 << 3) << layout.str_kind_bit))
    target.memory.put(OBJECT + layout.compact_size, b"\xff" * 8)
    with pytest.raises(NotThat):
        target.objects.text(OBJECT)
    assert target.objects.optional_text(OBJECT) is None


@pytest.mark.parametrize("mask", [2, 6, 1 << 20, (1 << 64) - 1])
def test_a_set_that_cannot_be_is_none(mask: int) -> None:
    """A set's table has a power of two of slots, and no more than anybody has."""
    target = Target((3, 12), "set", 0)
    target.memory.put_words(OBJECT + target.layout.set_mask, mask)
    target.memory.put_words(OBJECT + target.layout.set_table, TABLE)
    with pytest.raises(NotThat):
        list(target.objects.set_items(OBJECT))
    target.memory.put_words(OBJECT + target.layout.set_mask, 7)
    assert list(target.objects.set_items(OBJECT)) == []


def test_all_tables_together_have_a_bound() -> None:
    """Each of them may be as large as a table can be; many such are damaged."""
    objects = Target((3, 12), "code", 0).objects
    objects.spend(MAX_SPENT)
    with pytest.raises(NotThat):
        objects.spend(1)
