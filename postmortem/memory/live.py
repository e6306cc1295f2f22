"""A running process seen as the core that it would leave: the same threads, files and reads, page by page out of its memory,
without stopping it. Which pages were asked for is remembered: a core that holds them can be read in the same way.

What moves while it is read comes out as garbage, as in any core that is damaged: whoever reads checks what he reads.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import Callable, Dict, Optional, Set, Tuple

from .base import MAX_READ, Fault
from .elfcore import ElfCore

PAGE = mmap.PAGESIZE
_U64 = struct.Struct("<Q")
#: Pages held at the same time, in bytes.
MOST_BYTES = 512 << 20


class LiveCore(ElfCore):
    """``path``: a file with the head of a core (notes, program headers) and no memory; ``descriptor``: an open
    /proc/PID/mem, which stays the caller's. After ``until`` (of time.monotonic) every read faults.

    Raises what ElfCore raises."""

    def __init__(
        self, path: str, descriptor: int, locate: Callable[[str], Optional[str]], until: float = float("inf")
    ) -> None:
        self._pages: Dict[int, bytes] = {}
        self._descriptor = descriptor
        self._until = until
        super().__init__(path, locate)

    @property
    def pages(self) -> Set[int]:
        """Numbers of the pages that were read."""
        return set(self._pages)

    def read(self, address: int, size: int) -> bytes:
        page, offset = divmod(address, PAGE)
        if 0 <= size <= PAGE - offset:
            return self._page(page)[offset : offset + size]
        if not 0 <= size <= MAX_READ:
            raise Fault(address, size, "not a size")
        last = (address + size - 1) // PAGE
        return b"".join(self._page(number) for number in range(page, last + 1))[offset : offset + size]

    def u64(self, address: int) -> int:
        page, offset = divmod(address, PAGE)
        if offset <= PAGE - 8:
            return int(_U64.unpack_from(self._page(page), offset)[0])
        return int(_U64.unpack(self.read(address, 8))[0])

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        if count <= 0:
            return ()
        return struct.unpack(f"<{count}Q", self.read(address, count * 8))

    def _stored(self, address: int, size: int) -> bytes:
        try:
            return self.read(address, size)
        except Fault:
            return b""

    def _page(self, number: int) -> bytes:
        found = self._pages.get(number)
        return found if found is not None else self._fetch(number)

    def _fetch(self, number: int) -> bytes:
        address = number * PAGE
        if time.monotonic() > self._until:
            raise Fault(address, PAGE, "the time for reading is over")
        if len(self._pages) * PAGE >= MOST_BYTES:
            raise Fault(address, PAGE, "more was read than may be held")
        try:
            page = os.pread(self._descriptor, PAGE, address)
        except (OSError, OverflowError) as exc:
            raise Fault(address, PAGE, getattr(exc, "strerror", None) or "not an address") from None
        if len(page) != PAGE:
            raise Fault(address, PAGE, "ends early")
        self._pages[number] = page
        return page


class WatchedCore(ElfCore):
    """A core that remembers which pages were asked for in vain. Raises what ElfCore raises."""

    def __init__(self, path: str, locate: Optional[Callable[[str], Optional[str]]] = None) -> None:
        self.missed: Set[int] = set()
        super().__init__(path, locate)

    def _read_slowly(self, address: int, size: int) -> bytes:
        try:
            return super()._read_slowly(address, size)
        except Fault:
            if 0 < size <= MAX_READ and 0 <= address < 1 << 63:
                self.missed.update(range(address // PAGE, (address + size - 1) // PAGE + 1))
            raise
