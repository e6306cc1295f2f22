"""Facts, texts and steps of derivations in words, as reports show them."""

from __future__ import annotations

from typing import Iterable, Tuple

from postmortem.evidence import Because, Gap
from postmortem.findings.found import Said
from postmortem.report.phrases.gaps import in_words
from postmortem.report.phrases.wording import Wording, facts_in_words
from postmortem.waitgraph import WaitGraph


def words(because: Iterable[Because]) -> Tuple[str, ...]:
    """Return facts in words."""
    return tuple(facts_in_words(because))


def reasons(graph: WaitGraph, said: Iterable[Said]) -> Tuple[str, ...]:
    """Return steps of a derivation in words."""
    return tuple(map(Wording(graph.places).text, said))


def reason(gap: Gap) -> str:
    """Return why a fact could not be read, in words."""
    return in_words(gap).reason or ""


def remedy(gap: Gap) -> str:
    """Return what would help next time, in words; "" if nothing is known to."""
    return in_words(gap).remedy or ""
