"""The kind of file behind a descriptor, without contacting a file server that may not respond.

stat(2) of a file on an unreachable network file system waits for ever; statx(2) with AT_STATX_DONT_SYNC returns what
the kernel has cached. Source: <linux/stat.h>, struct statx.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
from typing import NamedTuple, Optional

_NUMBER = {"x86_64": 332, "aarch64": 291}.get(platform.machine())
_AT_FDCWD, _AT_STATX_DONT_SYNC = -100, 0x4000
_STATX_TYPE, _STATX_INO = 0x1, 0x100
_SIZE = 256
_MODE, _INODE, _DEVICE = struct.Struct("=H"), struct.Struct("=Q"), struct.Struct("=II")
_libc = ctypes.CDLL(None, use_errno=True)


class File(NamedTuple):
    """A file's device and inode, and whether it is a FIFO."""

    fifo: bool
    major: int
    minor: int
    inode: int


def file_of(pid: int, fd: str) -> Optional[File]:
    """Return the file behind a descriptor of a process; None when it is gone or cannot be read."""
    if _NUMBER is None:
        return None
    buffer = ctypes.create_string_buffer(_SIZE)
    path = os.fsencode(f"/proc/{pid}/fd/{fd}")
    if _libc.syscall(
        ctypes.c_long(_NUMBER),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(path),
        ctypes.c_int(_AT_STATX_DONT_SYNC),
        ctypes.c_uint(_STATX_TYPE | _STATX_INO),
        buffer,
    ):
        return None
    mode, inode = _MODE.unpack_from(buffer, 28)[0], _INODE.unpack_from(buffer, 32)[0]
    major, minor = _DEVICE.unpack_from(buffer, 136)
    return File(stat.S_ISFIFO(mode), major, minor, inode)
