"""process_vm_readv(2): many ranges of another process in one call, with one copy instead of /proc/PID/mem's two.

About twice as fast, and all or nothing here: it refuses write-only and protected pages, which /proc/PID/mem reads, so
whatever does not work at once is done again that way.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Sequence

from .pages import Range

#: IOV_MAX of <limits.h>.
MOST_RANGES = 1024

_call = ctypes.CDLL(None, use_errno=True).process_vm_readv
_call.restype = ctypes.c_ssize_t
_call.argtypes = (
    ctypes.c_int, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong,
)  # fmt: skip


def read(tid: int, ranges: Sequence[Range], into: memoryview) -> bool:
    """Reads all of the ranges, one behind the other; False when any of it could not be read."""
    if not ranges:
        return True
    remote = b"".join(struct.pack("@QQ", start, end - start) for start, end in ranges)
    holder = ctypes.c_char.from_buffer(into)
    local = struct.pack("@QQ", ctypes.addressof(holder), len(into))
    return bool(_call(tid, local, 1, remote, len(ranges), 0) == len(into))
