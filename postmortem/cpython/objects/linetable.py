"""Line tables: from an instruction's offset to its source location.

Sources:
- 3.11 and later: Objects/locations.md (InternalDocs/code_objects.md since 3.14). Entries in the order of the code, each
  for some code units of two bytes.
- 3.10: Objects/lnotab_notes.txt and co_lines() of that release; lines only.
- 3.8, 3.9: their Objects/lnotab_notes.txt; lines only.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, NamedTuple, Optional, Tuple


class Location(NamedTuple):
    """Source location of a range of instructions; None where the table has no information.

    Fields:
    - ``end``: byte offset of the first instruction after the range.
    - ``line``, ``end_line``: from 1.
    - ``column``, ``end_column``: byte offsets in the line's UTF-8, from 0; the end is exclusive.
    """

    end: int
    line: Optional[int]
    end_line: Optional[int] = None
    column: Optional[int] = None
    end_column: Optional[int] = None


#: Most six-bit groups of a number: none exceeds a C int.
_MAX_GROUPS = 6


def locations(table: bytes, firstlineno: int, size: int) -> Iterator[Location]:
    """Yield the entries of a table of 3.11 and later; ``size``: bytes of code, 0 if unknown.

    A damaged table yields wrong locations, never an error, and never more than fit into ``size``.
    """
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
    """Yield the entries of co_linetable of 3.10.

    Pairs of a length in bytes of code and a signed line delta; -128 marks code without a line. Empty ranges only
    advance the line.
    """
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
    """Yield the entries of co_lnotab of 3.8 and 3.9.

    Each pair has the bytes of code up to the start of the next line, and the (signed) difference of the line numbers.
    Larger distances are split into several pairs; the last line extends to the end of the code.
    """
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
    """Interpret a byte as a signed integer."""
    return byte - 256 if byte > 127 else byte


#: Layout.line_table → decoder: (table, first line of the code, bytes of code) → locations.
FORMATS: Dict[str, Callable[[bytes, int, int], Iterator[Location]]] = {
    "lnotab": _lnotab,
    "ranges": _ranges,
    "locations": locations,
}


def varint(table: bytes, at: int) -> Tuple[int, int]:
    """Return (value, offset behind it): little-endian groups of six bits; bit 6: more follow."""
    value = 0
    for group, byte in enumerate(table[at : at + _MAX_GROUPS]):
        at += 1
        value |= (byte & 63) << 6 * group
        if not byte & 64:
            break
    return value, at


def signed_varint(table: bytes, at: int) -> Tuple[int, int]:
    """Return as ``varint``; bit 0 of the value is the sign."""
    value, at = varint(table, at)
    return (-(value >> 1) if value & 1 else value >> 1), at
