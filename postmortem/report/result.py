"""The input of renderers, and the exception that they raise."""

from __future__ import annotations

from typing import Tuple

from ..evidence import Evidence
from ..findings import Diagnosis

Result = Tuple[str, Evidence, Diagnosis]  # the target as the user named it, with its evidence and diagnosis


class NothingToShow(Exception):
    """Raised if the evidence has nothing for a format; the message says what is missing, and how to get it."""
