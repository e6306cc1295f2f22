"""What goes into a sparse core, mapping by mapping."""

from __future__ import annotations

from typing import List, Optional, Sequence

import pytest

from postmortem.capture.freeze.pages import PAGE, Pages, Range
from postmortem.capture.freeze.segments import Plan, plan
from postmortem.capture.procfs.parsers import Mapping

START = 0x10000000


def mapping(pages: int, perms: str = "rw-p", name: bytes = b"", inode: int = 0, offset: int = 0) -> Mapping:
    return Mapping(START, START + pages * PAGE, perms, offset, "00:00", inode, name)


def pages(*runs: Range) -> List[Range]:
    """Ranges given in pages from START on."""
    return [(START + low * PAGE, START + high * PAGE) for low, high in runs]


def planned(one: Mapping, *runs: Range, resident: Sequence[Range] = (), full: bool = False) -> Plan:
    """``runs``: written pages; ``resident``: pages of the file, or shared, that the process has."""
    return plan([one], Pages(pages(*runs), pages(*resident)), full)


def test_anonymous_memory_keeps_the_touched_pages() -> None:
    """The segment is whole, for holes are zeros; what is read is only what exists."""
    result = planned(mapping(10), (2, 3), (7, 9))
    assert [(s.start, s.stored, s.flags) for s in result.segments] == [(START, 10 * PAGE, 6)]
    assert result.copies == pages((2, 3), (7, 9))
    assert result.bytes == 3 * PAGE


def test_touched_ranges_are_cut_at_the_mappings() -> None:
    """The kernel joins neighbours; each mapping gets its own part."""
    first = mapping(4)
    second = first._replace(start=first.end, end=first.end + 4 * PAGE, perms="r--p")
    result = plan([first, second], Pages(pages((2, 6)), []))
    assert result.copies == pages((2, 4), (4, 6))


@pytest.mark.parametrize(
    ("one", "stored_pages"),
    [
        pytest.param(mapping(8, "r-xp", b"/lib/x.so", 7, 0x4000), 0, id="code is in the file"),
        pytest.param(mapping(8, "r--p", b"/lib/x.so", 7, 0), 1, id="the first page holds the build-id"),
        pytest.param(mapping(8, "rw-p", b"/lib/x.so", 7, 0x4000), 8, id="data may differ from the file"),
        pytest.param(mapping(8, "---p"), 0, id="a guard or a reservation"),
        pytest.param(mapping(2, "r-xp", b"[vdso]"), 2, id="vdso is nowhere else"),
        pytest.param(mapping(4, "r--p", b"[vvar]"), None, id="vvar is the kernel's"),
        pytest.param(mapping(4, "r--p", b"[vvar_vclock]"), None, id="so is vvar_vclock"),
        pytest.param(mapping(1, "--xp", b"[vsyscall]"), None, id="and vsyscall"),
        pytest.param(mapping(4, "rw-s", b"/dev/nvidia0", 9), None, id="reading a device does things"),
        pytest.param(mapping(4, "rw-s", b"/dev/shm/sem.mp-x", 9), 4, id="semaphores"),
        pytest.param(mapping(4, "rw-s", b"/dev/shm/sem.mp-x (deleted)", 9), 4, id="unlinked semaphores"),
        pytest.param(mapping(4, "rw-s", b"/dev/zero (deleted)", 9), 4, id="shared anonymous"),
        pytest.param(mapping(1 << 14, "rw-s", b"/dev/zero (deleted)", 9), 0, id="shared data, too large"),
        pytest.param(mapping(4, "r--s", b"/usr/lib/locale/archive", 9), 0, id="a shared file is a file"),
    ],
)
def test_kinds_of_mappings(one: Mapping, stored_pages: Optional[int]) -> None:
    """None: not in the core at all; 0: named, without content."""
    result = planned(one, resident=[(0, one.size // PAGE)])
    if stored_pages is None:
        assert result.segments == []
    else:
        assert sum(s.stored for s in result.segments) == stored_pages * PAGE
    assert result.bytes == (stored_pages or 0) * PAGE


def test_relocated_read_only_data_is_stored() -> None:
    """RELRO is read-only now, and was written by the linker: the file does not have it."""
    result = planned(mapping(4, "r--p", b"/lib/x.so", 7, 0x8000), (1, 2), resident=[(0, 1)])
    assert result.copies == pages((0, 2))


@pytest.mark.parametrize(
    "one", [mapping(8, "rw-s", b"/dev/zero (deleted)", 9), mapping(8, "rw-p", b"/lib/x.so", 7, 0x4000)]
)
def test_pages_that_do_not_exist_are_never_asked_for(one: Mapping) -> None:
    """Reading a hole of shared memory makes a page there. What was not read is a hole, and no zeros."""
    result = planned(one, resident=[(2, 3)])
    assert result.copies == pages((2, 3))
    assert [(s.start, s.end, s.stored) for s in result.segments] == [(*pages((0, 2))[0], 0), (*pages((2, 8))[0], PAGE)]


@pytest.mark.parametrize("perms", ["---p", "--xp"])
def test_written_pages_that_nobody_may_read_now_are_stored(perms: str) -> None:
    """Code that was made and is only run, data that was locked away: no file has them."""
    result = planned(mapping(8, perms), (2, 4))
    assert result.copies == pages((2, 4))
    assert [s.stored for s in result.segments] == [0, 2 * PAGE]


def test_full_takes_what_there_is_of_files() -> None:
    """Code that runs, and shared files; not what the process has never looked at."""
    for one in (mapping(8, "r-xp", b"/lib/x.so", 7, 0x4000), mapping(8, "rw-s", b"/data", 7)):
        assert planned(one, resident=[(1, 5)], full=True).copies == pages((1, 5))


def test_a_large_private_file_mapping_is_split_at_its_changes() -> None:
    """Gigabytes of weights mapped copy-on-write: the changed pages, and the file for the rest."""
    size = 1 << 18
    result = planned(mapping(size, "rw-p", b"/weights", 7), (10, 12), (50, 51))
    assert [s.stored for s in result.segments] == [PAGE, 2 * PAGE, PAGE]
    assert result.segments[0].start == START
    assert result.segments[-1].end == START + size * PAGE
    assert result.bytes == 4 * PAGE


def test_a_huge_reservation_is_stored_around_what_it_uses() -> None:
    """Clusters of used pages, not the terabytes between them."""
    size = 1 << 28  # a terabyte
    result = planned(mapping(size), (100, 101), (110, 111), (1 << 27, (1 << 27) + 1))
    assert [s.stored for s in result.segments] == [11 * PAGE, PAGE]
    assert result.bytes == 3 * PAGE
