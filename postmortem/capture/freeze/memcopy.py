"""Copies of the memory of stopped processes, into buffers made beforehand or, when large, directly to the file.

The file is sparse: its size is set first, and only what was copied is written.
"""

from __future__ import annotations

import mmap
import os
from typing import BinaryIO, Callable, Dict, List, Sequence, Tuple

from ...errors import CaptureFailed
from . import vmread
from .pages import PAGE, Range
from .segments import Segment

_POPULATE = getattr(mmap, "MAP_POPULATE", 0x8000)  # in the mmap module from Python 3.10 on
_PIECE = 8 << 20


class Arena:
    """A buffer whose pages are present already, so that a copy causes no page faults. Grows when needed."""

    def __init__(self, size: int) -> None:
        self._blocks: List[mmap.mmap] = []
        self._view = memoryview(b"")
        self._used = 0
        self._add(size)

    def take(self, size: int) -> memoryview:
        """Return the next ``size`` bytes of the buffer."""
        if self._used + size > len(self._view):
            self._add(max(size, _PIECE))
        start = self._used
        self._used += size
        return self._view[start : start + size]

    def _add(self, size: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _POPULATE
        self._blocks.append(mmap.mmap(-1, max(size, PAGE), flags))
        self._view = memoryview(self._blocks[-1])
        self._used = 0


class Copied:
    """The memory read from one process: (address, bytes) parts, and the number of unreadable pages."""

    def __init__(self) -> None:
        self.parts: List[Tuple[int, memoryview]] = []
        self.bytes = 0
        self.unreadable_pages = 0


def into_arena(memory: int, tid: int, ranges: Sequence[Range], arena: Arena) -> Copied:
    """Copy ranges of a process into ``arena``; unreadable pages are left out and counted.

    ``memory``: an open /proc/PID/mem; ``tid``: a living thread of the process.
    """
    copied = Copied()
    view = arena.take(sum(end - start for start, end in ranges))
    for first in range(0, len(ranges), vmread.MOST_RANGES):
        batch = ranges[first : first + vmread.MOST_RANGES]
        sizes = [end - start for start, end in batch]
        block, view = view[: sum(sizes)], view[sum(sizes) :]
        at_once = vmread.read(tid, batch, block)
        for (start, _end), size in zip(batch, sizes):
            part, block = block[:size], block[size:]
            for address, data in [(start, part)] if at_once else _read(memory, start, part, copied):
                copied.parts.append((address, data))
                copied.bytes += len(data)
    return copied


def into_file(
    memory: int, ranges: Sequence[Range], sink: Callable[[int, memoryview], None], asked_to_end: Callable[[], bool]
) -> Copied:
    """Copy ranges of a process piece by piece to ``sink(address, bytes)``, for copies too large to be held.

    Raises CaptureFailed when ``asked_to_end`` returns true between two pieces.
    """
    copied = Copied()
    buffer = memoryview(mmap.mmap(-1, _PIECE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _POPULATE))
    for start, end in ranges:
        for piece in range(start, end, _PIECE):
            if asked_to_end():
                raise CaptureFailed("a signal ended the copy before it was complete", "let the capture finish")
            for address, part in _read(memory, piece, buffer[: min(_PIECE, end - piece)], copied):
                sink(address, part)
                copied.bytes += len(part)
    return copied


def _read(memory: int, start: int, view: memoryview, copied: Copied) -> List[Tuple[int, memoryview]]:
    """Return the readable parts of one range."""
    got = _preadv(memory, view, start)
    if got == len(view):
        return [(start, view)]
    parts = [(start, view[:got])] if got else []
    for position in range(got, len(view), PAGE):  # rare: a mapping beyond its file's end, a poisoned page
        page = view[position : position + PAGE]
        if _preadv(memory, page, start + position) == len(page):
            parts.append((start + position, page))
        else:
            copied.unreadable_pages += 1
    return parts


def _preadv(memory: int, view: memoryview, address: int) -> int:
    """Return the bytes read, in whole pages up to the first unreadable one."""
    done = 0
    while done < len(view):
        try:
            count = os.preadv(memory, [view[done:]], address + done)
        except OSError:
            break
        if count == 0:
            break
        done += count
    return done if done == len(view) else done // PAGE * PAGE


class Placement:
    """Where each address of a process is stored in its core file."""

    def __init__(self, segments: Sequence[Segment], offsets: Dict[int, int]) -> None:
        self._stored = [(s.start, s.start + s.stored, offsets[s.start]) for s in segments if s.stored]
        self._next = 0

    def writer(self, stream: BinaryIO) -> Callable[[int, memoryview], None]:
        """Return a function that writes bytes to their offset; its addresses must rise."""
        descriptor = stream.fileno()

        def put(address: int, data: memoryview) -> None:
            while self._stored[self._next][1] <= address:
                self._next += 1
            start, _end, offset = self._stored[self._next]
            position = offset + address - start
            while data:
                count = os.pwrite(descriptor, data, position)
                position += count
                data = data[count:]

        return put
