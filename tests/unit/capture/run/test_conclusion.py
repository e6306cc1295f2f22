"""What a bundle is called, for whoever has not named it."""

from __future__ import annotations

from typing import List

import pytest

from postmortem.capture.run.conclusion import what_it_runs


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["make", "test"], "make"),
        (["/opt/bin/pytest", "-x"], "pytest"),
        (["python"], "python"),
        (["python3.11", "-m", "pytest", "-x"], "pytest"),
        (["/usr/bin/python3", "-mpytest"], "pytest"),
        (["python", "-Xdev", "-W", "error", "-um", "package.module"], "package.module"),
        (["python", "-X", "dev", "tests/serve.py", "-m", "slow"], "serve"),
        (["python", "--check-hash-based-pycs", "never", "serve.py"], "serve"),
        (["python", "-c", "import this", "-m"], "python"),
        (["python", "-bc", "import this"], "python"),
        (["python", "-"], "python"),
        (["python", "-m"], "python"),
        (["pypy3", "x.py"], "x"),
        (["python-config", "-m"], "python-config"),
    ],
)
def test_a_python_program_has_the_name_of_what_it_runs(words: List[str], name: str) -> None:
    """Its module or script, past the interpreter's own options (as its ``--help`` has them)."""
    assert what_it_runs(words) == name
