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


def plan(mappings: Sequence[Mapping], touched: Sequence[Range], full: bool = False) -> Plan:
    """``touched``: the process's anonymous pages that are present or swapped, in rising order. ``full``: also what files
    and shared memory hold, devices apart."""
    result = Plan([], [])
    for mapping, inside in zip(mappings, within(touched, mappings)):
        for segment, copies in _whole(mapping) if full and _has_file(mapping) else _parts(mapping, inside):
            result.segments.append(segment)
            result.copies.extend(copies)
    return result


def _has_file(mapping: Mapping) -> bool:
    return (mapping.inode != 0 or mapping.shared) and mapping.perms[:2] != "--" and not is_skipped(mapping)


def _whole(mapping: Mapping) -> Iterator[Tuple[Segment, List[Range]]]:
    flags = flags_of(mapping.perms)
    yield Segment(mapping.start, mapping.end, mapping.size, flags), [(mapping.start, mapping.end)]


def _parts(mapping: Mapping, touched: List[Range]) -> Iterator[Tuple[Segment, List[Range]]]:
    flags = flags_of(mapping.perms)
    if is_skipped(mapping):
        return
    whole = [(mapping.start, mapping.end)]
    if not flags & (_READ | _WRITE):
        yield Segment(mapping.start, mapping.end, 0, flags), []
    elif mapping.name == b"[vdso]" or (mapping.shared and is_kept_shared(mapping)):
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


def is_skipped(mapping: Mapping) -> bool:
    """The kernel's own pages, and devices: reading a device's memory may do things to it."""
    if mapping.name.startswith((b"[vvar", b"[vsyscall", b"[uprobes")):
        return True
    name = mapping.name
    return name.startswith(b"/dev/") and not name.startswith((b"/dev/shm/", b"/dev/zero"))


def is_kept_shared(mapping: Mapping) -> bool:
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


def flags_of(perms: str) -> int:
    return (_READ if "r" in perms else 0) | (_WRITE if "w" in perms else 0) | (_EXEC if "x" in perms else 0)


def within(ranges: Sequence[Range], mappings: Iterable[Mapping]) -> Iterator[List[Range]]:
    """What of rising ranges lies in each of rising mappings: one pass over both."""
    position = 0
    for mapping in mappings:
        found = []
        while position < len(ranges) and ranges[position][1] <= mapping.start:
            position += 1
        ahead = position
        while ahead < len(ranges) and ranges[ahead][0] < mapping.end:
            low, high = ranges[ahead]
            found.append((max(low, mapping.start), min(high, mapping.end)))
            ahead += 1
        yield found
