"""Where words stand in the target's memory: the raw material of *who refers to this object*.

A pointer is eight bytes at a multiple of eight (x86-64 System V ABI, 3.1.2), wherever it is kept: in an object, a table,
a C structure, on a stack. So all places that refer to an object are found by looking for its address, whatever type the
object around them has. Memory goes by at about a gigabyte a second, several words at once in each pass.
"""

from __future__ import annotations

import struct
import time
from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

from ..memory import Fault, Memory
from .objects import NotThat

_PIECE = 1 << 20
_PAGE = 4096
#: Places of one word. An object that is known all over the place is nobody's secret.
MAX_PLACES = 20_000
#: Pointers into one block of 64 KB; a heap full of small objects has some thousands.
MAX_POINTERS = 200_000
_BLOCK = 1 << 16


class WordSearch:
    """Looks through the (start, end) ranges of a memory until a moment of ``time.monotonic``; then every search is
    NotThat. ``missing`` counts bytes of the ranges that could not be read."""

    def __init__(self, memory: Memory, ranges: Sequence[Tuple[int, int]], until: float) -> None:
        self._memory = memory
        self._ranges = ranges
        self.until = until
        self.missing = 0

    def places(self, words: Sequence[int]) -> Dict[int, List[int]]:
        """Word → the aligned addresses where it stands. Raises NotThat when there is too much to look through."""
        needles = {word: struct.pack("<Q", word) for word in words}
        found: Dict[int, List[int]] = {word: [] for word in needles}
        for start, data in self._pieces():
            for word, needle in needles.items():
                at = data.find(needle)
                while at >= 0:
                    if not at & 7:
                        found[word].append(start + at)
                    at = data.find(needle, at + 8 - (at & 7))
                if len(found[word]) > MAX_PLACES:
                    raise NotThat(f"referred to from more than {MAX_PLACES:,} places")
        return found

    def pointers(self, blocks: Iterable[int]) -> Iterator[Tuple[int, int]]:
        """(place, value) of all words that point into one of the blocks of 64 KB with these numbers. Raises NotThat."""
        needles = [struct.pack("<Q", block << 16)[2:] for block in set(blocks)]
        count = 0
        for start, data in self._pieces():
            for needle in needles:
                at = data.find(needle)
                while at >= 0:
                    if at & 7 == 2:
                        count += 1
                        yield start + at - 2, int.from_bytes(data[at - 2 : at + 6], "little")
                    at = data.find(needle, at + 1)
            if count > MAX_POINTERS:
                raise NotThat("more pointers than can be looked through")

    def _pieces(self) -> Iterator[Tuple[int, bytes]]:
        """Aligned pieces; of one with missing pages the pages that are there."""
        self.missing = 0
        for low, high in self._ranges:
            for start in range(low, high, _PIECE):
                if time.monotonic() > self.until:
                    raise NotThat("more memory than can be looked through in the time for it")
                size = min(_PIECE, high - start)
                try:
                    yield start, self._memory.read(start, size)
                except Fault:
                    yield from self._pages(start, size)

    def _pages(self, start: int, size: int) -> Iterator[Tuple[int, bytes]]:
        for page in range(start, start + size, _PAGE):
            step = min(_PAGE, start + size - page)
            try:
                yield page, self._memory.read(page, step)
            except Fault:
                self.missing += step


def block_of(address: int) -> int:
    """The number of the block of 64 KB that an address lies in."""
    return address // _BLOCK
