"""Whose code it is that is looked through for what cancels tasks; the search itself is tried on live interpreters."""

from __future__ import annotations

import pytest

from postmortem.cpython.cancels import is_program


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/app/service.py", True),
        ("/home/ada/project/tests/test_jobs.py", True),
        ("<string>", True),
        ("/usr/lib/python3.12/asyncio/tasks.py", False),
        ("/app/.venv/lib/python3.11/site-packages/anyio/_core/_tasks.py", False),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_libraries_are_left_out(file: str, own: bool) -> None:
    """asyncio itself cancels tasks in every program."""
    assert is_program(file) is own
