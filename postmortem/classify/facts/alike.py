"""Merging of findings that state the same of several threads or tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Hashable, Iterable, Iterator, List, NamedTuple, Tuple

from ...findings import Confidence, Slot, Template
from ..pattern import Match

#: How a number of other agents is in the same state.
THREADS_WAIT = Template("{count:n other thread} {count:v wait} in the same way")
TASKS_WAIT = Template("{count:n other task} {count:v wait} in the same way")
PROCESSES_ARE = Template("{count:n other process|other processes} {count:v is|are} in the same state")

_NAMED = 8
_ORDER: Tuple[Confidence, ...] = ("possible", "likely", "proven")

_SUMMARY = Template("{summary}; {likewise}")
_WHICH = Template("{likewise}: {names}{more}")
_MORE = Template(" and {count} more")


def least(several: Iterable[Confidence]) -> Confidence:
    """Return the lowest of several confidences."""
    return min(several, key=_ORDER.index)


class Alike(NamedTuple):
    """A match about the agent ``who``; matches with the same ``key`` are one finding."""

    key: Hashable
    who: Slot
    match: Match


def told_once(several: Iterable[Alike], likewise: Template) -> Iterator[Match]:
    """Yield one match for each key: the one of highest confidence, with the number and names of the others.

    ``likewise``: how their number is told, ``THREADS_WAIT`` or the like.
    """
    groups: Dict[Hashable, List[Alike]] = {}
    for one in several:
        groups.setdefault(one.key, []).append(one)
    for group in groups.values():
        first, *others = sorted(group, key=lambda one: -_ORDER.index(one.match.confidence))
        yield _counting(first, others, likewise) if others else first.match


def _counting(first: Alike, others: List[Alike], likewise: Template) -> Match:
    """Return a match extended by the number, names and victims of the others."""
    match, told = first.match, likewise(count=len(others))
    more = _MORE(count=len(others) - _NAMED) if len(others) > _NAMED else None
    victims = (victim for one in (first, *others) for victim in one.match.victims)
    return replace(
        match,
        summary=_SUMMARY(summary=match.summary, likewise=told),
        evidence=(*match.evidence, _WHICH(likewise=told, names=tuple(one.who for one in others[:_NAMED]), more=more)),
        victims=tuple(dict.fromkeys(victims)),
    )
