"""Paths to directories, followed component by component, through no link of another user.

Sources: open(2) on O_PATH and O_NOFOLLOW; the kernel's own rule for sticky directories is proc(5)'s protected_symlinks.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TypeVar

_WAY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
_Held = TypeVar("_Held", bound="HeldDirectory")


class HeldDirectory:
    """A directory held by ``descriptor``, whatever happens to its name. Close it, or use ``with``."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        """Close the descriptor. Safe to call more than once."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self: _Held) -> _Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Unsafe(OSError):
    """A place that another user could change at any time; ``strerror`` says why, without the place."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(errno.EPERM, reason, path)


def walk(path: str, *, make: bool = False, trusted: bool = False) -> int:
    """Return an O_PATH descriptor of the directory at an absolute path.

    Symbolic links on the way are followed if they are root's or ours: another user's may lead anywhere, and change.

    - ``make``: make missing directories, mode 0700
    - ``trusted``: refuse a directory on the way that another user can change

    Raises OSError; Unsafe for such a link or directory.
    """
    way = list(reversed([part for part in path.split("/") if part not in ("", ".")]))
    at = os.open("/", _WAY)
    links = 0
    try:
        while way:
            part = way.pop()
            found = _open_or_make(at, part, make)
            status = os.fstat(found)
            if stat.S_ISLNK(status.st_mode):
                try:
                    links += 1
                    target = os.readlink("", dir_fd=found)
                finally:
                    os.close(found)
                if status.st_uid not in (0, os.geteuid()):
                    raise Unsafe(f"{part!r}, on the way, is a symbolic link of user {status.st_uid}", path)
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    os.close(at)
                    at = os.open("/", _WAY)
                way.extend(reversed([each for each in target.split("/") if each not in ("", ".")]))
                continue
            os.close(at)
            at = found
            if not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            if trusted and _is_others(status):
                raise Unsafe(f"other users may change {part!r}, on the way", path)
        return at
    except BaseException:
        os.close(at)
        raise


def _is_others(status: os.stat_result) -> bool:
    writable = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
    return bool(writable) or status.st_uid not in (0, os.geteuid())


def _open_or_make(at: int, part: str, make: bool) -> int:
    try:
        return os.open(part, _WAY, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=at)
    return os.open(part, _WAY, dir_fd=at)
