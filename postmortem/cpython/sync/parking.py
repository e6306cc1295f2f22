"""Whoever waits for a small lock, a byte that is ``PyMutex`` or ``PyEvent`` (3.13+), sleeps on a semaphore of his own,
in an entry of the parking lot on his stack. The entry says for which address he waits: it is read from there, without
any symbol, and believed when its semaphore has one waiter and the list that it is in leads back to it (objects that the
garbage collector tracks lie in lists of the same make).

Source: Python/parking_lot.c (struct wait_entry: park_arg, addr, sema, node, is_unparking), pycore_llist.h, and DWARF of
3.13, 3.14 and 3.15; ``_PySemaphore`` is a sem_t of 32 bytes, whose first word is the futex and whose second one counts
waiters (glibc, struct new_sem).
"""

from __future__ import annotations

from typing import Optional

from ...memory import Fault, Memory

_SEMAPHORE, _NODE = 16, 48


def parked_on(memory: Memory, word: int) -> Optional[int]:
    """The address that a thread waits for whose futex is at ``word``; None when it is not in the parking lot."""
    entry = word - _SEMAPHORE
    node = entry + _NODE
    try:
        _argument, address, semaphore, _private, _rest, _rest, following, previous = memory.words(entry, 8)
        if semaphore >> 32 != 1 or memory.u64(following + 8) != node or memory.u64(previous) != node:
            return None
        return address or None
    except Fault:
        return None
