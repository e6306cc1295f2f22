"""The choice of pages for a reduced core: those that the extraction will read, as address ranges [start, end).

- The pages that reading the interpreter asked for (``rehearsal``), and the gaps between close ones.
- The used stack of each thread: from its stack pointer up to its highest address, which on glibc and musl lies above
  the thread's control block, hence above its thread pointer.
- Written pages of mapped files: the loader's lists, the data of libraries. Without them a reader would take the file's
  original content for that of the memory.
- Zero-initialised data of programs and libraries (.bss), which debuggers read in one piece.
- Small shared memory whose file is unlinked (multiprocessing's semaphores), the vdso; of ELF files the first page, and
  requested pages such as that with the interpreter's version: other tools read these from the core.

Pages that do not exist are never read (``pages`` says why). The rest of private memory is not in the core, so that a
reader meets a hole instead of zeros.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Collection, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set

from ...arch.registers import Places
from ..procfs.parsers import Mapping
from .pages import PAGE, Range
from .segments import Segment, cut, first_page, flags_of, is_kept_shared, is_skipped, union, within

if TYPE_CHECKING:
    from .pages import Pages

#: Bytes up to which shared memory is kept whole.
_SMALL = 64 << 10
#: Bytes up to which the data of a program or library, in its file and behind it, is kept with all existing pages.
_LARGEST_DATA = 1 << 20
#: Pages between two wanted ones that are copied too: fewer, larger reads, and pages that the program may touch before it stops.
_FILL = 4
#: Bytes kept of one stack; of a deeper one its two ends are.
_DEEPEST = 16 << 20
_BOTTOM = 256 << 10
#: Bytes kept above a stack pointer outside any known stack (a greenlet's, a signal's).
_UNKNOWN_STACK = 256 << 10
_RED_ZONE = 256
#: Bytes between stack pointer and thread pointer above which the latter does not mark the start of the stack.
_LARGEST_STACK = 1 << 30
#: Bytes kept of glibc's struct pthread behind the thread pointer: up to the thread's id and what debuggers read. The
#: whole struct (2304 bytes in 2.36) may end with the stack, and the guard of the next stack follow.
_CONTROL_BLOCK = 1024


class Needed(NamedTuple):
    """The ranges of a selected core.

    - ``copies``: pages that exist
    - ``zeros``: wanted pages never written, in memory that begins as zeros
    """

    copies: List[Range]
    zeros: List[Range]


def needed(mappings: Sequence[Mapping], pages: Pages, wanted: Collection[int]) -> Needed:
    """Return what is kept besides the stacks; ``wanted``: page numbers."""
    asked = _runs(wanted, 0)
    close = union(asked, common(_runs(wanted, _FILL), pages.touched))
    found = Needed([], [])
    before: Optional[Mapping] = None
    columns = (within(each, mappings) for each in (pages.touched, pages.resident, asked, close))
    for mapping, touched, resident, exactly, about in zip(mappings, *columns):
        whole = [(mapping.start, mapping.end)]
        if is_skipped(mapping) or mapping.perms[:2] == "--":
            pass
        elif mapping.name == b"[vdso]":
            found.copies.extend(whole)
        elif mapping.shared:
            if is_kept_shared(mapping):
                found.copies.extend(common(whole if mapping.size <= _SMALL else exactly, resident))
        elif mapping.inode == 0:
            inside = union(about, _bss(mapping, before))
            there = list(common(inside, touched))
            found.copies.extend(there)
            found.zeros.extend(without(inside, there))
        else:
            there = resident if _is_data(mapping) else union(first_page(mapping), common(exactly, resident))
            found.copies.extend(union(touched, there))
        before = mapping
    return Needed(union(found.copies), union(found.zeros))


def _is_data(mapping: Mapping) -> bool:
    """Return whether a mapping is data of a program or library, whose unwritten pages other tools do not read from the file."""
    return "w" in mapping.perms and mapping.size <= _LARGEST_DATA


def _bss(mapping: Mapping, before: Optional[Mapping]) -> List[Range]:
    """Return the range behind a file's mapping that may be its .bss, which debuggers read in one piece.

    Other memory may follow in the same mapping, since the kernel merges neighbours.
    """
    if before is None or before.inode == 0 or before.end != mapping.start:
        return []
    return [(mapping.start, min(mapping.end, mapping.start + _LARGEST_DATA))]


def stacks(threads: Iterable[Places], mappings: Sequence[Mapping]) -> Optional[List[Range]]:
    """Return the used part of each thread's stack; None when a stack pointer lies in no known mapping."""
    starts = [m.start for m in mappings]
    found: List[Range] = []
    for thread in threads:
        stack = _mapping(thread.sp, mappings, starts)
        if stack is None:
            if thread.sp:
                return None
            continue
        found += _stack(thread, stack)
        for address, size in ((thread.thread_pointer, _CONTROL_BLOCK), (thread.pc, PAGE)):
            mapping = _mapping(address, mappings, starts)
            if mapping is not None and not mapping.inode and "r" in mapping.perms and not is_skipped(mapping):
                found.append((_down(address), min(_up(address + size), mapping.end)))
    return union(found)


def _stack(thread: Places, mapping: Mapping) -> Iterator[Range]:
    start = max(_down(thread.sp - _RED_ZONE), mapping.start)
    end = mapping.end
    if mapping.name != b"[stack]":
        if thread.sp < thread.thread_pointer < min(mapping.end, thread.sp + _LARGEST_STACK):
            end = min(_up(thread.thread_pointer + _CONTROL_BLOCK), mapping.end)
        else:
            end = min(_up(thread.sp + _UNKNOWN_STACK), mapping.end)
    if end - start <= _DEEPEST:
        yield start, end
    else:
        yield start, start + _DEEPEST - _BOTTOM
        yield end - _BOTTOM, end


def segments(mappings: Iterable[Mapping], stored: Sequence[Range]) -> List[Segment]:
    """Return segments for the ``stored`` ranges (rising, merged) of all mappings.

    Mappings of files are listed whole. The unstored part of other memory is in no segment: some readers take the part
    left out of a segment for what follows in the core.
    """
    kept = [mapping for mapping in mappings if not is_skipped(mapping)]
    found: List[Segment] = []
    for mapping, parts in zip(kept, within(stored, kept)):
        if mapping.inode:
            found += cut(mapping, parts)
        else:
            found += [Segment(start, end, end - start, flags_of(mapping.perms)) for start, end in parts]
    return found


def without(ranges: Iterable[Range], holes: Sequence[Range]) -> Iterator[Range]:
    """Yield the parts of rising ranges outside ``holes``, rising and disjoint too."""
    at = 0
    for start, end in ranges:
        position = start
        while at < len(holes) and holes[at][0] < end:
            low, high = holes[at]
            if low > position:
                yield position, low
            position = max(position, high)
            if high > end:
                break  # the hole reaches into the next range
            at += 1
        if position < end:
            yield position, end


def around(pages: Collection[int], reach: int, touched: Sequence[Range]) -> Set[int]:
    """Return ``pages`` and the written pages at most ``reach`` pages away from them."""
    near = union(((page - reach) * PAGE, (page + reach + 1) * PAGE) for page in pages)
    return {number for start, end in common(near, touched) for number in range(start // PAGE, end // PAGE)} | set(pages)


def common(first: Sequence[Range], second: Sequence[Range]) -> Iterator[Range]:
    """Yield the parts that lie in both of two rising sequences of disjoint ranges, in one pass over both."""
    one = two = 0
    while one < len(first) and two < len(second):
        start, end = max(first[one][0], second[two][0]), min(first[one][1], second[two][1])
        if start < end:
            yield start, end
        if first[one][1] < second[two][1]:
            one += 1
        else:
            two += 1


def _runs(pages: Collection[int], fill: int) -> List[Range]:
    """Merge page numbers into ranges, with up to ``fill`` other pages between two of one range."""
    runs: List[Range] = []
    for page in sorted(pages):
        start, end = page * PAGE, (page + 1) * PAGE
        if runs and start - runs[-1][1] <= fill * PAGE:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return runs


def _mapping(address: int, mappings: Sequence[Mapping], starts: Sequence[int]) -> Optional[Mapping]:
    index = bisect_right(starts, address) - 1
    return mappings[index] if index >= 0 and address < mappings[index].end else None


def _down(address: int) -> int:
    return address // PAGE * PAGE


def _up(address: int) -> int:
    return -(-address // PAGE) * PAGE
