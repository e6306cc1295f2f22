"""Files that the user has named: a report's ``--report FILE``.

The directory may be another user's, so that the name may mean anything by the time it is opened: a new file is made beside it
and renamed onto it, which follows nothing and overwrites nothing in place.
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

#: Flags of a file that was not there.
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_file(path: str, data: bytes) -> None:
    """Write a file that the user has named, mode 0600: a new one, or one of ours, replaced as a whole. A pipe or a device is
    written to. Neither a symbolic link nor another user's file or pipe is. Raises OSError; Unsafe for these."""
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
    """Write a file that must not be there yet, mode 0600, and the directories that it lies in. Raises OSError:
    FileExistsError, Unsafe when a link of another user's leads there."""
    parent, name = os.path.split(os.path.abspath(path))
    above = walk(parent, make=True)
    try:
        _write_new(above, name, data)
    finally:
        os.close(above)


def _write_new(above: int, name: str, data: bytes, final: Optional[str] = None) -> None:
    """``final``: the name that the file takes once it is whole."""
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
    """A descriptor of the pipe or device that has that name: the very one that is then opened, whatever takes its name
    meanwhile. None when a file is to be made, or one of ours replaced. Raises OSError; Unsafe."""
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
            # It would be given to whoever made it, or nobody would ever read it. A terminal is its user's under sudo.
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
    """Write all of some bytes to an unbuffered stream. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]
