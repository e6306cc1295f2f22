"""Text from a diagnosed program made safe to print.

Thread names, paths and source lines are chosen by the program (or by whoever wrote the core), so they may
hold terminal sequences, newlines, marks that reverse the reading direction, or bytes that are no UTF-8.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import List

from .. import runners

_LONGEST_WORD = 400  # a path is kept whole, a hostile "word" of a megabyte is not


def clean(text: str) -> str:
    """One line of printable text: whatever is not printable becomes a visible ``\\x1b``-like escape, and what CI runners
    obey in a log (``runners``) gets a backslash.
    """
    if not text.isprintable():
        text = "".join(map(_visible, text))
    return runners.defused(text)


@lru_cache(maxsize=4096)
def _visible(ch: str) -> str:
    if ch.isprintable() or unicodedata.category(ch) == "Zs":
        return ch
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(ch)
    if named is not None:
        return named
    code = ord(ch)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def columns(text: str) -> int:
    """How many terminal columns printable text takes: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


@lru_cache(maxsize=4096)
def _width(ch: str) -> int:
    return 0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` columns, its end replaced by … when it is longer."""
    if columns(text) <= width:
        return text
    kept, used = [], 1
    for ch in text:
        used += columns(ch)
        if used > width:
            break
        kept.append(ch)
    return "".join(kept) + "…"


def tail(text: str, width: int) -> str:
    """Like :func:`cut`, but keeps the end: what tells paths apart stands there."""
    if columns(text) <= width:
        return text
    return cut(text[::-1], width)[::-1]


def wrap(text: str, width: int) -> List[str]:
    """Lines of at most ``width`` columns, broken at spaces only, so that a path stays one piece to copy."""
    lines: List[str] = []
    line, used = "", 0
    for whole in text.split():
        word = cut(clean(whole), max(width, _LONGEST_WORD))
        size = columns(word)
        if line and used + 1 + size > width:
            lines.append(line)
            line, used = "", 0
        line, used = (f"{line} {word}", used + 1 + size) if line else (word, size)
    return [*lines, line] if line else lines
