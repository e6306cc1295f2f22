"""Judging of made-up reports, the page, and the outcomes kept from earlier runs."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from tests.applications import page, venvs
from tests.applications.judging import Row, judge, marked, unmarked
from tests.applications.services import SERVICES
from tests.applications.specs import APPLICATIONS, BY_ID, Application, State

GUNICORN = BY_ID["gunicorn"]
IDLE, TRANSFER = GUNICORN.states[0], GUNICORN.states[1]
(MARKED,) = sorted(marked(GUNICORN.program, "transfer"))


def said(work: Path, pattern: str, confidence: str, file: str, line: int) -> Dict[str, Any]:
    """A report with one finding of one culprit."""
    return {"findings": [{"pattern": pattern, "confidence": confidence, "culprits": [{"file": file, "line": line}]}]}


def judged(state: State, work: Path, report: Dict[str, Any], application: Application = GUNICORN) -> Row:
    return judge(application, state, report, work, Row(application.id, state.name, "1", "3.12.1", "2026-01-01"))


def wrong(row: Row) -> Optional[str]:
    return None if row.right else row.problem


def test_an_idle_application_may_be_met_with_silence(tmp_path: Path) -> None:
    """No finding is right at rest, and wrong in a hang."""
    assert wrong(judged(IDLE, tmp_path, {"findings": []})) is None
    assert wrong(judged(TRANSFER, tmp_path, {"findings": []})) == "silent"


def test_an_idle_application_may_get_a_possible_elsewhere(tmp_path: Path) -> None:
    """A possible finding in a library is no alarm; one on a line of theirs is, and so is any likely one."""
    elsewhere = "/lib/site-packages/gunicorn/gthread.py"
    assert wrong(judged(IDLE, tmp_path, said(tmp_path, "network-wait", "possible", elsewhere, 3))) is None
    assert wrong(judged(IDLE, tmp_path, said(tmp_path, "network-wait", "likely", elsewhere, 3)))
    assert wrong(judged(IDLE, tmp_path, said(tmp_path, "network-wait", "possible", f"{tmp_path}/shop.py", 3)))
    (tmp_path / "shop.py").touch()
    assert wrong(judged(IDLE, tmp_path, said(tmp_path, "network-wait", "possible", "shop.py", 3)))


def test_a_hang_needs_the_id_and_the_line(tmp_path: Path) -> None:
    """The id is one of those accepted, and the first culprit a marked line of the application's own file."""
    own, line = f"{tmp_path}/{MARKED[0]}", MARKED[1]
    assert wrong(judged(TRANSFER, tmp_path, said(tmp_path, "lock-order-deadlock", "possible", own, line))) is None
    assert wrong(judged(TRANSFER, tmp_path, said(tmp_path, "lock-contention", "likely", own, line)))
    assert wrong(judged(TRANSFER, tmp_path, said(tmp_path, "lock-order-deadlock", "proven", own, line - 1)))
    library = f"/lib/{MARKED[0]}"
    assert wrong(judged(TRANSFER, tmp_path, said(tmp_path, "lock-order-deadlock", "proven", library, line)))
    no_line = {"findings": [{"pattern": "lock-order-deadlock", "confidence": "proven", "culprits": []}]}
    assert wrong(judged(TRANSFER, tmp_path, no_line)) == "names no line"


def test_typed_code_is_known_by_its_file_and_line(tmp_path: Path) -> None:
    """A cell has no file in the application's folder."""
    kernel = BY_ID["ipykernel"]
    state = next(state for state in kernel.states if state.name == "lock")
    report = said(tmp_path, "self-deadlock", "proven", "/tmp/ipykernel_7/12.py", state.typed_line)
    assert wrong(judged(state, tmp_path, report, kernel)) is None
    report = said(tmp_path, "self-deadlock", "proven", "/lib/other.py", state.typed_line)
    assert wrong(judged(state, tmp_path, report, kernel))


def test_marks_are_taken_out_and_lines_stay() -> None:
    """The program that runs holds no hint, and its line numbers are those of the marked one."""
    assert unmarked("a\nb()  # HANG idle\nc\n") == "a\nb()\nc\n"


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.id)
def test_every_specification_is_complete(application: Application) -> None:
    """Each has one idle state and two hangs with a marked or a typed line; programs parse; versions are pinned."""
    assert [state.idle for state in application.states] == [True, False, False]
    for state in application.states:
        assert state.idle or bool(marked(application.program, state.name)) != bool(state.typed_file)
    for path in application.program.glob("*.py"):
        ast.parse(path.read_text())
    assert set(application.services) <= set(SERVICES)
    assert all("==" in requirement for requirement in application.requirements)


def test_a_later_run_replaces_its_rows_alone() -> None:
    """Rows are kept in the order of the specification; those of states that are no longer tried go."""
    old = [
        Row("gunicorn", "idle", "1", "3", "d1"),
        Row("gunicorn", "rates", "1", "3", "d1"),
        Row("gone", "x", "1", "3", "d1"),
    ]
    merged = page.merged(old, [Row("gunicorn", "transfer", "2", "3", "d2"), Row("gunicorn", "idle", "2", "3", "d2")])
    assert [(row.state, row.version) for row in merged] == [("idle", "2"), ("transfer", "2"), ("rates", "1")]


def test_the_page_says_what_was_said() -> None:
    """Silence, a verdict and a row that could not be tried each read as what they are."""
    rows = [
        Row("gunicorn", "idle", "27", "3.12.1", "2026-01-01", right=True),
        Row(
            "gunicorn", "transfer", "27", "3.12.1", "2026-01-01", "sleeping", "likely", "shop.py:3", problem="not a | b"
        ),
        Row("gunicorn", "rates", "27", "3.12.1", "2026-01-01", problem="redis-server is not installed"),
    ]
    text = page.rendered(rows)
    assert "1 of 3 are right." in text
    assert "| gunicorn gthread, 27 | 3.12.1 | idle: waits for requests | nothing | yes | 2026-01-01 |" in text
    assert "`sleeping`, likely, shop.py:3 | **no**: not a \\| b" in text
    assert "| not tried | **no**: redis-server is not installed |" in text


def test_the_committed_page_is_that_of_the_committed_rows() -> None:
    """docs/applications.md is never edited by hand."""
    assert page.PAGE.read_text() == page.rendered(page.kept())


def test_an_environment_is_made_anew_for_another_recipe() -> None:
    """Python and pins decide; what is tried in it does not."""
    assert venvs.recipe(BY_ID["gunicorn"]) != venvs.recipe(BY_ID["uvicorn"])
    assert venvs.recipe(BY_ID["tk"]) != venvs.recipe(BY_ID["repl"])
