"""Proofs rest on what was read: without one of the facts there may be no proof, but never one of something else."""

from __future__ import annotations

from typing import List, Tuple

import pytest

from postmortem import evidence as ev
from postmortem.classify.engine import classify
from postmortem.evidence import Evidence

from ..support.deletions import deletions
from .cases import Case, all_cases

_A_CASE = 3


@pytest.fixture(scope="module")
def proven() -> List[Tuple[Case, Evidence]]:
    """Return the recorded hangs whose right pattern is proven, with their evidence."""
    recorded = [case for case in all_cases() if case.kind == "hang" and case.evidence.exists()]
    known = [(case, ev.decode(case.evidence.read_bytes())) for case in recorded]
    return [(case, evidence) for case, evidence in known if _leads(case, evidence)]


def _leads(case: Case, evidence: Evidence) -> bool:
    found = classify(evidence).findings
    return bool(found) and found[0].confidence == "proven" and found[0].pattern in case.verdict


def test_no_deletion_proves_something_else(proven: List[Tuple[Case, Evidence]]) -> None:
    """Three hundred single facts made unknown: a frame, a holder, a waker, a descriptor."""
    tried, wrong = 0, []
    for seed, (case, evidence) in enumerate(proven):
        for what, less in deletions(evidence, _A_CASE, seed):
            tried += 1
            claims = {f.pattern for f in classify(less).findings if f.confidence == "proven"}
            wrong += [f"{case.name} without {what}: {claim}" for claim in claims - {*case.verdict, *case.also}]
    assert (tried >= 300, wrong) == (True, [])
