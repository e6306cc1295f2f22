"""A running process presented as the core that it would leave, read without stopping it.

Pages are read on demand and recorded, so that a core with exactly these pages can be written and read in the same way.

Concurrent changes show up as garbage, as in a damaged core: readers must validate.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from bisect import bisect_right
from typing import Dict, List, Optional, Protocol, Sequence, Set, Tuple, Union

from .base import MAX_READ, Fault, Memory
from .elfcore import ElfCore
from .linkmap import Locate

PAGE = mmap.PAGESIZE
_U64 = struct.Struct("<Q")
#: Most bytes of pages held at a time.
MOST_BYTES = 512 << 20

#: Highest byte of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst): bit 63 present, bit 62
#: swapped out; bit 58 a guard, which looks swapped but holds nothing.
THERE, GUARD = 0xC0, 4


class Pages(Protocol):
    """A source of a process's pages."""

    def page(self, number: int) -> bytes:
        """Return a page. Raises Fault."""


class LivePages:
    """Pages of a process at the time of the read.

    Only existing pages are read: a read of others may allocate them, or block on a stopped thread that serves
    userfaultfd(2).

    Parameters:
    - ``memory``, ``pagemap``: open files of /proc/PID; the caller closes them.
    - ``anonymous``: ascending ranges of private memory that starts as zeros.
    """

    def __init__(self, memory: int, pagemap: int, anonymous: Sequence[Tuple[int, int]]) -> None:
        self._memory, self._pagemap = memory, pagemap
        self._anonymous = anonymous
        self._starts = [start for start, _end in anonymous]

    def page(self, number: int) -> bytes:
        """Return a page; zeros for a page of ``anonymous`` that was never written. Raises Fault."""
        address = number * PAGE
        try:
            entry = os.pread(self._pagemap, 8, number * 8)
            if len(entry) == 8 and entry[7] & THERE and not entry[7] & GUARD:
                page = os.pread(self._memory, PAGE, address)
                if len(page) == PAGE:
                    return page
                raise Fault(address, PAGE, "ends early")
        except (OSError, OverflowError) as exc:
            raise Fault(address, PAGE, getattr(exc, "strerror", None) or "not an address") from None
        if len(entry) == 8 and not entry[7] & GUARD and self._begins_as_zeros(address):
            return bytes(PAGE)
        raise Fault(address, PAGE, "no page is there")

    def _begins_as_zeros(self, address: int) -> bool:
        """Return whether an address lies in one of the anonymous ranges."""
        index = bisect_right(self._starts, address) - 1
        return index >= 0 and address < self._anonymous[index][1]


class LiveCore(ElfCore):
    """A running process behind the interface of ``ElfCore``.

    Parameters:
    - ``path``, ``descriptor``: head of a core (notes, program headers) without memory.
    - ``until``: deadline in time.monotonic(); later reads raise Fault.

    Raises: as ``ElfCore``.
    """

    def __init__(
        self,
        path: str,
        living: Pages,
        locate: Locate,
        until: float = float("inf"),
        *,
        descriptor: Optional[int] = None,
    ) -> None:
        self._pages: Dict[int, bytes] = {}
        self._living = living
        self._until = until
        super().__init__(path, locate, descriptor=descriptor)

    @property
    def pages(self) -> Set[int]:
        """Numbers of the pages that were read."""
        return set(self._pages)

    @property
    def written(self) -> List[Tuple[int, int]]:
        """Nothing: a search of all memory would read, and so record, every page."""
        return []

    def read(self, address: int, size: int) -> bytes:
        """Return exactly ``size`` bytes. Raises Fault."""
        page, offset = divmod(address, PAGE)
        if 0 <= size <= PAGE - offset:
            return self._page(page)[offset : offset + size]
        if not 0 <= size <= MAX_READ:
            raise Fault(address, size, "not a size")
        last = (address + size - 1) // PAGE
        return b"".join(self._page(number) for number in range(page, last + 1))[offset : offset + size]

    def u64(self, address: int) -> int:
        """Return an unsigned 64-bit integer. Raises Fault."""
        page, offset = divmod(address, PAGE)
        if offset <= PAGE - 8:
            return int(_U64.unpack_from(self._page(page), offset)[0])
        return int(_U64.unpack(self.read(address, 8))[0])

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        """Return ``count`` unsigned 64-bit words. Raises Fault."""
        if count <= 0:
            return ()
        return struct.unpack(f"<{count}Q", self.read(address, count * 8))

    def _stored(self, address: int, size: int) -> bytes:
        """Return bytes of one page of the process, not recorded: used to identify the build of a file."""
        page, offset = divmod(address, PAGE)
        try:
            return (self._pages.get(page) or self._living.page(page))[offset : offset + size]
        except Fault:
            return b""

    def _page(self, number: int) -> bytes:
        """Return a page, from the recorded ones if possible. Raises Fault."""
        found = self._pages.get(number)
        return found if found is not None else self._fetch(number)

    def _fetch(self, number: int) -> bytes:
        """Read and record a page. Raises Fault, also past the deadline or above MOST_BYTES."""
        address = number * PAGE
        if time.monotonic() > self._until:
            raise Fault(address, PAGE, "the time allowed for reading is over")
        if len(self._pages) * PAGE >= MOST_BYTES:
            raise Fault(address, PAGE, "more was read than may be kept in memory")
        try:
            page = self._living.page(number)
        except Fault:
            page = self._read_slowly(address, PAGE)  # a page of a mapped file that the process never touched
        self._pages[number] = page
        return page


class WatchedCore(ElfCore):
    """A core that records the pages it lacks and reads them from the running process.

    One pass thereby finds all missing pages, not only the first.

    Raises: as ``ElfCore``.
    """

    def __init__(
        self,
        path: str,
        living: Pages,
        until: float = float("inf"),
        *,
        locate: Optional[Locate] = None,
        descriptor: Optional[int] = None,
    ) -> None:
        self._live: Dict[int, bytes] = {}
        self._living = living
        self._until = until
        super().__init__(path, locate, descriptor=descriptor)

    @property
    def written(self) -> List[Tuple[int, int]]:
        """Nothing, as in ``LiveCore``."""
        return []

    @property
    def missed(self) -> Set[int]:
        """Numbers of the pages that the core lacks and the process has."""
        return {number for number, page in self._live.items() if page}

    def _piece(self, address: int, size: int) -> Union[bytes, str]:
        found = super()._piece(address, size)
        if not isinstance(found, str):
            return found
        number, offset = divmod(address, PAGE)
        page = self._live.get(number)
        if page is None:
            page = self._live[number] = self._fetch(number)
        return page[offset : offset + size] or found

    def _fetch(self, number: int) -> bytes:
        """Return a page of the process; empty if unavailable, past the deadline, or above MOST_BYTES."""
        if time.monotonic() > self._until or len(self._live) * PAGE >= MOST_BYTES:
            return b""
        try:
            return self._living.page(number)
        except Fault:
            return b""


class HeldPages(Memory):
    """Copied pages of a stopped process; further pages are read from it on demand.

    ``parts``: (address, bytes) of whole pages, ascending. ``until``: deadline in time.monotonic().
    """

    def __init__(self, parts: Sequence[Tuple[int, memoryview]], living: Pages, until: float) -> None:
        self._parts = parts
        self._starts = [address for address, _data in parts]
        self._living = living
        self._until = until
        #: Pages read on demand: number → bytes.
        self.further: Dict[int, bytes] = {}

    def read(self, address: int, size: int) -> bytes:
        """Return exactly ``size`` bytes. Raises Fault."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            start, data = self._parts[index]
            if 0 <= size <= start + len(data) - address:
                return bytes(data[address - start : address - start + size])
        if not 0 <= size <= MAX_READ or not 0 <= address < 1 << 63:
            raise Fault(address, size, "not an address, or not a size")
        first, last = address // PAGE, (address + size - 1) // PAGE
        offset = address - first * PAGE
        return b"".join(self._page(number) for number in range(first, last + 1))[offset : offset + size]

    def _page(self, number: int) -> bytes:
        """Return a page, from the copy if possible. Raises Fault."""
        address = number * PAGE
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            start, data = self._parts[index]
            if address + PAGE <= start + len(data):
                return bytes(data[address - start : address - start + PAGE])
        page = self.further.get(number)
        if page is None:
            if time.monotonic() > self._until:
                raise Fault(address, PAGE, "the time allowed for reading is over")
            page = self.further[number] = self._living.page(number)
        return page
