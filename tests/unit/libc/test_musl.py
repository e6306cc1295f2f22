"""What musl keeps elsewhere than glibc, laid out by hand."""

from __future__ import annotations

import struct

import pytest

from postmortem.libc.musl import Descriptors, Stack, condition_waiters, is_musl, semaphore_value, stack_of
from postmortem.memory import MappedFile, Segments

CONDITION, FIRST, SECOND = 0x1000, 0x7000, 0x8000


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/lib/ld-musl-x86_64.so.1", True),
        ("/lib/ld-musl-aarch64.so.1 (deleted)", True),
        ("/lib/libc.musl-x86_64.so.1", True),
        ("/usr/lib/x86_64-linux-musl/libc.so", True),
        ("/lib/x86_64-linux-gnu/libc.so.6", False),
        ("/home/ld-musl/python3.11", False),
    ],
)
def test_it_is_known_by_its_files(path: str, answer: bool) -> None:
    """Alpine's names and Debian's; a folder of such a name is none."""
    assert is_musl([MappedFile(0, 1, 0, "/usr/bin/python3"), MappedFile(1, 2, 0, path)]) is answer


def _condition(first: int, second: int) -> Segments:
    memory = Segments({CONDITION: bytes(48), FIRST: bytes(32), SECOND: bytes(32)})
    memory.put_words(CONDITION, 0, first)
    memory.put_words(FIRST, 0, second)
    return memory


def test_the_waiters_of_a_condition_each_have_their_word() -> None:
    """From the newest on; nobody waits, the list leads to itself, or where nothing is: what was found so far."""
    assert condition_waiters(_condition(FIRST, SECOND), CONDITION) == {FIRST + 20, SECOND + 20}
    assert condition_waiters(_condition(0, 0), CONDITION) == frozenset()
    assert condition_waiters(_condition(FIRST, FIRST), CONDITION) == {FIRST + 20}
    assert condition_waiters(_condition(FIRST, 0x99000), CONDITION) == {FIRST + 20}
    assert condition_waiters(Segments({}), CONDITION) == frozenset()


def test_a_semaphore_says_in_two_ways_that_somebody_waits() -> None:
    """-1 up to 1.2.3, bit 31 later."""
    assert [semaphore_value(word) for word in (0, 3, 0xFFFFFFFF, 0x80000000, 0x80000001)] == [0, 3, 0, 0, 1]


@pytest.mark.parametrize("offset", [48, 56])
def test_the_threads_own_ids_tell_the_release(offset: int) -> None:
    """They lie one word later in 1.1: where every descriptor has a possible one, and none twice."""
    memory = Segments({FIRST: bytes(128), SECOND: bytes(128)})
    for pointer, tid in ((FIRST, 70), (SECOND, 71)):
        memory.put(pointer + offset, struct.pack("<I", tid))
    assert Descriptors.of(memory, [FIRST, SECOND]) == Descriptors(offset)
    assert Descriptors(offset).detach_state == offset + 8
    assert Descriptors.of(memory, [FIRST, SECOND, 0x99000]) is None
    assert Descriptors.of(memory, []) is None


def test_the_stack_of_a_thread_is_believed_when_it_adds_up() -> None:
    """Guard, stack and descriptor lie in one mapping, in this order; the main thread's record is empty."""
    memory = Segments({SECOND: bytes(256)})
    base, top = 0x2000, 0x7F00
    memory.put_words(SECOND + 72, base, 0x7000, top, top - base - 0x1000, 0x1000)
    assert stack_of(memory, SECOND) == Stack(base, base + 0x1000, top)
    memory.put_words(
        SECOND + 72, base, 0x1000, top, top - base - 0x1000, 0x1000
    )  # a mapping that does not reach so far
    assert stack_of(memory, SECOND) is None
    memory.put_words(SECOND + 72, 0, 0, 0, 0, 0)
    assert stack_of(memory, SECOND) is None
    assert stack_of(Segments({}), SECOND) is None
