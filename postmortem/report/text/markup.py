"""Markdown that says what it is given to say: no name of a diagnosed program becomes a tag, link, image, heading or order.

In running text every word with anything but letters, digits and harmless punctuation stands in a code span, which is also how
paths and functions are best read. There nothing has a meaning: neither CommonMark's characters nor the forges' own, which
turn ``@name``, ``#12``, ``:smile:`` and bare addresses into something else and obey lines that begin with ``/``.
"""

from __future__ import annotations

import re
from typing import List

from .. import escape

_LONGEST_WORD = 400  # columns
_BEFORE, _AFTER = "(\"'“", ").,;:!?\"'”"
_PLAIN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|\d[\d,]*(?:\.\d+)?|(?:[a-z]\.)+[a-z]|[–—→…×%]", re.UNICODE)
_NUMBERED = re.compile(r"\d+[.)]")


def prose(text: str, longest: int = 4000) -> str:
    """A paragraph on one line, cut at about so many characters."""
    words: List[str] = []
    room = longest
    for word in text.split():
        shown = _word(word)
        room -= len(shown) + 1
        if room < 0:
            words.append("…")
            break
        words.append(shown)
    if words and _NUMBERED.fullmatch(words[0]):  # else a list begins here
        words[0] = f"{words[0][:-1]}\\{words[0][-1]}"
    return " ".join(words)


def code(text: str, longest: int = _LONGEST_WORD) -> str:
    """A code span; its end is cut off when it is long."""
    shown = escape.cut(escape.clean(text), longest)
    if not shown.strip():
        return "``` ```" if shown else "`?`"
    marks = "`" * (_run(shown) + 1)
    pad = " " if len(marks) > 1 or shown[0] == " " == shown[-1] else ""
    return f"{marks}{pad}{shown}{pad}{marks}"


def fenced(text: str, language: str = "text") -> str:
    """Lines as they are; nothing in them ends the block."""
    marks = "`" * max(3, _run(text) + 1)
    body = text.rstrip("\n")
    return f"{marks}{language}\n{body}\n{marks}"


def _run(text: str) -> int:
    """The most backticks in a row."""
    return max(map(len, re.findall(r"`+", text)), default=0)


def _word(word: str) -> str:
    start = len(word) - len(word.lstrip(_BEFORE))
    end = len(word.rstrip(_AFTER))
    if end <= start:
        return word if not set(word) - set(_BEFORE + _AFTER) and len(word) < 5 else code(word)
    core = word[start:end]
    while word[end : end + 1] == ")" and core.count("(") > core.count(")"):  # of a call
        end += 1
        core = word[start:end]
    if start > 4 or len(word) - end > 4:
        return code(word)
    if len(core) > 2 and core[0] == core[-1] == "`" and core.count("`") == 2:  # the sentence's own mark
        core = core[1:-1]
        return f"{word[:start]}{code(core)}{word[end:]}"
    shown = core if _PLAIN.fullmatch(core) and len(core) <= _LONGEST_WORD and core.isprintable() else code(core)
    return f"{word[:start]}{shown}{word[end:]}"
