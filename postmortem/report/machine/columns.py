"""Columns as other tools count them. The interpreter counts bytes of a line's UTF-8, from 0."""

from __future__ import annotations

from typing import NamedTuple, Optional

from ...evidence import Evidence
from ...findings import Culprit


class Region(NamedTuple):
    """A region of source. Lines and columns count from 1; the end column is after the last character.

    Columns are UTF-16 code units, as in editors and forges; None if the text of the line is unknown or has changed.
    """

    line: int
    end_line: Optional[int]
    column: Optional[int]
    end_column: Optional[int]


def region(evidence: Evidence, culprit: Culprit) -> Optional[Region]:
    """Return the region of a culprit's expression, of its whole line without known columns; None without a line."""
    if culprit.line is None or culprit.line < 1:
        return None
    known = evidence.sources.get(culprit.file, {})
    text = known.get(culprit.line, culprit.source)
    last = culprit.end_line or culprit.line
    begin = _units(text, culprit.column)
    end = _units(text if last == culprit.line else known.get(last), culprit.end_column)
    if begin is None or end is None or last < culprit.line or (last == culprit.line and end <= begin):
        return Region(culprit.line, None, None, None)
    return Region(culprit.line, last, begin + 1, end + 1)


def _units(text: Optional[str], column: Optional[int]) -> Optional[int]:
    """Return the number of UTF-16 code units before ``column`` bytes of UTF-8; None if unknown."""
    if text is None or column is None:
        return None
    raw = text.encode("utf-8", "backslashreplace")
    if not 0 <= column <= len(raw):
        return None
    return len(raw[:column].decode("utf-8", "replace").encode("utf-16-le")) // 2
