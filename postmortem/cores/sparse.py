"""A file written piece by piece up to a limit, in which runs of zeros are holes."""

from __future__ import annotations

import errno
import os
from typing import Optional

from ..errors import NotACore

#: Bytes to leave free on the temporary folder's disk.
SPARE = 64 << 20

_PAGE = 4096
_ZEROS = bytes(1 << 20)


class Sparse:
    """A writer that stores pages with content and skips zero pages.

    - ``limit``: maximum size in bytes, holes included; ``variable`` raises it
    - ``elf``: whether the content must be an ELF file
    """

    def __init__(self, fd: int, path: str, folder: str, limit: int, variable: str, elf: bool = True) -> None:
        self._fd, self._path, self._folder, self._limit, self._elf = fd, path, folder, limit, elf
        self._variable = variable
        place = os.statvfs(folder)
        self._room = place.f_bavail * place.f_frsize - SPARE
        self.size = 0
        self._stored = 0
        self._rest = b""  # less than a page, to keep writes aligned

    @property
    def whole(self) -> int:
        """Bytes of the whole pages written so far; less than a page is still held back."""
        return self.size - len(self._rest)

    def write(self, data: bytes) -> None:
        """Write the next bytes. Raises NotACore beyond the limit or the free space, and for content that is not ELF."""
        if self._elf and not self.size and not self._rest and data[:4] != b"\x7fELF"[: len(data)]:
            raise NotACore(f"{self._path} holds no ELF file, so it is not a core", "name a core file or a bundle")
        if self.size + len(data) > self._limit:
            raise NotACore(
                f"{self._path} unpacks to more than {self._limit} bytes",
                f"set {self._variable} higher if you trust it",
            )
        self.size += len(data)
        data = self._rest + data if self._rest else data
        at = self.size - len(data)
        whole = len(data) // _PAGE * _PAGE
        for start in range(0, whole, len(_ZEROS)):
            self._block(data[start : min(start + len(_ZEROS), whole)], at + start)
        self._rest = data[whole:]

    def finish(self) -> None:
        """Write the rest. Raises as ``write``."""
        if self._rest.strip(b"\0"):
            self._store(self._rest, self.size - len(self._rest))
        os.ftruncate(self._fd, self.size)

    def _block(self, block: bytes, at: int) -> None:
        """Store the runs of nonzero pages of a block."""
        if block == _ZEROS[: len(block)]:
            return
        begin: Optional[int] = None
        for page in range(0, len(block), _PAGE):
            if block[page : page + _PAGE] == _ZEROS[:_PAGE]:
                if begin is not None:
                    self._store(block[begin:page], at + begin)
                begin = None
            elif begin is None:
                begin = page
        if begin is not None:
            self._store(block[begin:], at + begin)

    def _store(self, data: bytes, at: int) -> None:
        self._stored += len(data)
        if self._stored > self._room:
            raise self._full()
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._fd, view, at)
                view, at = view[written:], at + written
        except OSError as exc:
            if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise self._full() from None
            raise

    def _full(self) -> NotACore:
        return NotACore(
            f"{self._path} does not fit into {self._folder}: {self.size >> 20} MB were unpacked, and then the space ran out",
            "set TMPDIR to a folder with more space",
        )
