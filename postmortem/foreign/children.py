"""Children that do what may block for ever or crash, asked and answered over a socket, with a deadline.

A user-space file system may block a reader in a system call that no signal ends; a damaged library may crash a parser.
So the parent waits for nothing but the socket. A late child is killed and *abandoned*, without waiting for its end. A
child closes every descriptor that it was not given, the standard streams too, so that a stuck child keeps no pipe open.

Protocol:
- A request is one frame of JSON.
- An answer is a frame of JSON, ``["value", …]`` or ``["error", errno, strerror, filename]``, and any number of frames
  of bytes; an empty frame ends it.
- One descriptor may be sent with the JSON (unix(7), SCM_RIGHTS).

The child parses hostile data, so its answers are not trusted either: their length is bounded, and a malformed one ends
the child.

A child ends with its parent (prctl(2), PR_SET_PDEATHSIG): to the kernel, that is the *thread* that made it.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import socket
import threading
import time
import weakref
from typing import Any, Callable, Iterable, List, MutableMapping, NamedTuple, Optional, Set, Tuple

from ..signalnames import signal_name
from .serving import LENGTH, PIECE, Serve, be_the_child
from .strictjson import loads

#: Limits in bytes: of an answer's JSON, and of all that follows it unless the caller sets another limit.
_MOST_JSON, _MOST_DATA = 16 << 20, 256 << 20
#: Seconds to wait for the end of a child, to learn what ended it and to reap it.
_PATIENCE_S = 0.2


class Lost(OSError):
    """A child that gave no answer: late, killed, or gone. ``signal``: the number of the signal if known."""

    def __init__(self, reason: str, number: Optional[int] = None) -> None:
        super().__init__(errno.ETIMEDOUT if number is None else errno.EIO, reason)
        self.signal = number


class Answer(NamedTuple):
    """An answer of a child.

    - ``value``: from JSON
    - ``data``: the frames of bytes after it
    - ``descriptor``: the one that was sent with it, or None
    """

    value: Any
    data: bytes = b""
    descriptor: Optional[int] = None


class Child:
    """One child, and the socket to it.

    - ``serve``: runs in the child, once for each request. ``ask`` raises its OSError again, any other exception as an
      OSError that names it
    - ``prepare``: runs in the child first; an exception ends it
    - ``keep``: descriptors that stay open in the child; None: all but the standard streams
    - ``helpers``: the caller's table of children that it reaps itself (pid → status); None: reaped here

    Several threads may ask, one after the other. Raises OSError when no child can be started.
    """

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
        self._asking = threading.Lock()
        self.lost = False
        self._socket, theirs = _pair()
        parent, others = os.getpid(), [self._socket, *(child._socket for child in _CHILDREN)]
        # no handler of the parent runs in the child, or sees the child before it is known as a helper
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.pid = os.fork()
            if self.pid == 0:
                be_the_child(theirs, others, serve, prepare, keep, parent)
            if helpers is not None:
                helpers[self.pid] = None
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _CHILDREN.add(self)

    def ask(
        self,
        request: Any,
        until: float,
        sink: Optional[Callable[[bytes], object]] = None,
        most: int = _MOST_DATA,
    ) -> Answer:
        """Return the child's answer.

        - ``until``: time.monotonic() at which it must be complete
        - ``sink``: called with its bytes piece by piece, which are then not in the answer; an exception ends the child
        - ``most``: maximum of bytes besides its JSON

        Raises Lost when there is no answer, and at every later call; an OSError of the child.
        """
        message = json.dumps(request).encode("ascii")
        if not self._asking.acquire(timeout=max(0.0, until - time.monotonic())):
            raise Lost("another request was not answered in time")
        received: List[int] = []
        try:
            if self.lost:
                raise Lost("its reader was abandoned")
            try:
                self._send(message, until)
                value, failure = _answered(self._frame(until, received, _MOST_JSON))
                data = self._data(until, received, most, sink)
                if len(received) > 1:
                    raise _Nonsense
            except (_Late, _Nonsense, EOFError, ConnectionError) as exc:
                raise self._lose(exc) from None
            except BaseException:  # the sink or a handler failed: the rest in the socket answers no further request
                self.abandon()
                raise
            if failure is not None:
                raise failure
            return Answer(value, data, received.pop() if received else None)
        finally:
            for descriptor in received:
                os.close(descriptor)
            self._asking.release()

    def _data(self, until: float, received: List[int], most: int, sink: Optional[Callable[[bytes], object]]) -> bytes:
        kept: List[bytes] = []
        while True:
            piece = self._frame(until, received, most)
            if not piece:
                return b"".join(kept)
            most -= len(piece)
            (sink or kept.append)(piece)

    def _send(self, data: bytes, until: float) -> None:
        view = memoryview(LENGTH.pack(len(data)) + data)
        while view:
            self._wait(select.POLLOUT, until)
            with contextlib.suppress(BlockingIOError):
                view = view[self._socket.send(view, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]

    def _frame(self, until: float, received: List[int], most: int) -> bytes:
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size, until, received))
        if size > most:
            raise _Nonsense
        return self._exactly(size, until, received)

    def _exactly(self, size: int, until: float, received: List[int]) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait(select.POLLIN, until)
            try:
                # room for one descriptor: the kernel closes any others
                data, control, _flags, _from = self._socket.recvmsg(
                    min(size - len(found), PIECE), socket.CMSG_LEN(4), socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                continue
            received.extend(_descriptors(control))
            if not data:
                raise EOFError
            if len(received) > 1:
                raise _Nonsense
            found += data
        return bytes(found)

    def _wait(self, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise _Late

    def _lose(self, exc: Exception) -> Lost:
        number = self._end(gone=isinstance(exc, (EOFError, ConnectionError)))
        if isinstance(exc, _Late):
            return Lost("did not answer in time")
        if isinstance(exc, _Nonsense):
            return Lost("its reader's answer made no sense")
        if number is None:
            return Lost("its reader ended without an answer")
        name = signal_name(number)
        return Lost(f"its reader was ended by {name}", number)

    def _end(self, gone: bool) -> Optional[int]:
        """Kill the child, and reap it if it ends at once; return the signal that ended it, unless it was ours.

        ``gone``: it has closed its socket, and is first given time to end by itself.
        """
        self.lost = True
        self._socket.close()
        if self._helpers is not None:
            if self._helpers.get(self.pid, 0) is None:
                _kill(self.pid)
            return None
        status = _collect(self.pid, time.monotonic() + (_PATIENCE_S if gone else 0.0))
        if status is None:
            # it was not waited for, so its pid cannot have been reused
            _kill(self.pid)
            if _collect(self.pid, time.monotonic() + _PATIENCE_S) is None:
                _LEFT.add(self.pid)
        return os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None

    def abandon(self) -> None:
        """Kill the child without waiting long for its end. Safe to call more than once."""
        if not self.lost:
            self._end(gone=False)

    close = abandon

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: Children of this process: each further child closes its copies of their sockets, which would stay open otherwise.
_CHILDREN: weakref.WeakSet[Child] = weakref.WeakSet()


#: Pids of children that were killed and had not ended at the last look.
_LEFT: Set[int] = set()


def _collect_left() -> None:
    _LEFT.difference_update([pid for pid in _LEFT if _collect(pid, 0.0) is not None])


class _Late(Exception):
    pass


class _Nonsense(Exception):
    pass


def _pair() -> Tuple[socket.socket, socket.socket]:
    """Return both ends of a socket, neither with the number of a standard stream, which the parent may lack."""
    ends = socket.socketpair()
    try:
        return _lifted(ends[0]), _lifted(ends[1])
    except OSError:
        for end in ends:
            end.close()
        raise


def _lifted(end: socket.socket) -> socket.socket:
    if end.fileno() > 2:
        return end
    lifted = fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    end.close()
    return socket.socket(fileno=lifted)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _collect(pid: int, until: float) -> Optional[int]:
    """Return a child's status, -1 if it was reaped elsewhere; None if it still runs at ``until``."""
    while True:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return -1
        if ended:
            return status
        if time.monotonic() >= until:
            return None
        time.sleep(0.001)


def _answered(head: bytes) -> Tuple[Any, Optional[OSError]]:
    """Return (value, None), or (None, the error in the answer). Raises _Nonsense."""
    try:
        kind, *rest = loads(head)
        if kind == "value":
            (value,) = rest
            return value, None
        number, text, name = rest
    except (ValueError, TypeError):
        raise _Nonsense from None
    known = isinstance(number, int) and isinstance(text, str) and isinstance(name, (str, type(None)))
    if kind != "error" or not known or not 0 < number < 1 << 16:
        raise _Nonsense
    return None, OSError(number, text, name) if name is not None else OSError(number, text)


def _descriptors(control: List[Tuple[int, int, bytes]]) -> List[int]:
    found = array.array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)
