"""Every recorded case, classified again: compared with its label, and all together with ``corpora/confusion.md``."""

from __future__ import annotations

from typing import List

import pytest

from postmortem import evidence as ev
from ..support.diagnosed import classify
from postmortem.findings import Confidence, Culprit, Diagnosis, Finding

from .cases import ROOT, Case, all_cases
from .judge import Judgement, judge, page, totals

CONFUSION = ROOT / "confusion.md"


@pytest.fixture(scope="module")
def judgements() -> List[Judgement]:
    """Judge every recorded case. A case without a recording fails in test_cases.py."""
    recorded = [case for case in all_cases() if case.evidence.exists()]
    return [judge(case, classify(ev.decode(case.evidence.read_bytes()))) for case in recorded]


def test_the_confusion_matrix_is_the_committed_one(judgements: List[Judgement], update: bool) -> None:
    """What changed is looked at and committed, never unnoticed."""
    now = page(judgements)
    if update:
        CONFUSION.write_text(now, "utf-8")
    assert CONFUSION.read_text("utf-8") == now, "run: make test ARGS='tests/corpora --update', and look at the difference"


def test_healthy_programs_are_left_in_peace(judgements: List[Judgement]) -> None:
    """Nothing above *possible* on a program without a fault, or with one that no pattern describes."""
    assert [j.case.name for j in judgements if j.case.kind != "hang" and not j.right] == []


def test_nothing_false_is_proven(judgements: List[Judgement]) -> None:
    """*proven* admits no other reading: once wrong is too often."""
    assert [(j.case.name, j.false_proofs) for j in judgements if j.false_proofs] == []


def test_nothing_forbidden_is_claimed(judgements: List[Judgement]) -> None:
    """A hang's label says what an expert would laugh at."""
    assert [(j.case.name, j.false_claims) for j in judgements if j.false_claims] == []


def test_the_right_pattern_leads(judgements: List[Judgement]) -> None:
    """At least 95 % of the hangs get an accepted verdict, and 90 % a line that is marked."""
    sums = totals(judgements)
    assert sums.top1[0] >= 0.95 * sums.top1[1], [j.case.name for j in judgements if not j.right]
    assert sums.culprit[0] >= 0.90 * sums.culprit[1], [j.case.name for j in judgements if j.culprit is False]


def finding(pattern: str, confidence: Confidence, line: int = 1) -> Finding:
    culprit = Culprit(1, 1, None, "/app/program.py", line, "f")
    return Finding(pattern, confidence, "s", "e", "r", culprits=(culprit,))


def diagnosis(*findings: Finding) -> Diagnosis:
    return Diagnosis(findings[0].pattern if findings else None, "s", findings)


@pytest.fixture
def hang() -> Case:
    return next(case for case in all_cases() if case.name == "self-deadlock/session-table")


@pytest.fixture
def healthy() -> Case:
    return next(case for case in all_cases() if case.kind == "healthy")


def test_a_right_answer_is_right(hang: Case) -> None:
    """Pattern, line and confidence as labelled leave nothing to remark."""
    line = min(hang.culprits()["program.py"])
    judgement = judge(hang, diagnosis(finding("self-deadlock", "proven", line)))
    assert (judgement.right, judgement.culprit, judgement.proof_due, judgement.remarks) == (True, True, True, "")


def test_wrong_answers_are_counted(hang: Case) -> None:
    """Silence, another pattern, another line, a false proof and timidity each show."""
    assert judge(hang, diagnosis()).remarks == "MISSED, not proven"
    timid = judge(hang, diagnosis(finding("self-deadlock", "possible", min(hang.culprits()["program.py"]))))
    assert (timid.right, timid.remarks) == (True, "only possible, not proven")
    elsewhere = judge(hang, diagnosis(finding("self-deadlock", "proven", 1)))
    assert (elsewhere.right, elsewhere.culprit) == (True, False)
    other = judge(hang, diagnosis(finding("lock-order-deadlock", "proven")))
    assert (other.right, other.false_claims, other.false_proofs) == (
        False,
        ("lock-order-deadlock",),
        ("lock-order-deadlock",),
    )


def test_a_possibility_is_no_alarm(healthy: Case) -> None:
    """On a healthy program *possible* is allowed, *likely* is not."""
    assert judge(healthy, diagnosis(finding("network-wait", "possible"))).right
    alarm = judge(healthy, diagnosis(finding("network-wait", "likely")))
    assert (alarm.right, totals([alarm]).false_alarms) == (False, 1)
    assert "FALSE ALARM" in page([alarm])
