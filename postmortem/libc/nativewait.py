"""What a thread waits for in native code, and what of its process has to be known to tell."""

from __future__ import annotations

import contextlib
from typing import Callable, Collection, Dict, Literal, Mapping, NamedTuple, Optional, Sequence

from ..memory import Fault, MappedFile, Memory
from . import musl
from .futexes import FutexCall

#: struct pthread.tid: behind a header of 704 bytes and a list node, since glibc 2.4.
_TID = 720

#: What a thread waits for in native code. parked: in the interpreter's parking lot (Python/parking_lot.c), for the address.
NativeKind = Literal[
    "mutex", "rwlock", "condition", "semaphore", "barrier", "once", "guard", "stream", "thread", "parked"
]


class Threads(NamedTuple):
    """Of the process: every TID, and TID by thread pointer (pthread_self, the base of fs). ``complete``: no thread of it
    can be missing. ``own``: the TID by which a thread knows itself, in its own pid namespace → its TID; empty: the same."""

    tids: Collection[int]
    by_pointer: Mapping[int, int]
    complete: bool = True
    own: Mapping[int, int] = {}
    on_musl: bool = False
    detach_state: Optional[int] = None  # musl: where in a descriptor the word lies that pthread_join waits on

    @classmethod
    def of(
        cls, memory: Memory, pointers: Mapping[int, int], complete: bool, files: Sequence[MappedFile] = ()
    ) -> Threads:
        """``pointers``: TID → thread pointer, 0 when it is not known. ``files``: that the process maps."""
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
        """The TID of a thread that is recorded by its own TID; None when it is none of these."""
        return self.own.get(own) if self.own else own if own in self.tids else None


class NativeWait(NamedTuple):
    """What a thread waits for."""

    kind: NativeKind
    address: int  # of the object, or of its word where it does not matter which part of it that is
    owner: Optional[int] = None  # TID that its record names
    gone: Optional[bool] = None  # True: that is no thread of the process any more, nor can be one of another
    shared: bool = False  # with other processes
    recursion: Optional[int] = None  # how often its owner has it
    readers: Optional[int] = None  # that hold an rwlock


#: (memory, system call, threads, what the functions that wait say) → the wait; None: it is of another kind. May raise Fault.
Reader = Callable[[Memory, FutexCall, Threads, Optional[str]], Optional[NativeWait]]


def owned(
    kind: NativeKind, address: int, owner: int, threads: Threads, shared: bool = False, died: bool = False
) -> NativeWait:
    """``owner``: 0 for none: it has just been given back, and nobody has taken it yet."""
    if not owner:
        return NativeWait(kind, address, shared=shared)
    tid = threads.named(owner)
    if tid is not None and not died:
        return NativeWait(kind, address, tid, False, shared)
    gone = died or (threads.complete and not shared)
    return NativeWait(kind, address, owner, True if gone else None, shared)
