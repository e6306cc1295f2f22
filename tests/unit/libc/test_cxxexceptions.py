"""A C++ exception in memory, found by a word that points to its header."""

from __future__ import annotations

import struct
from typing import Dict, Optional

import pytest

from postmortem.libc.cxxexceptions import Thrown, readable, thrown
from postmortem.memory import Segments

HEADER, INFO, BASE_INFO, NAMES, TEXT = 0x5000, 0x6000, 0x6100, 0x6200, 0x6400
GNU = int.from_bytes(b"GNUCC++\0", "big")


def memory(name: bytes, base: bytes = b"", what: Optional[int] = TEXT, kind: int = GNU) -> Segments:
    """An exception of class ``name`` with one base class; its thrown object begins with a vtable and ``what``."""
    before = struct.pack("<Q", INFO).ljust(80, b"\0")
    unwinding = struct.pack("<QQQQ", kind, 0, 0, 0)
    parts: Dict[int, bytes] = {
        HEADER - 80: before + unwinding + struct.pack("<QQ", 0x111, what or 0),
        INFO: struct.pack("<QQQ", 0x222, NAMES, BASE_INFO if base else 0),
        BASE_INFO: struct.pack("<QQQ", 0x222, NAMES + 0x100, 0),
        NAMES: name.ljust(0x100, b"\0") + base.ljust(0x100, b"\0"),
        TEXT: b"shelf is full".ljust(64, b"\0"),
    }
    return Segments(parts)


def test_a_standard_exception_has_its_text() -> None:
    """Class and what() are read from the object behind the header; other words of the stack do not matter."""
    found = thrown(memory(b"St12length_error", b"St11logic_error"), [0, 0xDEAD0000, HEADER])
    assert found == Thrown("std::length_error", "shelf is full")


def test_both_runtimes_are_known() -> None:
    """libc++ has another mark; the distances are the same."""
    clang = int.from_bytes(b"CLNGC++\0", "big")
    assert thrown(memory(b"St13runtime_error", kind=clang), [HEADER]) == Thrown("std::runtime_error", "shelf is full")


def test_a_class_without_a_text() -> None:
    """A class that derives from neither standard one gives its name alone."""
    assert thrown(memory(b"N4grid8BadShapeE"), [HEADER]) == Thrown("grid::BadShape", None)
    assert thrown(memory(b"St9bad_alloc", b"St9exception"), [HEADER]) == Thrown("std::bad_alloc", None)


@pytest.mark.parametrize("word", [HEADER + 8, 0, 1 << 63, NAMES])
def test_other_words_are_no_exception(word: int) -> None:
    """Neither unreadable addresses nor memory without the mark."""
    assert thrown(memory(b"St12length_error"), [word]) is None


def test_garbage_is_no_class() -> None:
    """The mark alone does not make an exception: the class must have a name."""
    assert thrown(memory(b"\x90\x90 ret"), [HEADER]) is None
    assert thrown(memory(b"St13runtime_error", what=None), [HEADER]) == Thrown("std::runtime_error", None)


@pytest.mark.parametrize(
    ("mangled", "plain"),
    [
        ("St12length_error", "std::length_error"),
        ("N12_GLOBAL__N_14LostE", "(anonymous namespace)::Lost"),
        ("7Refused", "Refused"),
        ("N5boost10wrapexceptISt11logic_errorEE", "N5boost10wrapexceptISt11logic_errorEE"),
        ("9Short", "9Short"),
    ],
)
def test_names_in_plain_cxx(mangled: str, plain: str) -> None:
    """A name that is more than a sequence of names stays as it is."""
    assert readable(mangled) == plain
