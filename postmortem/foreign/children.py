"""Children that do what may block for ever or crash: asked and answered over a socket, with a deadline.

A file system in user space may keep a reader in a system call that no signal ends; a damaged library may crash a parser.
So the parent only ever waits for the socket. A child that is late is killed and *abandoned*: nobody waits for its end. A
child closes every descriptor that it was not given, the standard streams too: one that is stuck keeps nobody's pipe open.

A message is a frame of JSON and any number of frames of bytes; an empty frame ends it. Descriptors travel with the
JSON (unix(7), SCM_RIGHTS).
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import socket
import struct
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    MutableMapping,
    NamedTuple,
    NoReturn,
    Optional,
    Set,
    Tuple,
)

_LENGTH = struct.Struct("<I")
#: Bytes of one frame.
_MOST_FRAME = 64 << 20
_PIECE = 1 << 20
_PR_SET_PDEATHSIG = 1
#: What a child of ours is given to end by itself once nobody asks any more.
_PATIENCE_S = 0.2


class Lost(OSError):
    """A child that gave no answer: late, ended by a signal, or gone. ``signal``: its number where that is known."""

    def __init__(self, reason: str, number: Optional[int] = None) -> None:
        super().__init__(errno.ETIMEDOUT if number is None else errno.EIO, reason)
        self.signal = number


class Answer(NamedTuple):
    """``value``: of JSON; ``data``: the frames of bytes after it; ``descriptor``: one that came along, or None."""

    value: Any
    data: bytes = b""
    descriptor: Optional[int] = None


#: Serves one request in the child. Pieces of bytes and a descriptor may come with the value.
Serve = Callable[[Any], Tuple[Any, Iterable[bytes], Optional[int]]]


class Child:
    """One child and the socket to it. ``serve`` runs in the child, once a request; an OSError that it raises is raised
    again by ``ask``. ``prepare`` runs there first: what it raises ends the child. ``keep``: descriptors that stay open there;
    None: all of them. ``helpers``: where the caller keeps the children that it collects itself (pid → status); None: collected
    here. Raises OSError when no child can be made."""

    def __init__(
        self,
        serve: Serve,
        *,
        prepare: Callable[[], object] = lambda: None,
        keep: Optional[Iterable[int]] = (),
        helpers: Optional[MutableMapping[int, Optional[int]]] = None,
    ) -> None:
        self._helpers = helpers
        _collect_left()
        self._socket, theirs = socket.socketpair()
        try:
            self.pid = os.fork()
        except OSError:
            self._socket.close()
            theirs.close()
            raise
        if self.pid == 0:
            _be_the_child(theirs, self._socket, serve, prepare, keep)
        theirs.close()
        if helpers is not None:
            helpers[self.pid] = None
        self._lost = False

    def ask(self, request: Any, until: float, sink: Optional[Callable[[bytes], object]] = None) -> Answer:
        """Return the child's answer, which must be whole at ``until`` (time.monotonic()). ``sink`` takes the bytes piece by
        piece, instead of the answer. Raises Lost when there is none, and from then on; OSError as the child met it."""
        if self._lost:
            raise Lost("its reader was given up")
        received: List[int] = []
        try:
            self._send(json.dumps(request).encode("ascii"), until)
            value = json.loads(self._frame(until, received))
            kept: List[bytes] = []
            for piece in self._pieces(until):
                (sink or kept.append)(piece)
        except (_Late, ValueError, EOFError, ConnectionError, BrokenPipeError) as exc:
            for descriptor in received:
                os.close(descriptor)
            lost = self._how_lost(exc)  # before it is collected
            self.abandon()
            raise lost from None
        if isinstance(value, dict) and "errno" in value:
            raise OSError(int(value["errno"]), str(value["strerror"]), str(value.get("filename") or ""))
        return Answer(value, b"".join(kept), received[0] if received else None)

    def _pieces(self, until: float) -> Iterator[bytes]:
        return iter(lambda: self._frame(until, []), b"")

    def _send(self, data: bytes, until: float) -> None:
        view = memoryview(_LENGTH.pack(len(data)) + data)
        while view:
            self._wait(select.POLLOUT, until)
            view = view[self._socket.send(view, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]

    def _frame(self, until: float, received: List[int]) -> bytes:
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size, until, received))
        if size > _MOST_FRAME:
            raise ValueError("a frame longer than any")
        return self._exactly(size, until, received)

    def _exactly(self, size: int, until: float, received: List[int]) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait(select.POLLIN, until)
            data, control, _flags, _from = self._socket.recvmsg(
                min(size - len(found), _PIECE), socket.CMSG_SPACE(4), socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
            )
            received.extend(_descriptors(control))
            if not data:
                raise EOFError
            found += data
        return bytes(found)

    def _wait(self, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise _Late

    def _how_lost(self, exc: Exception) -> Lost:
        if isinstance(exc, _Late):
            return Lost("did not answer in time")
        number = self._signal()
        if number is None:
            return Lost("its reader ended without an answer")
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        return Lost(f"its reader was ended by {name}", number)

    def _signal(self) -> Optional[int]:
        """The signal that has ended the child, when it is collected here."""
        if self._helpers is not None:
            return None
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                return None
            if ended:
                self.pid = -1
                return os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            if time.monotonic() > until:
                return None
            time.sleep(0.002)

    def abandon(self) -> None:
        """Kill the child without waiting for its end; it is collected where it has come to it already."""
        self._lost = True
        self._socket.close()
        if self._helpers is not None:
            if self._helpers.get(self.pid, 0) is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.pid, signal.SIGKILL)
        elif self.pid > 0:
            _kill_and_collect(self.pid)

    def close(self) -> None:
        """End the child: it ends by itself once its socket is closed, and is killed when it is in the middle of something."""
        if not self._lost:
            self.abandon()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Late(Exception):
    pass


def _kill_and_collect(pid: int) -> None:
    """A child that nobody has waited for keeps its number, so that the signal meets no other process."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    _left.add(pid)
    until = time.monotonic() + _PATIENCE_S
    while not _collected(pid) and time.monotonic() < until:
        time.sleep(0.001)
    _collect_left()


#: Children that have been killed and had not come to their end when they were last looked at.
_left: Set[int] = set()


def _collected(pid: int) -> bool:
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == 0:
            return False
    except ChildProcessError:
        pass
    _left.discard(pid)
    return True


def _collect_left() -> None:
    for pid in list(_left):
        _collected(pid)


def _descriptors(control: List[Tuple[int, int, bytes]]) -> List[int]:
    found = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)


# ---------------------------------------------------------------------- in the child


def _be_the_child(
    own: socket.socket,
    other: socket.socket,
    serve: Serve,
    prepare: Callable[[], object],
    keep: Optional[Iterable[int]],
) -> NoReturn:
    try:
        other.close()
        _leave_everything(own.fileno(), keep)
        prepare()
        while True:
            _serve_one(own, serve)
    finally:  # whatever it was: the parent learns of it by the end of the socket
        os._exit(1)


def _leave_everything(socket_descriptor: int, keep: Optional[Iterable[int]]) -> None:
    """Signals as they come by default, none of the parent's streams, an end together with the parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # Ctrl-C is for the command and the parent
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("1000")  # should memory run out, this process is the one to go
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream_descriptor in (0, 1, 2):
        os.dup2(nothing, stream_descriptor)
    if nothing > 2:
        os.close(nothing)
    if keep is not None:
        _close_all_but(sorted({0, 1, 2, socket_descriptor, *keep}))


def _close_all_but(kept: List[int]) -> None:
    limit = os.sysconf("SC_OPEN_MAX")
    with contextlib.suppress(OSError):
        limit = max(int(name) for name in os.listdir("/proc/self/fd")) + 1  # noqa: PTH208
    for before, after in zip(kept, [*kept[1:], limit]):
        os.closerange(before + 1, after)


def _serve_one(own: socket.socket, serve: Serve) -> None:
    (size,) = _LENGTH.unpack(_receive(own, _LENGTH.size))
    request = json.loads(_receive(own, size))
    pieces: Iterable[bytes] = ()
    descriptor = None
    try:
        value, pieces, descriptor = serve(request)
    except OSError as exc:
        value = {"errno": exc.errno or errno.EIO, "strerror": exc.strerror or str(exc), "filename": exc.filename}
        if isinstance(value["filename"], bytes):
            value["filename"] = os.fsdecode(value["filename"])
    _answer(own, json.dumps(value).encode("ascii"), descriptor)
    if descriptor is not None:
        os.close(descriptor)
    for piece in pieces:
        if piece:
            own.sendall(_LENGTH.pack(len(piece)))
            own.sendall(piece)
    own.sendall(_LENGTH.pack(0))


def _answer(own: socket.socket, head: bytes, descriptor: Optional[int]) -> None:
    own.sendall(_LENGTH.pack(len(head)))
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


Helpers = Dict[int, Optional[int]]
