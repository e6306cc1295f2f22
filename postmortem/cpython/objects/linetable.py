"""Line tables: from the offset of an instruction to its place in the source.

Format since 3.11: Objects/locations.md (InternalDocs/code_objects.md from 3.14 on). A table is entries in the order
of the code; each covers some code units of two bytes. 3.10: Objects/lnotab_notes.txt of that release, and
co_lines() of it; 3.8 and 3.9: their Objects/lnotab_notes.txt. Those know lines only.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, NamedTuple, Optional, Tuple


class Location(NamedTuple):
    """A stretch of instructions that one piece of source made. Lines count from 1, columns are byte offsets of the
    line's UTF-8 from 0 on; ``end_column`` is the first byte behind. None: the table does not say."""

    end: int  # byte offset of the first instruction behind the stretch
    line: Optional[int]
    end_line: Optional[int] = None
    column: Optional[int] = None
    end_column: Optional[int] = None


#: Groups of six bits that a number of the tables has at most: none is larger than an int of C.
_MAX_GROUPS = 6


def locations(table: bytes, firstlineno: int, size: int) -> Iterator[Location]:
    """The entries of a table of 3.11 and later. A damaged one gives wrong places, never an error, and never more of
    them than fit into ``size`` bytes of code (0: unknown)."""
    line, end, at = firstlineno, 0, 0
    while at < len(table) and not 0 < size <= end:
        first = table[at]
        kind = first >> 3 & 15
        end += ((first & 7) + 1) * 2
        at += 1
        if kind == 15:
            yield Location(end, None)
        elif kind == 14:
            delta, at = signed_varint(table, at)
            line += delta
            span, at = varint(table, at)
            column, at = varint(table, at)
            last, at = varint(table, at)
            yield Location(end, line, line + span, column - 1 if column else None, last - 1 if last else None)
        elif kind == 13:
            delta, at = signed_varint(table, at)
            line += delta
            yield Location(end, line, line)
        elif kind >= 10:
            line += kind - 10
            pair = table[at : at + 2]
            at += 2
            yield Location(end, line, line, *(pair if len(pair) == 2 else (None, None)))
        else:
            byte = table[at] if at < len(table) else 0
            at += 1
            column = kind << 3 | byte >> 4
            yield Location(end, line, line, column, column + (byte & 15))


def _ranges(table: bytes, firstlineno: int, size: int) -> Iterator[Location]:
    """3.10, co_linetable: pairs of a length in bytes of code and a signed difference of lines, -128 for code that has
    no line. Empty stretches only move the line."""
    line, end = firstlineno, 0
    for at in range(0, len(table) - 1, 2):
        if 0 < size <= end:
            break
        length, delta = table[at], _signed_byte(table[at + 1])
        end += length
        if delta != -128:
            line += delta
        if length:
            yield Location(end, None if delta == -128 else line)


def _lnotab(table: bytes, firstlineno: int, size: int) -> Iterator[Location]:
    """3.8 and 3.9, co_lnotab: pairs of how many bytes of code further on a line begins, and its signed difference.
    Longer ways than a byte holds are several pairs; the last line reaches to the end of the code."""
    line, start, end = firstlineno, 0, 0
    for at in range(0, len(table) - 1, 2):
        if 0 < size < end:
            break
        end += table[at]
        delta = _signed_byte(table[at + 1])
        if delta and end > start:
            yield Location(end, line)
            start = end
        line += delta
    yield Location(max(size, end + 1), line)


def _signed_byte(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


#: Layout.line_table → what reads a table: (table, first line of the code, bytes of code) → places.
FORMATS: Dict[str, Callable[[bytes, int, int], Iterator[Location]]] = {
    "lnotab": _lnotab,
    "ranges": _ranges,
    "locations": locations,
}


def varint(table: bytes, at: int) -> Tuple[int, int]:
    """(value, offset behind it): little-endian groups of six bits; bit 6 says that more follow."""
    value = 0
    for group, byte in enumerate(table[at : at + _MAX_GROUPS]):
        at += 1
        value |= (byte & 63) << 6 * group
        if not byte & 64:
            break
    return value, at


def signed_varint(table: bytes, at: int) -> Tuple[int, int]:
    """As ``varint``; bit 0 of the value is the sign."""
    value, at = varint(table, at)
    return (-(value >> 1) if value & 1 else value >> 1), at
