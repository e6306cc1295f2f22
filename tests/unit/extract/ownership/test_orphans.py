"""Which functions take a lock by hand and may leave without giving it back."""

from __future__ import annotations

import ast
import textwrap
from typing import Tuple

import pytest

from postmortem.extract.ownership.orphans import LockUser
from postmortem.extract.sourcecode.callsites import calls_before


def user(body: str, decorator: str = "") -> LockUser:
    text = f"{decorator}\ndef f(self):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return LockUser("app.py", None, function, [site for site in calls_before(function) if site.path])


TAKE, WORK, GIVE = "self.lock.acquire()\n", "work()\n", "self.lock.release()\n"
FINALLY = f"{TAKE}try:\n    work()\nfinally:\n    {GIVE}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (TAKE + WORK + GIVE, (True, False)),  # an exception in between leaves it locked
        (TAKE + "if self.bad: return\n" + GIVE, (True, False)),
        (FINALLY, (False, False)),
        (TAKE + WORK, (False, True)),  # begin(): somebody else is to give it back
        (WORK + GIVE, (False, False)),  # commit()
        (TAKE + "yield self\n" + GIVE, (True, True)),  # whoever iterates has it meanwhile
    ],
)
def test_who_loses_and_who_keeps(body: str, expected: Tuple[bool, bool]) -> None:
    """(may lose it on the way, keeps it on purpose)"""
    found = user(body)
    assert (found.loses, found.keeps) == expected


def test_a_context_manager_keeps_nothing() -> None:
    """`with` statements lead to its generator, so its lock is found there."""
    assert not user(TAKE + "yield\n" + GIVE, "@contextlib.contextmanager").keeps
