"""Markdown that stays literal: no name of a diagnosed program becomes a tag, link, image, heading or command.

In running text every word with anything but letters, digits and harmless punctuation is put into a code span, which also
suits paths and functions. Inside one nothing has a meaning: neither CommonMark's characters nor the forges' own, which
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
    """Return a paragraph on one line, cut at about ``longest`` characters."""
    words: List[str] = []
    room = longest
    for word in text.split():
        shown = _word(word)
        room -= len(shown) + 1
        if room < 0:
            words.append("…")
            break
        words.append(shown)
    if words and _NUMBERED.fullmatch(words[0]):  # without the escape this would begin a list
        words[0] = f"{words[0][:-1]}\\{words[0][-1]}"
    return " ".join(words)


def code(text: str, longest: int = _LONGEST_WORD) -> str:
    """Return a code span, cut at ``longest`` columns."""
    shown = escape.cut(escape.clean(text), longest)
    if not shown.strip():
        return "``` ```" if shown else "`?`"
    marks = "`" * (_run(shown) + 1)
    pad = " " if len(marks) > 1 or shown[0] == " " == shown[-1] else ""
    return f"{marks}{pad}{shown}{pad}{marks}"


def fenced(text: str, language: str = "text") -> str:
    """Return lines as a fenced code block that nothing in them can end."""
    marks = "`" * max(3, _run(text) + 1)
    body = text.rstrip("\n")
    return f"{marks}{language}\n{body}\n{marks}"


def _run(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, re.findall(r"`+", text)), default=0)


def _word(word: str) -> str:
    start = len(word) - len(word.lstrip(_BEFORE))
    end = len(word.rstrip(_AFTER))
    if end <= start:
        return word if not set(word) - set(_BEFORE + _AFTER) and len(word) < 5 else code(word)
    core = word[start:end]
    while word[end : end + 1] == ")" and core.count("(") > core.count(")"):  # closes a call in the word
        end += 1
        core = word[start:end]
    if start > 4 or len(word) - end > 4:
        return code(word)
    if len(core) > 2 and core[0] == core[-1] == "`" and core.count("`") == 2:  # a code span of the sentence itself
        core = core[1:-1]
        return f"{word[:start]}{code(core)}{word[end:]}"
    shown = core if _PLAIN.fullmatch(core) and len(core) <= _LONGEST_WORD and core.isprintable() else code(core)
    return f"{word[:start]}{shown}{word[end:]}"
