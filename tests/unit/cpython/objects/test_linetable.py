"""Line tables of every format, made by hand and cut short."""

from __future__ import annotations

import random
from typing import List, Optional, Tuple

import pytest

from postmortem.cpython.objects.linetable import FORMATS


def stretches(kind: str, table: bytes, first: int = 10, size: int = 0) -> List[Tuple[int, Optional[int]]]:
    return [(place.end, place.line) for place in FORMATS[kind](table, first, size)]


def test_lnotab_lines_begin_where_a_pair_says() -> None:
    """3.8, 3.9: the first line lasts to the first pair, the last one to the end of the code; lines go back as well."""
    assert stretches("lnotab", bytes([0, 1, 8, 2, 4, 0xFF]), size=20) == [(8, 11), (12, 13), (20, 12)]
    assert stretches("lnotab", b"", size=6) == [(6, 10)]


def test_lnotab_long_ways_are_several_pairs() -> None:
    """3.8, 3.9: more than 254 bytes, or more than 127 lines, take pairs that move only one of the two."""
    table = bytes([6, 127, 0, 73, 255, 0, 45, 1])  # 200 lines on after 6 bytes; one more after 300 others
    assert stretches("lnotab", table, size=310) == [(6, 10), (306, 210), (310, 211)]


def test_ranges_have_stretches_without_a_line() -> None:
    """3.10: -128 is code that no line made, and does not move the line that follows."""
    table = bytes([4, 1, 6, 0x80, 2, 0, 8, 0xFE])
    assert stretches("ranges", table) == [(4, 11), (10, None), (12, 11), (20, 9)]


def test_ranges_that_are_empty_only_move_the_line() -> None:
    """3.10: a jump of more than 127 lines is made of empty stretches."""
    assert stretches("ranges", bytes([2, 0, 0, 127, 4, 3])) == [(2, 10), (6, 140)]


def test_locations_with_and_without_columns() -> None:
    """3.11 on: short form, one line form, no columns, long form, none: lines and columns of each."""
    table = bytes(
        [
            0x80 | 1 << 3 | 0,
            0x23,  # short: columns 8 + 2 to 8 + 2 + 3
            0x80 | 11 << 3 | 1,
            4,
            9,  # one line on, columns 4 to 9, two units
            0x80 | 13 << 3 | 0,
            6,  # no columns, three lines on
            0x80 | 14 << 3 | 0,
            3,
            1,
            5,
            7,  # long: a line back, ends a line later, columns 4 to 6
            0x80 | 15 << 3 | 0,
        ]
    )
    assert [tuple(place) for place in FORMATS["locations"](table, 10, 0)] == [
        (2, 10, 10, 10, 13),
        (6, 11, 11, 4, 9),
        (8, 14, 14, None, None),
        (10, 13, 14, 4, 6),
        (12, None, None, None, None),
    ]


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_damaged_tables_give_stretches_in_order(kind: str) -> None:
    """Whatever the bytes, a table ends, its stretches grow, and nothing is raised."""
    chance = random.Random(8)
    for _ in range(300):
        table = bytes(chance.randrange(256) for _ in range(chance.randrange(40)))
        ends = [end for end, _line in stretches(kind, table, size=64)]
        assert ends == sorted(set(ends))


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_no_more_stretches_than_code(kind: str) -> None:
    """A table that is too long for its code is damaged: what it says of code that is not there is not read."""
    found = stretches(kind, bytes([2, 1]) * 100_000, size=40)
    assert 0 < len(found) <= 22
    assert found[-1][0] <= 60


def test_numbers_take_no_more_than_an_int() -> None:
    """Since 3.11: a number that never ends is damaged, and must not grow with the table."""
    found = stretches("locations", bytes([0xF0 | 0, *[0x7F] * 60_000]))
    assert all(line is None or abs(line) < 1 << 48 for _end, line in found)
