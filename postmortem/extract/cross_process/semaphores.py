"""Semaphores that a process shares with others: its waiters, holders and names for them.

Holders in other processes are found when all processes have been read: see ``sharing``.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Final, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.state.interpreter import Python
from ...cpython.sync.semaphores import (
    NO_BOUND,
    NOTIFICATION,
    Paths,
    SemLock,
    find_semlocks,
    read_count,
    role_of,
    wrapped,
)
from ...evidence import SIGNALLED, Gap, HeldLock, PythonFrame, Resource, fact
from ...evidence.vocabulary import OwnerBasis
from ...frameworks.processpools import multiprocessing
from ...memory import Image, MappedFile
from ..ownership.acquires import Acquires
from ..ownership.ownership import Acquired, Ownership, plain
from ..process.context import PythonContext
from ..waits.threadwaits import FutexFacts

KIND: Final = "shared-semaphore"
_SYNCHRONIZE = multiprocessing("synchronize")
#: Files of functions that only pass on the program's objects.
_OWN = ("/multiprocessing/", "/multiprocess/", "concurrent/futures/process.py", "contextlib.py")
#: Files of sem_open(3). glibc: sem.NAME, with a temporary name while new. musl: tmp-NUMBER while new, and NAME when
#: opened later (src/thread/sem_open.c); Python's names start with mp-.
_FILES = re.compile(r"/dev/shm/(sem\.|tmp-\d+|mp-\w+)")  # noqa: S108
_MOST_FRAMES = 200
#: Frames searched for the function that takes and gives back a semaphore, below `take`, `__enter__`, …
_TAKERS = 6
#: Functions of those files that have the object as `self`, which is not a name.
_METHODS = ("__enter__", "acquire", "get", "put", "wait", "wait_for", "join", "task_done", "set", "is_set", "notify")


class Claim(NamedTuple):
    """A process's knowledge of a semaphore."""

    is_lock: bool
    value: Optional[int]
    taken: int  # acquisitions minus releases
    holder: Optional[Ownership] = None  # the process's thread that holds it
    #: Functions that wait to take it and will give it back. None: a function waits for it that will not, so it may be a
    #: signal.
    lent: Optional[Tuple[PythonFrame, ...]] = ()


class SemaphoreHoldings(NamedTuple):
    """Holders of semaphores, by handle."""

    owners: Mapping[int, Optional[Ownership]]  # None: the thread that took it has ended
    held: Sequence[Ownership]  # those whose acquisition was found in a frame of the holder
    lent: Mapping[int, Optional[Tuple[PythonFrame, ...]]]  # as in Claim


class SemaphoreBook:
    """The semaphores of one process.

    ``wait`` collects waits while threads are read; then ``holders`` finds holders.
    """

    def __init__(self, context: PythonContext) -> None:
        python: Python = context.python
        self._python = python
        self._image: Image = context.core
        self._threads = context.threads
        self._locks = python.locks
        self._names = context.names
        self._acquires = context.acquires
        self._shown = plain(python.frames)
        self.keys = semaphore_files(context.raw.process.get("maps"), context.core.files)
        #: False: memory was not searched completely, and semaphores may be missing.
        self.complete = True
        self._by_handle: Dict[int, List[SemLock]] = {}
        if self.keys:
            self._find(context.gaps)
        self._handle_of = {lock.address: handle for handle, locks in self._by_handle.items() for lock in locks}
        self._ids: Dict[int, str] = {}
        self._waiters: Dict[int, List[int]] = {}
        self._users: Dict[int, List[Frame]] = {}
        self._stacks: Dict[int, List[Sequence[Frame]]] = {}  # of waiting threads, by handle
        #: Whether a thread may have taken a semaphore that it has not counted yet.
        self.unsettled = False

    def _find(self, gaps: List[Gap]) -> None:
        found, self.complete = find_semlocks(self._python, self._image, self.keys)
        for lock in found:
            self._by_handle.setdefault(lock.handle, []).append(lock)
        if not self.complete:
            gaps.append(Gap("cpython", "semaphores shared by processes", code="semaphores-unread"))

    # ------------------------------------------------------------------ waits

    def wait(self, word: int, tid: int, frames: Sequence[Frame]) -> Optional[FutexFacts]:
        """Return the facts of a futex word; None if it is no shared semaphore.

        ``frames``: most recent call first.
        """
        if word not in self._by_handle:
            return None
        self._users.setdefault(word, []).extend(frames[:8])
        self._waiters.setdefault(word, []).append(tid)
        self._stacks.setdefault(word, []).append(frames[:_TAKERS])
        what = "a lock" if self._is_lock(word) else "a semaphore"
        return FutexFacts("semaphore", self._ident(word), f"for {what} that processes share", "waits")

    def runs(self, frames: Sequence[Frame]) -> None:
        """Note a thread that is in no system call or waits for the GIL.

        It may have just taken a semaphore and wait for the GIL to count it (semaphore.c, semlock_acquire: sem_wait is
        called without the GIL).
        """
        if frames and self._by_handle:
            code = frames[0].code
            if code.filename.endswith(_SYNCHRONIZE) or "acquire" in code.used_names():
                self.unsettled = True

    def _ident(self, handle: int) -> str:
        """Return a resource id that is equal in all processes."""
        return self._ids.setdefault(handle, self.keys[handle])

    def _is_lock(self, handle: int) -> bool:
        return self._by_handle[handle][0].is_lock

    # ------------------------------------------------------------------ holders

    def holders(self) -> SemaphoreHoldings:
        """Return the holders of locks that this process has taken, and the places of acquisition."""
        if not self._by_handle:
            return SemaphoreHoldings({}, (), {})
        tids = {
            handle: self._threads.tid_of_ident(lock.ident)
            for handle, locks in self._by_handle.items()
            for lock in locks
            if lock.is_lock and lock.taken > 0
        }
        for handle, tid in tids.items():
            self._ident(handle)
            self._users.setdefault(handle, []).extend(self._frames(tid)[:8])
        held: List[Ownership] = []
        for tid in {tid for tid in tids.values() if tid is not None}:
            for ownership in self._places(tid):
                if tids.get(ownership.thing) == tid:
                    held.append(ownership)
        for ownership in held:
            if ownership.acquired_at is not None:
                self._users.setdefault(ownership.thing, []).append(ownership.acquired_at.frame)
        owners = {handle: self._owner(handle, tid, held) for handle, tid in tids.items()}
        return SemaphoreHoldings(owners, held, self._all_lent())

    def _owner(self, handle: int, tid: Optional[int], held: Sequence[Ownership]) -> Optional[Ownership]:
        """Return the ownership of the thread that took a lock last, by its record; None if that has ended.

        A lock may be used as a signal: taken twice and released by another thread. If the recorded thread waits for the
        lock again after taking it by hand, its ownership is only inferred.
        """
        if tid is None:
            return None
        own = [ownership for ownership in held if ownership.thing == handle]
        by_with = any(ownership.basis == "recorded" for ownership in own)
        inferred = tid in self._waiters.get(handle, ()) and not by_with
        at = own[0].acquired_at if own else None
        return Ownership(handle, tid, "inferred" if inferred else "recorded", at)

    def _all_lent(self) -> Dict[int, Optional[Tuple[PythonFrame, ...]]]:
        acquires = self._acquires.among(
            f.code.filename for several in self._stacks.values() for fs in several for f in fs
        )
        lent: Dict[int, Optional[Tuple[PythonFrame, ...]]] = {}
        for handle, stacks in self._stacks.items():
            takers = [self._taker(handle, frames, acquires) for frames in stacks]
            known = tuple(dict.fromkeys(self._shown(f) for f in takers if f is not None))
            lent[handle] = None if None in takers else known
        return lent

    def _taker(self, handle: int, frames: Sequence[Frame], acquires: Acquires) -> Optional[Frame]:
        """Return the frame that waits to take a semaphore and will give it back, by `with` or its own calls; or None."""
        by_with = False
        for frame in frames:
            if frame.code.filename.endswith(_SYNCHRONIZE):
                if frame.function != "__enter__":
                    return None  # a condition or an event is a signal
                by_with = True
            elif by_with or any(
                self._handle_of.get(wrapped(self._python.objects, value) or 0) == handle
                for value in acquires.given_back(frame)
            ):
                return frame
        return None

    def _places(self, tid: int) -> Iterator[Ownership]:
        """Yield the `with` statements and acquire calls by which a thread took semaphores."""
        acquires = self._acquires.among(())
        for depth, frame in enumerate(self._frames(tid)[:_MOST_FRAMES]):
            if frame.code.filename.endswith(_SYNCHRONIZE):
                continue
            taken: List[Tuple[int, Optional[int], OwnerBasis]]
            taken = [(manager, line, "recorded") for manager, line in self._locks.managers(frame)]
            if "acquire" in frame.code.used_names():
                taken += [(value, line, "inferred") for line, value in acquires.of(frame)]
            for value, line, basis in taken:
                handle = self._handle_of.get(wrapped(self._python.objects, value) or 0)
                if handle is not None:
                    yield Ownership(handle, tid, basis, Acquired(frame, depth, line))

    def _frames(self, tid: Optional[int]) -> Sequence[Frame]:
        state = self._threads.states.get(tid) if tid is not None else None
        return state.frames if state is not None else ()

    def held_by(self, tid: int, holdings: SemaphoreHoldings) -> Tuple[HeldLock, ...]:
        """Return the semaphores that a thread holds."""
        held = (one.held(self._ident(one.thing), self._shown) for one in holdings.held if one.agent == tid)
        return tuple(one for one in held if one is not None)

    # ------------------------------------------------------------------ results

    def claims(self, holdings: SemaphoreHoldings) -> Dict[str, Claim]:
        """Return what this process knows of its semaphores, by key."""
        found = {}
        for handle, locks in self._by_handle.items():
            state = read_count(self._image, handle)
            found[self.keys[handle]] = Claim(
                locks[0].is_lock,
                state.value if state else None,
                sum(lock.taken for lock in locks),
                holdings.owners.get(handle),
                holdings.lent.get(handle, ()),
            )
        return found

    def resources(self, holdings: SemaphoreHoldings) -> Tuple[Resource, ...]:
        """Return the awaited and held semaphores as resources."""
        return tuple(self._resource(handle, ident, holdings.owners) for handle, ident in self._ids.items())

    def _resource(self, handle: int, ident: str, owners: Mapping[int, Optional[Ownership]]) -> Resource:
        lock = self._by_handle[handle][0]
        state = read_count(self._image, handle)
        owner = owners.get(handle)
        died = handle in owners and owner is None
        steps = (fact("taker-ended-here", times=lock.taken),) if died else ()
        named = next(
            (found for lock in self._by_handle[handle] for found in [self._named(lock.address)] if found), None
        )
        return Resource(
            id=ident,
            kind=KIND,
            description=_description(lock, named),
            state=SIGNALLED if named is not None and role_of(named[2]) == NOTIFICATION else None,
            owner_tid=owner.agent if owner is not None else None,
            owner_basis=owner.basis if owner is not None else None,
            owner_gone=True if died and self._python.all_threads else None,
            because=steps,
            waiters=tuple(self._waiters.get(handle, ())),
            locked=state.value == 0 if state else None,
            key=self.keys[handle],
            value=state.value if state else None,
            limit=lock.limit if lock.limit < NO_BOUND else None,
        )

    # ------------------------------------------------------------------ names

    def _named(self, semlock: int) -> Optional[Tuple[str, str, Tuple[str, ...]]]:
        """Return (name, type, attributes) by which the program refers to a SemLock; None if not found.

        The program's own frames are searched first.
        """
        objects = self._python.objects
        paths = Paths(objects, semlock)
        seen: List[Tuple[str, Tuple[str, ...]]] = []

        def same(value: int) -> bool:
            path = paths.of(value)
            if path is not None:
                seen.append((objects.type_name(value) or "object", path))
            return path is not None

        users = self._users.get(self._handle_of[semlock], [])
        own = [f for f in users if any(part in f.code.filename for part in _OWN)]
        for frames in ([f for f in users if f not in own], [f for f in reversed(own) if f.function not in _METHODS]):
            name = self._names.find(same, frames)
            if name is not None:
                return (name, *seen[-1])
        return None


def _description(lock: SemLock, named: Optional[Tuple[str, str, Tuple[str, ...]]]) -> str:
    if named is not None:
        name, kind, path = named
        role = role_of(path)
        return f"{kind} {name}" + (f" ({role})" if role else "") + ", shared by processes"
    what = "RLock" if lock.recursive else "Lock" if lock.is_lock else "Semaphore"
    return f"a {what} of multiprocessing whose name was not found"


def semaphore_files(maps: Any, files: Sequence[MappedFile] = ()) -> Dict[int, str]:
    """Return address of each mapped semaphore → key.

    The key is equal in all processes:

    - device and inode of the file, from ``maps``
    - its path, if only the core's notes are available
    """
    found: Dict[int, str] = {}
    for line in maps if isinstance(maps, list) else ():
        words = str(line).split(None, 5)
        if len(words) == 6 and _FILES.match(words[5]):
            start = words[0].partition("-")[0]
            if _is_hex(start):
                found[int(start, 16)] = f"shared-semaphore:{words[3]}:{words[4]}"
    if not found and not isinstance(maps, list):
        for file in files:
            if _FILES.match(file.path) and file.offset == 0:
                found[file.start] = f"shared-semaphore:{file.path}"
    return found


def _is_hex(text: str) -> bool:
    try:
        return int(text, 16) >= 0
    except ValueError:
        return False
