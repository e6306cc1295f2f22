"""Open and read files that others made, and may change or replace at any moment.

A path may lead to a FIFO that nobody writes to, to a device that does something when it is opened, to a file that grows,
shrinks or never ends. So the inode is held first (O_PATH, which opens nothing), its type is checked, and only a regular file
is opened, through that hold; what is read is bounded by the size that it had then, which is 0 for the files of /proc.
Nothing is mapped: a mapped file that is truncated ends its reader with SIGBUS (mmap(2)).
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Dict, Iterator, Optional, Tuple

_HOLD = os.O_PATH | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
#: Bytes of one block of a FileView, and how many blocks it keeps: a tree's processes map hundreds of files.
_BLOCK, _MOST_BLOCKS = 1 << 14, 256


class Unfit(OSError):
    """A file that is there and is not read. ``strerror`` says why; ``errno`` as well, for whoever it reaches through a
    socket: EINVAL for what is no regular file, EFBIG for what is too large, EBADF for what has another kind of name."""

    def __init__(self, reason: str, path: str = "", code: int = errno.EINVAL) -> None:
        super().__init__(code, reason, path)


def open_regular(path: str, *, folder: Optional[int] = None, follow: bool = True) -> int:
    """Return a descriptor of a regular file, to be read; it never blocks. ``folder``: a directory's descriptor that a relative
    path starts from. ``follow``: whether the last component may be a symbolic link. Raises OSError; Unfit for what is no
    regular file, IsADirectoryError for a directory."""
    held = os.open(path, _HOLD | (0 if follow else os.O_NOFOLLOW), dir_fd=folder)
    try:
        return reopen(held, path)
    finally:
        os.close(held)


def reopen(held: int, path: str = "") -> int:
    """Return a descriptor to read the regular file that an O_PATH descriptor holds. Raises as open_regular."""
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
    """Return the content of a regular file, from its beginning, as long as it was when this began. Raises Unfit when that is
    more than ``most`` bytes, OSError."""
    size = os.fstat(descriptor).st_size
    if size > most:
        raise Unfit(f"is larger than {readable(most)}", path, errno.EFBIG)
    return b"".join(pieces(descriptor, size))


def pieces(descriptor: int, size: int, piece: int = 1 << 20) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of a file; fewer when it ends sooner. Raises OSError."""
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
    """A limit in words: ``8 MB``."""
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} kB"


class FileView:
    """A file of any size, read where it is asked for: ``view[start:end]`` gives bytes, fewer past the end of the file or
    where it has been cut off since. Small reads are served from blocks that are kept, so that looking at one place again and
    again costs no system call; large ones are not kept. Takes over the descriptor.

    ``short``: something within the size that the file had at first could not be read: it was cut off, or the disk failed."""

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
        """Return bytes from an offset on without keeping them; fewer where the file ends. What the disk fails to give is
        missing as well."""
        size = min(size, self._size - start)
        if size <= 0:
            return b""
        try:
            data = os.pread(self.descriptor, size, start)
            if len(data) < size:
                data += b"".join(self._pieces(start + len(data), size - len(data)))
        except (OSError, OverflowError):  # an offset that no file has
            data = b""
        if len(data) < size:
            self.short = True
        return data

    def _pieces(self, at: int, left: int) -> Iterator[bytes]:
        """What follows a read that gave less than was asked for: one call gives 2 GB at most."""
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
        """Return the offset of the first occurrence that lies within [start, end); -1 without one."""
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
        """Whether the file has been written to or cut off since it was opened, as far as its size and times tell."""
        if self.short:
            return True
        try:
            return _look(self.descriptor) != self._began
        except OSError:
            return True

    def close(self) -> None:
        """Close the descriptor; called again it does nothing, and what is not kept reads as missing."""
        self._blocks.clear()
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            self.close()


def _look(descriptor: int) -> Tuple[int, int]:
    """(bytes, when it was last written to)"""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def is_folder(path: str) -> bool:
    """Whether a name leads to a directory that may be looked at; False for whatever else it is, and where that is refused."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where looking is refused
