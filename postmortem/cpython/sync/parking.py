"""The parking lot: waits for a one-byte lock, ``PyMutex`` or ``PyEvent`` (3.13+).

A waiter has an entry on its stack, with the semaphore on which it sleeps and the address of the awaited lock. The
futex word leads to the entry, without any symbol. It is accepted if its semaphore has one waiter and its list links back
to it (other structures, such as the garbage collector's, have the same links).

Sources:
- Python/parking_lot.c: struct wait_entry (park_arg, addr, sema, node, is_unparking).
- pycore_llist.h, and DWARF of 3.13, 3.14 and 3.15.
- glibc, struct new_sem: ``_PySemaphore`` is a sem_t of 32 bytes; its first word is the futex, its second counts
  waiters.
"""

from __future__ import annotations

from typing import Optional

from ...memory import Fault, Memory

_SEMAPHORE, _NODE = 16, 48


def parked_on(memory: Memory, word: int) -> Optional[int]:
    """Return the address that a thread awaits on a futex word; None if it is not parked."""
    entry = word - _SEMAPHORE
    node = entry + _NODE
    try:
        _argument, address, semaphore, _private, _rest, _rest, following, previous = memory.words(entry, 8)
        if semaphore >> 32 != 1 or memory.u64(following + 8) != node or memory.u64(previous) != node:
            return None
        return address or None
    except Fault:
        return None
