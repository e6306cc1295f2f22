"""Search of the target's memory for words, the basis of finding an object's referrers.

A pointer is eight bytes at a multiple of eight (x86-64 System V ABI, 3.1.2), wherever it is stored: objects, tables, C
structures, stacks. A search for an object's address finds all of them, whatever the types around them.

For a few words the speed is one or two gigabytes per second with a regular expression that starts with a rare byte;
``bytes.find`` is slower, because it compares the last byte first, which is zero in every pointer and in most of memory.
Many words are found by a ``WordFinder``, in one pass.
"""

from __future__ import annotations

import contextlib
import re
import struct
from typing import Collection, Dict, Iterable, Iterator, List, Optional, Pattern, Sequence, Tuple

from ...memory import Fault, Memory
from ...timelimits import TimeLimit
from .builtins import NotThat
from .wordfinders import ArrayFinder, PieceSearch, WordFinder

_PIECE = 1 << 20
_PAGE = 4096
#: Most places of one word; an object known in more is of no interest.
MAX_PLACES = 20_000
#: Most places of all words of one search: 100 MB.
MAX_TOGETHER = 2_000_000
_MAX_WORD = (1 << 64) - 1


class OutOfTime(NotThat):
    """The time limit of a search has passed."""


class WordSearch:
    """Search through the (start, end) ranges of a memory; missing pages are skipped.

    ``limit``: once it has passed, searches raise OutOfTime. ``finder``: how many words are found at once;
    None: with the standard library.
    """

    def __init__(
        self,
        memory: Memory,
        ranges: Sequence[Tuple[int, int]],
        limit: TimeLimit,
        finder: Optional[WordFinder] = None,
    ) -> None:
        self._memory = memory
        self._finder = finder or ArrayFinder()
        self._ranges = ranges
        self._limit = limit

    def places(self, words: Collection[int]) -> Dict[int, List[int]]:
        """Map each word to its aligned addresses; words with more than MAX_PLACES are left out.

        Raises: OutOfTime past the time limit; NotThat for more than MAX_TOGETHER places.
        """
        found: Dict[int, List[int]] = {word: [] for word in words}
        self._collect(found)
        return found

    def places_in_time(self, words: Collection[int]) -> Dict[int, List[int]]:
        """Map each word to its aligned addresses, as far as found within the time limit."""
        found: Dict[int, List[int]] = {word: [] for word in words}
        with contextlib.suppress(NotThat):
            self._collect(found)
        return found

    def _collect(self, found: Dict[int, List[int]]) -> None:
        """Add the addresses of all words to ``found``. Raises OutOfTime past the time limit, NotThat for too many."""
        words = [word for word in found if 0 <= word <= _MAX_WORD]  # damaged ones may be out of range
        search = self._finder.searching(words) if len(words) >= self._finder.least else _searching_few(words)
        left = MAX_TOGETHER
        for start, data in self._pieces():
            for offset, word in search(data):
                places = found.get(word)
                if places is not None:
                    places.append(start + offset)
                    left -= 1
                    if len(places) > MAX_PLACES:
                        del found[word]
                        left += len(places)
            if left < 0:
                raise NotThat("more places than can be remembered")

    def some(self, word: int, most: int) -> List[int]:
        """Return the first addresses of a word, at most ``most``, as far as found within the time limit."""
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
        """Raise OutOfTime if the time limit has passed."""
        if self._limit.passed():
            raise OutOfTime("more memory than can be searched in the time allowed")

    def _pieces(self) -> Iterator[Tuple[int, bytes]]:
        """Yield (address, bytes) of aligned pieces; page by page where a page is missing."""
        for low, high in self._ranges:
            for start in range(low, high, _PIECE):
                self.check()
                size = min(_PIECE, high - start)
                try:
                    yield start, self._memory.read(start, size)
                except Fault:
                    yield from self._pages(start, size)

    def _pages(self, start: int, size: int) -> Iterator[Tuple[int, bytes]]:
        """Yield the pages of a piece that are available."""
        for page in range(start, start + size, _PAGE):
            step = min(_PAGE, start + size - page)
            try:
                yield page, self._memory.read(page, step)
            except Fault:
                continue


def _searching_few(words: Sequence[int]) -> PieceSearch:
    """Return a search for a few words, each by a regular expression."""
    needles = [(word, struct.pack("<Q", word), *_needle(word)) for word in words]

    def search(data: bytes) -> Iterator[Tuple[int, int]]:
        for word, exact, pattern, skipped in needles:
            for match in pattern.finditer(data):
                at = match.start() - skipped
                if not at & 7 and at >= 0 and data[at : at + 8] == exact:
                    yield at, word

    return search


def _needle(word: int) -> Tuple[Pattern[bytes], int]:
    """Return (pattern, bytes skipped): a pointer's bytes, without leading zeros and the constant end."""
    data, first = struct.pack("<Q", word), 0
    while first < 3 and data[first] == 0:
        first += 1
    return re.compile(re.escape(data[first:6])), first


def near(ranges: Sequence[Tuple[int, int]], addresses: Iterable[int]) -> List[Tuple[int, int]]:
    """Return the parts of ranges within about a megabyte of the addresses, where related data usually lies."""
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
