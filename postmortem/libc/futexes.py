"""A futex system call, decoded from its registers.

Source of operations and bits of the word: <linux/futex.h>.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 = 0, 6, 9, 11, 13
_SLEEPS = frozenset((WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2))
PRIVATE = 0x80
#: FUTEX_WAITERS, FUTEX_OWNER_DIED and FUTEX_TID_MASK: the word of a mutex whose owner the kernel knows (priority
#: inheritance, robust).
WAITERS, OWNER_DIED, TID_MASK = 0x80000000, 0x40000000, 0x3FFFFFFF
#: Upper bound of thread IDs: PID_MAX_LIMIT of 64-bit Linux.
MAX_TID = 1 << 22
_WORD = 0xFFFFFFFF


class FutexCall(NamedTuple):
    """Arguments of a futex call.

    Fields:
    - ``word``: address of the futex.
    - ``operation``: FUTEX_* command with its flags.
    - ``expected``: value that the caller expects in the word, 32 bits.
    - ``timeout``: address of a timespec; 0 if there is none.
    """

    word: int
    operation: int
    expected: int
    timeout: int = 0

    @classmethod
    def of(cls, args: Sequence[int]) -> FutexCall:
        """Decode the six argument words of a system call."""
        return cls(args[0], args[1] & _WORD, args[2] & _WORD, args[3])

    @property
    def command(self) -> int:
        """The operation without its flags (FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME)."""
        return self.operation & 0x7F

    @property
    def sleeps(self) -> bool:
        """Whether the call waits rather than wakes."""
        return self.command in _SLEEPS

    @property
    def private(self) -> bool:
        """Whether FUTEX_PRIVATE_FLAG is set: only threads of one process wait here.

        libstdc++'s guards and robust mutexes never set the flag, whether shared or not.
        """
        return bool(self.operation & PRIVATE)

    @property
    def plain(self) -> bool:
        """Whether the command is FUTEX_WAIT.

        glibc's lll_lock, libstdc++ and pthread_once use it; conditions, semaphores and rwlocks use FUTEX_WAIT_BITSET.
        """
        return self.command == WAIT
