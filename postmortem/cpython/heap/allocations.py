"""Where the allocation may begin that a place in memory is in: what an allocator keeps beside its blocks says so.

Small blocks (up to 512 bytes) lie in pools of one size: struct pool_header is 48 bytes at a multiple of 4 KB, of 16 KB since
3.10, with ``szidx`` at 36 (Objects/obmalloc.c, Include/internal/pycore_obmalloc.h: ALIGNMENT 16, POOL_BITS). Larger ones are
malloc's: glibc keeps the size of a chunk in the word before it, with three flags (malloc/malloc.c, struct malloc_chunk); musl
(1.2.1 and later, src/malloc/mallocng/meta.h) how far into its group it lies, and the group leads to a record that leads back.
All are guesses, to be confirmed by somebody who points there.
"""

from __future__ import annotations

from typing import List, Tuple

from ...memory import Fault, Memory

_HEADER, _SZIDX, _ALIGNMENT, _CLASSES = 48, 36, 16, 32
_FLAGS, _MMAPPED, _IN_USE = 7, 2, 1
_LEAST, _MOST = 32, 1 << 30
#: Bytes from the beginning of a chunk to a place in it.
_REACH = 1 << 16
_PAGE = 4096
#: struct meta of musl: prev, next, mem.
_META_MEM = 16
#: Objects/obmalloc.c, _PyMem_DebugRawAlloc: the size, and a word of FORBIDDENBYTE with the domain; PyMem_Malloc hands what is
#: large on to PyMem_RawMalloc, which does the same.
_FRAMES = (0, 16, 32)


def beginnings(memory: Memory, version: Tuple[int, int], place: int, on_musl: bool = False) -> List[int]:
    """Addresses at which the table may begin that a place is in, multiples of 8. In a small block all up to the place:
    tables of values have a prefix. Debug builds put two words in front of each table, of a large one
    twice."""
    start = _small(memory, 1 << (14 if version >= (3, 10) else 12), place)
    found = list(range(start, place + 8, 8)) if start else []
    large = _large_on_musl if on_musl else _large
    return [*found, *(chunk + frame for chunk in large(memory, place) for frame in _FRAMES)]


def _small(memory: Memory, pool_size: int, place: int) -> int:
    """The beginning of the block of a pool; 0 when there is no pool."""
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
    """Beginnings of chunks that reach over the place, and whose successor is a chunk that knows them to be in use."""
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
    """The nearest block that begins before the place. Before it stand its offset in the group, in units of 16, as two bytes, a
    byte with its number, and one that is set where the offset takes four more bytes; the group begins with a unit that holds
    the address of struct meta, whose third word is the group's."""
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
    """The last word of the page before; 0 where there is none."""
    try:
        return memory.u64(page - 8)
    except Fault:
        return 0


def _is_chunk(memory: Memory, chunk: int) -> bool:
    try:
        size = memory.u64(chunk + 8)
    except Fault:
        return False
    return bool(size & _IN_USE) and _LEAST <= size & ~_FLAGS < _MOST and not size & 8
