"""Upgrades that mend what was found: named where the library's code is to blame, and nowhere else."""

from __future__ import annotations

import re

from postmortem.classify.engine import all_patterns
from postmortem.classify.facts.fixed_in import TABLE, fixes
from postmortem.evidence import PythonFrame
from postmortem.findings import Culprit, Victim
from postmortem.report.phrases.findings import words

from ....support.make import evidence, process, stack, thread

SITE = "/venv/lib/python3.12/site-packages"


def culprit(file: str, function: str) -> Culprit:
    return Culprit(1, 7, None, file, 1, function)


def test_the_table_is_sound() -> None:
    """Patterns that exist, a release that is one, a page to read it up, one sentence; packages in order."""
    known = {rule.id for rule in all_patterns()}
    for row in TABLE:
        assert set(row.patterns) <= known
        assert re.fullmatch(r"\d+(\.\d+)+", row.release)
        assert row.reference.startswith("https://")
        assert words(row.advice).endswith("upgrade, if yours is older.")
    assert [row.package.lower() for row in TABLE] == sorted(row.package.lower() for row in TABLE)


def test_a_library_that_is_to_blame_is_to_be_upgraded() -> None:
    """By the end of its path and its function, for the patterns that the release mends."""
    polls = culprit(f"{SITE}/starlette/testclient.py", "_asgi_receive")
    (row,) = fixes(evidence(), "gil-thrash", (polls,), ())
    assert (row.package, row.release) == ("starlette", "0.38.0")
    assert not fixes(evidence(), "lock-order-deadlock", (polls,), ())
    assert not fixes(evidence(), "gil-thrash", (culprit(f"{SITE}/starlette/testclient.py", "send"),), ())
    assert not fixes(evidence(), "gil-thrash", (culprit(f"{SITE}/mystarlette/testclient.py", "_asgi_receive"),), ())


def test_the_librarys_frame_may_be_above_the_programs() -> None:
    """The line to change is the program's, and the thread that it names stands in the library; others' stacks do not count."""
    frames = (PythonFrame(f"{SITE}/loguru/_handler.py", 166, "emit"), *stack("main"))
    known = evidence(process([thread(7, frames), thread(8)]))
    own = culprit("/app/service.py", "main")
    assert [row.package for row in fixes(known, "fork-inherited-lock", (own,), ())] == ["loguru"]
    assert [row.package for row in fixes(known, "fork-inherited-lock", (), (Victim(1, 7),))] == ["loguru"]
    assert not fixes(known, "fork-inherited-lock", (), (Victim(1, 8),))
