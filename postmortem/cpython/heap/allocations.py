"""Possible beginnings of the allocation around a place in memory, from the allocator's own records.

- Small blocks (up to 512 bytes) lie in pools of one size: struct pool_header has 48 bytes at a multiple of 4 KB, of 16
  KB since 3.10, with ``szidx`` at 36 (Objects/obmalloc.c, Include/internal/pycore_obmalloc.h: ALIGNMENT 16, POOL_BITS).
- glibc stores the size of a chunk in the word before it, with three flags (malloc/malloc.c, struct malloc_chunk).
- musl (1.2.1 and later, src/malloc/mallocng/meta.h) stores the offset of a block in its group, and the group leads to a
  record that leads back.

All are guesses, to be confirmed by a pointer to the beginning.
"""

from __future__ import annotations

from typing import List, Tuple

from ...memory import Fault, Memory

_HEADER, _SZIDX, _ALIGNMENT, _CLASSES = 48, 36, 16, 32
_FLAGS, _MMAPPED, _IN_USE = 7, 2, 1
_LEAST, _MOST = 32, 1 << 30
#: Largest distance from the beginning of a chunk to a place in it, in bytes.
_REACH = 1 << 16
_PAGE = 4096
#: struct meta of musl (prev, next, mem): offset of mem.
_META_MEM = 16
#: Offsets of the data in a block. Debug builds prefix the size and a word of FORBIDDENBYTE with the domain, twice if
#: PyMem_Malloc passes a large request on to PyMem_RawMalloc (Objects/obmalloc.c, _PyMem_DebugRawAlloc).
_FRAMES = (0, 16, 32)


def beginnings(memory: Memory, version: Tuple[int, int], place: int, on_musl: bool = False) -> List[int]:
    """Return possible beginnings, multiples of 8, of the table around a place.

    In a small block these are all words up to the place, because tables of values have a prefix. Debug builds put two
    words before each table, four before a large one.
    """
    start = _small(memory, 1 << (14 if version >= (3, 10) else 12), place)
    found = list(range(start, place + 8, 8)) if start else []
    large = _large_on_musl if on_musl else _large
    return [*found, *(chunk + frame for chunk in large(memory, place) for frame in _FRAMES)]


def _small(memory: Memory, pool_size: int, place: int) -> int:
    """Return the beginning of the pool's block around a place; 0 if there is no pool."""
    pool = place & -pool_size
    try:
        count, szidx = memory.u32(pool), memory.u32(pool + _SZIDX)
    except Fault:
        return 0
    size = (szidx + 1) * _ALIGNMENT
    if szidx >= _CLASSES or not 0 < count <= pool_size // size or place < pool + _HEADER:
        return 0
    return place - (place - pool - _HEADER) % size


def _large(memory: Memory, place: int) -> List[int]:
    """Return beginnings of glibc's chunks that contain the place and whose successor marks them as in use."""
    found: List[int] = []
    last = place & -_ALIGNMENT
    while last > place - _REACH:
        page = last & -_PAGE
        try:
            words = memory.words(page, (last - page) // 8 + 1)
        except Fault:
            break
        for start in range(page, last + 1, _ALIGNMENT):
            word = words[(start - page) // 8 - 1] if start > page else _before(memory, page)
            size = word & ~_FLAGS
            behind = start - 16 + size
            if not (_LEAST <= size < _MOST and not size & 15 and start <= place < behind):
                continue
            if word & _MMAPPED or _is_chunk(memory, behind):
                found.append(start)
        last = page - 16
    return found


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
