"""What of a process's memory goes into a sparse core.

- Private anonymous memory: the pages that were ever written (present or swapped out). The rest is zeros, and so is
  a hole in the file.
- Private mappings of files: whole where any page differs from the file (.data, .got, relocated read-only data), or
  could. Untouched ones are on the disk; only an ELF file's first page is kept, for its build-id.
- Shared memory that no file outlives (/dev/shm, deleted files, memfd, anonymous): whole, up to ``SHARED_LIMIT`` each;
  multiprocessing's semaphores live there. Other shared files, and devices, are left out.
"""

from __future__ import annotations

import os
from typing import Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from .procfs import Mapping

PAGE = os.sysconf("SC_PAGE_SIZE")
#: Shared memory larger than this is data, not locks.
SHARED_LIMIT = 16 << 20
#: A private file mapping up to this size is stored whole; of larger ones only the changed pages.
WHOLE_LIMIT = 16 << 20
#: Reservations larger than this (sanitizers, managed heaps) are stored around their used parts only.
RESERVATION = 1 << 30
_CLUSTER_GAP = 16 << 20

Range = Tuple[int, int]  # start, end

_READ, _WRITE, _EXEC = 4, 2, 1  # PF_R, PF_W, PF_X of <elf.h>


class Segment(NamedTuple):
    """One PT_LOAD. ``stored`` bytes from ``start`` on are in the core, the rest is known to be in a file, or unknown."""

    start: int
    end: int
    stored: int
    flags: int


class Plan(NamedTuple):
    segments: List[Segment]
    copies: List[Range]  # what is to be read, inside stored parts

    @property
    def bytes(self) -> int:
        return sum(end - start for start, end in self.copies)


def plan(mappings: Iterable[Mapping], touched: Sequence[Range]) -> Plan:
    """``touched``: the process's anonymous pages that are present or swapped, in rising order."""
    result = Plan([], [])
    pages = _Cursor(touched)
    for mapping in mappings:
        inside = pages.within(mapping.start, mapping.end)
        for segment, copies in _parts(mapping, inside):
            result.segments.append(segment)
            result.copies.extend(copies)
    return result


def _parts(mapping: Mapping, touched: List[Range]) -> Iterator[Tuple[Segment, List[Range]]]:
    flags = _flags(mapping.perms)
    if _skipped(mapping):
        return
    whole = [(mapping.start, mapping.end)]
    if not flags & (_READ | _WRITE):
        yield Segment(mapping.start, mapping.end, 0, flags), []
    elif mapping.name == b"[vdso]" or (mapping.shared and _kept_shared(mapping)):
        yield Segment(mapping.start, mapping.end, mapping.size, flags), whole
    elif mapping.shared:
        yield Segment(mapping.start, mapping.end, 0, flags), []
    elif mapping.inode == 0:
        yield from _anonymous(mapping, touched, flags)
    elif not touched and not flags & _WRITE:
        first = min(PAGE, mapping.size) if mapping.offset == 0 else 0
        yield (
            Segment(mapping.start, mapping.end, first, flags),
            [(mapping.start, mapping.start + first)] if first else [],
        )
    elif mapping.size <= WHOLE_LIMIT:
        yield Segment(mapping.start, mapping.end, mapping.size, flags), whole
    else:
        yield from _changed_pages(mapping, touched, flags)


def _skipped(mapping: Mapping) -> bool:
    """The kernel's own pages, and devices: reading a device's memory may do things to it."""
    if mapping.name.startswith((b"[vvar", b"[vsyscall", b"[uprobes")):
        return True
    name = mapping.name
    return name.startswith(b"/dev/") and not name.startswith((b"/dev/shm/", b"/dev/zero"))


def _kept_shared(mapping: Mapping) -> bool:
    if mapping.size > SHARED_LIMIT:
        return False
    volatile = mapping.name.startswith((b"/dev/shm/", b"/dev/zero", b"/memfd:", b"/SYSV"))
    return volatile or mapping.name.endswith(b" (deleted)") or "w" in mapping.perms


def _anonymous(mapping: Mapping, touched: List[Range], flags: int) -> Iterator[Tuple[Segment, List[Range]]]:
    if mapping.size <= RESERVATION:
        yield Segment(mapping.start, mapping.end, mapping.size, flags), touched
        return
    for cluster in _clusters(touched):
        yield Segment(cluster[0][0], cluster[-1][1], cluster[-1][1] - cluster[0][0], flags), cluster


def _changed_pages(mapping: Mapping, touched: List[Range], flags: int) -> Iterator[Tuple[Segment, List[Range]]]:
    """Changed runs are stored; between them the file speaks."""
    position = mapping.start
    for start, end in touched:
        if position < start:
            yield Segment(position, start, 0, flags), []
        yield Segment(start, end, end - start, flags), [(start, end)]
        position = end
    if position < mapping.end:
        yield Segment(position, mapping.end, 0, flags), []


def _clusters(ranges: List[Range]) -> Iterator[List[Range]]:
    cluster: List[Range] = []
    for item in ranges:
        if cluster and item[0] - cluster[-1][1] > _CLUSTER_GAP:
            yield cluster
            cluster = []
        cluster.append(item)
    if cluster:
        yield cluster


def _flags(perms: str) -> int:
    return (_READ if "r" in perms else 0) | (_WRITE if "w" in perms else 0) | (_EXEC if "x" in perms else 0)


class _Cursor:
    """Cuts rising ranges along rising mappings, in one pass over both."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        self._ranges = ranges
        self._next = 0

    def within(self, start: int, end: int) -> List[Range]:
        found = []
        while self._next < len(self._ranges) and self._ranges[self._next][1] <= start:
            self._next += 1
        position = self._next
        while position < len(self._ranges) and self._ranges[position][0] < end:
            low, high = self._ranges[position]
            found.append((max(low, start), min(high, end)))
            position += 1
        return found
