"""What musl, the C library of Alpine Linux, keeps elsewhere than glibc does, or keeps at all.

Source: musl 1.2.3 to 1.2.5. struct pthread (src/internal/pthread_impl.h: self, dtv, prev, next, sysinfo, canary, then tid,
errno_val, detach_state, cancel, three bytes of flags, map_base, map_size, stack, stack_size, guard_size; 1.1.24 has one more
word before tid), pthread_mutex_t, pthread_cond_t and sem_t as the ``_m_``, ``_c_`` names there and in include/alltypes.h.in
lay them out, struct waiter (src/thread/pthread_cond_timedwait.c), src/thread/sem_timedwait.c. x86-64: where the thread pointer
lies behind struct pthread (aarch64) none of its fields is read.
"""

from __future__ import annotations

import re
from typing import Collection, FrozenSet, NamedTuple, Optional, Sequence, Set

from ..memory.base import Fault, MappedFile, Memory

#: Alpine's loader, which is the library as well; its other name there; where Debian's package has it.
_FILES = re.compile(r"/(ld-musl-[^/]+\.so\.1|libc\.musl-[^/]+\.so\.1|[^/]+-linux-musl[^/]*/libc\.so)( \(deleted\))?$")

#: struct pthread: offsets of tid in 1.2 and 1.1; of detach_state behind tid, and of map_base behind that.
_TIDS, _DETACH_STATE, _MAP_BASE = (48, 56), 8, 24
#: pthread_cond_t of threads of one process: _c_head, the newest waiter.
_HEAD = 8
#: struct waiter: prev, next, int state, barrier; the barrier is the futex.
_NEXT, _BARRIER = 8, 20
_MOST_WAITERS = 100_000
_MAX_TID = 1 << 22
#: DT_JOINABLE, DT_DETACHED
_JOINABLE, _DETACHED = 2, 3


def is_musl(files: Sequence[MappedFile]) -> bool:
    """Does a process run on musl, as the names of its files tell?"""
    return any(_FILES.search(file.path) for file in files)


def is_of_musl(path: str) -> bool:
    """Is it the library itself?"""
    return _FILES.search(path) is not None


def condition_waiters(memory: Memory, condition: int) -> FrozenSet[int]:
    """The words on which those sleep who wait for a condition variable of one process: each has one of its own, on its
    stack, and the condition has the list. What cannot be read of it is missing."""
    found: Set[int] = set()
    try:
        node = memory.u64(condition + _HEAD)
        while node and node + _BARRIER not in found and len(found) < _MOST_WAITERS:
            following = memory.u64(node + _NEXT)
            found.add(node + _BARRIER)
            node = following
    except Fault:
        pass
    return frozenset(found)


def semaphore_value(word: int) -> int:
    """Of the first word of a sem_t, 32 bits. Up to 1.2.3 it is -1 while somebody waits, later bit 31 says so."""
    return 0 if word == 0xFFFFFFFF else word & 0x7FFFFFFF


class Descriptors(NamedTuple):
    """Where in each struct pthread of a process the fields lie that moved between releases."""

    tid: int

    @classmethod
    def of(cls, memory: Memory, pointers: Collection[int]) -> Optional[Descriptors]:
        """``pointers``: addresses of the process's struct pthread. None when no release fits all of them."""
        for offset in _TIDS:
            try:
                tids = [memory.u32(pointer + offset) for pointer in pointers]
            except Fault:
                continue
            if tids and len(set(tids)) == len(tids) and all(0 < tid < _MAX_TID for tid in tids):
                return cls(offset)
        return None

    @property
    def detach_state(self) -> int:
        """The word on which pthread_join sleeps."""
        return self.tid + _DETACH_STATE


def left_behind(memory: Memory, pointer: int) -> bool:
    """Is this the struct pthread of a thread that ran when the process was forked? Only the one that forks goes on in the child,
    where all others get the number -1 (1.2.2 and later, src/process/fork.c), and one that ended before has another state."""
    try:
        tid, state = memory.u32(pointer + _TIDS[0]), memory.u32(pointer + _TIDS[0] + _DETACH_STATE)
        return memory.u64(pointer) == pointer and tid == 0xFFFFFFFF and state in (_JOINABLE, _DETACHED)
    except Fault:
        return False


class Stack(NamedTuple):
    """``low``: the first byte that may be used; below it, from ``guard`` on, nobody may write; ``high`` is its end."""

    guard: int
    low: int
    high: int


def stack_of(memory: Memory, pointer: int) -> Optional[Stack]:
    """The stack of a thread that pthread_create made; None of the main thread's, or where the record does not add up."""
    for tid in _TIDS:
        try:
            base, size, top, usable, guard = memory.words(pointer + tid + _MAP_BASE, 5)
        except Fault:
            return None
        aligned = base and not (base | guard) & 0xFFF
        if aligned and base + guard == top - usable and top <= pointer < base + size:
            return Stack(base, base + guard, top)
    return None
