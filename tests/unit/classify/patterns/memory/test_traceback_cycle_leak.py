"""Exceptions that keep memory alive: by how many they are, and how much their frames hold."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from postmortem.evidence import Evidence, KeptException
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import evidence, found, frame, lines, process, stack, thread

MB = 1 << 20
KEPT = KeptException(
    "ValueError",
    40,
    120,
    frame("parse", 12),
    frame("load_all", 30),
    48 * MB,
    "rows in parse",
    ("Importer.errors",),
    0,
    (frame("load_all", 32),),
)


def keeping(*several: KeptException, window: Optional[float] = None) -> Evidence:
    return evidence(process([thread(1, [frame("main", 50)])], kept_exceptions=several), window=window)


def test_what_is_kept_is_named_with_who_keeps_it() -> None:
    """The place where they are stored is to blame; the largest variable and the keeper are told. It is a fact of one moment:
    how much is there does not depend on a window, so that a core is as good."""
    for window in (None, 1.0):
        report = classify(keeping(KEPT, window=window)).findings[0]
        assert (report.pattern, report.confidence) == ("traceback-cycle-leak", "likely")
        assert lines(keeping(KEPT, window=window)) == [32]
        assert (
            "40 ValueErrors" in report.summary and "48.0 MB" in report.summary and "Importer.errors" in report.summary
        )
        assert "rows in parse" in " ".join(report.evidence)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"bytes": 4 * MB}, "likely"),
        ({"bytes": 4 * MB - 1}, "possible"),
        ({"bytes": MB}, "possible"),
        ({"bytes": MB - 1}, None),
        ({"bytes": None}, None),
        ({"count": 3}, "likely"),
        ({"count": 2}, None),
    ],
)
def test_how_much_and_how_many(known: Any, expected: Optional[str]) -> None:
    """A program that retries and logs keeps a handful of some kilobytes; one that was just caught is no heap of them."""
    kept = keeping(changed(KEPT, **known))
    assert found(kept).get("traceback-cycle-leak") == expected
    ruled = {r.pattern: r.because for r in classify(kept).ruled_out}
    assert ("with little memory" in ruled.get("traceback-cycle-leak", "")) == (expected is None)


def test_nothing_kept_nothing_said() -> None:
    """Neither a finding nor a sentence."""
    report = classify(keeping())
    assert "traceback-cycle-leak" not in {f.pattern for f in report.findings} | {r.pattern for r in report.ruled_out}


def test_a_circle_is_told() -> None:
    """A variable of their own traceback refers to them; and where nothing leads to them, that is said."""
    circle = classify(keeping(changed(KEPT, cyclic=40, keepers=()))).findings[0]
    assert "40 of them are in a reference cycle" in " ".join(circle.evidence)
    hidden = classify(keeping(changed(KEPT, cyclic=0, keepers=()))).findings[0]
    assert "not examined" in " ".join(hidden.evidence)


def test_where_they_come_from_stands_in() -> None:
    """Without a place where they are stored it is where they were caught, and raised; a library's store only alone."""
    assert lines(keeping(changed(KEPT, stored_at=()))) == [30, 12]
    library = stack("concurrent.futures._base.set_exception")
    assert lines(keeping(changed(KEPT, stored_at=(*library, frame("load_all", 32))))) == [32]
    assert lines(keeping(changed(KEPT, stored_at=library))) == [1]


def test_one_finding_a_process() -> None:
    """The heaviest leads, the others are told beside it."""
    other = changed(KEPT, type="OSError", bytes=9 * MB)
    report = [f for f in classify(keeping(KEPT, other)).findings if f.pattern == "traceback-cycle-leak"]
    assert len(report) == 1 and "likewise 40 OSErrors, 9.0 MB" in " ".join(report[0].evidence)
