"""A small campaign of kills; ``make kills`` runs the large one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kills import __main__ as kills

pytestmark = pytest.mark.live


def test_postmortem_is_killed_at_any_moment(tmp_path: Path) -> None:
    """The target goes on every time, and what there is of a bundle is read."""
    outcomes = list(kills.captures(tmp_path, 4, 1, threads=30, heap_mb=60))
    assert len(outcomes) == 4
    assert [outcome.problem for outcome in outcomes] == [None] * 4


def test_the_target_is_killed_at_any_moment(tmp_path: Path) -> None:
    """There is a report every time, and the exit status is the documented one."""
    outcomes = list(kills.targets(tmp_path, 4, 1, threads=30, heap_mb=20))
    assert len(outcomes) == 4
    assert [outcome.problem for outcome in outcomes] == [None] * 4


def test_a_job_is_cancelled_at_any_moment(tmp_path: Path) -> None:
    """TERM, and KILL ten seconds later, before the deadline and after it: there is a bundle every time, and analyze reads
    it."""
    outcomes = list(kills.jobs(tmp_path, 3, 1, threads=10, heap_mb=20))
    assert len(outcomes) == 3
    assert [outcome.problem for outcome in outcomes] == [None] * 3
    assert {outcome.bundle for outcome in outcomes} <= {"whole", "read"}
