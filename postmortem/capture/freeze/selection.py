"""Which pages a core has that is to hold no more than the extraction reads: address ranges, [start, end).

- the pages that reading the interpreter asked for (``rehearsal``), with what lies between close ones;
- of each thread the stack in use: from its stack pointer to where it began, which on glibc and musl is behind the thread's
  own control block, and so behind its thread pointer;
- written pages of mapped files: the loader's lists, the data of libraries. Were they missing, a reader would take what the
  file had at the start for what the memory holds;
- data of programs and libraries that begin as zeros (.bss), which debuggers read as one piece;
- small shared memory that no file outlives (multiprocessing's semaphores), the vdso; of ELF files the first page, and what
  was asked for, such as the interpreter's version: peers take what stands at its place in the core for it.

Pages that do not exist are never asked for (``pages`` says why).

The rest of private memory is not in the core, so that a reader meets a hole and no zeros.
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

#: Shared memory up to this size is kept whole.
_SMALL = 64 << 10
#: Data of a program or library, in its file and behind it: up to this size all of it that there is is kept.
_LARGEST_DATA = 1 << 20
#: Pages between two wanted ones that are taken along: fewer, larger reads, and a program that moved on a little.
_FILL = 4
#: Of one stack, at most; of a deeper one its two ends.
_DEEPEST = 16 << 20
_BOTTOM = 256 << 10
#: A stack pointer outside any stack that is known (a greenlet's, a signal's): so much above it.
_UNKNOWN_STACK = 256 << 10
_RED_ZONE = 256
#: A thread pointer further away is no sign of where the stack began.
_LARGEST_STACK = 1 << 30
#: glibc's struct pthread lies behind the thread pointer: so much of it, to the thread's id and what debuggers look for. All
#: of it (2304 bytes in 2.36) may end with the stack, and the next one's guard begin there.
_CONTROL_BLOCK = 1024


class Needed(NamedTuple):
    """``copies``: pages that exist; ``zeros``: wanted ones that nobody wrote yet, in memory that begins as zeros."""

    copies: List[Range]
    zeros: List[Range]


def needed(mappings: Sequence[Mapping], pages: Pages, wanted: Collection[int]) -> Needed:
    """What is kept besides the stacks. ``wanted``: numbers of pages."""
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
    """A program's or library's: peers do not ask its file for the pages that nobody has written."""
    return "w" in mapping.perms and mapping.size <= _LARGEST_DATA


def _bss(mapping: Mapping, before: Optional[Mapping]) -> List[Range]:
    """The rest of a program's or library's data, which debuggers read as one piece. Other memory may follow it in the same
    mapping: the kernel joins neighbours."""
    if before is None or before.inode == 0 or before.end != mapping.start:
        return []
    return [(mapping.start, min(mapping.end, mapping.start + _LARGEST_DATA))]


def stacks(threads: Iterable[Places], mappings: Sequence[Mapping]) -> Optional[List[Range]]:
    """The used part of each thread's stack. None when one lies where no mapping is known."""
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
    """What is ``stored`` (rising, joined) of all mappings. Files' are named whole; of other memory the rest is no segment at
    all: there are readers that take what is left out of a segment for what follows in the core."""
    kept = [mapping for mapping in mappings if not is_skipped(mapping)]
    found: List[Segment] = []
    for mapping, parts in zip(kept, within(stored, kept)):
        if mapping.inode:
            found += cut(mapping, parts)
        else:
            found += [Segment(start, end, end - start, flags_of(mapping.perms)) for start, end in parts]
    return found


def without(ranges: Iterable[Range], holes: Sequence[Range]) -> Iterator[Range]:
    """What of rising ranges does not lie in ``holes``, rising and disjoint too."""
    at = 0
    for start, end in ranges:
        position = start
        while at < len(holes) and holes[at][0] < end:
            low, high = holes[at]
            if low > position:
                yield position, low
            position = max(position, high)
            if high > end:
                break  # it reaches into the next one
            at += 1
        if position < end:
            yield position, end


def around(pages: Collection[int], reach: int, touched: Sequence[Range]) -> Set[int]:
    """The written pages up to ``reach`` pages away from given ones, and these."""
    near = union(((page - reach) * PAGE, (page + reach + 1) * PAGE) for page in pages)
    return {number for start, end in common(near, touched) for number in range(start // PAGE, end // PAGE)} | set(pages)


def common(first: Sequence[Range], second: Sequence[Range]) -> Iterator[Range]:
    """What lies in both of two rising sequences of disjoint ranges: one pass over both."""
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
    """With up to ``fill`` pages between two of one run."""
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
