"""Kinds and states of descriptors, from the capture's ``process.json`` and ``net.json``; a core does not contain them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Dict, Literal, NamedTuple, Optional, Set, Tuple

from ..recorded.connections import Connections
from ..recorded.shapes import digits

_INODE = re.compile(r"^(socket|pipe):\[(\d+)\]$")


#: ``process`` is a pidfd.
DescriptorKind = Literal[
    "socket", "pipe", "file", "terminal", "eventfd", "epoll", "timerfd", "signalfd", "inotify", "process", "other"
]
#: Parts of the links in /proc/PID/fd of descriptors that are not files.
_ANONYMOUS: Tuple[Tuple[str, DescriptorKind], ...] = (
    ("eventfd", "eventfd"), ("eventpoll", "epoll"), ("timerfd", "timerfd"), ("signalfd", "signalfd"),
    ("inotify", "inotify"), ("pidfd", "process"),
)  # fmt: skip


class Descriptor(NamedTuple):
    """A descriptor and what it refers to."""

    kind: DescriptorKind
    target: str  # as in /proc/PID/fd
    local: Optional[str] = None
    remote: Optional[str] = None
    proto: Optional[str] = None
    listening: Optional[bool] = None
    accepted: Optional[bool] = None  # its local port is one that this tree listens on
    peer_in_tree: Optional[bool] = None
    key: Optional[str] = None  # equal in all processes that share the object
    name: str = ""  # inode of a pipe or socket, path of a FIFO
    number: Optional[int] = None  # PID of a pidfd, count of an eventfd
    state: Optional[str] = None  # of a socket
    received: Optional[int] = None  # bytes
    unsent: Optional[int] = None
    timeouts: Optional[Tuple[float, float]] = None  # of a socket: seconds limiting a blocking receive and send; 0: none


class Descriptors:
    """The descriptors of one process.

    ``net``: the tree's ``net.json``, or {}.
    """

    def __init__(
        self, fds: Dict[str, Any], net: Dict[str, Any], pid: int = 0, connections: Optional[Connections] = None
    ) -> None:
        self._fds = fds
        self.pid = pid
        self.connections = connections if connections is not None else Connections(net, {})
        sockets = net.get("sockets")
        self._sockets: Dict[str, Any] = sockets if isinstance(sockets, dict) else {}
        pipes = net.get("pipes")
        self._pipes: Dict[str, Any] = pipes if isinstance(pipes, dict) else {}
        ports = net.get("listening_ports")
        self._listening: Optional[Set[int]] = set(ports) if isinstance(ports, list) else None

    @cached_property
    def listening(self) -> Optional[Tuple[int, ...]]:
        """Return the TCP ports that the process has listening sockets for, inherited ones included; None if unknown."""
        if self._listening is None or not self._fds:
            return None
        sockets = (
            match[2] for match in map(_INODE.match, map(str, self._fds.values())) if match and match[1] == "socket"
        )
        rows = (row for row in map(self._sockets.get, sockets) if isinstance(row, dict))
        ports = {_port(row.get("local")) for row in rows if row.get("state") == "LISTEN"}
        return tuple(sorted(port for port in ports if port is not None and port in self._listening))

    @property
    def files(self) -> Tuple[str, ...]:
        """Return the paths of open files."""
        paths = (target for target in self._fds.values() if isinstance(target, str) and target.startswith("/"))
        return tuple(dict.fromkeys(paths))

    def get(self, fd: int) -> Optional[Descriptor]:
        """Return a descriptor; None if unknown."""
        target = self._fds.get(str(fd))
        if not isinstance(target, str):
            return None
        match = _INODE.match(target)
        if match and match[1] == "socket":
            return self._socket(target, self._sockets.get(match[2]))._replace(
                key=f"socket:[{match[2]}]", name=match[2], timeouts=self.connections.timeouts(match[2])
            )
        if match:
            return Descriptor("pipe", target, key=target, name=match[2])
        if target in self._pipes:
            return Descriptor("pipe", target, key=f"fifo:{target}", name=target)
        if target.startswith(("anon_inode:", "pidfd:")):
            return self._special(fd, target)
        if target.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
            return Descriptor("terminal", target, key=f"terminal:{target}")
        return Descriptor("file" if target.startswith("/") else "other", target)

    def epoll(self, fd: int) -> Tuple[int, ...]:
        """Return the descriptors that an epoll instance watches."""
        rows = self.connections.special(self.pid, fd).get("watches")
        return tuple(row[0] for row in rows if isinstance(row, list) and row) if isinstance(rows, list) else ()

    @cached_property
    def _routes(self) -> Set[Tuple[str, str]]:
        """Return the (local, remote) addresses of the tree's connected sockets."""
        rows = (row for row in self._sockets.values() if isinstance(row, dict))
        routes = ((row.get("local"), row.get("remote")) for row in rows)
        return {(local, remote) for local, remote in routes if isinstance(local, str) and isinstance(remote, str)}

    def _special(self, fd: int, target: str) -> Descriptor:
        """Return a descriptor that is no file, from its link and fdinfo."""
        told = self.connections.special(self.pid, fd)
        kind: DescriptorKind = next((kind for text, kind in _ANONYMOUS if text in target), "other")
        number = told.get("pid" if kind == "process" else "count")
        ident = told.get("id")
        return Descriptor(
            kind,
            target,
            key=f"eventfd:{ident}" if isinstance(ident, int) else None,
            number=number if isinstance(number, int) else None,
        )

    def _socket(self, target: str, row: Any) -> Descriptor:
        if not isinstance(row, dict):
            return Descriptor("socket", target)
        local, remote = row.get("local"), row.get("remote")
        proto = str(row.get("proto") or "")
        state = row.get("state")
        remote = None if isinstance(remote, str) and remote.endswith(":0") else remote  # a listening socket has no peer
        listening = state == "LISTEN" if isinstance(state, str) else None
        port = _port(local)
        accepted = port in self._listening if self._listening is not None and proto.startswith("tcp") and port else None
        peer = None
        if proto.startswith("tcp") and isinstance(local, str) and isinstance(remote, str):
            peer = (remote, local) in self._routes
        return Descriptor(
            "socket",
            target,
            str(local) if local else None,
            str(remote) if remote else None,
            proto or None,
            listening,
            accepted,
            peer,
            state=state if isinstance(state, str) else None,
            received=_bytes(row.get("rx_queue")),
            unsent=_bytes(row.get("tx_queue")),
        )


def _port(address: Any) -> Optional[int]:
    if not isinstance(address, str) or ":" not in address:
        return None
    tail = address.rsplit(":", 1)[1]
    return digits(tail, 1 << 16)


def _bytes(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
