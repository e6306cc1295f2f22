"""openat2(2): open a name below a directory, with limits on where its links may lead (Linux 5.6).

Sources: openat2(2); include/uapi/linux/openat2.h; the number is the same on every architecture.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_OPENAT2 = 437
_HOW = struct.Struct("QQQ")  # struct open_how: flags, mode, resolve
NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT = 0x02, 0x04, 0x08, 0x10
#: Errors where it does not exist (an older kernel), or is forbidden (a seccomp filter).
_ABSENT = (errno.ENOSYS, errno.EPERM, errno.E2BIG)
#: Attempts while files are renamed concurrently, which may go on for ever.
_MOST_ATTEMPTS = 100
_LIBC = ctypes.CDLL(None, use_errno=True)


class NotThere(Exception):
    """openat2 is unavailable, or concurrent renames prevent it: the path is to be followed component by component."""


def openat2(folder: int, name: str, flags: int, resolve: int) -> int:
    """Open a name; return its descriptor.

    Raises OSError (EXDEV and ELOOP for names that lead out), NotThere.
    """
    how = ctypes.create_string_buffer(_HOW.pack(flags | os.O_CLOEXEC, 0, resolve), _HOW.size)
    path = ctypes.create_string_buffer(os.fsencode(name))
    for _attempt in range(_MOST_ATTEMPTS):
        found: int = _LIBC.syscall(ctypes.c_long(_OPENAT2), ctypes.c_int(folder), path, how, ctypes.c_size_t(_HOW.size))
        if found >= 0:
            return found
        code = ctypes.get_errno()
        if code in _ABSENT:
            raise NotThere
        if code not in (errno.EAGAIN, errno.EINTR):  # EAGAIN: a concurrent rename
            raise OSError(code, os.strerror(code), name)
    raise NotThere
