"""Search of one piece of memory for many words at once: the protocol, and what the standard library can do.

About 1 s per 100 MB, whatever the number of words. Who may use faster means hands another finder to ``WordSearch``.
"""

from __future__ import annotations

from array import array
from typing import Callable, Collection, Iterator, List, Protocol, Set, Tuple

#: Bytes that are looked at together: few enough that one word in them costs little, enough that none costs little.
_BLOCK = 1 << 13
_FEW = 10

#: Yields (offset in bytes, word) of the aligned words of a piece, ordered by offset.
PieceSearch = Callable[[bytes], Iterator[Tuple[int, int]]]


class WordFinder(Protocol):
    """Means to find many words."""

    @property
    def least(self) -> int:
        """Number of words from which on it is faster than one regular expression a word."""
        ...

    def searching(self, words: Collection[int]) -> PieceSearch:
        """Return a search for some 64-bit words, each between 0 and 2**64 - 1.

        The search takes a piece that begins at a multiple of eight; up to seven bytes at its end are no word.
        """
        ...


class ArrayFinder:
    """A finder of the standard library alone."""

    least = _FEW

    def searching(self, words: Collection[int]) -> PieceSearch:
        """Return a search that intersects each block with a set, and lists the words of blocks that have any.

        Blocks without the upper bytes of any word, such as texts, are skipped if all words lie in a few regions.
        """
        wanted = set(words)
        uppers = {word.to_bytes(8, "little")[3:6] for word in wanted}
        tell = list(uppers) if len(uppers) <= _FEW else None

        def search(data: bytes) -> Iterator[Tuple[int, int]]:
            for start in range(0, len(data) & -8, _BLOCK):
                block = data[start : min(start + _BLOCK, len(data) & -8)]
                if tell is None or any(upper in block for upper in tell):
                    yield from _in_block(block, start, wanted)

        return search


def _in_block(block: bytes, start: int, wanted: Set[int]) -> List[Tuple[int, int]]:
    """Return (offset, word) of the words of a block that are wanted; ``start``: offset of the block."""
    words = array("Q", block)
    present = wanted.intersection(words)
    if not present:
        return []
    return [(start + 8 * index, word) for index, word in enumerate(words) if word in present]
