"""Which anonymous pages of a process exist: PAGEMAP_SCAN where the kernel has it (6.7), else /proc/PID/pagemap.

The ioctl walks page tables, not addresses, and so costs nothing for reserved memory. Layouts: struct pm_scan_arg and
page_region of <linux/fs.h>; pagemap's bits in Documentation/admin-guide/mm/pagemap.rst.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
from typing import List, Sequence

from .procfs import Mapping
from .segments import PAGE, Range

_PAGEMAP_SCAN = 0xC0606610  # _IOWR('f', 16, struct pm_scan_arg)
_FILE, _PRESENT, _SWAPPED, _ZERO = 1 << 2, 1 << 3, 1 << 4, 1 << 5
_GUARD = 1 << 8  # a kernel that does not know the bit refuses it; it then has no such pages either, or cannot tell
_ARG = struct.Struct("<12Q")
_REGION = struct.Struct("<3Q")
_REGIONS = 4096
_USER_END = 1 << 62  # [vsyscall] lies above, in the kernel's half

#: The highest byte of a pagemap entry: bit 63 present, 62 swapped, 61 file page or shared, 58 a guard (MADV_GUARD_INSTALL,
#: which glibc 2.42 uses for the ends of thread stacks): it looks swapped, and holds nothing.
_IS_TOUCHED = bytes(ord("x") if (b & 0xC0) and not b & 0x24 else ord(".") for b in range(256))
_RUN = re.compile(b"x+")
_CHUNK_PAGES = 1 << 17
#: Without the ioctl, larger reservations would take too long to look through.
_LARGEST_MAPPING = 64 << 30


class PageMap:
    """``descriptor`` is an open /proc/PID/pagemap, which stays the caller's. ``has_scan``: does the ioctl work there?"""

    def __init__(self, descriptor: int, has_scan: bool = True) -> None:
        self._descriptor = descriptor
        self.has_scan = has_scan
        self._unwanted = _FILE | _ZERO | _GUARD
        self.left_out: List[Mapping] = []  # mappings too large to look through without the ioctl

    def touched(self, mappings: Sequence[Mapping]) -> List[Range]:
        """Anonymous pages that are present or swapped, as rising ranges. Raises OSError when the process is gone."""
        while self.has_scan:
            try:
                return self._scan(max((m.end for m in mappings if m.end < _USER_END), default=0))
            except OSError as exc:
                if exc.errno not in (errno.ENOTTY, errno.EINVAL, errno.EOPNOTSUPP):
                    raise
                self.has_scan = exc.errno == errno.EINVAL and bool(self._unwanted & _GUARD)
                self._unwanted &= ~_GUARD
        return self._read(mappings)

    def _scan(self, end: int) -> List[Range]:
        buffer = bytearray(_REGIONS * _REGION.size)
        address = _address_of(buffer)
        found: List[Range] = []
        start = 0
        while start < end:
            argument = bytearray(
                _ARG.pack(
                    _ARG.size, 0, start, end, 0, address, _REGIONS, 0,
                    self._unwanted,  # inverted: wanted absent …
                    self._unwanted,  # … and all of these must hold
                    _PRESENT | _SWAPPED,  # one of these must
                    _FILE,  # told back: a constant, so that neighbours become one region
                )
            )  # fmt: skip
            count = fcntl.ioctl(self._descriptor, _PAGEMAP_SCAN, argument)
            for low, high, _categories in _REGION.iter_unpack(memoryview(buffer)[: count * _REGION.size]):
                if found and found[-1][1] == low:
                    found[-1] = (found[-1][0], high)
                else:
                    found.append((low, high))
            if count < _REGIONS:
                break  # only a full vector ends a walk early
            # walk_end may lag behind the regions told: the kernel notes it once per buffer of 512 (fs/proc/task_mmu.c)
            walked: int = _ARG.unpack(argument)[4]
            start = max(walked, found[-1][1])
        return found

    def _read(self, mappings: Sequence[Mapping]) -> List[Range]:
        found: List[Range] = []
        self.left_out = []
        for mapping in mappings:
            if mapping.shared or mapping.perms[:2] == "--" or mapping.start >= _USER_END:
                continue
            if mapping.size > _LARGEST_MAPPING:
                self.left_out.append(mapping)
                continue
            for start in range(mapping.start, mapping.end, _CHUNK_PAGES * PAGE):
                pages = (min(mapping.end, start + _CHUNK_PAGES * PAGE) - start) // PAGE
                entries = os.pread(self._descriptor, pages * 8, start // PAGE * 8)
                for run in _RUN.finditer(entries[7::8].translate(_IS_TOUCHED)):
                    found.append((start + run.start() * PAGE, start + run.end() * PAGE))
        return found


def _address_of(buffer: bytearray) -> int:
    import ctypes  # noqa: PLC0415 - the ioctl wants an address inside its argument; nothing else here does

    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
