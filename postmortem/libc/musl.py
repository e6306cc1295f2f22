"""Thread descriptors, conditions, semaphores and stacks of musl, the C library of Alpine Linux.

Limit: on aarch64 the thread pointer lies behind struct pthread, so none of its fields is read; x86-64 only.

Sources, musl 1.2.3 to 1.2.5:
- src/internal/pthread_impl.h: struct pthread (self, dtv, prev, next, sysinfo, canary, then tid, errno_val,
  detach_state, cancel, three bytes of flags, map_base, map_size, stack, stack_size, guard_size; 1.1.24 has one more
  word before tid); the ``_m_`` and ``_c_`` names of pthread_mutex_t and pthread_cond_t.
- include/alltypes.h.in: layout of pthread_mutex_t, pthread_cond_t, sem_t.
- src/thread/pthread_cond_timedwait.c: struct waiter.
- src/thread/sem_timedwait.c.
"""

from __future__ import annotations

import re
from typing import Collection, FrozenSet, NamedTuple, Optional, Sequence, Set

from ..memory.base import Fault, MappedFile, Memory

#: File names of musl: Alpine's loader, which is also the library; its alias there; Debian's package.
_FILES = re.compile(r"/(ld-musl-[^/]+\.so\.1|libc\.musl-[^/]+\.so\.1|[^/]+-linux-musl[^/]*/libc\.so)( \(deleted\))?$")

#: struct pthread: offset of tid in 1.2 and 1.1; of detach_state relative to tid; of map_base relative to tid.
_TIDS, _DETACH_STATE, _MAP_BASE = (48, 56), 8, 24
#: pthread_cond_t of one process: offset of _c_head, the newest waiter.
_HEAD = 8
#: struct waiter (prev, next, int state, barrier): offsets of next and of barrier, which is the futex.
_NEXT, _BARRIER = 8, 20
_MOST_WAITERS = 100_000
_MAX_TID = 1 << 22
#: DT_JOINABLE, DT_DETACHED of detach_state.
_JOINABLE, _DETACHED = 2, 3


def is_musl(files: Sequence[MappedFile]) -> bool:
    """Return whether a process runs on musl, judged by the names of its mapped files."""
    return any(_FILES.search(file.path) for file in files)


def is_of_musl(path: str) -> bool:
    """Return whether a path names musl itself."""
    return _FILES.search(path) is not None


def condition_waiters(memory: Memory, condition: int) -> FrozenSet[int]:
    """Return the futex words of the waiters of a process-private condition variable.

    Each waiter sleeps on a word of its own stack; the condition links them into a list. The result is partial if the
    list cannot be read to its end.
    """
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
    """Decode the value of a semaphore from the first word of its sem_t, 32 bits.

    Waiters are flagged by -1 up to 1.2.3, by bit 31 later.
    """
    return 0 if word == 0xFFFFFFFF else word & 0x7FFFFFFF


class Descriptors(NamedTuple):
    """Offsets in struct pthread that differ between releases of musl."""

    tid: int

    @classmethod
    def of(cls, memory: Memory, pointers: Collection[int]) -> Optional[Descriptors]:
        """Detect the offsets from all struct pthread of a process (``pointers``: their addresses).

        Returns None if no release fits all of them.
        """
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
        """Offset of the word on which pthread_join sleeps."""
        return self.tid + _DETACH_STATE


def left_behind(memory: Memory, pointer: int) -> bool:
    """Return whether this struct pthread is a copy, left by fork, of a thread of the parent process.

    Only the forking thread continues in the child; the tid of every other copy is set to -1 (1.2.2 and later,
    src/process/fork.c). A thread that had ended before the fork has another detach_state.
    """
    try:
        tid, state = memory.u32(pointer + _TIDS[0]), memory.u32(pointer + _TIDS[0] + _DETACH_STATE)
        return memory.u64(pointer) == pointer and tid == 0xFFFFFFFF and state in (_JOINABLE, _DETACHED)
    except Fault:
        return False


class Stack(NamedTuple):
    """Addresses of a stack: [low, high) is usable, [guard, low) is its guard."""

    guard: int
    low: int
    high: int


def stack_of(memory: Memory, pointer: int) -> Optional[Stack]:
    """Return the stack of a thread made by pthread_create.

    None for the main thread, or if the record is inconsistent.
    """
    for tid in _TIDS:
        try:
            base, size, top, usable, guard = memory.words(pointer + tid + _MAP_BASE, 5)
        except Fault:
            return None
        aligned = base and not (base | guard) & 0xFFF
        if aligned and base + guard == top - usable and top <= pointer < base + size:
            return Stack(base, base + guard, top)
    return None
