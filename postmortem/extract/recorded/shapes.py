"""Validation of a bundle's JSON: values of another type or out of bounds count as missing.

Bundles are untrusted. A shape is a function from a value to that value or ``MISSING``. Records, lists and tables drop
what is invalid and pass nothing else.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Union

from ...evidence.usable import MOST_FLOAT
from ...foreign import strictjson
from ...foreign.held import Folder
from ...foreign.numbers import decimal

MISSING: Any = object()
Shape = Callable[[Any], Any]

#: Bytes of one JSON file: the maps and descriptors of a process take 1 to 2 MB, the samples of many threads some tens.
MOST_JSON, MOST_SAMPLES = 32 << 20, 64 << 20
#: Exclusive limit of PIDs and TIDs (pid_t is an int).
MOST_PID = 1 << 31
_MOST_TEXT = 1 << 20
_INT64 = 1 << 63


def read_json(folder: Folder, name: str, most: int = MOST_JSON) -> Optional[Any]:
    """Return a JSON file of a bundle; None if missing, damaged or too large."""
    try:
        return strictjson.loads(folder.read(name, most))
    except (OSError, ValueError):
        return None


def digits(text: str, below: int = _INT64) -> Optional[int]:
    """Parse decimal ASCII digits; None if invalid or not below ``below``."""
    return decimal(text, below - 1)


def pid_of(text: str) -> Optional[int]:
    """Parse a PID or TID; None if invalid."""
    return digits(text, MOST_PID) or None


def number(value: Any) -> Optional[float]:
    """Return a finite JSON number as a float; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if -MOST_FLOAT <= value <= MOST_FLOAT else None


def integer(value: Any) -> Optional[int]:
    """Return a JSON number as a 64-bit int; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return int(value) if -_INT64 <= value < _INT64 else None


def dictionary(value: Any) -> Dict[str, Any]:
    """Return a JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------------- shapes


def whole(low: int = -_INT64, high: int = _INT64 - 1) -> Shape:
    """Return the shape of an int within these bounds."""

    def fits(value: Any) -> Any:
        return value if type(value) is int and low <= value <= high else MISSING

    return fits


def amount(value: Any) -> Any:
    """Return a finite number, or MISSING."""
    return value if number(value) is not None else MISSING


def text(value: Any) -> Any:
    """Return a string of limited length, or MISSING."""
    return value if isinstance(value, str) and len(value) <= _MOST_TEXT else MISSING


def flag(value: Any) -> Any:
    """Return a bool, or MISSING."""
    return value if isinstance(value, bool) else MISSING


def null_or(shape: Shape) -> Shape:
    """Return the shape of a value or null, where null differs from a missing value."""
    return lambda value: None if value is None else shape(value)


def either(*shapes: Shape) -> Shape:
    """Return a shape that applies the first one that fits."""

    def fits(value: Any) -> Any:
        return next((found for found in (shape(value) for shape in shapes) if found is not MISSING), MISSING)

    return fits


def listed(shape: Shape, most: int = 1 << 20) -> Shape:
    """Return the shape of a list of one kind; invalid elements are dropped."""

    def fits(value: Any) -> Any:
        if not isinstance(value, list):
            return MISSING
        return [found for found in map(shape, value[:most]) if found is not MISSING]

    return fits


def row(*shapes: Shape) -> Shape:
    """Return the shape of a list with one value per shape; one invalid value invalidates it."""

    def fits(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(shapes):
            return MISSING
        found: List[Any] = [shape(one) for shape, one in zip(shapes, value)]
        return MISSING if any(one is MISSING for one in found) else found

    return fits


def table(
    shape: Shape, key: Callable[[str], Union[bool, Optional[int]]] = lambda _name: True, most: int = 1 << 20
) -> Shape:
    """Return the shape of an object whose names are data.

    ``key`` accepts a name.
    """

    def fits(value: Any) -> Any:
        if not isinstance(value, dict) or len(value) > most:
            return MISSING
        found = {name: shape(one) for name, one in value.items() if key(name)}
        return {name: one for name, one in found.items() if one is not MISSING}

    return fits


def record(**shapes: Shape) -> Shape:
    """Return the shape of an object with these fields."""

    def fits(value: Any) -> Any:
        if not isinstance(value, dict):
            return MISSING
        found = {name: shape(value[name]) for name, shape in shapes.items() if name in value}
        return {name: one for name, one in found.items() if one is not MISSING}

    return fits
