"""Memory: the fixed-width reads, and what happens at the edges."""

from __future__ import annotations

import pytest

from postmortem.memory import Fault, Segments


def test_reads_words_numbers_and_strings() -> None:
    """Every width is little-endian; a string stops at its NUL and at its limit."""
    memory = Segments({0x1000: bytes(range(1, 9)) + b"\xff" * 8 + b"name\0rest" + b"\0" * 64})
    assert memory.u8(0x1000) == 1
    assert memory.u16(0x1000) == 0x0201
    assert memory.u32(0x1000) == 0x04030201
    assert memory.u64(0x1000) == 0x0807060504030201
    assert memory.i32(0x1008) == memory.i64(0x1008) == -1
    assert memory.words(0x1000, 2) == (0x0807060504030201, (1 << 64) - 1)
    assert memory.cstring(0x1010) == b"name"
    assert memory.cstring(0x1010, 2) == b"na"
    assert memory.words(0x1000, 0) == ()


def test_missing_memory_faults_with_its_address() -> None:
    """What is not there raises Fault, with where and how much; never a short read."""
    memory = Segments({0x1000: b"12345678"})
    for address, size in ((0, 1), (0xFFF, 2), (0x1007, 2), (1 << 63, 8)):
        with pytest.raises(Fault) as caught:
            memory.read(address, size)
        assert (caught.value.address, caught.value.size) == (address, size)


def test_absurd_counts_are_refused() -> None:
    """A length that is garbage is refused before anything is allocated for it."""
    with pytest.raises(Fault):
        Segments({0x1000: b"x" * 64}).words(0x1000, 1 << 50)
