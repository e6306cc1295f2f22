"""The descriptors behind asyncio's transports, servers and sockets, and behind files.

A selector transport keeps its descriptor as ``_sock_fd``, one of a pipe as ``_fileno`` (Lib/asyncio/selector_events.py,
unix_events.py); one that speaks TLS leads through its protocol to the one below (sslproto.py, 3.8-3.15). A socket's C
part begins with the descriptor (Modules/socketmodule.h, PySocketSockObject.sock_fd).
"""

from __future__ import annotations

from typing import Optional

from ...cpython.objects.attributes import attribute, attributes
from ...cpython.objects.builtins import NotThat, Objects
from ...memory import Fault

_SOCK_FD = 16
#: fileio.fd and buffered.raw, the first fields of both (Modules/_io/fileio.c, bufferedio.c of 3.8-3.15).
_FILE_FD, _RAW = 16, 16
_MAX_LAYERS = 6


def descriptor_of_transport(objects: Objects, transport: Optional[int]) -> Optional[int]:
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
    """The first socket on which it listens."""
    sockets = attribute(objects, server, "_sockets")
    try:
        return descriptor_of_socket(objects, objects.items(sockets, 1_000)[0]) if sockets else None
    except (Fault, NotThat, IndexError):
        return None


def descriptor_of_socket(objects: Objects, sock: Optional[int]) -> Optional[int]:
    if sock is None or not objects.is_instance(sock, "_socket.socket"):
        return None
    try:
        number = objects.memory.i32(sock + objects.layout.ob_extra + _SOCK_FD)
    except Fault:
        return None
    return number if 0 <= number < 1 << 30 else None


def descriptor_of_file(objects: Objects, file: int) -> Optional[int]:
    """Of a raw or buffered binary file; a socket's has none of its own."""
    try:
        if (objects.type_name(file) or "").startswith("_io.Buffered"):
            file = objects.field(file, _RAW)
        if not file or objects.type_name(file) != "_io.FileIO":
            return None
        number = objects.memory.i32(file + objects.layout.ob_extra + _FILE_FD)
    except (Fault, NotThat):
        return None
    return number if 0 <= number < 1 << 30 else None
