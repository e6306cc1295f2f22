"""Escaping of text from a diagnosed program, so that it is safe to print.

Thread names, paths and source lines are chosen by the program (or by the author of the core), so they may contain
terminal sequences, newlines, direction marks, or bytes that are not UTF-8.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import List

from .. import runners

_LONGEST_WORD = 400  # columns: a path is kept whole, a hostile "word" of a megabyte is not


def clean(text: str) -> str:
    r"""Return one line of printable text.

    Non-printable characters become visible escapes such as ``\x1b``; CI runners' commands (``runners``) get a backslash.
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
    """Return the number of terminal columns of printable text: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


@lru_cache(maxsize=4096)
def _width(ch: str) -> int:
    return 0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Cut text to at most ``width`` columns; a cut end is replaced by …."""
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
    """Cut text like :func:`cut`, but keep its end, which distinguishes paths."""
    if columns(text) <= width:
        return text
    return cut(text[::-1], width)[::-1]


def wrap(text: str, width: int) -> List[str]:
    """Wrap text into lines of at most ``width`` columns, at spaces only, so that a path can be copied in one piece."""
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
