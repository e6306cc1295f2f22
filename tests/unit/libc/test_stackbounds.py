"""Where a thread's stack ends, from its own record, the kernel's mapping, or a guard below it."""

from __future__ import annotations

import struct
from pathlib import Path

from postmortem.libc.stackbounds import GAP, Bounds, bounds

from ...support.crashing import Part, R, crashed

MAIN, TOP = 0x7FFC_0000_0000, 0x7FFC_0080_0000
BLOCK, SIZE, GUARD = 0x7F10_0000_0000, 0x101000, 0x1000
PTHREAD = BLOCK + SIZE - 0x9C0


def main_stack() -> Part:
    return Part(MAIN, size=TOP - MAIN)


def pthread(*record: int) -> Part:
    """``struct pthread`` at the top of the thread's stack, with its record somewhere in it."""
    return Part(PTHREAD, (bytes(0x690) + struct.pack(f"<{len(record)}Q", *record)).ljust(0x9C0, b"\0"))


def test_the_first_thread_s_stack_is_the_mapping_with_execve_s_strings(tmp_path: Path) -> None:
    """Its limit is not in a core; below it the kernel keeps a gap."""
    core = crashed(tmp_path / "core", [main_stack()], strings=TOP - 16)
    assert bounds(core, {}, TOP - 4096) == Bounds(MAIN - GAP, MAIN, TOP)


def test_a_thread_of_glibc_s_knows_its_own(tmp_path: Path) -> None:
    """Wherever in struct pthread the record stands; the guard is no part of what may be used."""
    core = crashed(tmp_path / "core", [main_stack(), pthread(BLOCK, SIZE, GUARD, GUARD)], strings=TOP - 16)
    found = bounds(core, {"fs_base": PTHREAD}, BLOCK + 0x8000)
    assert found == Bounds(BLOCK, BLOCK + GUARD, BLOCK + SIZE, SIZE - GUARD)


def test_words_that_are_no_record_are_none(tmp_path: Path) -> None:
    """The stack must hold its own struct pthread, and begin with a page."""
    for record in (
        (BLOCK + 8, SIZE, GUARD, GUARD),
        (BLOCK, 0x1000, 0, 0),
        (BLOCK, 1 << 50, 0, 0),
        (BLOCK, SIZE, SIZE, 0),
    ):
        core = crashed(tmp_path / "core", [main_stack(), pthread(*record)], strings=TOP - 16)
        assert bounds(core, {"fs_base": PTHREAD}, BLOCK + 0x8000) is None


def test_another_stack_is_one_with_a_guard_below(tmp_path: Path) -> None:
    """A program's own: what nobody may touch below what may be written. Without a guard it may be any memory."""
    own = [Part(0x5000_0000, flags=0, size=0x1000), Part(0x5000_1000, size=0x4000)]
    core = crashed(tmp_path / "core", [*own, main_stack()], strings=TOP - 16)
    for sp in (0x5000_2000, 0x5000_0800):
        assert bounds(core, {}, sp) == Bounds(0x5000_0000, 0x5000_1000, 0x5000_5000)
    core = crashed(tmp_path / "core", [Part(0x5000_1000, size=0x4000), main_stack()], strings=TOP - 16)
    assert bounds(core, {}, 0x5000_2000) is None


def test_nothing_is_said_of_garbage(tmp_path: Path) -> None:
    """Pointers that lead nowhere, strings that lie in constants."""
    core = crashed(tmp_path / "core", [Part(0x4000, size=0x1000, flags=R)], strings=0x4000)
    assert bounds(core, {"fs_base": 0xDEAD}, 0) is None
    assert bounds(core, {"fs_base": (1 << 64) - 8}, (1 << 64) - 8) is None
