"""What a thread in the parking lot waits for, on synthesised memory."""

from __future__ import annotations

import pytest

from postmortem.cpython.sync.parking import parked_on
from postmortem.memory import Segments

STACK, BUCKET, LOCK = 0x7000_0000, 0x5000_0000, 0x6000_0010
ENTRY = STACK + 0x40
WORD, NODE = ENTRY + 16, ENTRY + 48


def parked() -> Segments:
    """One entry alone in its bucket: park_arg, addr, sema (value 0, one waiter), node."""
    memory = Segments({STACK: b"\0" * 256, BUCKET: b"\0" * 64})
    memory.put_words(ENTRY, 0, LOCK, 1 << 32, 0, 0, 0, BUCKET, BUCKET)
    memory.put_words(BUCKET, NODE, NODE)
    return memory


def test_the_address_is_read_from_the_waiter() -> None:
    """The semaphore's word leads to the entry, the entry to what is waited for."""
    assert parked_on(parked(), WORD) == LOCK


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (WORD, (0,)),  # nobody sleeps on it
        (NODE, (BUCKET + 8,)),  # the next node does not lead back
        (BUCKET, (0,)),  # nor does the one before
        (NODE, (0, 0)),  # taken out of its list: somebody wakes it just now
        (ENTRY + 8, (0,)),
    ],
)
def test_what_is_no_entry_is_unknown(address: int, words: tuple[int, ...]) -> None:
    """Words of ordinary semaphores, and entries that are in no list, say nothing."""
    memory = parked()
    memory.put_words(address, *words)
    assert parked_on(memory, WORD) is None


def test_memory_that_is_not_there_is_unknown() -> None:
    """A word beside a hole does not raise."""
    assert parked_on(parked(), STACK) is None
    assert parked_on(parked(), 0x1234) is None
