"""Facts that are read through a descriptor only: the fill level of a pipe, the timeouts of a socket.

They are read through a duplicate, made by pidfd_getfd(2). Opening /proc/PID/fd/N would make a *new* end of the pipe: a
writer would not notice that its last reader has gone, and a waiting open(2) of a FIFO would succeed. A duplicate is the
same end. It exists for some ten microseconds; if the process closes its own descriptor just then, the other side is
notified that much later. Nothing is read, written or set, so O_NONBLOCK and the order of waiters stay the same.

Sources: pidfd_open(2) (Linux 5.3), pidfd_getfd(2) (5.6), whose numbers are the same on every architecture; pipe(7);
socket(7), SO_RCVTIMEO: a struct timeval, two longs.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import select
import socket
import struct
import termios
from typing import Any, Dict, List, Optional

_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
_F_GETPIPE_SZ = 1032
_TIMEVAL = struct.Struct("ll")
_libc = ctypes.CDLL(None, use_errno=True)


class Pidfds:
    """Pidfds of processes, each opened once; a context manager that closes them."""

    def __init__(self) -> None:
        self._known: Dict[int, int] = {}

    def __enter__(self) -> Pidfds:
        return self

    def __exit__(self, *_error: object) -> None:
        for descriptor in self._known.values():
            os.close(descriptor)
        self._known.clear()

    def duplicate(self, pid: int, fd: int) -> int:
        """Return a new descriptor of ours for the same open file. Raises OSError."""
        if pid not in self._known:
            self._known[pid] = _call(_PIDFD_OPEN, pid, 0)
        return _call(_PIDFD_GETFD, self._known[pid], fd, 0)


def fill(pidfds: Pidfds, pid: int, fd: int) -> Optional[Dict[str, Any]]:
    """Return the fill level of the pipe behind a descriptor; None when it cannot be read.

    - ``bytes``: bytes in the pipe
    - ``capacity``: its size in bytes
    - ``alone``: whether no process at all has the other side open (POLLHUP for a reader, POLLERR for a writer)
    """
    try:
        duplicate = pidfds.duplicate(pid, fd)
    except OSError:
        return None
    try:
        count = array.array("i", [0])
        fcntl.ioctl(duplicate, termios.FIONREAD, count)
        capacity = fcntl.fcntl(duplicate, _F_GETPIPE_SZ)
        poll = select.poll()
        poll.register(duplicate, 0)
        alone = any(events & (select.POLLHUP | select.POLLERR) for _fd, events in poll.poll(0))
    except OSError:
        return None
    finally:
        os.close(duplicate)
    return {"bytes": count[0], "capacity": capacity, "alone": alone}


def timeouts(pidfds: Pidfds, pid: int, fd: int) -> Optional[List[float]]:
    """Return the timeouts in seconds of a socket's blocking receive and send; 0: none.

    None when they cannot be read.
    """
    try:
        duplicate = pidfds.duplicate(pid, fd)
    except OSError:
        return None
    try:
        asked = socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        return None
    with asked:
        try:
            told = [
                asked.getsockopt(socket.SOL_SOCKET, option, _TIMEVAL.size)
                for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
            ]
            return [seconds + micro / 1e6 for seconds, micro in map(_TIMEVAL.unpack, told)]
        except (OSError, struct.error):
            return None


def _call(number: int, *arguments: int) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *map(ctypes.c_int, arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
