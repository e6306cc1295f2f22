"""Findings before they are worded: the result of `classify`, and the input of ``report/phrases/findings``."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple, Union

from ..waitgraph import Reason
from .texts import Text
from .told import Confidence, Culprit, Root, Victim

#: What a finding cites: a text of its pattern, or a step of the wait graph's derivation.
Said = Union[Text, Reason]


class Found(NamedTuple):
    """A recognised cause; the fields are those of ``Finding``."""

    pattern: str
    confidence: Confidence
    summary: Said
    explanation: str
    remedy: Tuple[Said, ...]  # sentences
    references: Tuple[str, ...] = ()
    because_of: Tuple[str, ...] = ()
    culprits: Tuple[Culprit, ...] = ()
    victims: Tuple[Victim, ...] = ()
    evidence: Tuple[Said, ...] = ()


class Missing(NamedTuple):
    """A pattern that could not be decided, and which evidence was missing."""

    pattern: str
    missing: Tuple[Said, ...]


class Refuted(NamedTuple):
    """A pattern that was excluded, and the fact that contradicts it."""

    pattern: str
    because: Said


class Outcome(NamedTuple):
    """The result of classifying one bundle or core."""

    verdict: Optional[str]
    signature: str
    findings: Tuple[Found, ...] = ()
    abstained: Tuple[Missing, ...] = ()
    ruled_out: Tuple[Refuted, ...] = ()
    root: Optional[Root] = None
