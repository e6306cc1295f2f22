"""Which socket a suspended asyncio task waits for, as its descriptor.

Streams: StreamReader keeps its transport, and a selector transport the descriptor (Lib/asyncio/streams.py,
selector_events.py, ``_sock_fd``). Socket calls of the loop have the socket among their locals, whose C part begins
with the descriptor (Modules/socketmodule.h, PySocketSockObject.sock_fd).
"""

from __future__ import annotations

from typing import Optional, Sequence

from ..memory import Fault
from .attributes import attribute
from .frames import Frame, Frames
from .objects import NotThat

_READERS = ("_wait_for_data", "readuntil", "readexactly", "read", "readline")
_SOCKET_CALLS = ("sock_recv", "sock_recv_into", "sock_sendall", "sock_connect", "sock_accept")
_SOCK_FD = 16


def awaited_descriptor(frames: Frames, chain: Sequence[Frame]) -> Optional[int]:
    """``chain`` is a task's frames, innermost await first. None when it waits for no socket, or it is not known."""
    for frame in chain[:3]:
        file = frame.code.filename
        if frame.function in _READERS and file.endswith("asyncio/streams.py"):
            return _of_stream(frames, frame)
        if frame.function in _SOCKET_CALLS and file.endswith("asyncio/selector_events.py"):
            sock = frames.local(frame, "sock")
            return _of_socket(frames, sock) if sock else None
    return None


def _of_stream(frames: Frames, frame: Frame) -> Optional[int]:
    objects = frames.objects
    stream = frames.local(frame, "self")
    transport = attribute(objects, stream, "_transport") if stream else None
    number = attribute(objects, transport, "_sock_fd") if transport else None
    try:
        return objects.integer(number) if number else None
    except (Fault, NotThat):
        return None


def _of_socket(frames: Frames, sock: int) -> Optional[int]:
    if not frames.objects.is_instance(sock, "_socket.socket"):
        return None
    try:
        number = frames.objects.memory.i32(sock + frames.objects.layout.ob_extra + _SOCK_FD)
    except Fault:
        return None
    return number if 0 <= number < 1 << 30 else None
