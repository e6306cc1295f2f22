"""Tests leave the environment as they found it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_CONFTEST = "from tests.conftest import pytest_runtest_teardown, pytest_sessionstart\n"
_TESTS = """\
import os

def test_first():
    os.environ["LEFT_BEHIND"] = "1"
    del os.environ["TAKEN_AWAY"]

def test_second(monkeypatch):
    assert "LEFT_BEHIND" not in os.environ and os.environ["TAKEN_AWAY"] == "2"
    monkeypatch.setenv("TAKEN_AWAY", "3")
"""


def test_a_test_that_changes_the_environment_fails(tmp_path: Path) -> None:
    """The test that did it fails, with the variables' names; the next one has the environment as it was."""
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_it.py").write_text(_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--rootdir", ".", "."],
        check=False,
        cwd=str(tmp_path),
        env={"PYTHONPATH": str(_ROOT), "TAKEN_AWAY": "2"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "left in the environment: LEFT_BEHIND, TAKEN_AWAY\n" in done.stdout
    assert "2 passed" in done.stdout and "1 error in" in done.stdout
