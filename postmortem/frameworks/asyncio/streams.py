"""Descriptors of asyncio's transports, servers and sockets, and of binary files.

Sources, 3.8-3.15:
- Lib/asyncio/selector_events.py: ``_sock_fd`` of a selector transport.
- Lib/asyncio/unix_events.py: ``_fileno`` of a pipe transport.
- Lib/asyncio/sslproto.py: a TLS transport leads through its protocol to the transport below.
- Modules/socketmodule.h: PySocketSockObject.sock_fd, the first field.
"""

from __future__ import annotations

from typing import Optional

from ...cpython.objects.attributes import attribute, attributes
from ...cpython.objects.builtins import NotThat, Objects
from ...memory import Fault

_SOCK_FD = 16
#: fileio.fd and buffered.raw, the first field of each (Modules/_io/fileio.c, bufferedio.c of 3.8-3.15).
_FILE_FD, _RAW = 16, 16
_MAX_LAYERS = 6


def descriptor_of_transport(objects: Objects, transport: Optional[int]) -> Optional[int]:
    """Return the descriptor of a transport, through TLS layers; None if unknown."""
    for _ in range(_MAX_LAYERS):
        try:
            values = attributes(objects, transport) if transport else {}
            number = values.get("_sock_fd") or values.get("_fileno")
            if number:
                return objects.integer(number)
        except (Fault, NotThat):
            return None
        transport = values.get("_ssl_protocol") or values.get("_transport")
    return None


def descriptor_of_server(objects: Objects, server: int) -> Optional[int]:
    """Return the descriptor of a server's first listening socket; None if unknown."""
    sockets = attribute(objects, server, "_sockets")
    try:
        return descriptor_of_socket(objects, objects.items(sockets, 1_000)[0]) if sockets else None
    except (Fault, NotThat, IndexError):
        return None


def descriptor_of_socket(objects: Objects, sock: Optional[int]) -> Optional[int]:
    """Return the descriptor of a socket.socket; None if unknown or closed."""
    if sock is None or not objects.is_instance(sock, "_socket.socket"):
        return None
    try:
        number = objects.memory.i32(sock + objects.layout.ob_extra + _SOCK_FD)
    except Fault:
        return None
    return number if 0 <= number < 1 << 30 else None


def descriptor_of_file(objects: Objects, file: int) -> Optional[int]:
    """Return the descriptor of a raw or buffered binary file; None if unknown or over a socket."""
    try:
        if (objects.type_name(file) or "").startswith("_io.Buffered"):
            file = objects.field(file, _RAW)
        if not file or objects.type_name(file) != "_io.FileIO":
            return None
        number = objects.memory.i32(file + objects.layout.ob_extra + _FILE_FD)
    except (Fault, NotThat):
        return None
    return number if 0 <= number < 1 << 30 else None
