"""Where an interpreter is looked for when no file says where it is."""

from __future__ import annotations

import struct
from typing import List, Optional, Tuple

from postmortem.cpython.runtime.candidates import data_areas, is_of_python, scanned
from postmortem.memory import Elf, Image, MappedFile

LIBRARY = "/opt/lib/libpython3.9.so.1.0 (deleted)"
MODULE = "/opt/lib/python3.9/lib-dynload/_heapq.so"
HEADS = (32, 40)
#: Two equal pointers to something writable, as interpreters.head and interpreters.main are.
TWINS, HEAP = 0x90000, 0x100000


class Target(Image):
    """A module's data, somebody's heap right behind it, and the library's data at the highest address."""

    def __init__(self, heap: bytes, library: bytes) -> None:
        self._parts = {HEAP - 0x1000: b"\0" * 0x1000 + heap, 0x800000: library}

    @property
    def files(self) -> List[MappedFile]:
        return [MappedFile(HEAP - 0x1000, HEAP, 0, MODULE), MappedFile(0x800000, 0x801000, 0, LIBRARY)]

    @property
    def writable(self) -> List[Tuple[int, int]]:
        heap_end = HEAP + len(self._parts[HEAP - 0x1000]) - 0x1000
        return [(TWINS, TWINS + 64), (HEAP - 0x1000, HEAP), (HEAP, heap_end), (0x800000, 0x801000)]

    def read(self, address: int, size: int) -> bytes:
        start = max(base for base in self._parts if base <= address)
        return self._parts[start][address - start : address - start + size]

    def elf(self, path: str) -> Optional[Elf]:
        return None


def _target(pairs: int) -> Target:
    pair = struct.pack("<4Q", TWINS, TWINS, 0, 0)
    return Target(pair * pairs, (b"\0" * 0x100 + pair).ljust(0x1000, b"\0"))


def test_the_interpreter_comes_before_modules_in_a_folder_of_its_name() -> None:
    """A file is called like an interpreter, its folder does not count: every module lies in lib/python3.9."""
    assert [area.path for area in data_areas(_target(1))] == [LIBRARY, MODULE, MODULE]
    assert is_of_python(MODULE)


def test_a_heap_does_not_use_up_the_candidates() -> None:
    """What looks like an interpreter is bounded an area: behind a module's data lies a heap full of such pairs."""
    found = list(scanned(_target(5000), HEADS))
    assert found[0].address == 0x800100 - HEADS[0]
    assert 0 < sum(candidate.path == MODULE for candidate in found) <= 1000
