"""Files named by the user, such as a report's ``--report FILE``.

In another user's directory the name may lead to anything by the time it is opened: a new file is made beside it and
renamed to it, which follows no link and overwrites nothing in place.
"""

# abspath follows no link:
# ruff: noqa: PTH100

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import BinaryIO, Optional

from .ways import Unsafe, walk

#: open(2) flags for a file that must not exist yet.
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_file(path: str, data: bytes) -> None:
    """Write a file named by the user, mode 0600: a new one, or one of ours, replaced as a whole.

    A pipe or a device is written to. Raises OSError; Unsafe for a symbolic link, and for another user's file or pipe.
    """
    parent, name = os.path.split(os.path.abspath(path))
    above = walk(parent)
    try:
        held = _hold(above, name, path)
        if held is None:
            _replace(above, name, data)
            return
        try:
            with open(f"/proc/self/fd/{held}", "wb", buffering=0) as stream:
                write_all(stream, data)
        finally:
            os.close(held)
    finally:
        os.close(above)


def write_new_file(path: str, data: bytes) -> None:
    """Write a file that must not exist yet, mode 0600, and make its parent directories.

    Raises OSError: FileExistsError; Unsafe when another user's link leads there.
    """
    parent, name = os.path.split(os.path.abspath(path))
    above = walk(parent, make=True)
    try:
        _write_new(above, name, data)
    finally:
        os.close(above)


def _write_new(above: int, name: str, data: bytes, final: Optional[str] = None) -> None:
    """Write a new file; ``final``: the name to which it is renamed once complete."""
    descriptor = os.open(name, NEW, 0o600, dir_fd=above)
    try:
        with open(descriptor, "wb", buffering=0) as stream:
            write_all(stream, data)
        if final is not None:
            os.rename(name, final, src_dir_fd=above, dst_dir_fd=above)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=above)
        raise


def _hold(above: int, name: str, path: str) -> Optional[int]:
    """Return a descriptor of the pipe or device of that name; None if a file is to be made, or one of ours replaced.

    The descriptor ensures that the inode checked is the one opened later. Raises OSError; Unsafe.
    """
    try:
        held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(held)
        if stat.S_ISLNK(found.st_mode):
            raise Unsafe("it is a symbolic link, which is not followed", path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if stat.S_ISFIFO(found.st_mode) and found.st_uid not in (0, os.geteuid()):
            # it would be read by its owner, or never. A terminal is exempt: under sudo it is its user's
            raise Unsafe(f"it is a pipe of user {found.st_uid}", path)
        if stat.S_ISREG(found.st_mode) and found.st_uid != os.geteuid():
            raise Unsafe(f"it belongs to user {found.st_uid}", path)
    except BaseException:
        os.close(held)
        raise
    if not stat.S_ISREG(found.st_mode):
        return held
    os.close(held)
    return None


def _replace(above: int, name: str, data: bytes) -> None:
    for number in range(100):
        temporary = f".{name[:200]}.{os.getpid()}-{number}.part"
        with contextlib.suppress(FileExistsError):
            _write_new(above, temporary, data, name)
            return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def write_all(stream: BinaryIO, data: bytes) -> None:
    """Write all bytes to an unbuffered stream. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]
