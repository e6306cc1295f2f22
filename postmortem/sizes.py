"""Sizes set by the user in the environment: bytes, or a number with K, M, G or T."""

from __future__ import annotations

import os
import re
from typing import Optional

from .errors import UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def configured(variable: str) -> Optional[int]:
    """Return the bytes given by an environment variable; None when it is not set. Raises UsageError for an invalid size."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,18})\s*([KMGT]?)(?:I?B)?", text.upper(), re.ASCII)
    if match is None:
        raise UsageError(
            f"{variable} is {text!r}, which is not a size", "use a number of bytes, or a number with K, M, G or T"
        )
    return int(match[1]) * _UNITS[match[2]]
