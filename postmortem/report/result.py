"""What renderers are given, and what they raise."""

from __future__ import annotations

from typing import Tuple

from ..evidence import Evidence
from ..findings import Diagnosis

Result = Tuple[str, Evidence, Diagnosis]  # the target as the user named it, and what was found


class NothingToShow(Exception):
    """The evidence has nothing of what a format is about; the sentence says what is missing, and how to get it."""
