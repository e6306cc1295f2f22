"""Whose a source file is, by its path alone."""

from __future__ import annotations

import pytest

from postmortem import sourcepaths
from postmortem.sourcepaths import is_program, is_stdlib


@pytest.mark.parametrize(
    ("file", "own", "standard"),
    [
        ("/app/service.py", True, False),
        ("/home/ada/project/tests/test_jobs.py", True, False),
        ("<string>", True, False),
        ("/usr/lib/python3.12/asyncio/tasks.py", False, True),
        ("/usr/lib64/python3.12/asyncio/tasks.py", False, True),
        ("/usr/lib/python3/dist-packages/anyio/_core/_tasks.py", False, False),
        ("/app/.venv/lib/python3.11/site-packages/anyio/_core/_tasks.py", False, False),
        ("<frozen importlib._bootstrap>", False, True),
    ],
)
def test_the_path_tells_whose_a_file_is(file: str, own: bool, standard: bool) -> None:
    """What asyncio or an installed package does by itself, in every program, is not the program's doing."""
    assert (is_program(file), is_stdlib(file)) == (own, standard)


def test_a_package_is_known_by_its_top_level_name() -> None:
    """Files of one library are alike, whatever their folder; the program's and the standard library's belong to none."""
    assert sourcepaths.package("/venv/lib/python3.12/site-packages/django/utils/autoreload.py") == "django"
    assert sourcepaths.package("/usr/lib/python3/dist-packages/six.py") == "six.py"
    assert sourcepaths.package("/usr/lib/python3.12/threading.py") is None
    assert sourcepaths.package("/app/main.py") is None
