"""Futexes of musl's locks, and what is none."""

from __future__ import annotations

import struct
from typing import Optional

import pytest

from postmortem.libc import FutexCall, NativeWait, Threads, awaited
from postmortem.libc.futexes import PRIVATE, WAIT, WAIT_BITSET
from postmortem.memory import MappedFile, Segments

AT, DESCRIPTOR, OTHER_DESCRIPTOR = 0x1000, 0x5000, 0x6000
OWNER, OTHER = 4100, 4101
MUSL = (MappedFile(0, 1, 0, "/lib/ld-musl-x86_64.so.1"),)


def _memory(data: bytes) -> Segments:
    memory = Segments({AT: data.ljust(64, b"\0"), DESCRIPTOR: bytes(256), OTHER_DESCRIPTOR: bytes(256)})
    for pointer, tid in ((DESCRIPTOR, OWNER), (OTHER_DESCRIPTOR, OTHER)):
        memory.put(pointer + 48, struct.pack("<IIi", tid, 0, 2))
    return memory


def _found(memory: Segments, word: int, expected: int, operation: int = WAIT | PRIVATE) -> Optional[NativeWait]:
    threads = Threads.of(memory, {OWNER: DESCRIPTOR, OTHER: OTHER_DESCRIPTOR}, True, MUSL)
    return awaited(memory, FutexCall(word, operation, expected), threads)


def _mutex(kind: int, lock: int, waiters: int = 1, count: int = 0) -> bytes:
    return struct.pack("<IIIIII", kind, lock, waiters, 0, 0, count)


def test_a_recursive_mutex_names_its_owner() -> None:
    """And how often it is held: one more than is counted. The word is the second one of it."""
    found = _found(_memory(_mutex(1, OWNER | 0x80000000, count=2)), AT + 4, OWNER | 0x80000000)
    assert found == NativeWait("mutex", AT, OWNER, False, recursion=3)


def test_a_normal_mutex_names_nobody() -> None:
    """EBUSY stands in place of an owner."""
    assert _found(_memory(_mutex(0, 0x80000010)), AT + 4, 0x80000010) == NativeWait("mutex", AT)


def test_an_owner_that_is_gone() -> None:
    """An error-checking mutex of a thread that the process does not have."""
    found = _found(_memory(_mutex(2, 9 | 0x80000000)), AT + 4, 9 | 0x80000000)
    assert found == NativeWait("mutex", AT, 9, True)


@pytest.mark.parametrize(
    ("memory", "expected", "operation"),
    [
        (_mutex(0, 0x80000010), 0x80000011, WAIT | PRIVATE),  # changed since
        (_mutex(0, 0x80000010), 0x80000010, WAIT),  # a private mutex is waited for privately
        (_mutex(0, 0x80000010), 0x80000010, WAIT_BITSET | PRIVATE),
        (_mutex(0, 0x80000011), 0x80000011, WAIT | PRIVATE),
        (_mutex(0, 16), 16, WAIT | PRIVATE),  # nobody waits
        (_mutex(0, 0x80000010, waiters=0), 0x80000010, WAIT | PRIVATE),
        (_mutex(3, OWNER | 0x80000000), OWNER | 0x80000000, WAIT | PRIVATE),
        (_mutex(0x1000, OWNER | 0x80000000), OWNER | 0x80000000, WAIT | PRIVATE),
        (b"\xff" * 40, 0xFFFFFFFF, WAIT | PRIVATE),
    ],
)
def test_what_is_no_mutex_has_no_owner(memory: bytes, expected: int, operation: int) -> None:
    """Unknown, never somebody."""
    assert _found(_memory(memory), AT + 4, expected, operation) is None


def test_a_stream_is_locked_by_a_thread_of_ours() -> None:
    """Its word is the owner's TID with bit 30."""
    word = OTHER | 0x40000000
    assert _found(_memory(struct.pack("<I", word)), AT, word) == NativeWait("stream", AT, OTHER)
    assert _found(_memory(struct.pack("<I", 9 | 0x40000000)), AT, 9 | 0x40000000) is None


def test_a_joined_thread_is_told_by_its_descriptor() -> None:
    """pthread_join sleeps on detach_state of the thread's own record."""
    found = _found(_memory(b""), OTHER_DESCRIPTOR + 56, 2)
    assert found == NativeWait("thread", OTHER_DESCRIPTOR + 56, OTHER, False)


def test_a_condition_is_not_known_by_its_function_alone() -> None:
    """The word is the waiter's own: two waiters of one condition have nothing in common there."""
    memory = _memory(b"")
    threads = Threads.of(memory, {OWNER: DESCRIPTOR}, True, MUSL)
    assert awaited(memory, FutexCall(AT, WAIT | PRIVATE, 2), threads, ["pthread_cond_timedwait"]) is None
    assert awaited(memory, FutexCall(AT, WAIT | PRIVATE, 2), threads, ["sem_timedwait"]) == NativeWait("semaphore", AT)
