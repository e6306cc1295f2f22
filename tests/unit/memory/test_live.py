"""Memory of a process that runs, or stands still: which pages were asked for, and which were not there."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import time
from pathlib import Path
from typing import Iterator, Tuple

import pytest

from postmortem.capture.freeze import elfcore
from postmortem.capture.freeze.pages import PAGE
from postmortem.capture.freeze.segments import Segment
from postmortem.memory import Fault
from postmortem.memory.live import HeldPages, LiveCore, LivePages, WatchedCore

PAGES = 8


@pytest.fixture
def area() -> Iterator[Tuple[mmap.mmap, int]]:
    """Memory of this process, each page filled with its number, and its address."""
    memory = mmap.mmap(-1, PAGES * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = b"".join(bytes([number]) * PAGE for number in range(PAGES))
    yield memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


@pytest.fixture
def own(area: Tuple[mmap.mmap, int]) -> Iterator[LivePages]:
    """This process's pages."""
    memory, pagemap = (os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("mem", "pagemap"))
    yield LivePages(memory, pagemap, [(area[1], area[1] + PAGES * PAGE)])
    os.close(memory)
    os.close(pagemap)


def core_file(path: Path, start: int, stored: bytes) -> Path:
    """A core of one segment of PAGES pages that has the first of them."""
    who = elfcore.Identity(1, 0, 1, 1, 0, 0, "S", 0, 0, b"x", b"x\0")
    notes = elfcore.notes(who, [], b"", [])
    segments = [Segment(start, start + PAGES * PAGE, len(stored), 6)]
    offsets, size = elfcore.layout(segments, len(notes))
    head = elfcore.head(platform.machine(), segments, notes, offsets)
    path.write_bytes(head.ljust(size - len(stored), b"\0") + stored)
    return path


def test_a_live_core_remembers_its_pages(area: Tuple[mmap.mmap, int], own: LivePages, tmp_path: Path) -> None:
    """Each page that any read touched, each fetched once; the content is the process's."""
    _memory, start = area
    core = LiveCore(str(core_file(tmp_path / "head", start, b"")), own, lambda name: None)
    assert core.read(start + PAGE - 2, 4) == b"\0\0\1\1"
    assert core.u64(start + 3 * PAGE) == 0x0303030303030303
    assert core.u64(start + 5 * PAGE - 4) == 0x0505050504040404
    assert core.words(start + 6 * PAGE, 2) == (0x0606060606060606,) * 2
    assert core.pages == {start // PAGE + number for number in (0, 1, 3, 4, 5, 6)}
    core.close()


def test_a_live_core_faults_as_any_memory(own: LivePages, tmp_path: Path) -> None:
    """Where nothing is mapped, for sizes that are none, and when its time is over."""
    path = str(core_file(tmp_path / "head", 1 << 40, b""))
    core = LiveCore(path, own, lambda name: None)
    for address, size in ((16, 8), (1 << 63, 8), (1 << 40, -1), (1 << 40, 1 << 40)):
        with pytest.raises(Fault):
            core.read(address, size)
    core.close()
    late = LiveCore(path, own, lambda name: None, until=time.monotonic() - 1)
    with pytest.raises(Fault, match="over"):
        late.read(id(path), 8)
    late.close()


def test_a_watched_core_reads_on_where_the_core_ends(
    area: Tuple[mmap.mmap, int], own: LivePages, tmp_path: Path
) -> None:
    """What the core has is the core's; what it lacks comes from the process and is told; what neither has faults."""
    _memory, start = area
    core = WatchedCore(str(core_file(tmp_path / "core", start, b"\xaa" * PAGE)), own)
    assert core.read(start + PAGE - 2, 4) == b"\xaa\xaa\1\1"
    assert core.u64(start + 4 * PAGE) == 0x0404040404040404
    with pytest.raises(Fault):
        core.read(16, 8)
    assert core.missed == {start // PAGE + 1, start // PAGE + 4}
    core.close()


def test_both_take_descriptors(own: LivePages, tmp_path: Path) -> None:
    """Nothing is looked up by their paths then."""
    path = core_file(tmp_path / "core", 1 << 40, b"\xaa" * PAGE)
    live = LiveCore("/nowhere", own, lambda name: None, descriptor=os.open(path, os.O_RDONLY))
    watched = WatchedCore("/nowhere", own, descriptor=os.open(path, os.O_RDONLY))
    assert live.path == watched.path == "/nowhere"
    assert live.writable == watched.writable == [(1 << 40, (1 << 40) + PAGES * PAGE)]
    assert watched.u64(1 << 40) == 0xAAAAAAAAAAAAAAAA
    live.close()
    watched.close()


def test_pages_that_do_not_exist_are_not_made(area: Tuple[mmap.mmap, int], own: LivePages) -> None:
    """Zeros where memory begins as zeros, a fault elsewhere; and looking has made none."""
    memory, start = area
    memory.madvise(mmap.MADV_DONTNEED)
    shared = mmap.mmap(-1, PAGE)
    hole = ctypes.addressof(ctypes.c_char.from_buffer(shared))
    assert own.page(start // PAGE + 2) == bytes(PAGE)
    with pytest.raises(Fault, match="no page"):
        own.page(hole // PAGE)
    pagemap = os.open("/proc/self/pagemap", os.O_RDONLY)
    for address in (start + 2 * PAGE, hole):
        assert not os.pread(pagemap, 8, address // PAGE * 8)[7] & 0xC0
    os.close(pagemap)


def test_held_pages_are_completed_from_the_process(area: Tuple[mmap.mmap, int], own: LivePages) -> None:
    """Parts first, across their borders too; the rest is read page by page and kept, until the time is over."""
    _memory, start = area
    parts = [(start + PAGE, memoryview(b"\xbb" * PAGE)), (start + 2 * PAGE, memoryview(b"\xcc" * PAGE))]
    held = HeldPages(parts, own, time.monotonic() + 60)
    assert held.read(start + 2 * PAGE - 1, 2) == b"\xbb\xcc"
    assert held.read(start + PAGE - 1, 2) == b"\0\xbb"
    assert held.u64(start + 7 * PAGE) == 0x0707070707070707
    assert set(held.further) == {start // PAGE, start // PAGE + 7}
    late = HeldPages(parts, own, time.monotonic() - 1)
    assert late.read(start + PAGE, 1) == b"\xbb"
    with pytest.raises(Fault, match="over"):
        late.read(start, 1)
