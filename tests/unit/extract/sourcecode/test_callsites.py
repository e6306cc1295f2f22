"""Calls in a function's source: those that have run before a line, and those that are yet to run."""

from __future__ import annotations

import ast
import textwrap
from typing import List, Tuple

import pytest

from postmortem.extract.sourcecode.callsites import (
    MODULE,
    CallSite,
    Source,
    Span,
    calls_before,
    calls_from,
    function_at,
    function_from,
    named_methods,
    parameters,
    parse,
    spawned_calls,
    with_paths,
)

SOURCE = textwrap.dedent(
    """
    import threading
    start = threading.Lock()
    start.acquire()
    class Store:
        def begin(self, latch):
            latch.acquire()
            return self
        @property
        @traced
        def commit(self):
            self.log.write(self.rows, 3)
            self.latch.release()
        def guarded(self):
            try:
                self.work()
            finally:
                self.latch.release()
            with self.other, open("x") as f:
                pass
    """
)
LINES = SOURCE.splitlines()


def line(text: str) -> int:
    return next(number for number, one in enumerate(LINES, 1) if text in one)


def calls(sites: List[CallSite]) -> List[Tuple[Tuple[str, ...], str]]:
    return [(site.path, site.name) for site in sites]


def source() -> Source:
    return parse(LINES)


def test_a_function_is_found_by_a_line_of_it() -> None:
    """The innermost of that name; the module's own code by its name; none elsewhere."""
    found = function_at(source(), "guarded", line("self.work"))
    assert found is not None and calls(calls_before(found))[0] == (("self",), "work")
    assert function_at(source(), "guarded", line("self.log")) is None
    module = function_at(source(), MODULE, 3)
    assert module is not None
    assert calls(calls_before(module, line("class Store"))) == [(("threading",), "Lock"), (("start",), "acquire")]


def test_a_function_is_found_by_where_its_code_begins() -> None:
    """co_firstlineno is the line of the first decorator; a function of that name elsewhere is another one."""
    assert function_from(source(), "commit", line("@property")) is not None
    assert function_from(source(), "begin", line("def begin")) is not None
    assert function_from(source(), "commit", line("def begin")) is None
    found = function_from(source(), "begin", line("def begin"))
    assert found is not None and parameters(found) == ("self", "latch")


def test_arguments_are_names_or_unknown() -> None:
    """What is passed on may be the lock itself: dotted names are kept, everything else is empty."""
    found = function_from(source(), "commit", line("@property"))
    assert found is not None
    assert calls_before(found)[0].arguments == (("self", "rows"), ())


def test_what_is_yet_to_run() -> None:
    """The line itself and what comes behind it; a `finally` around the line is among it, and has not run before."""
    found = function_at(source(), "guarded", line("self.work"))
    assert found is not None
    assert calls(calls_before(found, line("self.work") + 1)) == [(("self",), "work")]
    assert calls(calls_from(found, line("self.work")))[:2] == [(("self",), "work"), (("self", "latch"), "release")]
    assert with_paths(found) == {("self", "other")}


def test_methods_know_their_class() -> None:
    """Two classes may call different locks by one name."""
    known = source()
    owners = {getattr(f, "name", MODULE): known.owners.get(id(f)) for f in known.functions}
    assert owners == {"begin": "Store", "commit": "Store", "guarded": "Store", MODULE: None}


@pytest.mark.parametrize("lines", [None, ["def f(:"], ["x = '\0'"], ["(" * 5000]])
def test_what_is_no_python_has_no_functions(lines: List[str]) -> None:
    """The source may be gone, of another version, or no source at all."""
    assert parse(lines).functions == ()


ONE_LINE = """
async def f(a, b, log):
    a.acquire(); log.write(b.name()); a.release()
    await a.acquire()
    undo(a.release, lambda: b.release())
    log.release()
"""


def at(text: str, number: int = 3) -> Span:
    column = ONE_LINE.splitlines()[number - 1].index(text)
    return Span((number, column), (number, column + len(text)))


@pytest.mark.parametrize(
    ("span", "before", "now"),
    [
        (at("a.acquire()"), [], ["acquire", "write", "name", "release"]),
        (at("log.write(b.name())"), ["acquire", "name"], ["write", "release"]),
        (at("b.name()"), ["acquire"], ["write", "name", "release"]),
        (at("a.release()"), ["acquire", "write", "name"], ["release"]),
    ],
)
def test_columns_order_the_calls_of_a_line(span: Span, before: List[str], now: List[str]) -> None:
    """What ends before the expression that is evaluated has run, and so have its own arguments; it itself has not, nor what
    is around it."""
    function = parse(ONE_LINE.splitlines()).functions[0]
    assert [site.name for site in calls_before(function, 3, span)] == before
    assert [site.name for site in calls_from(function, 3, span) if site.line == 3] == now


def test_a_coroutine_has_run_when_it_was_awaited() -> None:
    """A function that awaits acquire() has called it, but does not have the lock."""
    function = parse(ONE_LINE.splitlines()).functions[0]
    awaiting = at("await a.acquire()", 4)
    assert [site.line for site in calls_before(function, 4, awaiting)] == [3, 3, 3, 3]
    assert next(site.name for site in calls_from(function, 4, awaiting)) == "acquire"


def test_methods_that_are_handed_on() -> None:
    """A bound method as an argument, and a call in a lambda: others make them, whenever they like."""
    function = parse(ONE_LINE.splitlines()).functions[0]
    assert named_methods(function, "release") == {("a",), ("b",)}
    assert named_methods(function, "acquire") == set()


def test_calls_of_which_tasks_are_made() -> None:
    """A coroutine that becomes a task runs by itself; one that is awaited with a time limit is part of its caller."""
    source = """
    async def main(hub, pool):
        several = [asyncio.create_task(hub.beat()), ensure_future(hub.keep())]
        part = await asyncio.wait_for(pool.acquire(), 5)
    """
    function = parse(textwrap.dedent(source).splitlines()).functions[0]
    assert [ast.unparse(call) for call in spawned_calls(function)] == ["hub.beat()", "hub.keep()"]
