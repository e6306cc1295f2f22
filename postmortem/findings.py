"""What is concluded: the second half of ``report.json`` (its schema is public: INTERFACE in the README)."""

from __future__ import annotations

from typing import Optional, Tuple

import msgspec

SCHEMA = "postmortem.report/1"

CONFIDENCES = ("proven", "likely", "possible")


class Culprit(msgspec.Struct, frozen=True):
    """Where to change the code."""

    pid: int
    tid: Optional[int]
    task: Optional[str]
    file: str
    line: Optional[int]
    function: str
    source: Optional[str] = None


class Victim(msgspec.Struct, frozen=True):
    """Who suffers from it."""

    pid: int
    tid: int
    file: Optional[str] = None
    line: Optional[int] = None
    function: Optional[str] = None


class Finding(msgspec.Struct, frozen=True):
    pattern: str
    confidence: str  # one of CONFIDENCES
    summary: str
    explanation: str
    remedy: str
    references: Tuple[str, ...] = ()
    because_of: Tuple[str, ...] = ()
    culprits: Tuple[Culprit, ...] = ()
    victims: Tuple[Victim, ...] = ()
    evidence: Tuple[str, ...] = ()


class Abstained(msgspec.Struct, frozen=True):
    """A pattern that could not be decided, and which evidence was missing."""

    pattern: str
    missing: Tuple[str, ...]


class RuledOut(msgspec.Struct, frozen=True):
    """A negative worth saying."""

    pattern: str
    because: str


class Diagnosis(msgspec.Struct, frozen=True):
    """The answer to one bundle or core."""

    verdict: Optional[str]
    signature: str
    findings: Tuple[Finding, ...] = ()
    abstained: Tuple[Abstained, ...] = ()
    ruled_out: Tuple[RuledOut, ...] = ()
