"""What goes into a sparse core, mapping by mapping."""

from __future__ import annotations

from typing import List, Optional

import pytest

from postmortem.capture.procfs import Mapping
from postmortem.capture.segments import PAGE, Plan, Range, plan

START = 0x10000000


def mapping(pages: int, perms: str = "rw-p", name: bytes = b"", inode: int = 0, offset: int = 0) -> Mapping:
    return Mapping(START, START + pages * PAGE, perms, offset, "00:00", inode, name)


def pages(*runs: Range) -> List[Range]:
    """Ranges given in pages from START on."""
    return [(START + low * PAGE, START + high * PAGE) for low, high in runs]


def planned(one: Mapping, *runs: Range) -> Plan:
    return plan([one], pages(*runs))


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
    result = plan([first, second], pages((2, 6)))
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
    result = planned(one)
    if stored_pages is None:
        assert result.segments == []
    else:
        assert [s.stored for s in result.segments] == [stored_pages * PAGE]
    assert result.bytes == (stored_pages or 0) * PAGE


def test_relocated_read_only_data_is_stored() -> None:
    """RELRO is read-only now, and was written by the linker: the file does not have it."""
    result = planned(mapping(4, "r--p", b"/lib/x.so", 7, 0x8000), (1, 2))
    assert result.bytes == 4 * PAGE


def test_a_large_private_file_mapping_is_split_at_its_changes() -> None:
    """Gigabytes of weights mapped copy-on-write: the changed pages, and the file for the rest."""
    size = 1 << 18
    result = planned(mapping(size, "rw-p", b"/weights", 7), (10, 12), (50, 51))
    assert [(s.stored > 0) for s in result.segments] == [False, True, False, True, False]
    assert result.segments[0].start == START
    assert result.segments[-1].end == START + size * PAGE
    assert result.bytes == 3 * PAGE


def test_a_huge_reservation_is_stored_around_what_it_uses() -> None:
    """Clusters of used pages, not the terabytes between them."""
    size = 1 << 28  # a terabyte
    result = planned(mapping(size), (100, 101), (110, 111), (1 << 27, (1 << 27) + 1))
    assert [s.stored for s in result.segments] == [11 * PAGE, PAGE]
    assert result.bytes == 3 * PAGE
