"""Facts, texts and steps of derivations in words, as reports show them."""

from __future__ import annotations

from typing import Iterable, Tuple

from postmortem.evidence import Because
from postmortem.findings.found import Said
from postmortem.report.phrases.wording import Wording, facts_in_words
from postmortem.waitgraph import WaitGraph


def words(because: Iterable[Because]) -> Tuple[str, ...]:
    """Return facts in words."""
    return tuple(facts_in_words(because))


def reasons(graph: WaitGraph, said: Iterable[Said]) -> Tuple[str, ...]:
    """Return steps of a derivation in words."""
    return tuple(map(Wording(graph.places).text, said))
