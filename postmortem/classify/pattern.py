"""The definition of a pattern, and its answers: a match, *no, because*, or *cannot tell without X*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator, Optional, Tuple, Union

from ..findings import Confidence, Culprit, Victim
from ..findings.found import Said
from .facts.view import View


@dataclass(frozen=True)
class Pattern:
    """The fixed part of a pattern; the docstring of its module is its page."""

    id: str
    title: str  # one line that names it
    explanation: str  # why it hangs, for a reader new to it
    remedy: str
    needs: Tuple[str, ...] = ()  # evidence without which it abstains: "window", "python", "cores"
    outranks: Tuple[
        str, ...
    ] = ()  # patterns that are its consequences or less specific; with "*" every pattern without "*"
    yields: bool = False  # it reports how the process ended, not why: every other pattern outranks it
    references: Tuple[str, ...] = ()


#: In ``Match.because_of``: every other pattern found in the process that causes it. In ``Pattern.outranks`` of a crash:
#: a process that crashed no longer waits for anything, whatever it seems to wait for.
ANYTHING = ("*",)


@dataclass(frozen=True)
class Match:
    """The answer that the pattern applies: texts, lines to change, threads affected."""

    confidence: Confidence
    summary: Said
    evidence: Tuple[Said, ...]
    culprits: Tuple[Culprit, ...] = ()
    victims: Tuple[Victim, ...] = ()
    remedy: Optional[Said] = None  # replaces the pattern's, if the case allows a better one
    because_of: Tuple[str, ...] = ()  # patterns that cause it, if they match in `cause_pid`, too
    pid: Optional[int] = None  # the process concerned
    cause_pid: Optional[int] = None  # None: the same process


@dataclass(frozen=True)
class No:
    """The answer that a fact contradicts the pattern."""

    because: Said  # the fact, for the reader: "no lock cycle among 14 threads"


@dataclass(frozen=True)
class CannotTell:
    """The answer that evidence is missing."""

    missing: Tuple[Said, ...]  # the evidence that would decide it


Answer = Union[Match, No, CannotTell]
Matcher = Callable[[View], Iterator[Answer]]
