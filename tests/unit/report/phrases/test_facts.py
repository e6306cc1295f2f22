"""Facts of the evidence in words: each code has a template, and each fact is made with the slots of its template."""

from __future__ import annotations

import ast
from typing import Iterator, Set, Tuple, get_args

import pytest

from postmortem.evidence import Fact, fact
from postmortem.evidence.facts import Value
from postmortem.evidence.vocabulary import FactCode
from postmortem.report.phrases.facts import WORDS

from ....support.inwords import words
from ....support.sources import ROOT


def made() -> Iterator[Tuple[str, Set[str]]]:
    """Yield the code and the slots of every call of ``fact`` in the package whose code is written out."""
    for path in sorted((ROOT / "postmortem").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fact":
                code = node.args[0]
                codes = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
                for one in codes:
                    if isinstance(one, ast.Constant):
                        yield str(one.value), {str(keyword.arg) for keyword in node.keywords}


def test_each_code_has_words() -> None:
    """The vocabulary and the templates list the same codes."""
    assert set(WORDS) == set(get_args(FactCode))


def test_each_fact_fills_its_template() -> None:
    """A slot that is missing would fail only where the report is made, and one too many would never be read."""
    found = list(made())
    assert len({code for code, _slots in found}) > 50
    assert [(code, slots) for code, slots in found if slots != set(WORDS[code].names)] == []  # type: ignore[index]


def test_each_code_is_made() -> None:
    """A code that nothing makes is dead; the two of semaphores in shared memory are made through one function."""
    chosen = {"shared-none-has", "shared-mapped-by"}
    assert {code for code, _slots in made()} | chosen == set(get_args(FactCode))


def test_forms_follow_the_number() -> None:
    """One and several, with the number where the form has a place for it, and clauses that may be absent."""
    left = fact("left-behind-here", count=1, pid=7), fact("left-behind-here", count=2, pid=7)
    assert words(left) == (
        "the memory of process 7 has the control block of a thread that had not ended but does not run there: fork left it "
        "behind",
        "the memory of process 7 has the control blocks of 2 threads that had not ended but do not run there: fork left "
        "them behind",
    )
    quiet = fact("end-held", process="PID 3", end="write end", fd=1, call=None, file=None)
    reads = fact("end-held", process="PID 3", end="write end", fd=1, call="read", file="/dev/tty")
    assert words((quiet, reads)) == (
        "PID 3 holds its write end, as descriptor 1",
        "PID 3 holds its write end, as descriptor 1; it is in read on /dev/tty",
    )
    several = fact("referred-to", object="the Queue", times=3, by=("local q of work", "attribute q of Job"), more=2)
    assert words((several,)) == ("the Queue is referenced 3 times: local q of work, attribute q of Job and 2 more",)


@pytest.mark.parametrize("value", [None, True, -1, 2.5, float("inf"), "x", (), ("a", 1)])
def test_damaged_slots_have_words(value: Value) -> None:
    """Evidence from elsewhere may lack slots, or have values of any other type in them."""
    for code, template in WORDS.items():
        assert all(words((Fact(code), Fact(code, dict.fromkeys(template.names, value)))))


def test_words_of_the_first_version_stay() -> None:
    """Evidence that was written with sentences is shown as it was written."""
    assert words(("only get() refers to it",)) == ("only get() refers to it",)
