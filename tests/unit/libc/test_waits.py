"""From a futex call and the bytes around its word to the lock of native code, and to its holder."""

from __future__ import annotations

import struct
from typing import Optional, Sequence

import pytest

from postmortem.libc import FutexCall, NativeWait, Threads, awaited, program_frame
from postmortem.libc.waits import waiting_for
from postmortem.memory import Segments

AT = 0x7000_0000
OWNER, OTHER = 4100, 4101
POINTER = 0x7F00_0000_06C0
THREADS = Threads({OWNER, OTHER}, {POINTER: OWNER})
WAIT, SHARED_WAIT, BITSET, SHARED_BITSET, PI = 0x80, 0x00, 0x189, 0x109, 0x86


def mutex(lock: int = 2, count: int = 0, owner: int = OWNER, users: int = 1, kind: int = 0, links: int = 0) -> bytes:
    return struct.pack("<IIIIIhhQQ", lock, count, owner, users, kind, 0, 0, links, links)


def rwlock(
    readers: int = 0, writers: int = 0, phase: int = 0, futex: int = 0, writer: int = 0, shared: int = 0
) -> bytes:
    return struct.pack("<IIIIIIII", readers, writers, phase, futex, 0, 0, writer, shared)


def found(
    memory: bytes,
    operation: int,
    expected: int,
    offset: int = 0,
    threads: Threads = THREADS,
    functions: Sequence[Optional[str]] = (),
) -> Optional[NativeWait]:
    """Return the wait on an object that has nothing but zeros around it."""
    call = FutexCall(AT + offset, operation, expected)
    return awaited(Segments({AT - 64: bytes(64) + memory + bytes(64)}), call, threads, functions)


def test_a_mutex_names_its_owner() -> None:
    """A contended normal mutex: its owner's TID is beside it. A recursive one says how often, too."""
    assert found(mutex(), WAIT, 2) == NativeWait("mutex", AT, OWNER, False)
    again = found(mutex(count=3, kind=1), WAIT, 2)
    assert again is not None and (again.owner, again.recursion) == (OWNER, 3)


def test_an_owner_that_is_gone() -> None:
    """A private mutex of a thread that the process does not have will never be given back. Of one that other processes
    share, or where threads may be missing, nothing is said."""
    gone = found(mutex(owner=9), WAIT, 2)
    assert gone is not None and (gone.owner, gone.gone) == (9, True)
    shared = found(mutex(owner=9, kind=128), SHARED_WAIT, 2)
    assert shared is not None and (shared.owner, shared.gone, shared.shared) == (9, None, True)
    cut = found(mutex(owner=9), WAIT, 2, threads=THREADS._replace(complete=False))
    assert cut is not None and cut.gone is None


def test_threads_of_another_pid_namespace() -> None:
    """Inside a container a thread records the TID that it has there: its own descriptor tells which one that is. Where a
    descriptor cannot be read, nobody is said to be gone."""
    first, second = 0x5000, 0x7000
    memory = Segments({first: bytes(720) + struct.pack("<I", 7), second: bytes(720) + struct.pack("<I", 8)})
    threads = Threads.of(memory, {OWNER: first, OTHER: second}, True)
    inside = found(mutex(owner=8), WAIT, 2, threads=threads)
    assert inside is not None and (inside.owner, inside.gone) == (OTHER, False)
    outside = found(mutex(owner=OTHER), WAIT, 2, threads=threads)
    assert outside is not None and outside.gone is True
    unread = found(mutex(owner=9), WAIT, 2, threads=Threads.of(memory, {OWNER: first, OTHER: 0}, True))
    assert unread is not None and unread.gone is None


def test_a_mutex_on_its_way_from_one_to_the_next() -> None:
    """Given back, and not yet taken by the thread that was woken: nobody has it, and nobody is gone."""
    assert found(mutex(owner=0, users=0), WAIT, 2) == NativeWait("mutex", AT)


def test_mutexes_whose_word_is_their_owner() -> None:
    """Priority inheritance and robust ones: the kernel keeps the TID in the word, and a bit when that thread died."""
    inherits = found(mutex(lock=0x80000000 | OWNER, count=1, kind=32), PI, 0)
    assert inherits is not None and (inherits.owner, inherits.gone) == (OWNER, False)
    robust = found(mutex(lock=0x80000000 | OWNER, count=1, kind=144, links=AT), SHARED_WAIT, 0x80000000 | OWNER)
    assert robust is not None and (robust.owner, robust.gone, robust.shared) == (OWNER, False, False)
    died = found(mutex(lock=0xC0000000 | OWNER, count=1, kind=144, links=AT), SHARED_WAIT, 0xC0000000 | OWNER)
    assert died is not None and died.gone is True
    # not marked: its owner runs, so that it is a thread of another process
    elsewhere = found(mutex(lock=0x80000009, count=1, kind=144, owner=9, links=AT), SHARED_WAIT, 0x80000009)
    assert elsewhere is not None and (elsewhere.owner, elsewhere.gone, elsewhere.shared) == (9, None, True)


@pytest.mark.parametrize(
    ("memory", "operation", "expected"),
    [
        (mutex(lock=1), WAIT, 2),  # nobody waits for it any more
        (mutex(kind=0x1000), WAIT, 2),
        (mutex(owner=1 << 23), WAIT, 2),
        (mutex(links=AT), WAIT, 2),
        (mutex(users=0), WAIT, 2),
        (mutex(count=5), WAIT, 2),
        (mutex(), SHARED_WAIT, 2),  # a private mutex is waited for privately
        (mutex(), BITSET, 2),
        (mutex(lock=OWNER, kind=0), PI, 0),
        (mutex(lock=0x80000010, count=0, owner=0, users=0), WAIT, 0x80000010),  # musl's way
        (b"\xff" * 40, WAIT, 2),
    ],
)
def test_what_is_no_mutex_has_no_owner(memory: bytes, operation: int, expected: int) -> None:
    """Bytes that a waited-for mutex cannot have, or a call that does not fit it: unknown, never somebody."""
    assert found(memory, operation, expected) is None


def test_unreadable_memory_is_unknown() -> None:
    """A word whose page is not in the core."""
    assert awaited(Segments({}), FutexCall(AT, WAIT, 2), THREADS) is None
    end = Segments({AT: struct.pack("<I", 0x10100)})  # where a mutex would not fit any more
    assert awaited(end, FutexCall(AT, SHARED_WAIT, 0x10100), THREADS) == NativeWait("guard", AT)


def test_a_stream_names_its_owner_by_thread_pointer() -> None:
    """The lock of a FILE: 2 is waited for, the owner a pointer; the low half of one is never taken for a TID."""
    stream = struct.pack("<IIQ", 2, 1, POINTER) + bytes(24)
    assert found(stream, WAIT, 2) == NativeWait("stream", AT, OWNER, recursion=1)
    assert found(struct.pack("<IIQ", 2, 1, 0x7F00_0000_1000) + b"\xff" * 24, WAIT, 2) is None


def test_the_guard_of_a_static() -> None:
    """libstdc++ waits for a value of its own, without the private bit; nothing says who initialises."""
    assert found(struct.pack("<Q", 0x10100), SHARED_WAIT, 0x10100) == NativeWait("guard", AT)
    assert found(struct.pack("<Q", 0x10100), WAIT, 0x10100) is None
    assert found(struct.pack("<Q", 1), SHARED_WAIT, 0x10100) is None


def test_a_writer_of_an_rwlock_is_recorded() -> None:
    """A reader waits at the write phase, a writer behind other writers: both find the one who writes."""
    reader = found(rwlock(readers=11, phase=3, futex=3, writer=OWNER), BITSET, 3, 8)
    writer = found(rwlock(readers=3, writers=1, futex=3, writer=OWNER), BITSET, 3, 12)
    assert reader == writer == NativeWait("rwlock", AT, OWNER, False)


def test_readers_of_an_rwlock_are_only_counted() -> None:
    """Nobody wrote down who they are; without its function's name such memory could be anything."""
    memory = rwlock(readers=10, phase=2, futex=1)
    named = found(memory, BITSET, 2, 8, functions=["__futex_abstimed_wait_common", "pthread_rwlock_wrlock"])
    assert named == NativeWait("rwlock", AT, readers=1)
    assert found(memory, BITSET, 2, 8) is None


def test_a_joined_thread() -> None:
    """pthread_join waits for the TID, or since glibc 2.42 for the state, in the descriptor of that thread."""
    tid = struct.pack("<I", OTHER)
    assert found(tid, SHARED_BITSET, OTHER) == NativeWait("thread", AT, OTHER, False)
    assert found(tid, BITSET, OTHER) is None
    assert found(struct.pack("<I", 9), SHARED_BITSET, 9) is None
    beside = THREADS._replace(by_pointer={AT - 0x628: OWNER, AT - 0x100000: OTHER})
    assert found(struct.pack("<I", 2), SHARED_BITSET, 2, threads=beside) == NativeWait("thread", AT, OWNER, False)
    assert found(struct.pack("<I", 7), SHARED_BITSET, 7, threads=beside) is None


def test_what_only_a_name_can_tell() -> None:
    """Conditions, semaphores, barriers and once look like any four bytes. Two waiters of one condition sleep at two words."""
    first = found(
        bytes(48), BITSET, 0, 40, functions=["__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2"]
    )
    second = found(bytes(48), BITSET, 0, 44, functions=["___pthread_cond_timedwait"])
    assert first == second and first is not None and first.kind == "condition"
    semaphore = found(
        bytes(16), SHARED_BITSET, 0, functions=["do_futex_wait.constprop.0", "__new_sem_wait_slow64.constprop.0"]
    )
    assert semaphore == NativeWait("semaphore", AT, shared=True)
    once = found(struct.pack("<I", 1), WAIT, 1, functions=["syscall", "__pthread_once_slow"])
    assert once == NativeWait("once", AT)
    assert found(bytes(48), BITSET, 0, 40, functions=["sem_wait_for_it", "my_pthread_cond_wait"]) is None


def test_whoever_destroys_a_condition_waits_for_its_waiters() -> None:
    """pthread_cond_destroy sleeps at the word before those of the waiters: all are at one condition."""
    waits = found(bytes(48), BITSET, 0, 40, functions=["futex_abstimed_wait", "__pthread_cond_wait"])
    destroys = found(bytes(48), WAIT, 12, 36, functions=["futex_wait", "__GI___pthread_cond_destroy"])
    assert waits == destroys and waits is not None and waits.kind == "condition"


def test_a_name_far_up_the_stack_says_nothing() -> None:
    """Only the functions next to the system call tell for what it waits."""
    assert waiting_for([*["helper"] * 8, "sem_wait"]) is None


def test_who_wants_it_is_outside_the_c_library() -> None:
    """The first frame that is not libc's, libstdc++'s or the loader's."""
    libc, cpp = "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libstdc++.so.6.0.30"
    assert program_frame([("syscall", libc), ("__cxa_guard_acquire", cpp), (None, "/app/_units.so"), ("f", libc)]) == 2
    assert program_frame([("futex_wait", libc)]) is None
    assert program_frame([("futex_wait", libc), ("__run_exit_handlers", libc), ("_start", "/usr/bin/python3")]) is None
    assert program_frame([("f", "/opt/libcrypto-libc.so/libcache.so.1")]) == 0
