"""Possible beginnings of the allocation around a place in memory, from the allocator's own records.

- Small blocks (up to 512 bytes) lie in pools of one size: struct pool_header has 48 bytes at a multiple of 4 KB, of 16
  KB since 3.10, with ``szidx`` at 36 and ``maxnextoffset`` at 44, which is the pool's size less that of a block
  (Objects/obmalloc.c, Include/internal/pycore_obmalloc.h of 3.8-3.15: ALIGNMENT 16, POOL_BITS).
- glibc stores the size of a chunk in the word before it, with three flags (malloc/malloc.c, struct malloc_chunk).
- musl (1.2.1 and later, src/malloc/mallocng/meta.h) stores the offset of a block in its group, and the group leads to a
  record that leads back.

All are guesses, to be confirmed by a pointer to the beginning.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from ...memory import Fault, Memory

_HEADER, _SZIDX, _MAX_NEXT, _ALIGNMENT, _CLASSES = 48, 36, 44, 16, 32
_FLAGS, _MMAPPED, _IN_USE = 7, 2, 1
_LEAST, _MOST = 32, 1 << 30
#: Largest distance from the beginning of a chunk to a place in it, in bytes.
_REACH = 1 << 16
_PAGE = 4096
#: Most pages whose chunks are remembered: with the most chunks that a page can have, 35 MB.
_MOST_PAGES = 1024
#: struct meta of musl (prev, next, mem): offset of mem.
_META_MEM = 16
#: Offsets of the data in a block. Debug builds prefix the size and a word of FORBIDDENBYTE with the domain, twice if
#: PyMem_Malloc passes a large request on to PyMem_RawMalloc (Objects/obmalloc.c, _PyMem_DebugRawAlloc).
DEBUG_PREFIXES = (0, 16, 32)


class Block(NamedTuple):
    """A block of a pool, or what may be one; ``sure``: all fields of the pool's header fit."""

    start: int
    sure: bool


class Allocations:
    """Records of the allocators about the places of one process; ``version``: of Python."""

    def __init__(self, memory: Memory, version: Tuple[int, int], on_musl: bool = False) -> None:
        self._memory = memory
        self._pool_size = 1 << (14 if version >= (3, 10) else 12)
        self._on_musl = on_musl
        self._chunks: Dict[int, List[Tuple[int, int, bool]]] = {}  # page → (start, end, whether mapped by itself)

    def beginnings(self, place: int) -> List[int]:
        """Return possible beginnings, multiples of 8, of the table around a place.

        In a small block these are all words up to the place, because tables of values have a prefix. Debug builds put
        two words before each table, four before a large one.
        """
        block = self.block(place)
        found = list(range(block.start, place + 8, 8)) if block is not None else []
        if block is not None and block.sure:
            return found
        large = _large_on_musl(self._memory, place) if self._on_musl else self._large(place)
        return [*found, *(chunk + frame for chunk in large for frame in DEBUG_PREFIXES)]

    def block(self, place: int) -> Optional[Block]:
        """Return the pool's block around a place; None if there is no pool."""
        pool_size = self._pool_size
        pool = place & -pool_size
        try:
            count, szidx = self._memory.u32(pool), self._memory.u32(pool + _SZIDX)
            size = (szidx + 1) * _ALIGNMENT
            if szidx >= _CLASSES or not 0 < count <= pool_size // size or place < pool + _HEADER:
                return None
            sure = self._memory.u32(pool + _MAX_NEXT) == pool_size - size
        except Fault:
            return None
        return Block(place - (place - pool - _HEADER) % size, sure)

    def _large(self, place: int) -> List[int]:
        """Return beginnings of glibc's chunks that contain the place and whose successor marks them as in use."""
        found: List[int] = []
        last = place & -_ALIGNMENT
        page = last & -_PAGE
        while page > last - _REACH - _PAGE and page >= 0:
            chunks = self._chunks_in(page)
            if chunks is None:
                break
            for start, end, alone in chunks:
                if start <= place < end and place - start < _REACH and (alone or _is_chunk(self._memory, end)):
                    found.append(start)
            page -= _PAGE
        return found

    def _chunks_in(self, page: int) -> Optional[List[Tuple[int, int, bool]]]:
        """Return the possible chunks that begin in a page, from the sizes before them; None if it is not there."""
        if page not in self._chunks:
            try:
                words = self._memory.words(page, _PAGE // 8)
            except Fault:
                return None
            if len(self._chunks) >= _MOST_PAGES:
                self._chunks.clear()
            sizes = (_before(self._memory, page), *words[1:-1:2])
            self._chunks[page] = [
                (page + _ALIGNMENT * index, page + _ALIGNMENT * index - 16 + (size & ~_FLAGS), bool(size & _MMAPPED))
                for index, size in enumerate(sizes)
                if _LEAST <= size < _MOST and not size & 8
            ]
        return self._chunks[page]


def _large_on_musl(memory: Memory, place: int) -> List[int]:
    """Return the beginning of the nearest of musl's blocks before the place, at most one.

    Before a block: its offset in the group, in units of 16, as two bytes; a byte with its number; a byte that is set if
    the offset takes four more bytes. The group begins with a unit that holds the address of struct meta, whose third
    word is the group's address.
    """
    for start in range(place & -_ALIGNMENT, max(place - _REACH, _ALIGNMENT), -_ALIGNMENT):
        try:
            word = memory.u64(start - 8)
            offset = word & 0xFFFFFFFF if word >> 32 & 0xFF else word >> 48
            group = start - _ALIGNMENT * (offset + 1)
            if group > 0 and memory.u64(memory.u64(group) + _META_MEM) == group:
                return [start]
        except Fault:
            continue
    return []


def _before(memory: Memory, page: int) -> int:
    """Return the last word of the page before; 0 if missing."""
    try:
        return memory.u64(page - 8)
    except Fault:
        return 0


def _is_chunk(memory: Memory, chunk: int) -> bool:
    """Return whether a chunk has a plausible size and marks its predecessor as in use."""
    try:
        size = memory.u64(chunk + 8)
    except Fault:
        return False
    return bool(size & _IN_USE) and _LEAST <= size & ~_FLAGS < _MOST and not size & 8
