"""JSON that is safe to print: what a diagnosed program named must move no terminal and give no CI runner orders.

Inside JSON a character and its ``\\uXXXX`` are the same string, so nothing is lost.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Match

from .. import evidence as ev
from .. import runners

# Whatever is not ASCII is looked at; JSON itself escapes what lies below the space.
_SUSPECTS = re.compile(rf"[^\x00-\x7e]|{runners.ANYWHERE.pattern}")
_UNSEEN = frozenset(("Cc", "Cf", "Cn", "Co", "Zl", "Zp"))  # controls, direction marks, separators of lines, nobody's


def dump(value: Any) -> str:
    """One value, indented, with a newline at its end. Lone surrogates come out as visible escapes."""
    return _SUSPECTS.sub(_escaped, ev.json_bytes(value).decode("utf-8")) + "\n"


def _escaped(found: Match[str]) -> str:
    text = found.group()
    if text not in ("#", "_") and unicodedata.category(text) not in _UNSEEN:  # those two are of what runners obey
        return text
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
