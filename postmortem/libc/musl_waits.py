"""Native locks of musl behind a futex wait.

Recognised by the words alone:
- mutex, stream: the bits around the owner's TID.
- joined thread: the word's offset in its struct pthread.

Not recognised:
- conditions: each waiter has a word of its own, which does not lead back to the condition.
- the owner of a normal mutex: musl does not record it.

Sources, musl 1.2.3 to 1.2.5; all of these wait with FUTEX_WAIT:
- src/thread/pthread_mutex_timedlock.c and pthread_impl.h (_m_type, _m_lock).
- src/stdio/__lockfile.c (MAYBE_WAITERS).
- src/thread/pthread_join.c.
"""

from __future__ import annotations

import struct
from typing import Optional, Tuple

from ..memory import Memory
from .futexes import MAX_TID, TID_MASK, WAITERS, FutexCall
from .nativewait import NativeWait, Reader, Threads, owned

#: pthread_mutex_t: _m_type, _m_lock, _m_waiters; offsets of _m_lock and _m_count in bytes.
_MUTEX, _LOCK_AT, _COUNT_AT = struct.Struct("<III"), 4, 20
#: _m_type: normal, recursive, errorcheck; plus flags for robust, priority inheritance and shared.
_RECURSIVE, _KIND, _ROBUST, _INHERITS, _SHARED = 1, 3, 4, 8, 128
#: EBUSY: a normal mutex stores it in place of an owner.
_BUSY = 16
_MAYBE_WAITERS = 0x40000000
_JOINABLE = (1, 2)  # DT_EXITING, DT_JOINABLE


def _mutex(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise a mutex. Raises Fault."""
    address = call.word - _LOCK_AT
    kind, lock, waiters = _MUTEX.unpack(memory.read(address, _MUTEX.size))
    if not call.plain or kind & ~(_KIND | _ROBUST | _INHERITS | _SHARED) or kind & _KIND == _KIND or kind & _INHERITS:
        return None
    if lock != call.expected or not lock & WAITERS or not 0 < waiters < MAX_TID or bool(kind & _SHARED) == call.private:
        return None
    owner, shared = lock & TID_MASK, bool(kind & _SHARED)
    if not kind & (_KIND | _ROBUST):
        return NativeWait("mutex", address, shared=shared) if owner == _BUSY else None
    if not 0 < owner < MAX_TID:
        return None
    found = owned("mutex", address, owner, threads, shared)
    again = memory.u32(address + _COUNT_AT) if kind & _KIND == _RECURSIVE else 0
    return found._replace(recursion=again + 1 if kind & _KIND == _RECURSIVE else None)


def _stream(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise the lock of a stdio stream. Raises Fault."""
    tid = threads.named(call.expected & ~_MAYBE_WAITERS)
    if not call.plain or not call.expected & _MAYBE_WAITERS or tid is None or memory.u32(call.word) != call.expected:
        return None
    return NativeWait("stream", call.word, tid)


def _thread(memory: Memory, call: FutexCall, threads: Threads, named: Optional[str]) -> Optional[NativeWait]:
    """Recognise a pthread_join."""
    joined = threads.by_pointer.get(call.word - threads.detach_state) if threads.detach_state else None
    if joined is None or not call.plain or call.expected not in _JOINABLE:
        return None
    return NativeWait("thread", call.word, joined, False)


READERS: Tuple[Reader, ...] = (_mutex, _stream, _thread)
