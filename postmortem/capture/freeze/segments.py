"""The parts of a process's memory that go into a sparse core.

- Private anonymous memory: the pages that were ever written (present or swapped out). The rest is zeros, as is a hole
  in the file.
- Private mappings of files: the resident pages where any page differs from the file (.data, .got, relocated read-only
  data), or could. Untouched mappings are on disk; only an ELF file's first page is kept, for its build-id.
- Shared memory that no file outlives (/dev/shm, deleted files, memfd, anonymous): its resident pages, up to
  ``SHARED_LIMIT`` each; multiprocessing's semaphores live there. Other shared files, and devices, are left out.
"""

from __future__ import annotations

from typing import Iterable, Iterator, List, NamedTuple, Sequence

from ..procfs.parsers import Mapping
from .pages import PAGE, Pages, Range

#: Bytes above which shared memory is taken for data without locks, and left out.
SHARED_LIMIT = 16 << 20
#: Bytes up to which a private file mapping is stored with its clean pages; of larger ones only changed pages are.
WHOLE_LIMIT = 16 << 20
#: Bytes above which a reservation (sanitizers, managed heaps) is stored around its used parts only.
RESERVATION = 1 << 30
_CLUSTER_GAP = 16 << 20

_READ, _WRITE, _EXEC = 4, 2, 1  # PF_R, PF_W, PF_X of <elf.h>


class Segment(NamedTuple):
    """One PT_LOAD: ``stored`` bytes from ``start`` on are in the core; the rest is in a file, or unknown."""

    start: int
    end: int
    stored: int
    flags: int


class Plan(NamedTuple):
    """The segments of a core, and the ranges to be copied into them."""

    segments: List[Segment]
    copies: List[Range]  # what is to be read, within the stored parts

    @property
    def bytes(self) -> int:
        """Bytes to be copied."""
        return sum(end - start for start, end in self.copies)


def plan(mappings: Sequence[Mapping], pages: Pages, full: bool = False) -> Plan:
    """Return the segments and copies of a sparse core.

    ``full``: also the resident pages of files and shared memory, except devices.
    """
    result = Plan([], [])
    for mapping, touched, resident in zip(mappings, within(pages.touched, mappings), within(pages.resident, mappings)):
        if is_skipped(mapping):
            continue
        if not mapping.shared and mapping.inode == 0 and flags_of(mapping.perms) & (_READ | _WRITE):
            result.segments.extend(_anonymous(mapping, touched))
            copies = [(mapping.start, mapping.end)] if mapping.name == b"[vdso]" else touched
        else:
            copies = _stored(mapping, touched, resident, full)
            result.segments.extend(cut(mapping, copies))
        result.copies.extend(copies)
    return result


def _stored(mapping: Mapping, touched: List[Range], resident: List[Range], full: bool) -> List[Range]:
    if mapping.shared:
        return resident if full or is_kept_shared(mapping) else []
    return union(touched, _of_file(mapping, bool(touched), resident, full))


def _of_file(mapping: Mapping, is_touched: bool, resident: List[Range], full: bool) -> List[Range]:
    """Return the resident pages to be stored of a file's mapping.

    Unstored pages are read from the file later, and wrong if it was overwritten in place meanwhile.
    """
    flags = flags_of(mapping.perms)
    if full or (mapping.size <= WHOLE_LIMIT and (is_touched or flags & _WRITE)):
        return resident
    return first_page(mapping)


def first_page(mapping: Mapping) -> List[Range]:
    """Return the page with the build-id, of a file mapped from its beginning."""
    readable = mapping.inode and mapping.offset == 0 and "r" in mapping.perms
    return [(mapping.start, mapping.start + PAGE)] if readable else []


def is_skipped(mapping: Mapping) -> bool:
    """Return whether a mapping is the kernel's own, or a device, where reading may have side effects."""
    if mapping.name.startswith((b"[vvar", b"[vsyscall", b"[uprobes")):
        return True
    name = mapping.name
    return name.startswith(b"/dev/") and not name.startswith((b"/dev/shm/", b"/dev/zero"))


def is_kept_shared(mapping: Mapping) -> bool:
    """Return whether a shared mapping is small, and either outlived by no file or writable."""
    if mapping.size > SHARED_LIMIT:
        return False
    volatile = mapping.name.startswith((b"/dev/shm/", b"/dev/zero", b"/memfd:", b"/SYSV"))
    return volatile or mapping.name.endswith(b" (deleted)") or "w" in mapping.perms


def _anonymous(mapping: Mapping, touched: List[Range]) -> Iterator[Segment]:
    """Yield segments for private memory: whole, since holes in the file are read as the zeros that it began with.

    Reservations are reduced to the clusters that were used.
    """
    flags = flags_of(mapping.perms)
    if mapping.size <= RESERVATION:
        yield Segment(mapping.start, mapping.end, mapping.size, flags)
        return
    for cluster in _clusters(touched):
        yield Segment(cluster[0][0], cluster[-1][1], cluster[-1][1] - cluster[0][0], flags)


def cut(mapping: Mapping, stored: Sequence[Range]) -> List[Segment]:
    """Split a mapping into segments, each a ``stored`` range and the unstored part behind it.

    As the kernel writes a program's first page: the unstored part is in the file, or unknown.
    """
    flags = flags_of(mapping.perms)
    starts = [start for start, _end in stored] + [mapping.end]
    before = [Segment(mapping.start, starts[0], 0, flags)] if starts[0] > mapping.start else []
    parts = zip(stored, starts[1:])
    return before + [Segment(start, following, end - start, flags) for (start, end), following in parts]


def _clusters(ranges: List[Range]) -> Iterator[List[Range]]:
    cluster: List[Range] = []
    for item in ranges:
        if cluster and item[0] - cluster[-1][1] > _CLUSTER_GAP:
            yield cluster
            cluster = []
        cluster.append(item)
    if cluster:
        yield cluster


def union(first: Iterable[Range], second: Iterable[Range] = ()) -> List[Range]:
    """Merge ranges into rising ones that neither touch nor overlap."""
    found: List[Range] = []
    for start, end in sorted([*first, *second]):
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        elif start < end:
            found.append((start, end))
    return found


def flags_of(perms: str) -> int:
    """Return the segment flags (PF_R, PF_W, PF_X) for permissions as in /proc/PID/maps."""
    return (_READ if "r" in perms else 0) | (_WRITE if "w" in perms else 0) | (_EXEC if "x" in perms else 0)


def within(ranges: Sequence[Range], mappings: Iterable[Mapping]) -> Iterator[List[Range]]:
    """Yield, for each of rising mappings, the parts of rising ranges that lie in it, in one pass over both."""
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
