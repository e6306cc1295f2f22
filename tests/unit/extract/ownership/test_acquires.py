"""Which locks a function has acquired and not released before a line, read from its source."""

from __future__ import annotations

import ast
from typing import List, Tuple

import pytest

from postmortem.extract.ownership.acquires import LOCKS, outstanding
from postmortem.extract.sourcecode.callsites import calls_before


def held(body: str) -> List[Tuple[str, ...]]:
    """What is held at the line marked ``# here``."""
    source = "def f(self, other):\n" + "\n".join("    " + line for line in body.strip("\n").splitlines())
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "# here" in text)
    sites = [site for site in calls_before(function, line) if site.name in LOCKS and site.path]
    return [path for _line, path in outstanding((s.line, s.path, LOCKS[s.name]) for s in sites)]


def test_acquired_and_not_released() -> None:
    """A plain acquire above the line counts, through attributes as well; the line itself does not."""
    assert held("self.lock.acquire()\nother.acquire(timeout=5)\nwork()  # here") == [("self", "lock"), ("other",)]
    assert held("self.lock.acquire()  # here") == []


def test_released_on_the_way() -> None:
    """A release between the two undoes it; one after the line, or of another lock, does not."""
    assert held("self.lock.acquire()\nself.lock.release()\nwork()  # here") == []
    assert held("self.lock.acquire()\nother.release()\nwork()  # here\nself.lock.release()") == [("self", "lock")]


@pytest.mark.parametrize("clause", ["finally", "except ValueError"])
def test_a_release_that_has_not_run_yet(clause: str) -> None:
    """The finally or except of a try around the line runs later."""
    body = f"self.lock.acquire()\ntry:\n    work()  # here\n{clause}:\n    self.lock.release()"
    assert held(body) == [("self", "lock")]


def test_a_finished_try_has_released() -> None:
    """The finally of a try that lies before the line has run."""
    assert held("self.lock.acquire()\ntry:\n    work()\nfinally:\n    self.lock.release()\nmore()  # here") == []


def test_other_functions_do_not_count() -> None:
    """What a nested function acquires, this frame has not; nor has it what is no name."""
    assert held("def inner():\n    self.lock.acquire()\npools[0].acquire()\nwork()  # here") == []
