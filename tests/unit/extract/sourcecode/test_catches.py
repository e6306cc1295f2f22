"""Clauses that catch a cancellation and go round again, found in sources."""

from __future__ import annotations

import ast
import textwrap
from typing import List

import pytest

from postmortem.extract.sourcecode.catches import cancels_awaited, cancels_items, swallowing


def clauses(body: str) -> List[int]:
    """The lines of the clauses around ``await here()`` in an `async def work`, counted from its body's first line."""
    source = "async def work(self):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "await here()" in text)
    return [found - 1 for found in swallowing(ast.parse(source), "work", line)]


@pytest.mark.parametrize(
    "kind", ["", " BaseException", " (KeyError, asyncio.CancelledError) as exc", " CancelledError"]
)
def test_a_clause_in_a_loop_that_catches_cancellations(kind: str) -> None:
    """A bare except, BaseException, CancelledError alone or in a tuple."""
    assert clauses(f"while True:\n    try:\n        await here()\n    except{kind}:\n        log()") == [4]


def test_suppress_counts_too() -> None:
    """contextlib.suppress of CancelledError; not of other exceptions."""
    body = "for job in jobs:\n    with contextlib.suppress({}):\n        await here()"
    assert clauses(body.format("KeyError, asyncio.CancelledError")) == [2]
    assert clauses(body.format("KeyError")) == []


@pytest.mark.parametrize("leaving", ["raise", "return", "break", "if done:\n            raise"])
def test_a_clause_that_may_leave_is_none(leaving: str) -> None:
    """Nor does anything around it count: the exception never gets there."""
    inner = f"while True:\n    try:\n        await here()\n    except BaseException:\n        {leaving}"
    assert clauses(inner) == []
    outer = "while True:\n    try:\n" + textwrap.indent(inner, "        ") + "\n    except BaseException:\n        pass"
    assert clauses(outer) == []


def test_only_the_body_of_a_try_inside_of_a_loop_counts() -> None:
    """An await in the clause itself, behind the try, or in a try that is in no loop goes on by design."""
    assert clauses("while True:\n    try:\n        job()\n    except BaseException:\n        await here()") == []
    assert (
        clauses("while True:\n    try:\n        job()\n    except BaseException:\n        pass\n    await here()") == []
    )
    assert clauses("try:\n    await here()\nexcept BaseException:\n    pass") == []
    assert clauses("while True:\n    try:\n        await here()\n    except Exception:\n        pass") == []


def test_a_loop_that_its_clause_ends_is_none() -> None:
    """``while not self.stopping`` ends once the clause has set that; one whose clause sets nothing does not."""
    loop = "while not self.stopping:\n    try:\n        await here()\n    except BaseException:\n        {}"
    assert clauses(loop.format("self.stopping = True")) == []
    assert clauses(loop.format("self.stopped.set()")) == []
    assert clauses(loop.format("log()")) == [4]


def test_other_functions_are_left_alone() -> None:
    """A nested function, or one of the same name elsewhere."""
    tree = ast.parse(
        "async def work():\n    while True:\n        try:\n            await x()\n        except:\n            pass\n"
    )
    assert swallowing(tree, "work", 4) == [5]
    assert swallowing(tree, "other", 4) == [] and swallowing(tree, "work", 40) == []


def test_what_is_awaited_was_cancelled_before() -> None:
    """Written alike, in an earlier line of the same function."""
    text = "async def end(app):\n    app[KEY].cancel()\n    app[OTHER].close()\n    await app[{}]\n"
    assert cancels_awaited(ast.parse(text.format("KEY")), "end", 4)
    assert not cancels_awaited(ast.parse(text.format("OTHER")), "end", 4)
    assert not cancels_awaited(ast.parse("async def end(one):\n    await one\n    one.cancel()\n"), "end", 2)


def test_items_that_are_cancelled() -> None:
    """Which item it is the code does not tell; a name of its own it does."""
    text = "async def end(self, name):\n    {}.cancel()\n    await gather(*self.tasks.values())\n"
    assert cancels_items(ast.parse(text.format("self.tasks[name]")), "end", 3)
    assert not cancels_items(ast.parse(text.format("self.belt")), "end", 3)
    assert not cancels_items(ast.parse(text.format("self.tasks[name]")), "end", 2)
