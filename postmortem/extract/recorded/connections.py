"""Relations between the descriptors of a tree, from ``net.json`` and the ``process.json`` of all processes.

Older bundles contain less, and a core nothing of this; answers are then None or empty, and never called complete.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ...evidence import End, Fact, fact
from ...evidence.vocabulary import EndMode
from ...foreign.held import Folder
from . import documents
from .shapes import dictionary as _dict
from .shapes import digits, pid_of

_KEPT = ("ppid", "argv", "exe", "comm", "state", "fds", "terminal", "foreground", "pgid", "start_ticks", "ns_pids")
#: Addresses of sockets that listen on all of a machine's.
_ANY = ("0.0.0.0", "[::]", "::", "*")  # noqa: S104 - read, not bound


class Fill(NamedTuple):
    """A pipe's bytes and capacity before the freeze, and its bytes after it."""

    bytes: Optional[int]
    capacity: Optional[int]
    alone: Optional[bool]  # no process holds the side opposite to ``side``
    side: Optional[str]  # mode of the end that was examined: "r" | "w" | "rw"
    after: Optional[int] = None


class Connections:
    """The capture's notes about what processes share.

    ``facts``: PID → process.json, of the tree.
    """

    def __init__(self, net: Dict[str, Any], facts: Mapping[int, Mapping[str, Any]]) -> None:
        self.net = net
        self._facts = {pid: {key: known.get(key) for key in _KEPT} for pid, known in facts.items() if known}
        self._beyond = _dict(net.get("beyond"))
        self._sockets = self._holders_of_sockets()

    @classmethod
    def read(cls, folder: Folder, facts: Mapping[int, Mapping[str, Any]]) -> Connections:
        """Return the notes of a bundle; whatever is missing or damaged is empty."""
        return cls(documents.read(folder, "raw/proc/net.json", documents.NET), facts)

    # ------------------------------------------------------------------ processes

    def fact(self, pid: int, key: str) -> Any:
        """Return a field of a process's ``process.json``; None if missing."""
        return self._facts.get(pid, {}).get(key)

    def in_tree(self, pid: int) -> bool:
        """Return whether a process belongs to the tree."""
        return pid in self._facts

    def children(self, pid: int) -> Optional[Tuple[int, ...]]:
        """Return a process's children, zombies included; None if the process is unknown."""
        if pid not in self._facts:
            return None
        return tuple(sorted(child for child, known in self._facts.items() if known["ppid"] == pid))

    def child(self, pid: int, named: int) -> int:
        """Return the PID of a child that its parent knows as ``named``.

        The numbers differ if the parent is in a PID namespace (NSpid of /proc/PID/status: outermost first, innermost
        last).
        """
        depth = len(self._numbers(pid)) - 1
        if depth > 0:
            for child in self.children(pid) or ():
                if self._numbers(child)[depth : depth + 1] == [named]:
                    return child
        return named

    def _numbers(self, pid: int) -> List[int]:
        found = self.fact(pid, "ns_pids")
        return [number for number in found if isinstance(number, int)] if isinstance(found, list) else []

    def beyond(self, pid: int) -> Dict[str, Any]:
        """Return the notes about a process that was not captured."""
        return _dict(_dict(self._beyond.get("processes")).get(str(pid)))

    def program(self, pid: int) -> Optional[str]:
        """Return a process's name: the script of an interpreter, else the program."""
        known = self._facts.get(pid)
        if known is None:
            name = self.beyond(pid).get("name")
            return name if isinstance(name, str) else None
        words = [str(word) for word in known["argv"] or () if not str(word).startswith("-")]
        script = next((word for word in words[1:4] if word.endswith(".py")), None)
        name = script or (words[0] if words else known["comm"])
        return str(name).rsplit("/", 1)[-1] if name else None

    def title(self, pid: int) -> Optional[str]:
        """Return what a process outside the tree says of itself, such as ``postgres: ann shop [local] idle``, else its name."""
        title = self.beyond(pid).get("title")
        return title if isinstance(title, str) else self.program(pid)

    def called(self, pid: int) -> str:
        """Return a label such as ``PID 123 (gzip)``."""
        name = self.program(pid)
        return f"PID {pid} ({name})" if name else f"PID {pid}"

    def special(self, pid: int, fd: int) -> Dict[str, Any]:
        """Return the fdinfo of an eventfd, epoll, pidfd or similar."""
        return _dict(_dict(_dict(self.net.get("special")).get(str(pid))).get(str(fd)))

    # ------------------------------------------------------------------ ends

    def emulators(self, number: str) -> Tuple[End, ...]:
        """Return the tree's ends of the pseudo-terminal /dev/pts/NUMBER."""
        found = []
        for pid, table in _dict(self.net.get("special")).items():
            for fd, told in _dict(table).items():
                known = _dict(told)
                owner, descriptor = pid_of(pid), digits(fd, 1 << 31)
                if owner is None or descriptor is None:
                    continue
                if known.get("kind") == "pty" and str(known.get("index")) == number:
                    found.append(End(owner, descriptor, "rw"))
        return tuple(found)

    def ends_of_pipe(self, name: str) -> Tuple[End, ...]:
        """Return the known ends of a pipe.

        ``name``: its inode, or a FIFO's path.
        """
        rows = _dict(self.net.get("pipes")).get(name)
        target = name if name.startswith("/") else f"pipe:[{name}]"
        return (*_ends(rows, True), *self.ends_beyond(target))

    def ends_of_socket(self, inode: str) -> Tuple[End, ...]:
        """Return the known ends of a socket."""
        return (*self._sockets.get(inode, ()), *self.ends_beyond(f"socket:[{inode}]"))

    def peer_of_socket(self, inode: str) -> Optional[str]:
        """Return the inode of the other end; None if it is not on this machine or unknown."""
        peer = _dict(_dict(self.net.get("sockets")).get(inode)).get("peer")
        return str(peer) if isinstance(peer, int) and peer > 0 else None

    def listener_of(self, inode: str) -> Optional[str]:
        """Return the listening socket of this machine in whose queue a connection is that was not accepted; None if none.

        Its other end belongs to nobody yet: no socket has the addresses of the connection the other way round.
        """
        sockets = _dict(self.net.get("sockets"))
        row = _dict(sockets.get(inode))
        host, _colon, port = str(row.get("remote") or "").rpartition(":")
        if row.get("state") != "ESTABLISHED" or "peer" in row or not port:
            return None
        for other, known in sockets.items():
            listener = _dict(known)
            local, _colon, at = str(listener.get("local") or "").rpartition(":")
            if (
                listener.get("state") == "LISTEN"
                and at == port
                and local in (host, *_ANY)
                and _int(listener.get("rx_queue"))
            ):
                return str(other)
        return None

    def timeouts(self, inode: str) -> Optional[Tuple[float, float]]:
        """Return the timeouts of a socket in seconds (receive, send), 0: none; None if unknown."""
        row = _dict(self.net.get("timeouts")).get(inode)
        if not isinstance(row, list) or len(row) != 2 or not all(isinstance(one, (int, float)) for one in row):
            return None
        return float(row[0]), float(row[1])

    def fill(self, name: str) -> Optional[Fill]:
        """Return the fill of a pipe; None if unknown."""
        known = _dict(_dict(self.net.get("fill")).get(name))
        if not known:
            return None
        after = _dict(_dict(self.net.get("fill_after")).get(name))
        return Fill(
            _int(known.get("bytes")),
            _int(known.get("capacity")),
            _bool(known.get("alone")),
            known.get("side"),
            _int(after.get("bytes")),
        )

    def all_holders(self, targets: Iterable[str], ends: Iterable[End]) -> Tuple[bool, Fact]:
        """Return whether ``ends`` are all holders of these files, with the fact that shows it or what is missing.

        A file that no process outside the tree holds was made within the tree; only its processes and their descendants
        can have inherited it.
        """
        if "known" not in self.net or not self._beyond:
            return False, fact("holders-unrecorded")
        known = set(self.net["known"]) if isinstance(self.net["known"], list) else set()
        hidden = [p for p, f in self._facts.items() if p not in known and str(f["state"])[:1] not in ("Z", "X")]
        if hidden:
            return False, fact("descriptors-unread", process=self.called(hidden[0]))
        if self.net.get("in_flight"):
            return False, fact("descriptors-in-flight")
        if self._beyond.get("not_looked_at"):
            return False, fact("machine-unsearched")
        unread = _dict(self._beyond.get("unread"))
        if unread.get("younger"):
            return False, fact("younger-processes")
        inherited = self.net.get("inherited")
        shared = any(not end.in_tree for end in ends) or bool(set(inherited or ()) & set(targets))
        strangers = unread.get("older") or unread.get("unrelated")
        if shared and (strangers or not self._beyond.get("all_visible")):
            return False, fact("given-by-others")
        count = len(known) + (_int(self._beyond.get("looked_at")) or 0)
        return True, fact("all-searched", count=count)

    def ends_beyond(self, target: str) -> Tuple[End, ...]:
        """Return the ends of a file held by processes outside the tree.

        ``target``: its path, or the text of the link to it.
        """
        return _ends(_dict(self._beyond.get("ends")).get(target), False, self)

    def _holders_of_sockets(self) -> Dict[str, List[End]]:
        found: Dict[str, List[End]] = {}
        for pid, known in self._facts.items():
            for fd, target in _dict(known["fds"]).items():
                descriptor = digits(fd, 1 << 31)
                if descriptor is not None and isinstance(target, str) and target.startswith("socket:["):
                    found.setdefault(target[8:-1], []).append(End(pid, descriptor, "rw"))
        return found


def _ends(rows: Any, in_tree: bool, names: Optional[Connections] = None) -> Tuple[End, ...]:
    found = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 3 and isinstance(row[0], int) and isinstance(row[1], int):
            mode: EndMode = "r" if row[2] == "r" else "w" if row[2] == "w" else "rw"
            found.append(End(row[0], row[1], mode, in_tree, names.title(row[0]) if names else None))
    return tuple(found)


def _int(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _bool(value: Any) -> Optional[bool]:
    return value if isinstance(value, bool) else None
