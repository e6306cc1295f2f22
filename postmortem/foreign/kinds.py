"""Kinds of file systems.

Sources: statfs(2), include/uapi/linux/magic.h; CIFS, SMB 2 and NCP: fs/smb/common/smbfsctl.h, fs/ncpfs.
"""

from __future__ import annotations

import ctypes
import errno
import os

PROC = 0x9FA0
#: File systems that wait for a process or another machine: FUSE, 9p, NFS, SMB (three), Ceph, AFS (two), Coda, OCFS2.
MAY_BLOCK = frozenset(
    (
        *(0x65735546, 0x01021997, 0x6969, 0xFE534D42, 0xFF534D42, 0x517B, 0x00C36400),
        *(0x5346414F, 0x6B414653, 0x73757245, 0x7461636F),
    )
)
_STATFS_BYTES = 256  # struct statfs has 120; f_type comes first, as a long
_LIBC = ctypes.CDLL(None, use_errno=True)


def kind_of(descriptor: int) -> int:
    """Return the magic number of the file system of an open file, which may be held with O_PATH. Raises OSError."""
    found = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.fstatfs(ctypes.c_int(descriptor), found) != 0:
        code = ctypes.get_errno() or errno.EIO
        raise OSError(code, os.strerror(code))
    return ctypes.c_long.from_buffer(found).value & 0xFFFFFFFF


def may_block(descriptor: int) -> bool:
    """Return whether an open file is on a file system that waits for a process or another machine. Raises OSError."""
    return kind_of(descriptor) in MAY_BLOCK
