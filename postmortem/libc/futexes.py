"""A futex system call, as its registers tell it. Operations and bits of the word: <linux/futex.h>."""

from __future__ import annotations

from typing import NamedTuple, Sequence

WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 = 0, 6, 9, 11, 13
_SLEEPS = frozenset((WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2))
PRIVATE = 0x80
#: Of the word of a mutex that the kernel knows the owner of (priority inheritance, robust): FUTEX_WAITERS,
#: FUTEX_OWNER_DIED, FUTEX_TID_MASK.
WAITERS, OWNER_DIED, TID_MASK = 0x80000000, 0x40000000, 0x3FFFFFFF
#: No kernel gives a thread a higher number: PID_MAX_LIMIT of 64-bit Linux.
MAX_TID = 1 << 22
_WORD = 0xFFFFFFFF


class FutexCall(NamedTuple):
    """``word``: its address. ``expected``: what the caller saw there before it went to sleep, 32 bits."""

    word: int
    operation: int
    expected: int
    timeout: int = 0  # address of a timespec, 0: none

    @classmethod
    def of(cls, args: Sequence[int]) -> FutexCall:
        """From the six words that a system call takes."""
        return cls(args[0], args[1] & _WORD, args[2] & _WORD, args[3])

    @property
    def command(self) -> int:
        return self.operation & 0x7F

    @property
    def sleeps(self) -> bool:
        """Does the caller wait, rather than wake others?"""
        return self.command in _SLEEPS

    @property
    def private(self) -> bool:
        """Do only threads of one process wait here? libstdc++'s guards and robust mutexes never say so, shared or not."""
        return bool(self.operation & PRIVATE)

    @property
    def plain(self) -> bool:
        """FUTEX_WAIT, with which glibc's lll_lock, libstdc++ and pthread_once wait; conditions, semaphores and rwlocks
        use FUTEX_WAIT_BITSET."""
        return self.command == WAIT
