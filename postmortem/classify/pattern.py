"""The definition of a pattern, and its answers: a match, *no, because*, or *cannot tell without X*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator, Literal, Optional, Tuple, Union, get_args

from ..findings import Confidence, Culprit, Victim
from ..findings.found import Said
from .facts.view import View

#: How much a pattern explains, most first, for findings that neither cause each other nor follow from each other:
#: damaged memory; a crash; a process held from outside; a cause that names its mechanism; a resource that is gone or
#: exhausted; agents that wait for each other; a join at exit; one wait that nothing ends; a computation; a silent peer;
#: what is only a symptom.
Tier = Literal[
    "corruption", "crash", "outside", "specific", "resource", "group", "exit", "wait", "computation", "peer", "symptom",
]  # fmt: skip
TIERS: Tuple[Tier, ...] = get_args(Tier)


@dataclass(frozen=True)
class Pattern:
    """The fixed part of a pattern; the docstring of its module is its page."""

    id: str
    title: str  # one line that names it
    explanation: str  # why it hangs, for a reader new to it
    remedy: str
    tier: Tier = "symptom"
    needs: Tuple[str, ...] = ()  # evidence without which it abstains: "window", "python", "cores"
    passing: bool = (
        False  # such waits are normal while they end: without a window at most *possible*, unless nothing ends it
    )
    yields: bool = False  # it reports how the process ended, not why: every other pattern comes before it
    references: Tuple[str, ...] = ()


#: In ``Match.because_of``: every other pattern found in the process that causes it.
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
    unnamed: bool = False  # True: of those who refer to what is waited for, the code of none is known to end the wait


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
