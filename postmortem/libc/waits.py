"""Which lock of native code a futex belongs to, and who holds it: from the system call, the memory around the word, and,
where gdb has them, the names of the functions that wait.

The call and the memory decide wherever the C library keeps a record there: a mutex, a stream's lock, a C++ guard, a thread
that is joined. A condition, a semaphore and a barrier have nothing in them that no other four bytes could have, so those
want the name of their function, which glibc exports even where it is stripped.

Source: glibc 2.31 to 2.43, x86-64. struct __pthread_mutex_s and __pthread_cond_s (sysdeps/nptl/bits/thread-shared-types.h,
sysdeps/x86/nptl/bits/struct_mutex.h), __pthread_rwlock_arch_t (struct_rwlock.h), kinds of mutexes (nptl/pthreadP.h),
_IO_lock_t (sysdeps/nptl/stdio-lock.h), lll_lock (sysdeps/nptl/lowlevellock.h: 2 is "locked, and somebody waits"),
nptl/pthread_once.c; libstdc++-v3/libsupc++/guard.cc. What musl keeps is another thing: musl_waits.py.
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

#: __lock, __count, __owner, __nusers, __kind, __spins, __elision, and the list that robust ones are in.
_MUTEX = struct.Struct("<IIIIIhhQQ")
#: __kind: normal, recursive, errorcheck, adaptive; and what may be added to it.
_TYPE, _ROBUST, _INHERITS, _PROTECTS, _SHARED, _ELISION = 3, 16, 32, 64, 128, 768
_RECURSIVE = 1
_CONTENDED = 2
#: Uses of one mutex at a time: a thread for each, and what recursion adds.
_MAX_USERS = 1 << 20
#: __readers, __writers, __wrphase_futex, __writers_futex, two of padding, __cur_writer, __shared.
_RWLOCK = struct.Struct("<IIIIIIII")
#: Where in an rwlock threads sleep: __wrphase_futex, __writers_futex, __readers.
_RWLOCK_WORDS, _READER_SHIFT = (8, 12, 0), 3
#: int lock, int cnt, void *owner: a stdio stream's lock, whose owner is named by its thread pointer.
_STREAM = struct.Struct("<IIQ")
#: A guard: byte 1 "being initialised", byte 2 "somebody waits". Nothing in it says who.
_GUARD_AWAITED = 0x10100
#: pthread_once_t: bit 0 "in progress", then the generation of fork.
_ONCE_RUNS, _ONCE_GENERATION = 1, ~3

#: Bytes of struct pthread (nptl/descr.h), at least; THREAD_STATE_EXITING and THREAD_STATE_JOINABLE.
_DESCRIPTOR, _JOINABLE = 0x900, (1, 2)

#: Functions that wait → what for. A compiler may have added a suffix (.constprop.0), glibc a prefix.
_WAITERS: Tuple[Tuple[NativeKind, re.Pattern[str]], ...] = (
    ("condition", re.compile(r"_*pthread_cond_(timed|clock)?wait(64)?\b|_*cnd_(timed)?wait\b")),
    ("semaphore", re.compile(r"_*(new_)?sem_(timed|clock)?wait(64|_slow\w*)?\b")),
    ("rwlock", re.compile(r"_*pthread_rwlock_(timed|clock)?(rd|wr)lock\w*")),
    ("barrier", re.compile(r"_*pthread_barrier_wait\b")),
    ("once", re.compile(r"_*pthread_once(_slow)?\b")),
    ("guard", re.compile(r"_*cxa_guard_acquire\b")),
)  # fmt: skip
#: How far above the system call the function stands that the program called.
ABOVE = 8
#: Modules that take locks for others: whoever called into them wants the lock.
_RUNTIME = re.compile(r"/(libc|libpthread|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|ld-linux-x86-64|ld)[-.][^/]*$")


def awaited(
    memory: Memory, call: FutexCall, threads: Threads, functions: Sequence[Optional[str]] = ()
) -> Optional[NativeWait]:
    """The lock behind a futex wait; None when it is none that is known.

    functions: of the native frames, the most recent first; empty where there are none.
    """
    named = waiting_for(functions)
    for reader in _readers(threads):
        with contextlib.suppress(Fault):  # another object may end where the memory does
            found = reader(memory, call, threads, named)
            if found is not None:
                return found
    if named is None or named not in _BY_NAME_ALONE or (threads.on_musl and named == "condition"):
        return None
    # a condition has two words side by side, at which its waiters sleep by turns
    return NativeWait(named, call.word & ~7 if named == "condition" else call.word, shared=not call.private)


def waiting_for(functions: Sequence[Optional[str]]) -> Optional[NativeKind]:
    """The kind of object that the innermost native functions wait for, None without such a name."""
    for function in functions[:ABOVE]:
        if function is not None:
            kind = next((kind for kind, pattern in _WAITERS if pattern.match(function)), None)
            if kind is not None:
                return kind
    return None


def program_frame(frames: Sequence[Tuple[Optional[str], Optional[str]]]) -> Optional[int]:
    """Which frame wants the lock, of (function, module) pairs, most recent first: the first one outside the C and C++
    libraries."""
    for index, (_function, module) in enumerate(frames[: 2 * ABOVE]):
        if module is not None and not _RUNTIME.search(module):
            return index
    return None


# ---------------------------------------------------------------------- what keeps a record


def _stream(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Before mutexes: the low half of a pointer may look like a TID, a whole one is no accident."""
    if not call.plain or call.expected != _CONTENDED:
        return None
    lock, count, pointer = _STREAM.unpack(memory.read(call.word, _STREAM.size))
    owner = threads.by_pointer.get(pointer) if lock else None
    return NativeWait("stream", call.word, owner, recursion=count or None) if owner is not None else None


class _Mutex(NamedTuple):
    """The record itself, as it lies in memory."""

    lock: int
    depth: int  # __count: how often a recursive one is held
    owner: int
    users: int
    kind: int
    spins: int
    elision: int
    previous: int
    following: int

    @property
    def recursive(self) -> bool:
        return self.kind & _TYPE == _RECURSIVE

    @property
    def owned_word(self) -> bool:
        """Is the word the owner's TID, which the kernel then knows?"""
        return bool(self.kind & (_ROBUST | _INHERITS))

    def is_awaited(self, call: FutexCall) -> bool:
        """May a thread that wants this mutex sleep in such a call? Normal ones: 2 is waited for, and private or not the
        call says as the mutex does. A robust mutex never has the private bit, and says that it is shared, always."""
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
    mutex = _Mutex(*_MUTEX.unpack(memory.read(call.word, _MUTEX.size)))
    owner = mutex.lock & TID_MASK if mutex.owned_word else mutex.owner
    if not mutex.is_awaited(call) or owner >= MAX_TID:
        return None
    shared = bool(mutex.kind & _SHARED) and not mutex.kind & _ROBUST
    died = mutex.owned_word and bool(mutex.lock & OWNER_DIED)
    found = owned("mutex", call.word, owner, threads, shared, died)
    return found._replace(recursion=mutex.depth if mutex.recursive and mutex.depth else None)


def _guard(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """libstdc++ waits without the private bit, for a value that no mutex has."""
    if call.operation != 0 or call.expected != _GUARD_AWAITED or memory.u32(call.word) != _GUARD_AWAITED:
        return None
    return NativeWait("guard", call.word)


def _thread(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """pthread_join waits in the descriptor of the joined thread for a word that the kernel clears at its end: its TID, or
    since glibc 2.42 its state. No other word there is waited for without the private bit."""
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
    """Its writer is recorded, its readers are only counted. Without a writer it is told by its function's name."""
    if call.plain and named != "rwlock":
        return None
    for offset in _RWLOCK_WORDS:
        raw = memory.read(call.word - offset, _RWLOCK.size)
        readers, writers, phase, _futex, pad, _pad, writer, shared = _RWLOCK.unpack(raw)
        # waiting for the write phase goes on while it is 0 or 1, or'ed with "used" (2)
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
    if not call.plain or named != "once" or call.expected & ~_ONCE_GENERATION != _ONCE_RUNS:
        return None
    return NativeWait("once", call.word)


#: In this order: what proves itself best comes first.
_READERS: Tuple[Reader, ...] = (_stream, _mutex, _guard, _thread, _rwlock, _once)
_BY_NAME_ALONE = ("condition", "semaphore", "barrier", "rwlock")


def _readers(threads: Threads) -> Tuple[Reader, ...]:
    """The C library's own and, whatever that is, libstdc++'s."""
    if not threads.on_musl:
        return _READERS
    return (*musl_waits.READERS, _guard)
