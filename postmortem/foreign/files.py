"""Opening and reading files made by others, who may change or replace them at any time.

A path may lead to a FIFO without a writer, to a device on which open(2) has side effects, to a file that grows, shrinks
or never ends. So the inode is held first (O_PATH, which opens nothing), its type is checked, and only a regular file is
opened, through that descriptor. Reads are bounded by the size at that time, which is 0 for the files of /proc. Nothing
is mapped: truncation of a mapped file ends its reader with SIGBUS (mmap(2)).
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Dict, Iterator, Optional, Tuple

_HOLD = os.O_PATH | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
#: Bytes of a block of a FileView, and the number of blocks kept: a tree's processes map hundreds of files.
_BLOCK, _MOST_BLOCKS = 1 << 14, 256


class Unfit(OSError):
    """A file that exists and is not read; ``strerror`` says why.

    ``errno`` does too, for an error that passes through a socket:
    - EINVAL: no regular file
    - EFBIG: too large
    - EBADF: a name of another kind
    """

    def __init__(self, reason: str, path: str = "", code: int = errno.EINVAL) -> None:
        super().__init__(code, reason, path)


def open_regular(path: str, *, folder: Optional[int] = None, follow: bool = True) -> int:
    """Open a regular file for reading, without blocking; return its descriptor.

    - ``folder``: descriptor of the directory that a relative path starts from
    - ``follow``: whether the last component may be a symbolic link

    Raises OSError; Unfit unless it is a regular file, IsADirectoryError for a directory.
    """
    held = os.open(path, _HOLD | (0 if follow else os.O_NOFOLLOW), dir_fd=folder)
    try:
        return reopen(held, path)
    finally:
        os.close(held)


def reopen(held: int, path: str = "") -> int:
    """Open for reading the regular file held by an O_PATH descriptor. Raises as ``open_regular``."""
    mode = os.fstat(held).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise Unfit("is not a regular file", path)
    try:
        return os.open(f"/proc/self/fd/{held}", _READ)
    except OSError as exc:
        exc.filename = path
        raise


def read_descriptor(descriptor: int, most: int, path: str = "") -> bytes:
    """Return the content of a regular file from its beginning, up to its size at the start of the call.

    Raises Unfit if that is more than ``most`` bytes, OSError.
    """
    size = os.fstat(descriptor).st_size
    if size > most:
        raise Unfit(f"is larger than {readable(most)}", path, errno.EFBIG)
    return b"".join(pieces(descriptor, size))


def pieces(descriptor: int, size: int, piece: int = 1 << 20) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of a file; fewer if it is shorter. Raises OSError."""
    at = 0
    while at < size:
        data = os.pread(descriptor, min(piece, size - at), at)
        if not data:
            return
        yield data
        at += len(data)


def read_file(path: str, most: int, *, folder: Optional[int] = None, follow: bool = True) -> bytes:
    """Return the content of a file of at most ``most`` bytes. Raises as open_regular and read_descriptor."""
    descriptor = open_regular(path, folder=folder, follow=follow)
    try:
        return read_descriptor(descriptor, most, path)
    finally:
        os.close(descriptor)


def readable(size: int) -> str:
    """Format a limit, such as ``8 MB``."""
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} kB"


class FileView:
    """A file of any size, read on demand: ``view[start:end]`` is bytes, fewer where the file ends.

    Small reads are served from cached blocks, so that repeated reads of one place cost no system call; large ones are
    not cached. Takes ownership of the descriptor.

    ``short``: whether anything within the original size could not be read, because the file was truncated or the disk
    failed.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.short = False
        self._blocks: Dict[int, bytes] = {}
        self._began = _look(descriptor)
        self._size = self._began[0]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, wanted: slice) -> bytes:
        start, end, _step = wanted.indices(self._size)
        size = end - start
        if size <= 0:
            return b""
        first, offset = divmod(start, _BLOCK)
        if offset + size <= _BLOCK:
            return self._block(first)[offset : offset + size]
        if size <= _BLOCK:
            head = self._block(first)
            return (head + self._block(first + 1) if len(head) == _BLOCK else head)[offset : offset + size]
        return self.read(start, size)

    def read(self, start: int, size: int) -> bytes:
        """Return bytes at an offset without caching them; fewer where the file ends or the disk fails."""
        size = min(size, self._size - start)
        if size <= 0:
            return b""
        try:
            data = os.pread(self.descriptor, size, start)
            if len(data) < size:
                data += b"".join(self._pieces(start + len(data), size - len(data)))
        except (OSError, OverflowError):  # an offset beyond every file size
            data = b""
        if len(data) < size:
            self.short = True
        return data

    def _pieces(self, at: int, left: int) -> Iterator[bytes]:
        """Yield what follows a partial read: one call returns 2 GB at most."""
        while left > 0:
            data = os.pread(self.descriptor, left, at)
            if not data:
                return
            yield data
            at += len(data)
            left -= len(data)

    def _block(self, number: int) -> bytes:
        found = self._blocks.get(number)
        if found is None:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            found = self._blocks[number] = self.read(number * _BLOCK, _BLOCK)
        return found

    def find(self, needle: bytes, start: int = 0, end: Optional[int] = None) -> int:
        """Return the offset of the first occurrence within [start, end); -1 without one."""
        end = self._size if end is None else min(end, self._size)
        step = 1 << 20
        at = start
        while at < end:
            found = self.read(at, min(step + len(needle) - 1, end - at)).find(needle)
            if found >= 0:
                return at + found
            at += step
        return -1

    @property
    def altered(self) -> bool:
        """Whether the file has been written to or truncated since it was opened, judged by size and modification time."""
        if self.short:
            return True
        try:
            return _look(self.descriptor) != self._began
        except OSError:
            return True

    def close(self) -> None:
        """Close the descriptor; uncached parts then read as missing. Safe to call more than once."""
        self._blocks.clear()
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            self.close()


def _look(descriptor: int) -> Tuple[int, int]:
    """Return (bytes, modification time in ns)."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def is_folder(path: str) -> bool:
    """Return whether a name leads to a directory; False for anything else, and where access is refused."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where looking is refused
