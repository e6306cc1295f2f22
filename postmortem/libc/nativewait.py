"""Waits in native code, and the facts about a process's threads that are needed to recognise them."""

from __future__ import annotations

import contextlib
from typing import Callable, Collection, Dict, Literal, Mapping, NamedTuple, Optional, Sequence

from ..memory import Fault, MappedFile, Memory
from . import musl
from .futexes import FutexCall

#: glibc: offset of struct pthread.tid, after a header of 704 bytes and a list node; since glibc 2.4.
_TID = 720

#: Kinds of objects that native code waits for. parked: an address in the interpreter's parking lot
#: (Python/parking_lot.c). lock: one of the interpreter's own kind (PyThread_acquire_lock), on whatever it is built.
NativeKind = Literal[
    "mutex",
    "rwlock",
    "condition",
    "semaphore",
    "barrier",
    "once",
    "guard",
    "stream",
    "thread",
    "parked",
    "lock",
]


class Threads(NamedTuple):
    """Identifiers of a process's threads.

    Fields:
    - ``tids``: every known TID.
    - ``by_pointer``: thread pointer (pthread_self, the fs base) → TID.
    - ``complete``: True if no thread of the process can be missing.
    - ``own``: TID within the process's own pid namespace → TID; empty if unknown, then both are taken to be equal.
    - ``on_musl``: True if the C library is musl.
    - ``detach_state``: offset in musl's struct pthread of the word that pthread_join waits on; None if unknown.
    """

    tids: Collection[int]
    by_pointer: Mapping[int, int]
    complete: bool = True
    own: Mapping[int, int] = {}
    on_musl: bool = False
    detach_state: Optional[int] = None  # musl only

    @classmethod
    def of(
        cls, memory: Memory, pointers: Mapping[int, int], complete: bool, files: Sequence[MappedFile] = ()
    ) -> Threads:
        """Read the threads' own TIDs from their descriptors; unreadable ones make the result incomplete.

        Parameters:
        - ``pointers``: TID → thread pointer, 0 if unknown.
        - ``complete``: whether ``pointers`` lists every thread.
        - ``files``: mapped files of the process.
        """
        known = {pointer: tid for tid, pointer in pointers.items() if pointer}
        on_musl = musl.is_musl(files)
        descriptors = musl.Descriptors.of(memory, known) if on_musl else None
        at = descriptors.tid if descriptors is not None else _TID
        own: Dict[int, int] = {}
        for pointer, tid in known.items() if descriptors is not None or not on_musl else ():
            with contextlib.suppress(Fault):
                own[memory.u32(pointer + at)] = tid
        own.pop(0, None)
        complete = complete and len(own) == len(pointers)
        joined = descriptors.detach_state if descriptors is not None else None
        return cls(frozenset(pointers), known, complete, own, on_musl, joined)

    def named(self, own: int) -> Optional[int]:
        """Return the TID of the thread recorded by its namespace-local TID ``own``; None if there is none."""
        return self.own.get(own) if self.own else own if own in self.tids else None


class NativeWait(NamedTuple):
    """The object that a thread waits for, and its recorded owner."""

    kind: NativeKind
    address: int  # of the object or, where it cannot be told, of the futex word
    owner: Optional[int] = None  # TID in the object's record
    gone: Optional[bool] = None  # True: the owner is no longer a thread of this process and cannot belong to another
    shared: bool = False  # shared with other processes
    recursion: Optional[int] = None  # how many times its owner holds it
    readers: Optional[int] = None  # number of readers that hold an rwlock


#: Recogniser of one kind: (memory, system call, threads, kind named by the waiting function) → the wait, None for
#: another kind. May raise Fault.
Reader = Callable[[Memory, FutexCall, Threads, Optional[str]], Optional[NativeWait]]


def owned(
    kind: NativeKind, address: int, owner: int, threads: Threads, shared: bool = False, died: bool = False
) -> NativeWait:
    """Build a wait for an object whose record names an owner.

    ``owner`` is 0 between release and the next acquisition. ``died``: the record says that the owner ended without
    releasing.
    """
    if not owner:
        return NativeWait(kind, address, shared=shared)
    tid = threads.named(owner)
    if tid is not None and not died:
        return NativeWait(kind, address, tid, False, shared)
    gone = died or (threads.complete and not shared)
    return NativeWait(kind, address, owner, True if gone else None, shared)
