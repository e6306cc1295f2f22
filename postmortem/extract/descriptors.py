"""What a descriptor is: from ``process.json`` and ``net.json`` of the capture. A core alone cannot say."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ..evidence import Resource

_INODE = re.compile(r"^(socket|pipe):\[(\d+)\]$")


class Descriptor(NamedTuple):
    kind: str  # "socket" | "pipe" | "file" | "terminal" | "eventfd" | "epoll" | "other"
    target: str  # as /proc/PID/fd shows it
    local: Optional[str] = None
    remote: Optional[str] = None
    proto: Optional[str] = None
    listening: Optional[bool] = None
    accepted: Optional[bool] = None  # its local port is one that this tree listens on
    peer_in_tree: Optional[bool] = None


class Descriptors:
    """Descriptors of one process. ``net`` is the tree's ``net.json`` (or {})."""

    def __init__(self, fds: Dict[str, Any], net: Dict[str, Any]) -> None:
        self._fds = fds
        sockets = net.get("sockets")
        self._sockets: Dict[str, Any] = sockets if isinstance(sockets, dict) else {}
        ports = net.get("listening_ports")
        self._listening: Optional[Set[int]] = set(ports) if isinstance(ports, list) else None

    @property
    def listening(self) -> Optional[Tuple[int, ...]]:
        """TCP ports that the tree listens on."""
        return None if self._listening is None else tuple(sorted(self._listening))

    def get(self, fd: int) -> Optional[Descriptor]:
        target = self._fds.get(str(fd))
        if not isinstance(target, str):
            return None
        match = _INODE.match(target)
        if match and match[1] == "socket":
            return self._socket(target, self._sockets.get(match[2]))
        if match:
            return Descriptor("pipe", target)
        if target.startswith("anon_inode:"):
            name = target[11:].strip("[]")
            return Descriptor({"eventfd": "eventfd", "eventpoll": "epoll"}.get(name, "other"), target)
        if target.startswith(("/dev/pts/", "/dev/tty")):
            return Descriptor("terminal", target)
        return Descriptor("file" if target.startswith("/") else "other", target)

    def _socket(self, target: str, row: Any) -> Descriptor:
        if not isinstance(row, dict):
            return Descriptor("socket", target)
        local, remote = row.get("local"), row.get("remote")
        proto = str(row.get("proto") or "")
        state = row.get("state")
        remote = None if isinstance(remote, str) and remote.endswith(":0") else remote  # of a socket that only listens
        listening = state == "LISTEN" if isinstance(state, str) else None
        port = _port(local)
        accepted = port in self._listening if self._listening is not None and proto.startswith("tcp") and port else None
        peer = None
        if proto.startswith("tcp") and isinstance(local, str) and isinstance(remote, str):
            peer = any(
                isinstance(other, dict) and other.get("local") == remote and other.get("remote") == local
                for other in self._sockets.values()
            )
        return Descriptor(
            "socket", target, str(local) if local else None, str(remote) if remote else None, proto or None, listening,
            accepted, peer,
        )  # fmt: skip


class DescriptorBook:
    """The sockets and pipes that threads of one process wait for, as resources."""

    def __init__(self, descriptors: Optional[Descriptors]) -> None:
        self._descriptors = descriptors
        self._waiters: Dict[int, List[int]] = {}
        self._ids: Dict[int, str] = {}

    def note(self, fd: int, tid: Optional[int] = None) -> Optional[str]:
        """A thread (or, without tid, a task) waits for a descriptor: the id of its resource, None for what is neither
        socket nor pipe."""
        what = self._descriptors.get(fd) if self._descriptors else None
        if what is None or what.kind not in ("socket", "pipe"):
            return None
        self._ids.setdefault(fd, f"{what.kind}-{len(self._ids) + 1}")
        waiters = self._waiters.setdefault(fd, [])
        if tid is not None and tid not in waiters:
            waiters.append(tid)
        return self._ids[fd]

    def resources(self) -> Tuple[Resource, ...]:
        return tuple(self._resource(fd, ident) for fd, ident in self._ids.items())

    def _resource(self, fd: int, ident: str) -> Resource:
        what = self._descriptors.get(fd) if self._descriptors else None
        assert what is not None  # noted only when it was there
        ends = " → ".join(end for end in (what.local, what.remote) if end)
        return Resource(
            id=ident, kind=what.kind, description=f"{what.kind} {ends or what.target} (descriptor {fd})",
            waiters=tuple(self._waiters[fd]), local=what.local, remote=what.remote, accepted=what.accepted,
            listening=what.listening, peer_in_tree=what.peer_in_tree,
        )  # fmt: skip


def _port(address: Any) -> Optional[int]:
    if not isinstance(address, str) or ":" not in address:
        return None
    tail = address.rsplit(":", 1)[1]
    return int(tail) if tail.isdigit() else None
