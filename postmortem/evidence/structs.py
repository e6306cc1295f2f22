"""Modified copies of immutable values."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def replace(value: S, /, **changes: Any) -> S:
    """Return a copy of a struct with some fields changed."""
    return msgspec.structs.replace(value, **changes)
