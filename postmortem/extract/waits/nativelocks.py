"""Waiters and holders of native locks: mutexes, rwlocks, conditions, C++ guards, streams, joins in C.

Owners are read from the C library's records. A guard and a pthread_once record none; their holder is inferred as the
only other thread inside the same function, or inside pthread_once.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.sync.parking import parked_on
from ...evidence import Fact, HeldLock, NativeFrame, PythonFrame, Resource, Thread, Wait, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import ResourceKind, WaitKind
from ...libc import FutexCall, NativeWait, Threads, Wanted, awaited, describe, program_frame
from ...libc.nativewait import NativeKind
from ...libc.waits import waiting_for
from ...memory import ElfCore
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
}
#: Mappings whose names do not identify them.
_NAMELESS = ("/dev/zero", "/memfd:", "/SYSV")

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
        else:
            return None
        inside -= set(known.waiters)
        return Ownership(found.address, inside.pop(), "inferred") if len(inside) == 1 else None

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
            key=self._key(found) if found.shared else None,
        )

    def _key(self, found: NativeWait) -> Optional[str]:
        """Return a key that is equal in all processes that map the file; None if the mapping has no telling name."""
        mapped = self._core.mapped_file(found.address)
        if mapped is None or mapped.path.startswith(_NAMELESS):
            return None
        return f"shared-{found.kind}:{mapped.path}+{mapped.offset + found.address - mapped.start:#x}"


def _place(frames: Sequence[NativeFrame]) -> Optional[Wanted]:
    index = program_frame([(frame.function, frame.module) for frame in frames])
    if index is None:
        return None
    return Wanted(frames[index].function, frames[index].module, frames[index].address)


def _because(found: NativeWait, owner: Optional[int], basis: Optional[str]) -> Tuple[Fact, ...]:
    if found.gone:
        return (fact("mutex-owner-gone", owner=found.owner),)
    if basis == "inferred":
        return (fact("alone-inside", owner=owner),)
    if found.readers:
        return (fact("readers-hold", readers=found.readers),)
    return ()
