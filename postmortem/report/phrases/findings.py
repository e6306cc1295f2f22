"""Findings in words: what classification concluded, as ``report.json`` has it."""

from __future__ import annotations

from ...evidence import Evidence, Trigger
from ...findings import Abstained, Diagnosis, Finding, Found, Outcome, RuledOut, Text
from ...findings.found import Said
from ...waitgraph import Blocked, Places, graph_of
from .wording import Wording


def in_words(outcome: Outcome, evidence: Evidence) -> Diagnosis:
    """Return the diagnosis with every text in words."""
    wording = Wording(graph_of(evidence).places)
    return Diagnosis(
        verdict=outcome.verdict,
        signature=outcome.signature,
        findings=tuple(_finding(found, wording) for found in outcome.findings),
        abstained=tuple(Abstained(m.pattern, tuple(map(wording.text, m.missing))) for m in outcome.abstained),
        ruled_out=tuple(RuledOut(r.pattern, wording.text(r.because)) for r in outcome.ruled_out),
        root=outcome.root,
    )


def words(text: Text) -> str:
    """Return a text in words that names no thread or task, so that no evidence is needed."""
    return Wording(Places(Evidence(Trigger("core")))).text(text)


def _is_link(said: Said) -> bool:
    """Return whether a fact says what an agent waits for and who has that, as a step of a wait chain does."""
    return isinstance(said, Blocked) or (isinstance(said, Text) and said.template.link)


def _finding(found: Found, wording: Wording) -> Finding:
    # two facts may read the same, such as one of a thread and one of its name: each sentence is said once
    told = {wording.text(said): said for said in reversed(found.evidence)}
    facts = tuple(reversed(told.items()))
    return Finding(
        pattern=found.pattern,
        confidence=found.confidence,
        summary=wording.text(found.summary),
        explanation=found.explanation,
        remedy=" ".join(map(wording.text, found.remedy)),
        references=found.references,
        because_of=found.because_of,
        culprits=found.culprits,
        victims=found.victims,
        evidence=tuple(words for words, _said in facts),
        links=tuple(number for number, (_words, said) in enumerate(facts) if _is_link(said)),
    )
