"""What a child does that handles foreign files for its parent: it drops all that it inherited, then serves requests.

`children` has the parent's side, and the format of requests and answers.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import gc
import json
import os
import signal
import socket
import struct
from typing import Any, Callable, Iterable, List, NoReturn, Optional, Tuple

LENGTH = struct.Struct("<I")
#: Bytes of one frame of data at most.
PIECE = 1 << 20
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_LIBC = ctypes.CDLL(None, use_errno=True)  # before any fork, when another thread may hold the loader's lock

#: Serves one request in the child: request → (value, pieces of bytes, a descriptor or None).
Serve = Callable[[Any], Tuple[Any, Iterable[bytes], Optional[int]]]


def be_the_child(
    own: socket.socket,
    others: List[socket.socket],
    serve: Serve,
    prepare: Callable[[], object],
    keep: Optional[Iterable[int]],
    parent: int,
) -> NoReturn:
    """Serve requests on ``own``, and never return.

    - ``others``: sockets of the parent, to be closed
    - for the other parameters see children.Child
    """
    try:
        for other in others:
            other.close()
        _leave_everything(own.fileno(), keep)
        prepare()
        _end_with(parent)  # after prepare: the kernel clears it when the file system ids change (prctl(2))
        while True:
            _serve_one(own, serve)
    finally:  # in any case the parent sees the end of the socket
        os._exit(1)


def _leave_everything(socket_descriptor: int, keep: Optional[Iterable[int]]) -> None:
    """Restore default signal handling; drop the parent's streams and finalizers."""
    gc.freeze()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # Ctrl-C is for the command and the parent
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("1000")  # when memory runs out, kill this process first
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # no core of its own, and no tracer
    kept = {*keep} if keep is not None else set()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream_descriptor in {0, 1, 2} - kept:
        os.dup2(nothing, stream_descriptor)
    if nothing > 2:
        os.close(nothing)
    if keep is not None:
        _close_all_but(sorted({0, 1, 2, socket_descriptor, *kept}))


def _end_with(parent: int) -> None:
    """End when the parent ends, or has ended already."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() not in (parent, 0):  # 0: the parent is in another pid namespace
        os._exit(0)


def _close_all_but(kept: List[int]) -> None:
    limit = os.sysconf("SC_OPEN_MAX")
    with contextlib.suppress(OSError):
        limit = max(int(name) for name in os.listdir("/proc/self/fd")) + 1  # noqa: PTH208
    for before, after in zip(kept, [*kept[1:], limit]):
        os.closerange(before + 1, after)


def _serve_one(own: socket.socket, serve: Serve) -> None:
    (size,) = LENGTH.unpack(_receive(own, LENGTH.size))
    request = json.loads(_receive(own, size))
    pieces: Iterable[bytes] = ()
    descriptor = None
    try:
        value, pieces, descriptor = serve(request)
        head = json.dumps(["value", value], allow_nan=False)
    except OSError as exc:
        name = os.fsdecode(exc.filename) if isinstance(exc.filename, (str, bytes)) else None
        head = json.dumps(["error", exc.errno or errno.EIO, exc.strerror or str(exc), name])
    except Exception as exc:  # such as a name that no system call accepts: the next request may succeed
        head = json.dumps(["error", errno.EIO, f"{type(exc).__name__}: {exc}"[:1000], None])
    _answer(own, head.encode("ascii"), descriptor)
    if descriptor is not None:
        os.close(descriptor)
    for piece in pieces:
        for at in range(0, len(piece), PIECE):
            part = piece[at : at + PIECE]
            own.sendall(LENGTH.pack(len(part)) + part)
    own.sendall(LENGTH.pack(0))


def _answer(own: socket.socket, head: bytes, descriptor: Optional[int]) -> None:
    own.sendall(LENGTH.pack(len(head)))
    if descriptor is None:
        own.sendall(head)
        return
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    sent = own.sendmsg([head], control)
    own.sendall(head[sent:])


def _receive(own: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = own.recv(size - len(found))
        if not data:
            os._exit(0)
        found += data
    return found
