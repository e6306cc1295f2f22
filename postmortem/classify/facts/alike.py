"""Merging of findings that state the same of several threads or tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Hashable, Iterable, Iterator, List, NamedTuple, Tuple

from ..pattern import Match

_NAMED = 8
_ORDER = ("possible", "likely", "proven")


class Alike(NamedTuple):
    """A match about the agent ``who``; matches with the same ``key`` are one finding."""

    key: Hashable
    who: str
    match: Match


def told_once(several: Iterable[Alike], noun: str, verbs: Tuple[str, str] = ("waits", "wait")) -> Iterator[Match]:
    """Yield one match for each key: the one of highest confidence, with the number and names of the others.

    ``noun`` is the kind of agent, "thread" or "task"; ``verbs`` are the singular and plural forms of its verb.
    """
    groups: Dict[Hashable, List[Alike]] = {}
    for one in several:
        groups.setdefault(one.key, []).append(one)
    for group in groups.values():
        first, *others = sorted(group, key=lambda one: -_ORDER.index(one.match.confidence))
        yield _counting(first, others, noun, verbs) if others else first.match


def _counting(first: Alike, others: List[Alike], noun: str, verbs: Tuple[str, str]) -> Match:
    """Return a match extended by the number, names and victims of the others."""
    count, match = len(others), first.match
    names = ", ".join(one.who for one in others[:_NAMED]) + (f" and {count - _NAMED} more" if count > _NAMED else "")
    victims = (victim for one in (first, *others) for victim in one.match.victims)
    nouns = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    likewise = f"1 other {noun} {verbs[0]} likewise" if count == 1 else f"{count} other {nouns} {verbs[1]} likewise"
    return replace(
        match,
        summary=f"{match.summary}; {likewise}",
        evidence=(*match.evidence, f"{likewise}: {names}"),
        victims=tuple(dict.fromkeys(victims)),
    )
