"""Which pages exist: the ioctl and the file must tell the same."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Iterator, List, Tuple

import pytest

from postmortem.capture.freeze.pages import PAGE, PageMap
from postmortem.capture.procfs.parsers import Mapping, parse_maps

TOUCHED = [3, 4, 5, 40, 99]


@pytest.fixture
def region() -> Iterator[Tuple[int, mmap.mmap]]:
    """A hundred private pages of this process, some of them written, one only read."""
    memory = mmap.mmap(-1, 100 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(15)  # MADV_NOHUGEPAGE: pages come one by one
    for page in TOUCHED:
        memory[page * PAGE] = 1
    holder = ctypes.c_char.from_buffer(memory)
    yield ctypes.addressof(holder), memory
    del holder


def mappings() -> List[Mapping]:
    with open("/proc/self/maps", "rb") as stream:
        return parse_maps(stream.read())


@pytest.mark.parametrize("scan", [True, False])
def test_written_pages_are_found(region: Tuple[int, mmap.mmap], scan: bool) -> None:
    """Exactly those, with PAGEMAP_SCAN (where the kernel has it) and by reading pagemap."""
    start, _memory = region
    descriptor = os.open("/proc/self/pagemap", os.O_RDONLY)
    try:
        found = PageMap(descriptor, has_scan=scan).look(mappings()).touched
    finally:
        os.close(descriptor)
    assert found == sorted(found)
    inside = [
        (max(low, start), min(high, start + 100 * PAGE))
        for low, high in found
        if low < start + 100 * PAGE and high > start
    ]
    numbers = [page for low, high in inside for page in range((low - start) // PAGE, (high - start) // PAGE)]
    assert numbers == TOUCHED


def test_a_reservation_that_would_take_too_long_is_named(region: Tuple[int, mmap.mmap]) -> None:
    """Without the ioctl, terabytes are not looked through; they are told, not forgotten."""
    huge = Mapping(0x10000000, 0x10000000 + (1 << 42), "rw-p", 0, "00:00", 0, b"")
    descriptor = os.open("/proc/self/pagemap", os.O_RDONLY)
    try:
        pages = PageMap(descriptor, has_scan=False)
        assert pages.look([huge]) == ([], [])
        assert pages.left_out == [huge]
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("scan", [True, False])
def test_guards_hold_nothing(region: Tuple[int, mmap.mmap], scan: bool) -> None:
    """A page that MADV_GUARD_INSTALL made a guard looks swapped out, but is no page to copy."""
    start, memory = region
    try:
        memory.madvise(102, 50 * PAGE, PAGE)
    except OSError as exc:
        pytest.skip(f"needs MADV_GUARD_INSTALL, Linux 6.13: {exc.strerror}")
    descriptor = os.open("/proc/self/pagemap", os.O_RDONLY)
    try:
        found = PageMap(descriptor, scan).look(mappings()).touched
    finally:
        os.close(descriptor)
    assert not any(low <= start + 50 * PAGE < high for low, high in found)
    assert any(low <= start + 40 * PAGE < high for low, high in found)
