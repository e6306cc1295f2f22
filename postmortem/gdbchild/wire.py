"""The protocol between gdb and its child: frames of JSON, each behind four bytes of length.

First gdb describes what it has open (``told`` of gdb/target.py). Then it asks repeatedly:

- gdb: ``{"command", "arguments", "selected": tid, "threads": [[number, tid], …]}``
- child: any number of ``{"lines": [[style, text], …]}``, then ``{"end": true}`` or ``{"error": sentence}``

Before its answer the child may ask gdb, one request at a time:

- ``{"read": [address, size]}`` → ``{"data": base64}`` or ``{"fault": reason}``
- ``{"stack": tid, "most": frames}`` → ``{"frames": [{"function", "module", "address", "file", "line"}, …], "error":
  text}``
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Dict

LENGTH = struct.Struct("<I")
MOST_BYTES = 64 << 20


class Gone(Exception):
    """Closed connection to gdb, or an invalid frame from it."""


class Link:
    """The child's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def receive(self) -> Dict[str, Any]:
        """Return the next frame. Raises Gone."""
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
        if size > MOST_BYTES:
            raise Gone
        try:
            value = json.loads(self._exactly(size))
        except (ValueError, RecursionError):
            raise Gone from None
        if not isinstance(value, dict):
            raise Gone
        return value

    def send(self, value: Dict[str, Any]) -> None:
        """Send a frame. Raises Gone."""
        data = json.dumps(value).encode()
        try:
            self._socket.sendall(LENGTH.pack(len(data)) + data)
        except OSError:
            raise Gone from None

    def ask(self, value: Dict[str, Any]) -> Dict[str, Any]:
        """Return gdb's answer to a request. Raises Gone."""
        self.send(value)
        return self.receive()

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = self._socket.recv(min(size, 1 << 20))
            except OSError:
                raise Gone from None
            if not part:
                raise Gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
