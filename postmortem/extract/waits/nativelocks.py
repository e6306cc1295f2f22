"""Waiters and holders of native locks: mutexes, rwlocks, conditions, C++ guards, streams, joins in C.

Owners are read from the C library's records. Some locks record none; their holder is inferred from who stands inside:

- a guard, a pthread_once: the only other thread inside the same function, or inside pthread_once
- a condition on which a call waits that the thread of a library's event loop is to make: the only other thread inside
  that library
- a lock of the interpreter's kind (``PyThread_acquire_lock``) that an extension takes, as Cython's do: the only other
  thread with a frame of the same library, provided that the native stacks of all threads are known

Any other condition, semaphore or barrier records neither a holder nor a purpose: its resource is marked ``native``.

Source of the functions' names: Python/thread_pthread.h, Python/lock.c and Python/parking_lot.c of 3.8 to 3.15.
"""

from __future__ import annotations

import contextlib
import re
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.sync.parking import parked_on
from ...evidence import Fact, HeldLock, NativeFrame, PythonFrame, Resource, Thread, Wait, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import ResourceKind, WaitKind
from ...libc import FutexCall, NativeWait, Threads, Wanted, awaited, describe, program_frame
from ...libc.nativewait import NativeKind
from ...libc.waits import ABOVE, waiting_for
from ...memory import ElfCore, Fault, MappedFile
from ...memory.symbols import function_at
from ..ownership.ownership import Ownership
from ..process.threadtable import ThreadTable
from .numbering import numbered

#: NativeWait.kind → (Wait.kind, Resource.kind)
_KINDS: Dict[NativeKind, Tuple[WaitKind, ResourceKind]] = {
    "mutex": ("mutex", "mutex"),
    "stream": ("mutex", "mutex"),
    "guard": ("mutex", "mutex"),
    "once": ("mutex", "mutex"),
    "rwlock": ("mutex", "rwlock"),
    "condition": ("condition", "condition"),
    "semaphore": ("semaphore", "semaphore"),
    "barrier": ("condition", "barrier"),
    "parked": ("lock", "lock"),
    "lock": ("lock", "lock"),
}
#: Objects that record neither a holder nor what they are for.
_PURPOSELESS: FrozenSet[NativeKind] = frozenset(("condition", "semaphore", "barrier"))
#: Kinds without an owner whose holder is whoever stands inside the same library.
_BY_LIBRARY: FrozenSet[NativeKind] = frozenset(("lock", "parked"))
#: Functions that hand a call to the thread that runs a library's own event loop, and wait on a condition until it was made:
#: Modules/_tkinter.c, 3.8 to 3.15.
_HANDS_OVER = frozenset(("Tkapp_ThreadSend",))
#: The interpreter's functions that take its locks for others: the caller is who wants the lock.
_PYTHONS_LOCK = re.compile(r"PyThread_acquire_lock(_timed)?\b")
_PYTHONS_OWN = re.compile(r"_?Py(Thread_acquire_lock|Mutex_Lock|ParkingLot_Park|Semaphore_(Platform)?Wait)\w*")
#: Methods of threading.Lock and RLock (Modules/_threadmodule.c of 3.8 to 3.12); a build without symbols does not name them.
_LOCK_METHODS = re.compile(r"$|acquire_timed\b|r?lock_(PyThread_)?acquire")
#: Mappings whose names do not identify them.
_NAMELESS = ("/dev/zero", "/memfd:", "/SYSV")

#: Functions of the interpreter.
_PYTHONS = re.compile(r"_?Py[A-Z_]")
#: Files of sem_open(3): of glibc (nptl/sem_open.c).
_NAMED = re.compile(r"/dev/shm/sem\.")  # noqa: S108

Stacks = Mapping[int, Sequence[NativeFrame]]


class _Known(NamedTuple):
    ident: str
    found: NativeWait
    waiters: List[int]
    wanted: List[Wanted]


class NativeLocks:
    """The native locks of one process.

    - ``calls``: by thread, futex waits that no lock of the interpreter explains
    - ``stacks``: native stacks by thread
    """

    def __init__(self, core: ElfCore, threads: ThreadTable, calls: Mapping[int, FutexCall], stacks: Stacks) -> None:
        self._core = core
        self._known: Dict[Tuple[str, int], _Known] = {}
        self._of: Dict[int, _Known] = {}
        self._joins: Dict[int, Optional[int]] = {}
        self._owners: Dict[str, Ownership] = {}
        self._functions: Dict[int, Optional[Tuple[str, int]]] = {}
        pointers = {row.tid: row.pointer for row in threads.by_tid.values()}
        self._threads = Threads.of(core, pointers, not core.truncated, core.files)

        self._find(calls, stacks)

    def _find(self, calls: Mapping[int, FutexCall], stacks: Stacks) -> None:
        for tid, call in calls.items():
            frames = stacks.get(tid, ())
            parked = parked_on(self._core, call.word)
            found = (
                NativeWait("parked", parked)
                if parked is not None
                else awaited(self._core, call, self._threads, [frame.function for frame in frames])
            )
            if found is None:
                continue
            if found.kind in ("semaphore", "condition") and _is_pythons_lock(frames):
                found = found._replace(kind="lock")
            if found.kind == "thread":
                self._joins[tid] = found.owner
                continue
            key = found.kind, found.address
            known = self._known.get(key)
            if known is None:
                ident = f"native-{_KINDS[found.kind][1]}-{len(self._known) + 1}"
                known = self._known[key] = _Known(ident, found, [], [])
            known.waiters.append(tid)
            place = _place(frames)
            if place is not None:
                known.wanted.append(place)
            self._of[tid] = known
        for known in self._known.values():
            owner = self._owner(known, stacks)
            if owner is not None:
                self._owners[known.ident] = owner

    def wait(self, tid: int, wait: Optional[Wait]) -> Optional[Wait]:
        """Return a thread's wait, completed with the native lock or joined thread."""
        if tid in self._joins and wait is not None:
            detail = f"for thread {self._joins[tid]} to end (pthread_join)"
            return changed(wait, kind="lock", verb="waits", detail=detail)
        known = self._of.get(tid)
        if known is None or wait is None:
            return wait
        return changed(wait, kind=_KINDS[known.found.kind][0], resource=known.ident, verb=None, detail=None)

    def held_by(self, thread: Thread) -> Tuple[HeldLock, ...]:
        """Return the awaited locks that a thread holds, at the Python line that called the module that uses them."""
        found = []
        for known in self._known.values():
            owner = self._owners.get(known.ident)
            if owner is None or owner.agent != thread.tid:
                continue
            modules = {place.module for place in known.wanted}
            at = [i for i, f in enumerate(thread.stack) if isinstance(f, NativeFrame) and f.module in modules]
            below = [f for f in thread.stack[at[-1] :] if isinstance(f, PythonFrame)] if at else []
            if below:
                depth = len(thread.python) - len(below)
                found.append(HeldLock(known.ident, below[0], depth, owner.basis))
        return tuple(found)

    def places(self) -> Dict[str, Tuple[int, int]]:
        """Return (address, owner's TID) of private locks that record an owner, by resource id.

        Empty if threads record TIDs of another PID namespace: other processes' locks cannot be recognised then.
        """
        if any(own != tid for own, tid in self._threads.own.items()):
            return {}
        return {
            known.ident: (known.found.address, known.found.owner)
            for known in self._known.values()
            if known.found.owner is not None and not known.found.shared
        }

    def owners_elsewhere(self) -> Dict[str, int]:
        """Return the TIDs that locks in shared memory record and no thread of this process has, by resource id.

        Empty if threads record TIDs of another PID namespace.
        """
        if any(own != tid for own, tid in self._threads.own.items()):
            return {}
        return {
            known.ident: known.found.owner
            for known in self._known.values()
            if known.found.shared and known.found.owner is not None and known.found.owner not in self._threads.tids
        }

    def joined(self, tid: int) -> Optional[int]:
        """Return the thread that a thread joins in C; None if unknown."""
        return self._joins.get(tid)

    # ------------------------------------------------------------------ holders

    def _owner(self, known: _Known, stacks: Stacks) -> Optional[Ownership]:
        found = known.found
        if found.owner is not None:
            return Ownership(found.address, found.owner, "recorded") if found.owner in self._threads.tids else None
        if found.kind == "guard":
            inside = self._inside(known, stacks)
        elif found.kind == "once":
            inside = {tid for tid, frames in stacks.items() if any(waiting_for([f.function]) == "once" for f in frames)}
        elif found.kind in _BY_LIBRARY or (found.kind == "condition" and _hands_over(known.wanted)):
            inside = self._inside_library(known, stacks)
        else:
            return None
        others = inside - set(known.waiters)
        if not others and len(inside) == 1 and found.kind in _BY_LIBRARY:
            others = {tid for tid in inside if _is_reentered(known.wanted[0].module, stacks[tid])}
        return Ownership(found.address, others.pop(), "inferred") if len(others) == 1 else None

    def _inside(self, known: _Known, stacks: Stacks) -> Set[int]:
        """Return the threads inside the function that waits for the guard; a function initialises only its own static."""
        if not known.wanted:
            return set()
        wanted = known.wanted[0]
        start = self._function(wanted.address)
        return {
            tid
            for tid, frames in stacks.items()
            for frame in frames
            if frame.module == wanted.module
            and (
                self._function(frame.address) == start
                if start is not None
                else frame.function is not None and frame.function == wanted.function
            )
        }

    def _inside_library(self, known: _Known, stacks: Stacks) -> Set[int]:
        """Return the threads inside the library that wants a lock; empty if some thread's native stack is unknown.

        Never for the interpreter itself: every thread is inside of it.
        """
        module = known.wanted[0].module if known.wanted else None
        if module is None or any(not stacks.get(tid) for tid in self._threads.tids):
            return set()
        if any(place.module != module or _PYTHONS_OWN.match(place.function or "") for place in known.wanted):
            return set()
        return {tid for tid, frames in stacks.items() if any(frame.module == module for frame in frames)}

    def _function(self, returns_to: int) -> Optional[Tuple[str, int]]:
        if returns_to not in self._functions:
            self._functions[returns_to] = function_at(self._core, returns_to - 1)
        return self._functions[returns_to]

    # ------------------------------------------------------------------ results

    def resources(self) -> Tuple[Resource, ...]:
        """Return all native locks in the order found; those with equal descriptions are numbered."""
        return tuple(numbered([self._resource(known) for known in self._known.values()]))

    def _resource(self, known: _Known) -> Resource:
        found = known.found
        mapped = self._mapped(found) if found.shared else None
        key = None
        if mapped is not None:  # equal in all processes that map the file
            key = f"shared-{found.kind}:{mapped.path}+{mapped.offset + found.address - mapped.start:#x}"
        if found.kind == "semaphore" and key is not None and _NAMED.search(key):
            return self._named(known, key)
        known_owner = self._owners.get(known.ident)
        owner, basis = (known_owner.agent, known_owner.basis) if known_owner is not None else (None, None)
        return Resource(
            id=known.ident,
            kind=_KINDS[found.kind][1],
            description=describe(self._core, found, known.wanted[0] if known.wanted else None),
            owner_tid=owner,
            owner_basis=basis,
            waiters=tuple(known.waiters),
            locked=True if owner is not None or found.gone else None,
            owner_gone=found.gone,
            because=_because(found, owner, basis),
            native=True if found.kind in _PURPOSELESS and owner is None else None,
            key=key,
            file=mapped.path if mapped is not None else None,
        )

    def _named(self, known: _Known, key: str) -> Resource:
        """Return a semaphore of sem_open(3), which processes share by its name."""
        value: Optional[int] = None
        with contextlib.suppress(Fault):  # sem_t.data: its lower half is the value (nptl/sem_waitcommon.c)
            value = self._core.u32(known.found.address)
        return Resource(
            id=known.ident,
            kind="shared-semaphore",
            description=f"semaphore /{_NAMED.split(key)[-1].partition('+')[0]}, shared by processes",
            waiters=tuple(known.waiters),
            locked=value == 0 if value is not None else None,
            key=key,
            value=value,
            native=True,
        )

    def _mapped(self, found: NativeWait) -> Optional[MappedFile]:
        """Return the mapping in which an object lies; None if that has no telling name."""
        mapped = self._core.mapped_file(found.address)
        return None if mapped is None or mapped.path.startswith(_NAMELESS) else mapped


def _is_reentered(module: Optional[str], frames: Sequence[NativeFrame]) -> bool:
    """Return whether a thread is in a call of a library inside another call of it, with the interpreter between them."""
    left = back = False
    for frame in frames:
        if frame.module == module:
            if back:
                return True
            left = True
        elif left and _PYTHONS.match(frame.function or ""):
            back = True
    return False


def _place(frames: Sequence[NativeFrame]) -> Optional[Wanted]:
    """Return the native call that wants a lock; None within the interpreter, and if unknown."""
    outside = _outside(frames)
    index = program_frame([(frame.function, frame.module) for frame in frames[outside:]])
    if index is None:
        return None
    frame = frames[outside + index]
    if outside and frame.module == frames[outside - 1].module:
        frame = frames[outside - 1]  # the interpreter wants it itself
    return Wanted(frame.function, frame.module, frame.address)


def _outside(frames: Sequence[NativeFrame]) -> int:
    """Return the index of the first frame outside the interpreter's functions that take locks; 0 if there are none.

    Where an extension calls ``acquire`` of a ``threading.Lock``, as numpy's generators do, that is the extension's frame.
    """
    own = [n for n, frame in enumerate(frames[: 2 * ABOVE]) if _PYTHONS_OWN.match(frame.function or "")]
    if not own:
        return 0
    method = own[-1] + 1
    for at in range(method, min(method + ABOVE, len(frames))):
        function = frames[at].function or ""
        if frames[at].module != frames[own[-1]].module:
            return at
        if function.startswith(("_PyEval_", "_queue_")) or (at == method and not _LOCK_METHODS.match(function)):
            break
    return method


def _is_pythons_lock(frames: Sequence[NativeFrame]) -> bool:
    """Return whether another library takes a lock of the interpreter's kind."""
    outside = _outside(frames)
    own = next((f for f in reversed(frames[:outside]) if _PYTHONS_OWN.match(f.function or "")), None)
    if own is None or not _PYTHONS_LOCK.match(own.function or ""):
        return False
    return outside < len(frames) and frames[outside].module != own.module


def _hands_over(wanted: Sequence[Wanted]) -> bool:
    """Return whether all waiters of a condition wait for a call that the thread of a library's event loop makes for them."""
    return bool(wanted) and all(place.function in _HANDS_OVER for place in wanted)


def _because(found: NativeWait, owner: Optional[int], basis: Optional[str]) -> Tuple[Fact, ...]:
    if found.gone:
        return (fact("mutex-owner-gone", owner=found.owner),)
    if basis == "inferred" and found.kind == "condition":
        return (fact("alone-runs-loop", owner=owner),)
    if basis == "inferred" and found.kind in _BY_LIBRARY:
        return (fact("alone-inside-library", owner=owner),)
    if basis == "inferred":
        return (fact("alone-inside", owner=owner),)
    if found.readers:
        return (fact("readers-hold", readers=found.readers),)
    return ()
