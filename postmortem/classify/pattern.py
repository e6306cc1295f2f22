"""What a pattern is, and what it may answer: a match, *no, because*, or *cannot tell without X*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator, Optional, Tuple, Union

from ..findings import Confidence, Culprit, Victim
from .facts.view import View


@dataclass(frozen=True)
class Pattern:
    """The fixed part of a pattern; its module's docstring is the page that people read."""

    id: str
    title: str  # one line: what it is
    explanation: str  # why it hangs, for somebody who has never seen it
    remedy: str
    needs: Tuple[str, ...] = ()  # evidence without which it abstains: "window", "python", "cores"
    outranks: Tuple[str, ...] = ()  # patterns that are its victims or its weaker names; with "*" all that have none
    yields: bool = False  # it says how the process ended, not why: every other pattern is stronger
    references: Tuple[str, ...] = ()


#: For ``Match.because_of``: whatever else is found in the process that causes it. In ``Pattern.outranks`` of a crash: what
#: a process that failed seems to wait for, it no longer waits for.
ANYTHING = ("*",)


@dataclass(frozen=True)
class Match:
    confidence: Confidence
    summary: str
    evidence: Tuple[str, ...]
    culprits: Tuple[Culprit, ...] = ()
    victims: Tuple[Victim, ...] = ()
    remedy: Optional[str] = None  # in place of the pattern's, when the case allows a better one
    because_of: Tuple[str, ...] = ()  # patterns that cause it, if they match too in `cause_pid`
    pid: Optional[int] = None  # the process it is about
    cause_pid: Optional[int] = None  # None: the same process


@dataclass(frozen=True)
class No:
    because: str  # worth telling: "no lock cycle among 14 threads"


@dataclass(frozen=True)
class CannotTell:
    missing: Tuple[str, ...]  # which evidence would decide it


Answer = Union[Match, No, CannotTell]
Matcher = Callable[[View], Iterator[Answer]]
