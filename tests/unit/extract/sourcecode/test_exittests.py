"""What the tests of a loop read, and what the loop itself sets or changes."""

from __future__ import annotations

import ast
from typing import List, Tuple

import pytest

from postmortem.extract.sourcecode.exittests import Read, gives, reads
from postmortem.extract.sourcecode.rounds import Loop


def loop(source: str) -> Loop:
    found = ast.parse(source).body[0]
    assert isinstance(found, (ast.While, ast.For))
    return found


@pytest.mark.parametrize(
    ("test", "read"),
    [
        ("not self.ready", [(("self", "ready"), "truth")]),
        ("self.count < 3", [(("self", "count"), "compared")]),
        ("self.done != self.total", [(("self", "done"), "compared"), (("self", "total"), "compared")]),
        ("len(results) < n", [(("results",), "contents"), (("n",), "compared")]),
        ("key not in self.results", [(("self", "results"), "contents")]),
        ("results.get(key) is None", [(("results",), "contents")]),
        ("not results[0]", [(("results",), "contents")]),
        (
            "(item := self.last) is None or not self.items",
            [(("self", "last"), "compared"), (("self", "items"), "truth")],
        ),
        ("left - 1 > 0", [(("left",), "compared")]),
        ("self.is_ready()", []),
    ],
)
def test_what_a_test_reads(test: str, read: List[Tuple[Tuple[str, ...], str]]) -> None:
    """Each variable with its role; of a call that is not known nothing."""
    assert reads(loop(f"while {test}:\n    sleep(1)")) == [Read(*each) for each in read]  # type: ignore[arg-type]


def test_conditions_inside_the_loop_are_read() -> None:
    """They leave the loop as well as its own condition does."""
    assert reads(loop("while True:\n    if box.item:\n        break\n    sleep(1)")) == [Read(("box", "item"), "truth")]


def test_what_a_loop_gives() -> None:
    """What it sets itself, and what it changes by methods and items; a look changes nothing."""
    body = "    self.last = other = 1\n    jobs.remove(1)\n    seen[1] = 2\n    names.get(1)\n    del old[0]\n"
    assert gives(loop(f"while True:\n{body}")) == (frozenset(("last", "other")), frozenset(("jobs", "seen", "old")))
