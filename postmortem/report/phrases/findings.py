"""Findings in words: what classification concluded, as ``report.json`` has it."""

from __future__ import annotations

from ...evidence import Evidence, Trigger
from ...findings import Abstained, Diagnosis, Finding, Found, Outcome, RuledOut, Text
from ...waitgraph import Places, graph_of
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
    )


def words(text: Text) -> str:
    """Return a text in words that names no thread or task, so that no evidence is needed."""
    return Wording(Places(Evidence(Trigger("core")))).text(text)


def _finding(found: Found, wording: Wording) -> Finding:
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
        evidence=tuple(map(wording.text, found.evidence)),
    )
