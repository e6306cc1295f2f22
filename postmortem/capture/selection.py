"""Which pages a core has that is to hold no more than the extraction reads: address ranges, [start, end).

- the pages that reading the interpreter asked for (``rehearsal``), with what lies between close ones;
- of each thread the stack in use: from its stack pointer to where it began, which on glibc and musl is behind the thread's
  own control block, and so behind its thread pointer;
- written pages of mapped files: the loader's lists, the data of libraries. Were they missing, a reader would take what the
  file had at the start for what the memory holds;
- small shared memory that no file outlives (multiprocessing's semaphores), the vdso, the first page of ELF files.

The rest of private memory is named in the core without content, so that a reader meets a hole and no zeros.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Collection, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from .procfs import Mapping
from .registers import Places
from .segments import PAGE, Range, Segment, flags_of, is_kept_shared, is_skipped, within

#: Shared memory up to this size is kept whole.
_SMALL = 64 << 10
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


def needed(mappings: Sequence[Mapping], touched: Sequence[Range], pages: Collection[int]) -> List[Range]:
    """What is copied besides the stacks. ``touched``: as for ``segments.plan``; ``pages``: numbers."""
    runs = _runs(pages, 0)
    wanted = union(runs, common(_runs(pages, _FILL), touched))  # a page between that nobody wrote may be a guard
    found: List[Range] = []
    for mapping, written in zip(mappings, within(touched, mappings)):
        if is_skipped(mapping) or mapping.perms[:2] == "--":
            continue
        whole = (mapping.start, mapping.end)
        if mapping.name == b"[vdso]":
            found.append(whole)
        elif mapping.shared:
            if is_kept_shared(mapping):
                found += [whole] if mapping.size <= _SMALL else _inside(wanted, whole)
        elif mapping.inode == 0:
            found += _inside(wanted, whole)
        else:
            found += written
            if mapping.offset == 0 and "r" in mapping.perms:
                found.append((mapping.start, mapping.start + PAGE))
    return union(found)


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


def cut(mappings: Iterable[Mapping], stored: Sequence[Range]) -> List[Segment]:
    """All mappings as segments: each part that is ``stored`` (rising, joined) with what is left out behind it, as the kernel
    writes a program's first page."""
    kept = [mapping for mapping in mappings if not is_skipped(mapping)]
    segments: List[Segment] = []
    for mapping, parts in zip(kept, within(stored, kept)):
        flags = flags_of(mapping.perms)
        starts = [start for start, _end in parts] + [mapping.end]
        if starts[0] > mapping.start:
            segments.append(Segment(mapping.start, starts[0], 0, flags))
        for (start, end), following in zip(parts, starts[1:]):
            segments.append(Segment(start, following, end - start, flags))
    return segments


def union(first: Iterable[Range], second: Iterable[Range] = ()) -> List[Range]:
    """Rising ranges that neither touch nor overlap."""
    found: List[Range] = []
    for start, end in sorted([*first, *second]):
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        elif start < end:
            found.append((start, end))
    return found


def around(pages: Collection[int], reach: int, touched: Sequence[Range]) -> Set[int]:
    """The written pages up to ``reach`` pages away from given ones, and these."""
    near = union(((page - reach) * PAGE, (page + reach + 1) * PAGE) for page in pages)
    return {number for start, end in common(near, touched) for number in range(start // PAGE, end // PAGE)} | set(pages)


def common(first: Sequence[Range], second: Sequence[Range]) -> Iterator[Range]:
    """What lies in both of two rising sequences of disjoint ranges."""
    starts = [start for start, _end in second]
    for start, end in first:
        for low, high in second[max(bisect_right(starts, start) - 1, 0) :]:
            if low >= end:
                break
            if high > start:
                yield max(start, low), min(end, high)


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


def _inside(ranges: Sequence[Range], whole: Range) -> List[Range]:
    """What of ranges, which may begin and end in other mappings, lies in this one."""
    index = max(bisect_right(ranges, (whole[0], 0)) - 1, 0)
    found: List[Tuple[int, int]] = []
    for start, end in ranges[index:]:
        if start >= whole[1]:
            break
        if end > whole[0]:
            found.append((max(start, whole[0]), min(end, whole[1])))
    return found


def _mapping(address: int, mappings: Sequence[Mapping], starts: Sequence[int]) -> Optional[Mapping]:
    index = bisect_right(starts, address) - 1
    return mappings[index] if index >= 0 and address < mappings[index].end else None


def _down(address: int) -> int:
    return address // PAGE * PAGE


def _up(address: int) -> int:
    return -(-address // PAGE) * PAGE
