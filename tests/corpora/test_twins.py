"""Recorded twins: what stands beside a program changes no verdict, and who really ends a wait is not overlooked."""

from __future__ import annotations

from typing import List

import pytest

from postmortem import evidence as ev

from .cases import all_cases
from .twins import RESCUERS, Twin, told

#: Least share of the bystanders' twins in which the label's pattern still leads.
SURVIVES = 0.97


@pytest.fixture(scope="module")
def twins() -> List[Twin]:
    """Return every recorded twin, judged."""
    found = []
    for case in all_cases():
        for path in sorted(case.folder.glob("twin-*.json")):
            found.append(told(case, path.stem.partition("-")[2], ev.decode(path.read_bytes())))
    return found


def test_there_are_fifty(twins: List[Twin]) -> None:
    """Twins of both kinds; the others are made outside of CI (``python -m tests.corpora.twins``)."""
    assert (len(twins) >= 50, {twin.name in RESCUERS for twin in twins}) == (True, {True, False})


def test_bystanders_change_no_verdict(twins: List[Twin]) -> None:
    """A heartbeat, a signal handler, a logger, statistics of the very objects, a subclass, a retry loop."""
    beside = [twin for twin in twins if twin.name not in RESCUERS]
    assert sum(twin.right for twin in beside) >= SURVIVES * len(beside), [str(t) for t in beside if not t.right]


def test_rescuers_are_not_overlooked(twins: List[Twin]) -> None:
    """Nothing above *possible* says that nothing ends a wait which other code ends an hour later."""
    assert [str(twin) for twin in twins if twin.name in RESCUERS and not twin.right] == []
