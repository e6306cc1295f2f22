"""Memory made of byte strings at addresses: for tests, and empty for processes without a core."""

from __future__ import annotations

import struct
from typing import Dict

from .base import Fault, Memory


class Segments(Memory):
    """Byte strings at addresses, as in ``Segments({0x1000: b"..."})``; writes do not extend them."""

    def __init__(self, parts: Dict[int, bytes]) -> None:
        self._parts = {start: bytearray(data) for start, data in parts.items()}

    def read(self, address: int, size: int) -> bytes:
        """Return exactly ``size`` bytes of one segment. Raises Fault."""
        for start, data in self._parts.items():
            if size >= 0 and start <= address and address + size <= start + len(data):
                return bytes(data[address - start : address - start + size])
        raise Fault(address, size)

    def put(self, address: int, data: bytes) -> None:
        """Write bytes within one segment. Raises Fault."""
        for start, part in self._parts.items():
            if start <= address and address + len(data) <= start + len(part):
                part[address - start : address - start + len(data)] = data
                return
        raise Fault(address, len(data))

    def put_words(self, address: int, *words: int) -> None:
        """Write unsigned 64-bit words within one segment. Raises Fault."""
        self.put(address, struct.pack(f"<{len(words)}Q", *words))
