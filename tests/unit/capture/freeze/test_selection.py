"""Which pages a selected core has: stacks in use, wanted pages, written pages of files; everything else is a hole."""

from __future__ import annotations

from typing import List, Optional, Sequence

import pytest

from postmortem.arch.registers import Places
from postmortem.capture.freeze.pages import PAGE, Pages, Range
from postmortem.capture.freeze.segments import union
from postmortem.capture.freeze.selection import around, common, needed, segments, stacks, without
from postmortem.capture.procfs.parsers import Mapping

START = 0x10000000
FIRST = START // PAGE  # the number of the first page


def mapping(
    pages: int, perms: str = "rw-p", name: bytes = b"", inode: int = 0, at: int = 0, offset: int = 0
) -> Mapping:
    start = START + at * PAGE
    return Mapping(start, start + pages * PAGE, perms, offset, "00:00", inode, name)


def ranges(*runs: Range) -> List[Range]:
    """Given in pages from START on."""
    return [(START + low * PAGE, START + high * PAGE) for low, high in runs]


def in_pages(found: Optional[Sequence[Range]]) -> List[Range]:
    assert found is not None
    return [((low - START) // PAGE, (high - START) // PAGE) for low, high in found]


@pytest.mark.parametrize(
    ("one", "touched", "wanted", "copies", "zeros"),
    [
        pytest.param(
            mapping(100), [(0, 100)], [3, 5, 40], [(3, 6), (40, 41)], [], id="of private memory what was asked for"
        ),
        pytest.param(mapping(100), [(3, 4)], [3, 5], [(3, 4)], [(5, 6)], id="what lies between may be a guard"),
        pytest.param(mapping(100), [], [3], [], [(3, 4)], id="a page that nobody wrote is zeros, and said to be"),
        pytest.param(mapping(100, name=b"[heap]"), [(0, 100)], [], [], [], id="the heap is private memory"),
        pytest.param(mapping(9, "rw-p", b"/x.so", 7, offset=4), [(2, 4)], [8], [(0, 9)], [], id="data of libraries"),
        pytest.param(
            mapping(900, "rw-p", b"/x.bin", 7, offset=4),
            [(2, 4)],
            [8],
            [(2, 4), (8, 9)],
            [],
            id="written pages of files",
        ),
        pytest.param(
            mapping(9, "r-xp", b"/x.so", 7), [], [3, 4], [(0, 1), (3, 5)], [], id="of a file what was asked for"
        ),
        pytest.param(mapping(2, "r-xp", b"[vdso]"), [], [], [(0, 2)], [], id="the vdso is nowhere else"),
        pytest.param(mapping(1, "rw-s", b"/dev/shm/sem.x (deleted)", 7), [], [], [(0, 1)], [], id="semaphores"),
        pytest.param(
            mapping(900, "rw-s", b"/dev/shm/array", 7), [], [5], [(5, 6)], [], id="of shared arrays what is asked for"
        ),
        pytest.param(mapping(4, "---p"), [], [1], [], [], id="what nobody may read"),
        pytest.param(mapping(4, "rw-s", b"/dev/dri/card0", 7), [], [1], [], [], id="a device"),
    ],
)
def test_what_is_kept_of_a_mapping(
    one: Mapping, touched: List[Range], wanted: List[int], copies: List[Range], zeros: List[Range]
) -> None:
    """Each kind of memory by its own rule; the process has all pages of its files and shared memory."""
    have = Pages(ranges(*touched), [(one.start, one.end)] if one.inode else [])
    found = needed([one], have, {FIRST + page for page in wanted})
    assert (in_pages(found.copies), in_pages(found.zeros)) == (copies, zeros)


def test_shared_pages_that_do_not_exist_are_not_asked_for() -> None:
    """To read them would make them."""
    one = mapping(900, "rw-s", b"/dev/shm/array", 7)
    found = needed([one], Pages([], ranges((5, 6))), {FIRST + 5, FIRST + 6})
    assert (in_pages(found.copies), found.zeros) == ([(5, 6)], [])


def test_the_data_behind_a_library_s_file_is_one_piece() -> None:
    """.bss: debuggers read it whole. Only behind a file, and only as much as data are: the kernel joins what follows."""
    file, bss = mapping(2, "rw-p", b"/lib/x.so", 7, offset=4096), mapping(10, at=2)
    found = needed([file, bss], Pages(ranges((4, 6)), []), [])
    assert (in_pages(found.copies), in_pages(found.zeros)) == ([(4, 6)], [(2, 4), (6, 12)])
    assert needed([bss], Pages(ranges((4, 6)), []), []) == ([], [])
    joined = needed([file, mapping(10_000, at=2)], Pages(ranges((4, 6), (300, 302)), []), [])
    assert (in_pages(joined.copies), in_pages(joined.zeros)) == ([(4, 6)], [(2, 4), (6, 258)])


def test_neighbours_in_other_mappings_are_not_taken_along() -> None:
    """What lies between two close pages comes too, but only of the mapping that they are in."""
    mappings = [mapping(4), mapping(4, "---p", at=4), mapping(4, at=8)]
    found = needed(mappings, Pages(ranges((0, 12)), []), {FIRST + 2, FIRST + 9})
    assert in_pages(found.copies) == [(2, 3), (9, 10)]


def at(page: float, thread_pointer: float = 0) -> Places:
    return Places(START + int(page * PAGE), 0, START + int(thread_pointer * PAGE) if thread_pointer else 0)


def test_a_thread_s_stack_ends_behind_its_control_block() -> None:
    """Other threads' stacks may lie in the same mapping; from the stack pointer, with its red zone, to there."""
    assert in_pages(stacks([at(10.5, 20.5)], [mapping(100)])) == [(10, 21)]
    assert in_pages(stacks([at(10.01, 20.5)], [mapping(100)])) == [(9, 21)]


def test_the_main_stack_ends_with_its_mapping() -> None:
    """Its control block lies elsewhere, and comes too."""
    found = stacks([at(90, 5.5)], [mapping(10), mapping(90, name=b"[stack]", at=10)])
    assert in_pages(found) == [(5, 6), (89, 100)]


def test_a_stack_pointer_in_no_stack_gets_a_part() -> None:
    """A greenlet's stack on the heap: a bounded piece above it, the heap is not copied whole."""
    assert in_pages(stacks([at(10)], [mapping(100000, name=b"[heap]")])) == [(9, 74)]


def test_of_a_very_deep_stack_both_ends_are_kept() -> None:
    """Recursion without end: 16 MB of it, the oldest frames among them."""
    (first, second) = in_pages(stacks([at(1)], [mapping(100000, name=b"[stack]")]))
    assert first[0] == 0
    assert second[1] == 100000
    assert (first[1] - first[0] + second[1] - second[0]) * PAGE == 16 << 20


def test_a_stack_where_nothing_was_mapped_is_told() -> None:
    """The thread is younger than the list of mappings: it must be read anew. A thread without registers is none such."""
    assert stacks([at(200)], [mapping(100)]) is None
    assert stacks([Places(0, 0, 0)], [mapping(100)]) == []


def test_only_files_are_named_where_nothing_is_stored() -> None:
    """The first page of a library's code, with the rest left out; other memory where it is resident; no devices."""
    one, other = mapping(10), mapping(5, "r-xp", b"/x.so", 7, at=20)
    device = mapping(5, "rw-s", b"/dev/mem", 7, at=30)
    found = segments([one, other, device], ranges((2, 4), (7, 8), (20, 21)))
    assert [((s.start - START) // PAGE, (s.end - START) // PAGE, s.stored // PAGE, s.flags) for s in found] == [
        (2, 4, 2, 6),
        (7, 8, 1, 6),
        (20, 25, 1, 5),
    ]


def test_around_a_page_are_the_written_ones() -> None:
    """Up to the reach, and the page itself in any case."""
    found = around({FIRST + 5, FIRST + 50}, 2, ranges((0, 5), (6, 7), (51, 90)))
    assert sorted(page - FIRST for page in found) == [3, 4, 5, 6, 50, 51, 52]


def test_ranges_are_joined_and_intersected() -> None:
    """Rising, disjoint, joined where they touch."""
    assert union([(5, 7), (1, 3)], [(3, 4), (6, 9), (12, 12)]) == [(1, 4), (5, 9)]
    assert list(without([(0, 5), (8, 20)], [(1, 2), (4, 9), (15, 16)])) == [(0, 1), (2, 4), (9, 15), (16, 20)]
    assert list(common([(0, 5), (8, 20)], [(1, 2), (4, 9), (15, 30)])) == [(1, 2), (4, 5), (8, 9), (15, 20)]
