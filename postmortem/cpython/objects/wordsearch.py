"""Where words stand in the target's memory: the raw material of *who refers to this object*.

A pointer is eight bytes at a multiple of eight (x86-64 System V ABI, 3.1.2), wherever it is kept: in an object, a table,
a C structure, on a stack. So all places that refer to an object are found by looking for its address, whatever type the
object around them has.

Memory goes by at one or two gigabytes a second, when it is asked for a regular expression that begins with a byte that is
seldom; ``bytes.find`` looks at the last byte first, which is zero in every pointer and in most of memory.
"""

from __future__ import annotations

import contextlib
import re
import struct
import time
from array import array
from typing import Collection, Dict, Iterable, Iterator, List, Pattern, Sequence, Set, Tuple

from ...memory import Fault, Memory
from .builtins import NotThat

_PIECE = 1 << 20
_BLOCK = 1 << 16
_PAGE = 4096
#: Places of one word. An object that is known all over the place is nobody's secret.
MAX_PLACES = 20_000
_FEW = 10
_MAX_WORD = (1 << 64) - 1
_Needle = Tuple[Pattern[bytes], int]


class WordSearch:
    """Looks through the (start, end) ranges of a memory until a moment of ``time.monotonic``; then every search is
    NotThat. Pages that are missing are passed over."""

    def __init__(self, memory: Memory, ranges: Sequence[Tuple[int, int]], until: float) -> None:
        self._memory = memory
        self._ranges = ranges
        self.until = until

    def places(self, words: Collection[int]) -> Dict[int, List[int]]:
        """Word → the aligned addresses where it stands; a word that stands in more than MAX_PLACES is left out. Raises
        NotThat when there is too much to look through."""
        found: Dict[int, List[int]] = {word: [] for word in words}
        self._collect(found)
        return found

    def places_in_time(self, words: Collection[int]) -> Dict[int, List[int]]:
        """The same as far as the time is enough, for whom some of the places will do."""
        found: Dict[int, List[int]] = {word: [] for word in words}
        with contextlib.suppress(NotThat):
            self._collect(found)
        return found

    def _collect(self, found: Dict[int, List[int]]) -> None:
        needles = {word: _needle(word) for word in found if 0 <= word <= _MAX_WORD}  # damaged memory gives sums beyond
        for start, data in self._pieces():
            for word in list(_present(needles, data)):
                pattern, skipped = needles[word]
                exact = struct.pack("<Q", word)
                for match in pattern.finditer(data):
                    at = match.start() - skipped
                    if not at & 7 and at >= 0 and data[at : at + 8] == exact:
                        found[word].append(start + at)
                if len(found[word]) > MAX_PLACES:
                    del needles[word], found[word]

    def some(self, word: int, most: int) -> List[int]:
        """The first places of one word, as many as there are up to ``most`` and as the time allows."""
        found: List[int] = []
        if not 0 <= word <= _MAX_WORD:
            return found
        pattern, skipped = _needle(word)
        exact = struct.pack("<Q", word)
        with contextlib.suppress(NotThat):
            for start, data in self._pieces():
                for match in pattern.finditer(data):
                    at = match.start() - skipped
                    if not at & 7 and at >= 0 and data[at : at + 8] == exact:
                        found.append(start + at)
                        if len(found) >= most:
                            return found
        return found

    def check(self) -> None:
        """Raises NotThat when the time is up."""
        if time.monotonic() > self.until:
            raise NotThat("more memory than can be looked through in the time for it")

    def _pieces(self) -> Iterator[Tuple[int, bytes]]:
        """Aligned pieces; of one with missing pages the pages that are there."""
        for low, high in self._ranges:
            for start in range(low, high, _PIECE):
                self.check()
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
                continue


def _present(needles: Dict[int, _Needle], data: bytes) -> Iterable[int]:
    """Those of many words that a piece has at all: all of its words are compared with a set, at the price of some ten
    searches for one; but for blocks in which not even the upper half of one stands, as in texts and arrays."""
    if len(needles) < _FEW:
        return needles
    wanted = set(needles)
    uppers = {struct.pack("<Q", word)[3:6] for word in needles}
    if len(uppers) > _FEW:
        return wanted.intersection(array("Q", data[: len(data) & -8]))
    found: Set[int] = set()
    for at in range(0, len(data) & -8, _BLOCK):
        block = data[at : min(at + _BLOCK, len(data) & -8)]
        if any(upper in block for upper in uppers):
            found.update(wanted.intersection(array("Q", block)))
    return found


def _needle(word: int) -> _Needle:
    """The bytes of a pointer, without zeros at its beginning and what all pointers share at the end; and which is the
    first."""
    data, first = struct.pack("<Q", word), 0
    while first < 3 and data[first] == 0:
        first += 1
    return re.compile(re.escape(data[first:6])), first


def near(ranges: Sequence[Tuple[int, int]], addresses: Iterable[int]) -> List[Tuple[int, int]]:
    """The parts of some ranges that lie within a megabyte or so of some addresses: where what has to do with them lies, as
    a rule."""
    wanted = {address // _PIECE + step for address in addresses for step in (-1, 0, 1)}
    found: List[Tuple[int, int]] = []
    for low, high in ranges:
        for piece in range(low // _PIECE, (high - 1) // _PIECE + 1):
            if piece in wanted:
                start, end = max(low, piece * _PIECE), min(high, (piece + 1) * _PIECE)
                if found and found[-1][1] == start:
                    start = found.pop()[0]
                found.append((start, end))
    return found
