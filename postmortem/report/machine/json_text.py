r"""JSON that is safe to print: names from a diagnosed program control no terminal and no CI runner.

A character and its ``\uXXXX`` are the same string in JSON, so nothing is lost.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Dict

from ... import evidence as ev
from ... import runners

# Only these are examined; JSON itself escapes control characters below the space.
_NOT_ASCII = re.compile(r"[^\x00-\x7e]+")
_UNSEEN = frozenset(("Cc", "Cf", "Cn", "Co", "Zl", "Zp"))  # controls, format marks, unassigned, private, line ends


def dump(value: Any) -> str:
    """Encode a value as indented JSON with a final newline; lone surrogates become visible escapes."""
    text = ev.json_bytes(value).decode("utf-8")
    text = _NOT_ASCII.sub(lambda found: found.group().translate(_TABLE), text)
    if runners.may_obey(text):
        text = runners.ANYWHERE.sub(lambda found: _escape(found.group()), text)
    return text + "\n"


def _escape(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class _Table(Dict[int, str]):
    """A table for str.translate that fills itself."""

    def __missing__(self, code: int) -> str:
        text = chr(code)
        self[code] = _escape(text) if unicodedata.category(text) in _UNSEEN else text
        return self[code]


_TABLE = _Table()
