"""What four cases of the corpus look like in every format, kept in ``golden/``.

``UPDATE=1 python -m pytest tests/unit/report/test_golden.py`` writes them anew; look at the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Tuple

import pytest

from postmortem import evidence as ev
from postmortem import report
from postmortem.evidence import Evidence
from postmortem.findings import Diagnosis
from tests.corpora.cases import ROOT

from ...support.diagnosed import classify

GOLDEN = Path(__file__).parent / "golden"
#: A proof with a window, one from a core, nothing recognised, two processes.
CASES = (
    "self-deadlock/session-table",
    "lock-order-deadlock/seat-swaps",
    "healthy/shelf-outline",
    "pipe-deadlock/console-audit",
)


#: Styles and scripts, which no case changes; their hashes; not the data.
_BROUGHT_ALONG = re.compile(
    r"<style>.*?</style>|<script(?! type=.application/json).*?</script>\n?|&#x27;sha256-[^&]*&#x27; ?", re.S
)


def diagnosed(case: str) -> Tuple[Evidence, Diagnosis]:
    """As `postmortem report` would; the first ran in a checkout, as in CI."""
    found = ev.decode((ROOT / case / "evidence.json").read_bytes())
    if case == CASES[0]:
        found = ev.replace(found, checkout="/app")
    return found, classify(found)


@pytest.mark.parametrize("name", report.FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_reports_are_the_committed_ones(case: str, name: str) -> None:
    """Each change of a report is looked at and committed, never unnoticed."""
    known = report.FORMATS[name]
    path = GOLDEN / f"{case.replace('/', '-')}{known.suffix or f'.{name}'}"
    try:
        now = known.render(*diagnosed(case), False, 80)
    except report.NothingToShow as exc:
        now = f"{exc}\n"
    if name == "html":
        now = _BROUGHT_ALONG.sub("", now)
    if os.environ.get("UPDATE") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, "utf-8")
    assert path.exists(), "run this test with UPDATE=1, look at the new file, and commit it"
    assert now == path.read_text("utf-8"), "if that is meant: run with UPDATE=1, and look at the difference"


def test_nothing_golden_is_left_over() -> None:
    """A file there is of a case and a format that exist."""
    wanted = {f"{case.replace('/', '-')}{f.suffix or f'.{f.name}'}" for case in CASES for f in report.FORMATS.values()}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
