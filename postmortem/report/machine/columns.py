"""Columns as other tools count them. The interpreter counts bytes of a line's UTF-8, from 0 on."""

from __future__ import annotations

from typing import NamedTuple, Optional

from ...evidence import Evidence
from ...findings import Culprit


class Region(NamedTuple):
    """Lines and columns count from 1; the end column is that behind the last character. Columns are UTF-16 code units,
    as editors and forges count them; None where the text of the line is not known, or has changed since."""

    line: int
    end_line: Optional[int]
    column: Optional[int]
    end_column: Optional[int]


def region(evidence: Evidence, culprit: Culprit) -> Optional[Region]:
    """Where the expression to blame stands; None without a line. Without known columns it is all of its line."""
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
    """UTF-16 code units before so many bytes of UTF-8."""
    if text is None or column is None:
        return None
    raw = text.encode("utf-8", "backslashreplace")
    if not 0 <= column <= len(raw):
        return None
    return len(raw[:column].decode("utf-8", "replace").encode("utf-16-le")) // 2
