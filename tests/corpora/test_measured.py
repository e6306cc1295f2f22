"""What is committed of the last runs reaches the goal, and the page says what the numbers say."""

from __future__ import annotations

import json

import pytest

from .cases import all_cases
from .measured import CULPRIT, FIRST, PAGE, TOP1, Sums, is_right, page, read

RUNS = read()
VERSIONS = sorted({name.rpartition("@")[2] for name in RUNS})


def test_the_page_is_made_of_the_runs() -> None:
    """Nobody edits it by hand."""
    assert PAGE.read_text("utf-8") == page(RUNS, json.loads(FIRST.read_text("utf-8")), all_cases())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_goal_is_reached_on(version: str) -> None:
    """The leading pattern is right in 95 % and names a marked line in 90 %; healthy programs are left in peace; nothing
    false is proven."""
    sums = Sums(outcome for name, outcome in RUNS.items() if name.endswith(f"@{version}"))
    assert sums.top1[0] >= TOP1 * sums.top1[1]
    assert sums.culprit[0] >= CULPRIT * sums.culprit[1]
    assert sums.silent[0] == sums.silent[1]
    assert sums.false_proofs == 0


def test_every_case_was_run() -> None:
    """On each of these interpreters that its label names, but for what no program can stage."""
    wanted = {f"{c.name}@{v}" for c in all_cases() for v in VERSIONS if v in c.pythons and c.record != "synthesised"}
    assert wanted == set(RUNS)


def test_a_false_proof_is_never_right() -> None:
    """Nor is a hang whose line was missed."""
    outcome = {"kind": "hang", "right": True, "culprit": True, "false_proofs": []}
    assert is_right(outcome)
    assert not is_right({**outcome, "false_proofs": ["sleeping"]})
    assert not is_right({**outcome, "culprit": False})
    assert not is_right(None)
