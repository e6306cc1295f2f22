"""JSON that somebody else wrote: what the standard (RFC 8259) has, and nothing that a reader of numbers would stumble over.

Python's ``json`` accepts NaN and Infinity, makes integers of any length (quadratic in their digits) and infinite floats of
``1e400``, and recurses as deep as the text says.
"""

from __future__ import annotations

import json
import math
from typing import Any

#: Digits of the longest integer: 2**64 has twenty.
_MOST_DIGITS = 20
#: Containers in one another: what postmortem writes has ten.
MOST_DEPTH = 100


def loads(data: bytes) -> Any:
    """Return the value of a JSON text in UTF-8. Raises ValueError for everything else, also for values that are nested
    too deeply."""
    try:
        value = json.loads(data.decode("utf-8"), parse_int=_integer, parse_float=_float, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """So that whoever walks through the value may do it recursively."""
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
    raise ValueError(f"{name} is no JSON")
