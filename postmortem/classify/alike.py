"""Findings that say the same of several threads or tasks, told once."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Hashable, Iterable, Iterator, List, NamedTuple

from .pattern import Match

_NAMED = 8
_ORDER = ("possible", "likely", "proven")


class Alike(NamedTuple):
    """``match`` is about ``who``; what has the same ``key`` is the same finding."""

    key: Hashable
    who: str
    match: Match


def told_once(several: Iterable[Alike], noun: str) -> Iterator[Match]:
    """One match for each key: the surest, which counts the others. ``noun``: what they are, "thread" or "task"."""
    groups: Dict[Hashable, List[Alike]] = {}
    for one in several:
        groups.setdefault(one.key, []).append(one)
    for group in groups.values():
        first, *others = sorted(group, key=lambda one: -_ORDER.index(one.match.confidence))
        yield _counting(first, others, noun) if others else first.match


def _counting(first: Alike, others: List[Alike], noun: str) -> Match:
    count, match = len(others), first.match
    names = ", ".join(one.who for one in others[:_NAMED]) + (f" and {count - _NAMED} more" if count > _NAMED else "")
    victims = (victim for one in (first, *others) for victim in one.match.victims)
    likewise = f"1 other {noun} waits likewise" if count == 1 else f"{count} other {noun}s wait likewise"
    return replace(
        match,
        summary=f"{match.summary}; {likewise}",
        evidence=(*match.evidence, f"{likewise}: {names}"),
        victims=tuple(dict.fromkeys(victims)),
    )
