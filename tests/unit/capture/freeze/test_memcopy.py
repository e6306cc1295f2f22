"""Copying memory: this process's own, which needs no permission, with holes where nothing can be read."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Iterator, List, Tuple

import pytest

from postmortem.capture.freeze import memcopy, vmread
from postmortem.capture.freeze.pages import PAGE
from postmortem.errors import CaptureFailed

PAGES = 40


@pytest.fixture
def region() -> Iterator[int]:
    """Pages that begin with their number; page 7 may not be touched."""
    memory = mmap.mmap(-1, PAGES * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(PAGES):
        memory[page * PAGE] = page
    holder = ctypes.c_char.from_buffer(memory)
    yield ctypes.addressof(holder)
    del holder


@pytest.fixture
def own_memory() -> Iterator[int]:
    descriptor = os.open("/proc/self/mem", os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def numbers(parts: List[Tuple[int, memoryview]], start: int) -> List[int]:
    """The number that each page of the parts begins with; checks that it is where it belongs."""
    found = []
    for address, data in parts:
        for offset in range(0, len(data), PAGE):
            assert data[offset] == (address + offset - start) // PAGE
            found.append(data[offset])
    return found


def test_ranges_are_copied_in_one_call_or_many(region: int, own_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, and an arena that must grow, change nothing."""
    ranges = [(region + page * PAGE, region + (page + 1) * PAGE) for page in range(0, PAGES, 2)]
    monkeypatch.setattr(vmread, "MOST_RANGES", 3)
    copied = memcopy.into_arena(own_memory, os.getpid(), ranges, memcopy.Arena(PAGE))
    assert numbers(copied.parts, region) == list(range(0, PAGES, 2))
    assert (copied.bytes, copied.unreadable_pages) == (PAGES // 2 * PAGE, 0)


def test_pages_that_cannot_be_read_are_left_out_and_counted(region: int, own_memory: int) -> None:
    """A hole in the address space inside a range: the pages around it are there."""
    libc = ctypes.CDLL(None)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    assert libc.munmap(region + 7 * PAGE, PAGE) == 0
    ranges = [(region, region + 3 * PAGE), (region + 5 * PAGE, region + 10 * PAGE)]
    copied = memcopy.into_arena(own_memory, os.getpid(), ranges, memcopy.Arena(64 * PAGE))
    assert numbers(copied.parts, region) == [0, 1, 2, 5, 6, 8, 9]
    assert copied.unreadable_pages == 1


def test_protected_pages_are_read_all_the_same(region: int, own_memory: int) -> None:
    """process_vm_readv refuses them, /proc/PID/mem does not."""
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert libc.mprotect(region + 7 * PAGE, PAGE, 0) == 0
    try:
        whole = (region, region + PAGES * PAGE)
        assert not vmread.read(os.getpid(), [whole], memoryview(bytearray(PAGES * PAGE)))
        copied = memcopy.into_arena(own_memory, os.getpid(), [whole], memcopy.Arena(64 * PAGE))
        assert numbers(copied.parts, region) == list(range(PAGES))
    finally:
        libc.mprotect(region + 7 * PAGE, PAGE, mmap.PROT_READ | mmap.PROT_WRITE)


def test_a_stream_of_pieces_is_the_same(region: int, own_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece, in rising order, each in its place."""
    monkeypatch.setattr(memcopy, "_PIECE", 4 * PAGE)
    parts: List[Tuple[int, bytes]] = []
    ranges = [(region, region + 10 * PAGE), (region + 20 * PAGE, region + 21 * PAGE)]
    copied = memcopy.into_file(own_memory, ranges, lambda at, data: parts.append((at, bytes(data))), lambda: False)
    assert numbers([(at, memoryview(data)) for at, data in parts], region) == [*range(10), 20]
    assert copied.bytes == 11 * PAGE


def test_a_stream_ends_when_asked_to(region: int, own_memory: int) -> None:
    """With a sentence; whoever waits for the end does not wait for gigabytes."""
    with pytest.raises(CaptureFailed, match="before it was complete"):
        memcopy.into_file(own_memory, [(region, region + PAGE)], lambda *_: None, lambda: True)
