"""Resources behind descriptors, children and file locks that a process waits for.

A resource states the holders of the other end, how full it is, and whether nothing else can end the wait.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple

from ...evidence import Because, End, Resource, Wait, Waker, fact
from ...evidence import replace as changed
from ...memory import Memory
from ..recorded.connections import Connections
from .descriptors import Descriptor, DescriptorKind, Descriptors
from .filelocks import file_lock, polled_file
from .threadwaits import SystemCall, polled

#: Kinds of things that become ready; files are left out, since they always are.
EndpointKind = Literal[
    "socket", "pipe", "eventfd", "terminal", "process", "timerfd", "signalfd", "inotify", "descriptors", "file-lock"
]
WAITED_FOR: Dict[DescriptorKind, EndpointKind] = {
    "socket": "socket", "pipe": "pipe", "eventfd": "eventfd", "terminal": "terminal", "process": "process", "timerfd": "timerfd",
    "signalfd": "signalfd", "inotify": "inotify",
}  # fmt: skip
_STANDARD = {0: "stdin", 1: "stdout", 2: "stderr"}
_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
_NAMED_ENDS = 3
_MOST_TOGETHER = 256


class LockFile(str):
    """The path of a file that is a lock as long as it exists."""

    __slots__ = ()


class _Side(NamedTuple):
    """The other side of a pipe or socket."""

    ends: Tuple[End, ...]  # all known ends, of both sides
    wakers: Tuple[Waker, ...]
    closed: Optional[bool]
    because: Tuple[Because, ...]

    def added_to(self, resource: Resource) -> Resource:
        """Return a resource with this other side."""
        return changed(resource, ends=self.ends, wakers=self.wakers, closed=self.closed, because=self.because)


class DescriptorBook:
    """A collector of waits for descriptors.

    Ids are unique in the process and count from 1 for each kind, in the order noted.
    """

    def __init__(self, descriptors: Optional[Descriptors]) -> None:
        self._descriptors = descriptors
        self._known = descriptors.connections if descriptors else Connections({}, {})
        self._pid = descriptors.pid if descriptors else 0
        self._ids: Dict[Tuple[EndpointKind, object], str] = {}  # (kind, noted value) → id
        self._kinds: Dict[str, EndpointKind] = {}  # by id
        self._counts: Counter[EndpointKind] = Counter()
        self._waiters: Dict[str, List[int]] = {}
        self._parts: Dict[str, Tuple[str, ...]] = {}  # id of a wait for several → ids of its parts

    def note(self, fd: int, tid: Optional[int] = None) -> Optional[str]:
        """Note a wait for a descriptor and return its resource's id; None if it is always ready or unknown.

        ``tid`` is None if a task or loop waits.
        """
        what = self._descriptors.get(fd) if self._descriptors else None
        kind = WAITED_FOR.get(what.kind) if what is not None else None
        return self._note(kind, fd, tid) if kind is not None else None

    def sockets(self, resources: Sequence[str]) -> Tuple[str, ...]:
        """Return the resources that are sockets, in the given order."""
        return tuple(ident for ident in resources if self._kinds.get(ident) == "socket")

    def awaited(self, wait: Wait, call: SystemCall, memory: Memory, tid: int) -> Optional[str]:
        """Return the id of the resource that a system call waits for; None if it has none or is unknown."""
        if wait.kind == "process":
            return self.note_child(wait.pid, tid)
        if wait.fd is not None and call.name in ("flock", "fcntl"):
            return self.note_lock(wait.fd, tid)
        if wait.fd is not None:
            return self.note(wait.fd, tid)
        if call.name.startswith("epoll"):
            return self.note_several(
                self._descriptors.epoll(call.args[0] & 0xFFFFFFFF) if self._descriptors else (), tid
            )
        return self.note_several(polled(call, memory), tid)

    def note_several(self, fds: Sequence[int], tid: int) -> Optional[str]:
        """Note a wait until one of several descriptors is ready; None if not all are known."""
        kept = tuple(dict.fromkeys(fds))
        if len(kept) == 1:
            return self.note(kept[0], tid)
        parts = [part for part in map(self.note, kept[:_MOST_TOGETHER]) if part is not None]
        if not parts or len(parts) < len(kept):
            return None
        ident = self._note("descriptors", kept, tid)
        self._parts[ident] = tuple(parts)
        return ident

    def note_lock(self, fd: int, tid: int) -> Optional[str]:
        """Note a wait for a lock on a descriptor's file; None if the descriptor is unknown."""
        return self._note("file-lock", fd, tid) if self._descriptors and self._descriptors.get(fd) else None

    def note_polled_lock(self, paths: Sequence[str], sqlite: bool, tid: int) -> Optional[str]:
        """Note a thread that polls for the lock on one of these files; None if none is locked.

        Without paths, all files that the process has open are considered.
        """
        opened = tuple(self._descriptors.files) if self._descriptors and not paths else ()
        path = polled_file(self._known, self._pid, paths or opened, sqlite)
        return self._note("file-lock", path, tid) if path is not None else None

    def note_lock_file(self, path: str, tid: int) -> str:
        """Note a thread that polls until a file is gone, whose existence is the lock."""
        return self._note("file-lock", LockFile(path), tid)

    def note_child(self, child: Optional[int], tid: int) -> Optional[str]:
        """Note a wait for a child's end (None: any child); None if no children are known."""
        children = self._known.children(self._pid)
        child = self._known.child(self._pid, child) if child else child
        return self._note("process", (child,), tid) if children or (children is not None and child) else None

    def resources(self) -> Tuple[Resource, ...]:
        """Return all noted resources."""
        whole = {part: ident for ident, parts in self._parts.items() for part in parts}
        made = {
            ident: changed(self._resource(kind, what, ident), part_of=whole.get(ident))
            for (kind, what), ident in self._ids.items()
            if ident not in self._parts
        }
        for ident, parts in self._parts.items():
            made[ident] = _together(ident, [made[part] for part in parts], tuple(self._waiters[ident]))
        return tuple(made.values())

    # ------------------------------------------------------------------ one resource

    def _note(self, kind: EndpointKind, what: object, tid: Optional[int]) -> str:
        if (kind, what) not in self._ids:
            self._counts[kind] += 1
            self._ids[kind, what] = f"{kind}-{self._counts[kind]}"
            self._kinds[self._ids[kind, what]] = kind
        ident = self._ids[kind, what]
        waiters = self._waiters.setdefault(ident, [])
        if tid is not None and tid not in waiters:
            waiters.append(tid)
        return ident

    def _resource(self, kind: EndpointKind, noted: object, ident: str) -> Resource:
        waiters = tuple(self._waiters[ident])
        if isinstance(noted, tuple):
            return self._children(ident, noted[0], waiters)
        if isinstance(noted, LockFile):
            return Resource(id=ident, kind="file-lock", description=f"lock file {noted}", waiters=waiters)
        if isinstance(noted, str):
            return file_lock(self._known, self._pid, noted, ident, waiters, polled=True)
        fd = noted if isinstance(noted, int) else -1
        what = self._descriptors.get(fd) if self._descriptors else None
        assert what is not None  # only known descriptors are noted
        if kind == "file-lock":
            return file_lock(self._known, self._pid, what.target, ident, waiters)
        if kind == "process":
            return changed(
                self._children(ident, what.number, waiters), description=f"pidfd of {self._called(what.number)}"
            )
        plain = Resource(id=ident, kind=kind, description="", waiters=waiters)
        if kind == "pipe":
            return self._pipe(plain, fd, what)
        if kind == "socket":
            return self._socket(plain, fd, what)
        return self._other(plain, fd, what)

    def _pipe(self, plain: Resource, fd: int, what: Descriptor) -> Resource:
        ends = self._known.ends_of_pipe(what.name)
        mode = next((end.mode for end in ends if (end.pid, end.fd) == (self._pid, fd)), None)
        others = tuple(e for e in ends if mode is not None and (e.mode == "rw" or e.mode != mode))
        side = self._side(what.target, ends, others, mode)
        fill = self._known.fill(what.name)
        if fill is not None and fill.after is not None and fill.after != fill.bytes:
            moves = fact("pipe-moves", before=fill.bytes, after=fill.after)
            side = side._replace(because=(*side.because, moves))
        return changed(
            side.added_to(plain),
            description=f"{self._named(fd, 'pipe', mode, others)} (descriptor {fd})",
            key=what.key,
            value=fill.bytes if fill else None,
            limit=fill.capacity if fill else None,
            state=self._writers(mode, others),
        )

    def _socket(self, plain: Resource, fd: int, what: Descriptor) -> Resource:
        peer = self._known.peer_of_socket(what.name)
        listener = self._known.listener_of(what.name) if peer is None else None
        other = peer or listener
        mine, theirs = self._known.ends_of_socket(what.name), self._known.ends_of_socket(other) if other else ()
        where = " → ".join(end for end in (what.local, what.remote) if end)
        description = f"socket {where or what.target}"
        side = _Side(mine + theirs, (), None, ())
        if other is not None:
            side = self._side(f"socket:[{other}]", mine + theirs, theirs, None)
            if theirs:
                description = self._named(fd, f"socket {where}".rstrip(), None, theirs)
                if listener is not None:  # that it would accept it is not read: it may listen and never do so
                    description, side = f"{description}, which has not accepted it", side._replace(closed=None)
        return changed(
            side.added_to(plain),
            description=f"{description} (descriptor {fd})",
            key=what.key,
            local=what.local,
            remote=what.remote,
            accepted=what.accepted,
            listening=what.listening,
            peer_in_tree=any(end.in_tree for end in theirs) if theirs else what.peer_in_tree,
            state=what.state,
            received=what.received,
            unsent=what.unsent,
        )

    def _other(self, plain: Resource, fd: int, what: Descriptor) -> Resource:
        name = f"{_STANDARD[fd]}, " if fd in _STANDARD else ""
        if what.kind == "terminal":
            state = self._on_terminal(what.target)
            more = {"foreground": ", which it has in the foreground", "background": ", in whose background it is"}
            text = f"{name}the terminal {what.target}{more.get(state or '', '')} (descriptor {fd})"
            others = (
                self._known.emulators(what.target.rpartition("/")[2]) if what.target.startswith("/dev/pts/") else ()
            )
            wakers = tuple(Waker("end", "kernel", pid=end.pid, name=f"descriptor {end.fd}") for end in others)
            because = tuple(fact("other-end", process=self._known.called(e.pid), fd=e.fd) for e in others)
            ends = (End(self._pid, fd, "rw"), *others)
            return changed(
                plain, description=text, key=what.key, state=state, ends=ends, wakers=wakers, because=because
            )
        return changed(plain, description=f"{name}{what.kind} (descriptor {fd})", key=what.key, value=what.number)

    def _on_terminal(self, target: str) -> Optional[str]:
        """Return a terminal's relation to the process; None if unknown.

        - "foreground", "background": the process's group on its controlling terminal
        - "foreign": not its controlling terminal
        """
        device, group = self._known.fact(self._pid, "terminal"), self._known.fact(self._pid, "pgid")
        front = self._known.fact(self._pid, "foreground")
        if not isinstance(device, int) or not isinstance(front, int):
            return None
        # proc_pid_stat(5): minor number in bits 31-20 and 7-0, major in 15-8; /dev/pts/N has major 136 + N/256 (or 136)
        major, minor = device >> 8 & 0xFF, (device >> 20 & 0xFFF) << 8 | device & 0xFF
        number = target.rpartition("/")[2]
        if device == 0 or (target.startswith("/dev/pts/") and number != str(minor + (major - 136 << 8))):
            return "foreign"
        return "foreground" if group == front else "background"

    # ------------------------------------------------------------------ the other side

    def _side(self, target: str, ends: Tuple[End, ...], others: Tuple[End, ...], mode: Optional[str]) -> _Side:
        """Return the other side of a pipe or socket.

        ``others``: all ends seen that can end a wait on this side.
        """
        everyone, how = self._known.all_holders((target,), ends)
        if target.startswith("/"):
            everyone, how = False, fact("named-file")
        because = []
        word = {"r": "write end", "w": "read end"}.get(mode or "", "other end")
        for end in others[:_NAMED_ENDS]:
            who = "this process itself" if end.pid == self._pid else self._known.called(end.pid)
            call, file = self._waits_itself(end)
            because.append(fact("end-held", process=who, end=word, fd=end.fd, call=call, file=file))
        if len(others) > _NAMED_ENDS:
            because.append(fact("more-ends", count=len(others) - _NAMED_ENDS))
        fill = self._known.fill(target[6:-1] if target.startswith("pipe:[") else target)
        hidden = not others and fill is not None and fill.alone is False and fill.side == mode
        if hidden:
            everyone, how = False, fact("hidden-holder", end=word)
        held: Dict[int, List[str]] = {}
        for end in others:
            held.setdefault(end.pid, []).append(str(end.fd))
        wakers = tuple(
            Waker("end", "kernel", pid=pid, name=f"descriptor {' and '.join(fds[:_NAMED_ENDS])}")
            for pid, fds in held.items()
        )
        known = mode is not None or bool(others)
        return _Side(ends, wakers, True if everyone and known else None, (*because, how))

    def _waits_itself(self, end: End) -> Tuple[Optional[str], Optional[str]]:
        """Return the current system call of a process outside the tree and the file that it is on; None if unknown."""
        told = self._known.beyond(end.pid) if not end.in_tree else {}
        call, file = told.get("call"), told.get("file")
        return (str(call), str(file) if file else None) if call else (None, None)

    def _writers(self, mode: Optional[str], others: Tuple[End, ...]) -> Optional[str]:
        """Return "writer reads a terminal" if every writer is outside the tree and reads a terminal, else None."""
        told = [self._known.beyond(end.pid) for end in others if not end.in_tree]
        asks = [one.get("call") == "read" and str(one.get("file")).startswith(_TERMINALS) for one in told]
        return "writer reads a terminal" if mode == "r" and asks and all(asks) and len(told) == len(others) else None

    def _named(self, fd: int, kind: str, mode: Optional[str], others: Tuple[End, ...]) -> str:
        pids = tuple(dict.fromkeys(end.pid for end in others))
        own = pids == (self._pid,)
        known = " and ".join("this process" if p == self._pid else self._known.called(p) for p in pids[:2])
        more = f" and {len(pids) - 2} more" if len(pids) > 2 else ""
        what = "this process alone" if own else known + more
        if fd in _STANDARD and self._pid not in pids:
            verb = {"r": "written by ", "w": "read by "}.get(mode or "", "to ")
            return f"{_STANDARD[fd]}, a {kind}" + (f" {verb}{what}" if what else "")
        verb = {"r": "from ", "w": "to "}.get(mode or "", "with ")
        return f"{kind} {verb}{what}" if what else kind

    # ------------------------------------------------------------------ children

    def _called(self, pid: Optional[int]) -> str:
        return self._known.called(pid) if pid is not None else "a process"

    def _children(self, ident: str, child: Optional[int], waiters: Tuple[int, ...]) -> Resource:
        children = self._known.children(self._pid) or ()
        awaited = (child,) if child is not None else children
        closed = bool(awaited) and all(map(self._known.in_tree, awaited))
        what = f"child process {self._called(child)}" if child is not None else "the first child that ends"
        if child is None and len(awaited) == 1:
            what = f"any child; there is one, {self._called(awaited[0])}"
        elif child is None:
            names = ", ".join(map(self._called, awaited[:_NAMED_ENDS]))
            what = f"any of its {len(awaited)} children ({names}{', …' if len(awaited) > _NAMED_ENDS else ''})"
        return Resource(
            id=ident,
            kind="process",
            description=what,
            waiters=waiters,
            closed=True if closed else None,
            wakers=tuple(Waker("runner", "kernel", pid=pid, name=self._known.program(pid)) for pid in awaited),
            because=(fact("child-ends-it"),) if closed else (),
            key=f"process:{child}" if child is not None else None,
        )


def _together(ident: str, parts: Sequence[Resource], waiters: Tuple[int, ...]) -> Resource:
    """Return the resource of a wait for several descriptors, which ends when the first is ready."""
    wakers = tuple(dict.fromkeys(waker for part in parts for waker in part.wakers))
    because = tuple(dict.fromkeys(text for part in parts for text in part.because))
    return Resource(
        id=ident,
        kind="descriptors",
        description=" or ".join(part.description for part in parts[:3])
        + (f" or {len(parts) - 3} more" if len(parts) > 3 else ""),
        waiters=waiters,
        wakers=wakers,
        because=because,
        ends=tuple(end for part in parts for end in part.ends),
        closed=True if parts and all(part.closed for part in parts) else None,
    )
