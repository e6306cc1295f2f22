"""The protocol and the few fixed-width reads that everything above is built from."""

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

#: A length read from the target is garbage until proven otherwise; nothing asks for more than this at once.
MAX_READ = 64 << 20


class Fault(Exception):
    """Memory that is not there: unmapped, left out of the core, or cut off. ``address`` and ``size``: as asked for."""

    def __init__(self, address: int, size: int, reason: str = "not mapped") -> None:
        super().__init__(f"{size} bytes at {address:#x}: {reason}")
        self.address = address
        self.size = size
        self.reason = reason


class Memory:
    """Little-endian 64-bit memory. Subclasses implement ``read``; addresses and sizes are in bytes."""

    def read(self, address: int, size: int) -> bytes:
        """Exactly ``size`` bytes, or ``Fault``, which a size below 0 or above MAX_READ is too."""
        raise NotImplementedError

    def u8(self, address: int) -> int:
        return self.read(address, 1)[0]

    def u16(self, address: int) -> int:
        return int(_U16.unpack(self.read(address, 2))[0])

    def u32(self, address: int) -> int:
        return int(_U32.unpack(self.read(address, 4))[0])

    def i32(self, address: int) -> int:
        return int(_I32.unpack(self.read(address, 4))[0])

    def u64(self, address: int) -> int:
        return int(_U64.unpack(self.read(address, 8))[0])

    def i64(self, address: int) -> int:
        return int(_I64.unpack(self.read(address, 8))[0])

    def f64(self, address: int) -> float:
        return float(_F64.unpack(self.read(address, 8))[0])

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        """``count`` unsigned 64-bit words in one read."""
        if count <= 0:
            return ()
        if count * 8 > MAX_READ:
            raise Fault(address, count * 8, "more words than any object has")
        return struct.unpack(f"<{count}Q", self.read(address, count * 8))

    def cstring(self, address: int, limit: int = 256) -> bytes:
        """Bytes up to the first NUL, at most ``limit``; reads page-wise so that a string at the end of a
        mapping does not fault."""
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
    """A piece of a file in the target's address space."""

    start: int
    end: int
    offset: int  # bytes into the file
    path: str  # as the target named it


class Image(Memory):
    """Memory whose mapped files are known too: a core, or a running process."""

    @property
    def files(self) -> List[MappedFile]:
        """Ordered by address."""
        raise NotImplementedError

    @property
    def writable(self) -> List[Tuple[int, int]]:
        """(start, end) of the writable mappings, ordered by address: where a program keeps its data."""
        raise NotImplementedError

    @property
    def written(self) -> List[Tuple[int, int]]:
        """The same without what is known to be zeros, as far as anything is known of it: what a search looks through."""
        return self.writable

    def elf(self, path: str) -> Optional[Elf]:
        """The file behind a mapped path, when it is at hand and the same build; else None."""
        raise NotImplementedError
