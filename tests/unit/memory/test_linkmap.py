"""The dynamic loader's list of what it loaded."""

from __future__ import annotations

import struct
from typing import Dict, List, Tuple

import pytest

from postmortem.memory import Segments
from postmortem.memory.linkmap import _libraries


class Noted(Segments):
    """Knows what was read of it."""

    def __init__(self, pages: Dict[int, bytes]) -> None:
        super().__init__(pages)
        self.seen: List[Tuple[int, int]] = []

    def read(self, address: int, size: int) -> bytes:
        self.seen.append((address, address + size))
        return super().read(address, size)


@pytest.mark.parametrize("with_previous", [True, False])
def test_each_entry_is_read_whole_where_it_can_be(with_previous: bool) -> None:
    """gdb reads all five words of an entry: a core that holds what was read here must have the fifth, which may lie in
    another page. Where a core lacks it, the library is known all the same."""
    words = struct.pack("<5Q", 0x7F0000, 0x2000, 0, 0, 0x1234)
    memory = Noted({0x0FE0: words if with_previous else words[:32], 0x2000: b"/lib/libc.so.6".ljust(8192, b"\0")})
    assert list(_libraries(memory, 0x0FE0)) == [(0x7F0000, "/lib/libc.so.6")]
    assert any(start <= 0x1000 and end >= 0x1008 for start, end in memory.seen)
