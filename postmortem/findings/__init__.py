"""What classification concludes, first without words, then in words.

- ``texts``: templates with typed slots, which patterns own
- ``found``: findings whose texts are templates and slots, as `classify` makes them
- ``told``: findings in words, as `report` makes them and ``report.json`` has them
"""

from __future__ import annotations

from .found import Found, Missing, Outcome, Refuted
from .texts import Slot, Template, Text, ThreadName
from .told import (
    CONFIDENCES,
    SCHEMA,
    Abstained,
    Confidence,
    Culprit,
    Diagnosis,
    Finding,
    Root,
    RootKind,
    RootState,
    RuledOut,
    Victim,
)

__all__ = (
    "CONFIDENCES",
    "SCHEMA",
    "Abstained",
    "Confidence",
    "Culprit",
    "Diagnosis",
    "Finding",
    "Found",
    "Missing",
    "Outcome",
    "Refuted",
    "Root",
    "RootKind",
    "RootState",
    "RuledOut",
    "Slot",
    "Template",
    "Text",
    "ThreadName",
    "Victim",
)
