"""The existing pages of a process, so that no other page is ever read.

Reading a hole of shared memory allocates a page there, at the target's cost; reading one under userfaultfd(2) waits for
a thread that may be stopped.

- PAGEMAP_SCAN (Linux 6.7) walks page tables, not addresses, and so costs nothing for reserved memory. Layouts: struct
  pm_scan_arg and page_region of <linux/fs.h>
- Else /proc/PID/pagemap; its bits: Documentation/admin-guide/mm/pagemap.rst
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
from typing import List, NamedTuple, Sequence, Tuple

from ...memory.live import GUARD, THERE
from ..procfs.parsers import Mapping

PAGE = os.sysconf("SC_PAGE_SIZE")
Range = Tuple[int, int]  # start, end

_PAGEMAP_SCAN = 0xC0606610  # _IOWR('f', 16, struct pm_scan_arg)
_FILE, _PRESENT, _SWAPPED, _ZERO = 1 << 2, 1 << 3, 1 << 4, 1 << 5
_GUARD = 1 << 8  # a kernel that does not know this bit refuses it; it has no such pages then, or cannot show them
_ARG = struct.Struct("<12Q")
_REGION = struct.Struct("<3Q")
_REGIONS = 4096
_USER_END = 1 << 62  # [vsyscall] lies above, in the kernel's half

#: Kind of page by the highest byte of its pagemap entry. Bit 61 means a page of a file, or shared; ``live`` has the
#: others. glibc 2.42 puts guards (MADV_GUARD_INSTALL) at the ends of thread stacks.
_KINDS = bytes(ord("." if not b & THERE else "g" if b & GUARD else "f" if b & 0x20 else "a") for b in range(256))
_RUN = re.compile(b"a+|f+")
_THERE = re.compile(b"[af]+")
_ABSENT = re.compile(b"[.]+")
_CHUNK_PAGES = 1 << 17
#: Size up to which mappings are examined without the ioctl: larger reservations would take too long.
_LARGEST_MAPPING = 64 << 30


class Pages(NamedTuple):
    """Existing pages, present or swapped out, as rising ranges.

    - ``touched``: anonymous pages, private to the process
    - ``resident``: mapped pages of files and of shared memory
    """

    touched: List[Range]
    resident: List[Range]


class PageMap:
    """The page table of a process.

    - ``descriptor``: an open /proc/PID/pagemap, closed by the caller
    - ``has_scan``: whether to try the PAGEMAP_SCAN ioctl
    """

    def __init__(self, descriptor: int, has_scan: bool = True) -> None:
        self.descriptor = descriptor
        self.has_scan = has_scan
        self._unwanted = _ZERO | _GUARD
        self.left_out: List[Mapping] = []  # mappings too large to look through without the ioctl

    def look(self, mappings: Sequence[Mapping]) -> Pages:
        """Return the existing pages; raise OSError when the process is gone."""
        while self.has_scan:
            try:
                return self._scan(max((m.end for m in mappings if m.end < _USER_END), default=0))
            except OSError as exc:
                if exc.errno not in (errno.ENOTTY, errno.EINVAL, errno.EOPNOTSUPP):
                    raise
                self.has_scan = exc.errno == errno.EINVAL and bool(self._unwanted & _GUARD)
                self._unwanted &= ~_GUARD
        return self._read(mappings)

    def sort(self, ranges: Sequence[Range]) -> Tuple[List[Range], List[Range]]:
        """Return (the parts of ``ranges`` that exist, the parts that were never written).

        Guard pages are in neither. Raises OSError.
        """
        there: List[Range] = []
        absent: List[Range] = []
        for start, end in ranges:
            kinds = self._kinds(start, end)
            there += [(start + m.start() * PAGE, start + m.end() * PAGE) for m in _THERE.finditer(kinds)]
            absent += [(start + m.start() * PAGE, start + m.end() * PAGE) for m in _ABSENT.finditer(kinds)]
        return there, absent

    def _kinds(self, start: int, end: int) -> bytes:
        entries = os.pread(self.descriptor, (end - start) // PAGE * 8, start // PAGE * 8)
        return entries[7::8].translate(_KINDS)

    def _scan(self, end: int) -> Pages:
        buffer = bytearray(_REGIONS * _REGION.size)
        address = _address_of(buffer)
        found = Pages([], [])
        start = 0
        while start < end:
            argument = bytearray(
                _ARG.pack(
                    _ARG.size,
                    0,
                    start,
                    end,
                    0,
                    address,
                    _REGIONS,
                    0,
                    self._unwanted,  # inverted: these categories must be absent …
                    self._unwanted,  # … all of them
                    _PRESENT | _SWAPPED,  # at least one of these must be present
                    _FILE,  # returned for each region: the two kinds
                )
            )
            count = fcntl.ioctl(self.descriptor, _PAGEMAP_SCAN, argument)
            last = start
            for low, high, categories in _REGION.iter_unpack(memoryview(buffer)[: count * _REGION.size]):
                ranges = found.resident if categories & _FILE else found.touched
                if ranges and ranges[-1][1] == low:
                    ranges[-1] = (ranges[-1][0], high)
                else:
                    ranges.append((low, high))
                last = high
            if count < _REGIONS:
                break  # only a full vector ends a walk early
            # walk_end may lag behind the reported regions: the kernel updates it once per buffer of 512
            # (fs/proc/task_mmu.c)
            walked: int = _ARG.unpack(argument)[4]
            start = max(walked, last)
        return found

    def _read(self, mappings: Sequence[Mapping]) -> Pages:
        found = Pages([], [])
        self.left_out = []
        for mapping in mappings:
            if mapping.start >= _USER_END:
                continue
            if mapping.size > _LARGEST_MAPPING:
                self.left_out.append(mapping)
                continue
            for start in range(mapping.start, mapping.end, _CHUNK_PAGES * PAGE):
                kinds = self._kinds(start, min(mapping.end, start + _CHUNK_PAGES * PAGE))
                for run in _RUN.finditer(kinds):
                    ranges = found.resident if run[0][:1] == b"f" else found.touched
                    ranges.append((start + run.start() * PAGE, start + run.end() * PAGE))
        return found


def _address_of(buffer: bytearray) -> int:
    import ctypes  # noqa: PLC0415 - the ioctl wants an address inside its argument; nothing else here does

    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
