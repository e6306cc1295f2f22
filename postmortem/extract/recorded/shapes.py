"""JSON of a bundle, made to fit: what has another type, or is out of bounds, is as good as missing.

A bundle may come from anybody. A shape is a function from a value to that value, or to ``MISSING``; records lose the fields
that do not fit, lists and tables their misfits, and nothing else comes through.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Union

from ...evidence.usable import MOST_FLOAT
from ...foreign import strictjson
from ...foreign.held import Folder
from ...foreign.numbers import decimal

MISSING: Any = object()
Shape = Callable[[Any], Any]

#: Bytes of one JSON file of a bundle: the maps and descriptors of a process are a megabyte or two, the samples of a crowd
#: some tens.
MOST_JSON, MOST_SAMPLES = 32 << 20, 64 << 20
#: Process and thread numbers stay below (pid_t is an int).
MOST_PID = 1 << 31
_MOST_TEXT = 1 << 20
_INT64 = 1 << 63


def read_json(folder: Folder, name: str, most: int = MOST_JSON) -> Optional[Any]:
    """A JSON file of a bundle; None when it is missing, damaged or larger than any (a bundle may be cut short)."""
    try:
        return strictjson.loads(folder.read(name, most))
    except (OSError, ValueError):
        return None


def digits(text: str, below: int = _INT64) -> Optional[int]:
    """The number that decimal ASCII digits write; None for anything else, and from ``below`` on."""
    return decimal(text, below - 1)


def pid_of(text: str) -> Optional[int]:
    """A process's or thread's number that a name consists of; None for anything else."""
    return digits(text, MOST_PID) or None


def number(value: Any) -> Optional[float]:
    """A finite JSON number as a float; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if -MOST_FLOAT <= value <= MOST_FLOAT else None


def integer(value: Any) -> Optional[int]:
    """A JSON number as an int of 64 bits; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return int(value) if -_INT64 <= value < _INT64 else None


def dictionary(value: Any) -> Dict[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------------- shapes


def whole(low: int = -_INT64, high: int = _INT64 - 1) -> Shape:
    """An int within these bounds."""

    def fits(value: Any) -> Any:
        return value if type(value) is int and low <= value <= high else MISSING

    return fits


def amount(value: Any) -> Any:
    """A finite number."""
    return value if number(value) is not None else MISSING


def text(value: Any) -> Any:
    """A string, not an endless one."""
    return value if isinstance(value, str) and len(value) <= _MOST_TEXT else MISSING


def flag(value: Any) -> Any:
    """True or false."""
    return value if isinstance(value, bool) else MISSING


def null_or(shape: Shape) -> Shape:
    """What may be unknown, where it matters that this was said."""
    return lambda value: None if value is None else shape(value)


def either(*shapes: Shape) -> Shape:
    """The first shape that fits."""

    def fits(value: Any) -> Any:
        return next((found for found in (shape(value) for shape in shapes) if found is not MISSING), MISSING)

    return fits


def listed(shape: Shape, most: int = 1 << 20) -> Shape:
    """A list of one kind, without what does not fit."""

    def fits(value: Any) -> Any:
        if not isinstance(value, list):
            return MISSING
        return [found for found in map(shape, value[:most]) if found is not MISSING]

    return fits


def row(*shapes: Shape) -> Shape:
    """A list of so many values, each of its kind; one misfit spoils it."""

    def fits(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(shapes):
            return MISSING
        found: List[Any] = [shape(one) for shape, one in zip(shapes, value)]
        return MISSING if any(one is MISSING for one in found) else found

    return fits


def table(
    shape: Shape, key: Callable[[str], Union[bool, Optional[int]]] = lambda _name: True, most: int = 1 << 20
) -> Shape:
    """An object whose names are data; ``key`` says which of them may be."""

    def fits(value: Any) -> Any:
        if not isinstance(value, dict) or len(value) > most:
            return MISSING
        found = {name: shape(one) for name, one in value.items() if key(name)}
        return {name: one for name, one in found.items() if one is not MISSING}

    return fits


def record(**shapes: Shape) -> Shape:
    """An object of known fields."""

    def fits(value: Any) -> Any:
        if not isinstance(value, dict):
            return MISSING
        found = {name: shape(value[name]) for name, shape in shapes.items() if name in value}
        return {name: one for name, one in found.items() if one is not MISSING}

    return fits
