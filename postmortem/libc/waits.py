"""Native locks of glibc and libstdc++ behind a futex wait, and their owners.

Evidence:
- Mutexes, stream locks, C++ guards and joined threads are recognised by the futex call and the memory around its word.
- Conditions, semaphores and barriers have no recognisable content: they need the name of the waiting function, which
  glibc exports even when stripped.

Sources, glibc 2.31 to 2.43 on x86-64 (for musl see ``musl_waits``):
- sysdeps/nptl/bits/thread-shared-types.h, sysdeps/x86/nptl/bits/struct_mutex.h: struct __pthread_mutex_s,
  __pthread_cond_s.
- struct_rwlock.h: __pthread_rwlock_arch_t.
- nptl/pthreadP.h: kinds of mutexes.
- sysdeps/nptl/stdio-lock.h: _IO_lock_t.
- sysdeps/nptl/lowlevellock.h: lll_lock; 2 means locked with waiters.
- nptl/pthread_once.c.
- libstdc++-v3/libsupc++/guard.cc.
"""

from __future__ import annotations

import contextlib
import re
import struct
from typing import NamedTuple, Optional, Sequence, Tuple

from ..memory import Fault, Memory
from . import musl_waits
from .futexes import LOCK_PI, LOCK_PI2, MAX_TID, OWNER_DIED, TID_MASK, WAIT_BITSET, WAITERS, FutexCall
from .nativewait import NativeKind, NativeWait, Reader, Threads, owned

#: __lock, __count, __owner, __nusers, __kind, __spins, __elision, and the links of the robust list.
_MUTEX = struct.Struct("<IIIIIhhQQ")
#: __kind: type (normal, recursive, errorcheck, adaptive), and its flags.
_TYPE, _ROBUST, _INHERITS, _PROTECTS, _SHARED, _ELISION = 3, 16, 32, 64, 128, 768
_RECURSIVE = 1
_CONTENDED = 2
#: Upper bound of __nusers: one per thread plus recursion.
_MAX_USERS = 1 << 20
#: __readers, __writers, __wrphase_futex, __writers_futex, two of padding, __cur_writer, __shared.
_RWLOCK = struct.Struct("<IIIIIIII")
#: Offsets of the futexes in an rwlock: __wrphase_futex, __writers_futex, __readers.
_RWLOCK_WORDS, _READER_SHIFT = (8, 12, 0), 3
#: Lock of a stdio stream: int lock, int cnt, void *owner; the owner is a thread pointer.
_STREAM = struct.Struct("<IIQ")
#: Guard: byte 1 "being initialised", byte 2 "has waiters". The owner is not recorded.
_GUARD_AWAITED = 0x10100
#: pthread_once_t: bit 0 "in progress", the rest is the fork generation.
_ONCE_RUNS, _ONCE_GENERATION = 1, ~3

#: Minimum size of struct pthread (nptl/descr.h) in bytes; THREAD_STATE_EXITING and THREAD_STATE_JOINABLE.
_DESCRIPTOR, _JOINABLE = 0x900, (1, 2)

#: Kind → names of the functions that wait for it, with a compiler's suffix (.constprop.0) or glibc's prefix.
_WAITERS: Tuple[Tuple[NativeKind, re.Pattern[str]], ...] = (
    ("condition", re.compile(r"_*pthread_cond_(timed|clock)?wait(64)?\b|_*cnd_(timed)?wait\b")),
    ("semaphore", re.compile(r"_*(new_)?sem_(timed|clock)?wait(64|_slow\w*)?\b")),
    ("rwlock", re.compile(r"_*pthread_rwlock_(timed|clock)?(rd|wr)lock\w*")),
    ("barrier", re.compile(r"_*pthread_barrier_wait\b")),
    ("once", re.compile(r"_*pthread_once(_slow)?\b")),
    ("guard", re.compile(r"_*cxa_guard_acquire\b")),
)  # fmt: skip
#: Waits for those who wait on the condition: for __wrefs, the word before __g_signals (nptl/pthread_cond_destroy.c).
_DESTROYS = re.compile(r"(__GI_)?_*pthread_cond_destroy\b")
#: Innermost native frames searched for the function that the program called.
ABOVE = 8
#: Runtime libraries: a lock taken in them is attributed to their caller.
_RUNTIME = re.compile(r"/(libc|libpthread|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|ld-linux-x86-64|ld)[-.][^/]*$")
#: Functions that call exit handlers: their own caller requests nothing.
_EXITS = re.compile(r"(__GI_)?_*(exit|run_exit_handlers|dl_fini|dl_call_fini)$")


def awaited(
    memory: Memory, call: FutexCall, threads: Threads, functions: Sequence[Optional[str]] = ()
) -> Optional[NativeWait]:
    """Return the native lock behind a futex wait; None if it is not recognised.

    ``functions``: names of the native frames, most recent first; empty if unknown.
    """
    named = waiting_for(functions)
    for reader in _readers(threads):
        with contextlib.suppress(Fault):  # a shorter object may end where the memory does
            found = reader(memory, call, threads, named)
            if found is not None:
                return found
    if not threads.on_musl and any(name is not None and _DESTROYS.match(name) for name in functions[:ABOVE]):
        return NativeWait("condition", (call.word + 4) & ~7, shared=not call.private)
    if named is None or named not in _BY_NAME_ALONE or (threads.on_musl and named == "condition"):
        return None
    # waiters of a condition alternate between two adjacent words
    return NativeWait(named, call.word & ~7 if named == "condition" else call.word, shared=not call.private)


def waiting_for(functions: Sequence[Optional[str]]) -> Optional[NativeKind]:
    """Return the kind of object that the innermost native functions wait for; None if none names one."""
    for function in functions[:ABOVE]:
        if function is not None:
            kind = next((kind for kind, pattern in _WAITERS if pattern.match(function)), None)
            if kind is not None:
                return kind
    return None


def program_frame(frames: Sequence[Tuple[Optional[str], Optional[str]]]) -> Optional[int]:
    """Return the index of the frame that requested the lock; None if there is none.

    That is the first frame outside the C and C++ libraries; none in an exit handler of these. ``frames``: (function, module),
    most recent first.
    """
    for index, (function, module) in enumerate(frames[: 2 * ABOVE]):
        if function is not None and _EXITS.match(function):
            return None
        if module is not None and not _RUNTIME.search(module):
            return index
    return None


# ---------------------------------------------------------------------- recognisers


def _stream(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise the lock of a stdio stream. Raises Fault.

    Runs before ``_mutex``: half a pointer may look like a TID, a whole pointer is no coincidence.
    """
    if not call.plain or call.expected != _CONTENDED:
        return None
    lock, count, pointer = _STREAM.unpack(memory.read(call.word, _STREAM.size))
    owner = threads.by_pointer.get(pointer) if lock else None
    return NativeWait("stream", call.word, owner, recursion=count or None) if owner is not None else None


class _Mutex(NamedTuple):
    """struct __pthread_mutex_s."""

    lock: int
    depth: int  # __count: recursion depth
    owner: int
    users: int
    kind: int
    spins: int
    elision: int
    previous: int
    following: int

    @property
    def recursive(self) -> bool:
        """Whether the mutex is of the recursive type."""
        return self.kind & _TYPE == _RECURSIVE

    @property
    def owned_word(self) -> bool:
        """Whether the futex word itself is the owner's TID, for the kernel to read: robust or priority-inheriting."""
        return bool(self.kind & (_ROBUST | _INHERITS))

    def is_awaited(self, call: FutexCall) -> bool:
        """Return whether a waiter for this mutex would make such a call.

        - Normal: the expected value is 2, and the call's private flag matches the mutex.
        - Robust: the call never has the private flag, and the mutex always says that it is shared.
        - Priority-inheriting: FUTEX_LOCK_PI or FUTEX_LOCK_PI2.
        """
        if self.kind & ~(_TYPE | _ROBUST | _INHERITS | _PROTECTS | _SHARED | _ELISION) or self.users > _MAX_USERS:
            return False
        if self.kind & _INHERITS:
            return call.command in (LOCK_PI, LOCK_PI2) and bool(self.lock & TID_MASK)
        if not call.plain:
            return False
        if self.kind & _ROBUST:
            return bool(call.expected & WAITERS) and self.lock & TID_MASK == call.expected & TID_MASK
        alone = not (self.previous or self.following or self.spins or self.elision)
        counted = self.recursive == bool(self.depth) and bool(self.owner) == bool(self.users)
        return (
            (call.expected, self.lock) == (_CONTENDED, _CONTENDED)
            and alone
            and counted
            and (bool(self.kind & _SHARED) != call.private)
        )


def _mutex(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise a mutex. Raises Fault."""
    mutex = _Mutex(*_MUTEX.unpack(memory.read(call.word, _MUTEX.size)))
    owner = mutex.lock & TID_MASK if mutex.owned_word else mutex.owner
    if not mutex.is_awaited(call) or owner >= MAX_TID:
        return None
    died = mutex.owned_word and bool(mutex.lock & OWNER_DIED)
    # A robust mutex always says that it is shared. The kernel marks it when its owner ends: unmarked, an owner that is no
    # thread of this process is one of another process.
    elsewhere = bool(owner) and not died and threads.named(owner) is None
    shared = bool(mutex.kind & _SHARED) and (elsewhere or not mutex.kind & _ROBUST)
    found = owned("mutex", call.word, owner, threads, shared, died)
    return found._replace(recursion=mutex.depth if mutex.recursive and mutex.depth else None)


def _guard(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise a libstdc++ guard: no private flag, and a value that no mutex has. Raises Fault."""
    if call.operation != 0 or call.expected != _GUARD_AWAITED or memory.u32(call.word) != _GUARD_AWAITED:
        return None
    return NativeWait("guard", call.word)


def _thread(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise a pthread_join. Raises Fault.

    It waits in the joined thread's descriptor for a word that the kernel clears at the thread's end: its TID or, since
    glibc 2.42, its state. It is the only wait there without the private flag.
    """
    if call.private or memory.u32(call.word) != call.expected:
        return None
    tid = threads.named(call.expected)
    if tid is not None:
        return NativeWait("thread", call.word, tid, False)
    within = [at for at in threads.by_pointer if 0 < call.word - at < _DESCRIPTOR]
    if call.command != WAIT_BITSET or call.expected not in _JOINABLE or not within:
        return None
    return NativeWait("thread", call.word, threads.by_pointer[max(within)], False)


def _rwlock(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise an rwlock. Raises Fault.

    Its writer is recorded, its readers are only counted: without a writer the waiting function's name is needed.
    """
    if call.plain and named != "rwlock":
        return None
    for offset in _RWLOCK_WORDS:
        raw = memory.read(call.word - offset, _RWLOCK.size)
        readers, writers, phase, _futex, pad, _pad, writer, shared = _RWLOCK.unpack(raw)
        # __wrphase_futex is awaited while 0 or 1, combined with "used" (2)
        fits = max(writers, readers >> _READER_SHIFT) < _MAX_USERS and phase < 4 and shared in (0, 1) and not pad
        if not fits or writer >= MAX_TID or bool(shared) == call.private:
            continue
        if writer and (named == "rwlock" or (threads.named(writer) is not None and named is None)):
            return owned("rwlock", call.word - offset, writer, threads, bool(shared))
        if not writer and named == "rwlock" and (readers >> _READER_SHIFT or writers):
            held = readers >> _READER_SHIFT
            return NativeWait("rwlock", call.word - offset, shared=bool(shared), readers=held)
    return None


def _once(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise a pthread_once in progress, given the name of the waiting function."""
    if not call.plain or named != "once" or call.expected & ~_ONCE_GENERATION != _ONCE_RUNS:
        return None
    return NativeWait("once", call.word)


#: By strength of evidence, strongest first.
_READERS: Tuple[Reader, ...] = (_stream, _mutex, _guard, _thread, _rwlock, _once)
_BY_NAME_ALONE = ("condition", "semaphore", "barrier", "rwlock")


def _readers(threads: Threads) -> Tuple[Reader, ...]:
    """Return the recognisers of the C library in use, and of libstdc++."""
    if not threads.on_musl:
        return _READERS
    return (*musl_waits.READERS, _guard)
