"""The ``Memory`` protocol and its fixed-width reads."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from .elf import Elf

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_U64 = struct.Struct("<Q")
_I64 = struct.Struct("<q")
_F64 = struct.Struct("<d")

#: Most bytes of one read: a length found in the target may be garbage.
MAX_READ = 64 << 20


class Fault(Exception):
    """Memory that cannot be read: unmapped, left out of the core, or cut off.

    ``address`` and ``size``: the request in bytes; ``reason``: its cause.
    """

    def __init__(self, address: int, size: int, reason: str = "not mapped") -> None:
        super().__init__(f"{size} bytes at {address:#x}: {reason}")
        self.address = address
        self.size = size
        self.reason = reason


class Memory:
    """Little-endian 64-bit memory; addresses and sizes are in bytes.

    Subclasses implement ``read``; every method raises Fault for what cannot be read.
    """

    def read(self, address: int, size: int) -> bytes:
        """Return exactly ``size`` bytes.

        Raises: Fault, also for a size below 0 or above MAX_READ.
        """
        raise NotImplementedError

    def u8(self, address: int) -> int:
        """Return an unsigned byte."""
        return self.read(address, 1)[0]

    def u16(self, address: int) -> int:
        """Return an unsigned 16-bit integer."""
        return int(_U16.unpack(self.read(address, 2))[0])

    def u32(self, address: int) -> int:
        """Return an unsigned 32-bit integer."""
        return int(_U32.unpack(self.read(address, 4))[0])

    def i32(self, address: int) -> int:
        """Return a signed 32-bit integer."""
        return int(_I32.unpack(self.read(address, 4))[0])

    def u64(self, address: int) -> int:
        """Return an unsigned 64-bit integer."""
        return int(_U64.unpack(self.read(address, 8))[0])

    def i64(self, address: int) -> int:
        """Return a signed 64-bit integer."""
        return int(_I64.unpack(self.read(address, 8))[0])

    def f64(self, address: int) -> float:
        """Return a 64-bit floating-point number."""
        return float(_F64.unpack(self.read(address, 8))[0])

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        """Return ``count`` unsigned 64-bit words in one read."""
        if count <= 0:
            return ()
        if count * 8 > MAX_READ:
            raise Fault(address, count * 8, "more words than any object can have")
        return struct.unpack(f"<{count}Q", self.read(address, count * 8))

    def cstring(self, address: int, limit: int = 256) -> bytes:
        """Return the bytes up to the first NUL, at most ``limit``.

        Reads pieces aligned to 64 bytes, so that a string at the end of a mapping does not fault.
        """
        parts: List[bytes] = []
        while limit > 0:
            step = min(limit, 64 - address % 64)
            chunk = self.read(address, step)
            end = chunk.find(b"\0")
            if end >= 0:
                parts.append(chunk[:end])
                break
            parts.append(chunk)
            address += step
            limit -= step
        return b"".join(parts)


class MappedFile(NamedTuple):
    """A mapped piece of a file: addresses [start, end)."""

    start: int
    end: int
    offset: int  # bytes into the file
    path: str  # as the target names it


class Image(Memory):
    """Memory with its mapped files: a core, or a running process."""

    @property
    def files(self) -> List[MappedFile]:
        """Mapped files, ordered by address."""
        raise NotImplementedError

    @property
    def writable(self) -> List[Tuple[int, int]]:
        """(start, end) of the writable mappings, ordered by address."""
        raise NotImplementedError

    @property
    def written(self) -> List[Tuple[int, int]]:
        """Ranges worth searching: ``writable`` without what is known to be zeros."""
        return self.writable

    def elf(self, path: str) -> Optional[Elf]:
        """Return the file behind a mapped path; None if unavailable or of another build."""
        raise NotImplementedError
