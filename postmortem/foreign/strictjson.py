"""JSON written by others, limited to the standard (RFC 8259) and to values that are safe to process.

Python's ``json`` accepts NaN and Infinity, makes integers of any length (quadratic in their digits) and infinite floats
of ``1e400``, and recurses as deeply as the text is nested.
"""

from __future__ import annotations

import json
import math
from typing import Any

#: Digits of the longest integer: 2**64 has twenty.
_MOST_DIGITS = 20
#: Levels of nesting: what postmortem writes has ten.
MOST_DEPTH = 100


def loads(data: bytes) -> Any:
    """Parse a JSON text in UTF-8. Raises ValueError for everything else, and for values nested too deeply."""
    try:
        value = json.loads(data.decode("utf-8"), parse_int=_integer, parse_float=_float, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Raise ValueError for a value nested too deeply to be walked recursively."""
    level = [value]
    for _depth in range(MOST_DEPTH):
        inside = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, (dict, list)))
        level = [item for items in inside for item in items if isinstance(item, (dict, list))]
        if not level:
            return
    raise ValueError("nested too deeply")


def _integer(text: str) -> int:
    value = int(text) if len(text) <= _MOST_DIGITS + 1 else 1 << 64
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError("an integer of more than 64 bits")
    return value


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number that no float can hold")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
