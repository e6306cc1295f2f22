"""Objects and tables of the interpreter on synthesised memory, damaged on purpose."""

from __future__ import annotations

import struct

import pytest

from postmortem.cpython.objects.builtins import NotThat, Objects
from postmortem.cpython.objects.code import parse_exception_table
from postmortem.cpython.runtime.layouts import FLAG_DICT, FLAG_LIST, FLAG_UNICODE, TP_NAME
from postmortem.cpython.runtime.releases import LAYOUTS
from postmortem.memory import Fault, Segments

TYPE, NAME, OBJECT, DATA = 0x10000, 0x11000, 0x20000, 0x30000


def objects(flags: int, name: bytes = b"kind") -> tuple[Objects, Segments]:
    """One type and one object of it, in memory that a test fills."""
    memory = Segments({TYPE: b"\0" * 1024, NAME: name + b"\0" * 64, OBJECT: b"\0" * 256, DATA: b"\0" * 1024})
    memory.put_words(TYPE + TP_NAME, NAME, 32)
    memory.put_words(TYPE + 168, flags)
    memory.put_words(OBJECT + 8, TYPE)
    return Objects(memory, LAYOUTS[(3, 12)]), memory


def test_lengths_that_cannot_be_are_refused() -> None:
    """A list, dict or str with a garbage length is NotThat or a fault at once: nothing is allocated or looped over."""
    read, memory = objects(FLAG_LIST, b"list")
    memory.put_words(OBJECT + 16, 1 << 60, DATA)
    with pytest.raises(NotThat):
        read.items(OBJECT)
    read, memory = objects(FLAG_DICT, b"dict")
    memory.put_words(OBJECT + 32, DATA, 0)
    memory.put_words(DATA + 24, 1 << 50)
    with pytest.raises(NotThat):
        list(read.dict_items(OBJECT))
    read, memory = objects(FLAG_UNICODE, b"str")
    memory.put_words(OBJECT + 16, 1 << 60, 0, 7 << 2)
    with pytest.raises(NotThat):
        read.text(OBJECT)


def test_a_long_text_is_cut_not_refused() -> None:
    """A str longer than anything worth showing comes out cut; one that leaves its memory faults."""
    read, memory = objects(FLAG_UNICODE, b"str")
    memory.put_words(OBJECT + 16, 1 << 39, 0, 1 << 2 | 1 << 5 | 1 << 6)
    with pytest.raises(Fault):
        read.text(OBJECT)


def test_garbage_pointers_are_no_objects() -> None:
    """Addresses that no object can have, and memory that is no type, give no type name."""
    read, memory = objects(0)
    for address in (0, 1, 8, OBJECT + 4, 1 << 47 | 1 << 62):
        assert read.type_name(address) is None
    memory.put(NAME, b"\x01\x02")
    assert read.type_name(OBJECT) is None


def test_inheritance_that_is_circular_ends() -> None:
    """A type that is its own base does not loop for ever."""
    read, memory = objects(0)
    memory.put_words(TYPE + 256, TYPE)
    assert read.is_instance(OBJECT, "kind") and not read.is_instance(OBJECT, "other")


def test_exception_table_rows() -> None:
    """Rows are start, length, target and depth in code units; a table that ends within a row gives what it has."""
    # start 2, length 3, target 200 (two groups of six bits), depth 2, lasti set
    table = bytes([0x80 | 2, 3, 0x40 | 200 >> 6, 200 & 63, 2 << 1 | 1])
    rows = list(parse_exception_table(table))
    assert [tuple(r) for r in rows] == [(4, 10, 400, 2)]
    assert len(list(parse_exception_table(table + bytes([0x80 | 1])))) == 2
    assert list(parse_exception_table(b"")) == []


def test_a_damaged_exception_table_ends() -> None:
    """It has no more rows than its code has units, and its numbers take no more than an int."""
    row = bytes([0x80 | 2, 4, 9, 3])
    assert len(list(parse_exception_table(row * 1000, size=40))) == 20
    endless = list(parse_exception_table(b"\x7f" * 100_000))
    assert all(handler.target < 1 << 32 for handler in endless)


def test_numbers() -> None:
    """Signs and digits of 3.12's long layout; one with more digits than anybody sleeps is refused."""
    read, memory = objects(1 << 24, b"int")
    memory.put_words(OBJECT + 16, 1 << 3)
    memory.put(OBJECT + 24, struct.pack("<I", 42))
    assert read.integer(OBJECT) == 42
    memory.put_words(OBJECT + 16, 1 << 3 | 2)
    assert read.integer(OBJECT) == -42
    memory.put_words(OBJECT + 16, 99 << 3)
    with pytest.raises(NotThat):
        read.integer(OBJECT)
