"""Who holds what the threads want: locks of Python, locks of native code, the GIL, threads that are joined."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from postmortem.cpython.frames.frame import Frame
from postmortem.cpython.sync.locks import LockState

from .session import Row, Session
from .show import short_place

MAX_SEARCHED = 400  # frames of one thread that are looked through for locks, as in a report
GONE = "a thread that is gone"


class Holder(NamedTuple):
    """``tid``: None when nobody is known. ``basis``: "record" | "with" | "join"."""

    tid: Optional[int] = None
    basis: Optional[str] = None
    since: Optional[str] = None  # the line of the `with`
    gone: bool = False

    @property
    def text(self) -> str:
        return GONE if self.gone else "unknown" if self.tid is None else str(self.tid)


class Lock(NamedTuple):
    """``what``: as people call it."""

    what: str
    kind: str
    holder: Holder
    waiters: Tuple[int, ...]


class LockHolders:
    """Of all threads of a session, read once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: Dict[int, LockState] = {}
        self._users: Dict[int, List[Frame]] = {}
        self._claims: Dict[int, List[Tuple[int, str]]] = {}
        self._waiters: Dict[int, List[int]] = {}
        for row in session.rows():
            self._read(row)

    def _read(self, row: Row) -> None:
        lock = row.wait.lock if row.wait else None
        if lock is not None:
            self._known[lock.address] = lock
            self._waiters.setdefault(lock.address, []).append(row.tid)
            self._users.setdefault(lock.address, []).extend(row.frames[:4])
        for frame in row.frames[:MAX_SEARCHED]:
            for held in self._session.locks.held(frame):
                if held.lock.locked:
                    self._known.setdefault(held.lock.address, held.lock)
                    at = short_place(frame, held.line)
                    self._claims.setdefault(held.lock.address, []).append((row.tid, at))
                    self._users.setdefault(held.lock.address, []).append(frame)

    # ------------------------------------------------------------------ tables

    def python_locks(self) -> List[Lock]:
        """Those that a `with` keeps, or that somebody waits for."""
        rows = {row.tid: row for row in self._session.rows()}
        found = []
        for address, lock in self._known.items():
            waiters = tuple(self._waiters.get(address, ()))
            joined = next((rows[tid].joins for tid in waiters if rows[tid].joins is not None), None)
            holder = self._holder(lock) if joined is None else Holder(joined, "join")
            found.append(Lock(self._name(address), lock.kind, holder, waiters))
        return found

    def native_locks(self) -> List[Lock]:
        """Those that somebody waits for in native code; a thread that is joined there is none."""
        found: Dict[Tuple[str, int], Lock] = {}
        for row in self._session.rows():
            native = row.wait.native if row.wait else None
            if native is None or row.wait is None or native.kind == "thread":
                continue
            key = native.kind, native.address
            before = found[key].waiters if key in found else ()
            found[key] = Lock(row.wait.text, native.kind, self.of(row), (*before, row.tid))
        return list(found.values())

    def gil(self) -> List[Lock]:
        """Only where somebody wants it."""
        waiting = [row.tid for row in self._session.rows() if row.wait is not None and row.wait.gil]
        row = next((row for row in self._session.rows() if row.wait is not None and row.wait.gil), None)
        return [Lock("GIL", "gil", self.of(row), tuple(waiting))] if row is not None else []

    # ------------------------------------------------------------------ one thread

    def of(self, row: Row) -> Holder:
        """Who holds what a thread waits for; of a join, the joined thread."""
        wait = row.wait
        if wait is None:
            return Holder()
        if wait.gil:
            gils = [i.gil for i in self._session.python.interpreters if i.gil and i.gil.holder]
            holder = self._session.tid_of(gils[0].holder) if gils else None
            return Holder(holder, "record" if holder is not None else None)
        if wait.native is not None:
            return Holder(wait.native.owner, "record", gone=bool(wait.native.gone)) if wait.native.owner else Holder()
        if row.joins is not None:
            return Holder(row.joins, "join")
        return self._holder(self._known[wait.lock.address]) if wait.lock is not None else Holder()

    def _holder(self, lock: LockState) -> Holder:
        claims = self._claims.get(lock.address, ())
        if lock.owner_ident is not None:
            tid = self._session.tid_of_ident(lock.owner_ident)
            since = next((at for claimer, at in claims if claimer == tid), None)
            return Holder(tid, "record", since, gone=tid is None)
        if len({tid for tid, _at in claims}) == 1:
            return Holder(claims[0][0], "with", claims[0][1])
        return Holder()

    def _name(self, address: int) -> str:
        users: Sequence[Frame] = self._users.get(address, ())
        return self._session.locks.name(address, users) or f"{address:#x}"
