"""Diagnoses in words, as the pipeline makes them."""

from __future__ import annotations

from postmortem.classify import engine
from postmortem.evidence import Evidence
from postmortem.findings import Diagnosis
from postmortem.report.phrases.findings import in_words


def classify(evidence: Evidence) -> Diagnosis:
    """Classify evidence and put the outcome into words."""
    return in_words(engine.classify(evidence), evidence)
