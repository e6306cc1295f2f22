"""What the text report says of a thread beside its stack."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report import escape
from postmortem.report.text import details, textreport
from postmortem.report.text.underline import Span, marks

from ....support.samples import detailed, py


def shown(beginning: str) -> str:
    return escape.clean(beginning.expandtabs(4))


def drawn(line: str, expression: str, at: int = 0) -> str:
    """The marks for the ``at``-th place of an expression in a line, by its bytes."""
    start = -1
    for _ in range(at + 1):
        start = line.index(expression, start + 1)
    before = len(line[:start].encode())
    return marks(line, Span(1, 1, before, before + len(expression.encode())), shown)


@pytest.mark.parametrize(
    ("line", "expression", "expected"),
    [
        ("x = a[f(x)] + g(y)", "a[f(x)] + g(y)", "    ~~~~~~~~^~~~~~"),
        ("x = a[f(x)] + g(y)", "a[f(x)]", "    ~^^^^^^"),
        ("x = a[f(x)] + g(y)", "g(y)", "              ~^^^"),
        ("x = a // (b)", "a // (b)", "    ~~^^~~~~"),
        ("with lock, other:", "other", "           ^^^^^"),
        ("x = await go(1)", "await go(1)", "    ~~~~~~~~^^^"),
        ("\tx = f(y) + z", "f(y)", "        ~^^^"),  # the tab is printed as four blanks
        ("s = '漢字' + f(y)", "f(y)", "             ~^^^"),  # two columns each
        ("s = 'käse' + f(y)", "f(y)", "             ~^^^"),  # two bytes, one column
        ("s = '\x1b' + f(y)", "f(y)", "             ~^^^"),  # printed as \\x1b
    ],
)
def test_marks_stand_under_the_expression(line: str, expression: str, expected: str) -> None:
    """In columns of what is printed, the operator or the brackets told apart from the rest."""
    assert drawn(line, expression) == expected


def test_marks_say_which_of_two_equal_calls_runs() -> None:
    """The second f(x) of a line, not the first."""
    assert drawn("f(x) + f(x)", "f(x)", 0) == "~^^^"
    assert drawn("f(x) + f(x)", "f(x)", 1) == "       ~^^^"


@pytest.mark.parametrize(
    ("line", "span"),
    [
        ("    go(1)", Span(1, 1, 4, 9)),  # the whole line
        ("    go(1)  # why", Span(1, 1, 4, 9)),
        ("    go(1)", Span(1, 1, None, None)),
        ("    go(1)", Span(None, None, 4, 9)),
        ("    go(1)", Span(1, 1, 4, 90)),  # the source is another one now
        ("    go(1)", Span(1, 1, 9, 4)),
        ("", Span(1, 1, 0, 3)),
    ],
)
def test_no_marks_where_they_would_tell_nothing(line: str, span: Span) -> None:
    """Neither under a whole line nor where the columns do not fit it."""
    assert marks(line, span, shown) == ""


def test_marks_run_to_the_end_of_the_line_when_the_expression_goes_on() -> None:
    """A call over several lines is marked on its first."""
    assert marks("x = go(", Span(1, 3, 4, 1), shown) == "    ^^^"


def test_hostile_source_is_no_trouble() -> None:
    """Brackets without end and lone surrogates draw something or nothing, and raise nothing."""
    for line in ("(" * 300 + ")", "x = '\udc80' + f()", "\0" * 20, "f(" * 100):
        marks(line, Span(1, 1, 1, len(line.encode("utf-8", "backslashreplace"))), shown)


def test_the_report_of_one_thread_in_full() -> None:
    """The expression, the exceptions, the collector, the variables and the recursion stand with the thread, in 80
    columns and without a control character."""
    report = textreport.render(*detailed(), color=False)
    lines = report.splitlines()
    at = next(n for n, line in enumerate(lines) if line.strip().startswith("> 20"))
    assert lines[at + 1][lines[at].index("f(x)") :].startswith("~^^^")
    flat = " ".join(report.split())
    assert "runs the garbage collector" in flat
    assert "Raises KeyError." in flat
    assert 'While handling app.ParseError: "bad \\x1b[2J item", raised in fails at /app/work.py:44.' in flat
    assert "parse_list → parse_item, 50,000 times over: 100,002 frames in all" in flat
    assert "<module> at /app/work.py:9" in report
    assert "depth = 7" in report and "api_key = <redacted>" in report
    assert "\x1b" not in report
    assert all(escape.columns(line) <= 80 for line in lines)


def test_colour_changes_nothing_of_the_marks() -> None:
    """They stand in the same columns."""
    plain = [
        line for line in textreport.render(*detailed(), color=False).splitlines() if line.strip(" ~^") == "" and line
    ]
    colored = textreport.render(*detailed(), color=True)
    assert plain and all(line.strip() in colored for line in plain)


def test_threads_with_one_stack_and_different_exceptions() -> None:
    """What is not true of all of them is not said of all of them."""
    threads = tuple(
        ev.Thread(n, stack=(py("f"),), exceptions=(ev.ThreadException("handled", kind),))
        for n, kind in enumerate(("ValueError", "KeyError"))
    )
    process = ev.Process(1, python=ev.PythonInfo("3.12.1"), threads=threads)
    report = textreport.render(ev.Evidence(ev.Trigger("core"), (process,)), fi.Diagnosis(None, "n"), color=False)
    assert "They handle different exceptions." in report
    assert "ValueError" not in report


def test_a_collection_that_no_thread_is_known_to_run() -> None:
    """It is said of the process; a thread that is known to run it says so itself."""
    process = ev.Process(1, python=ev.PythonInfo("3.12.1"), interpreters=(ev.Interpreter(0, collecting=True),))
    for gc, said in ((None, True), (False, False)):
        threads = tuple(ev.Thread(n, stack=(py(f"f{n}"),), gc=gc) for n in (1, 2))
        evidence = ev.Evidence(ev.Trigger("core"), (ev.replace(process, threads=threads),))
        report = textreport.render(evidence, fi.Diagnosis(None, "n"), color=False)
        assert ("which thread runs it is not known" in " ".join(report.split())) is said


@pytest.mark.parametrize(
    ("world", "said"),
    [
        (ev.StopTheWorld(True, False, 12), "Thread 12 wants to stop the world"),
        (ev.StopTheWorld(True, True, None), "Some thread has stopped the world"),
        (ev.StopTheWorld(False, False), None),
    ],
)
def test_a_stopped_world_is_said_of_the_process(world: ev.StopTheWorld, said: Optional[str]) -> None:
    """The thread that stopped a free-threaded program is named, if any; the JSON report keeps the record."""
    interpreter = ev.Interpreter(0, stop_the_world=world)
    process = ev.Process(1, python=ev.PythonInfo("3.14.0", free_threaded=True), interpreters=(interpreter,))
    evidence = ev.Evidence(ev.Trigger("core"), (process,))
    shown = " ".join(textreport.render(evidence, fi.Diagnosis(None, "n"), color=False).split())
    assert said in shown if said else "the world" not in shown
    assert ev.decode(ev.encode(evidence)) == evidence


@pytest.mark.parametrize(
    ("state", "group", "said"),
    [
        ("S", ev.ControlGroup("/box", frozen=True), "control group /box is frozen"),
        ("S", ev.ControlGroup("/box", frozen=False), None),
        ("S", ev.ControlGroup("/box"), None),
        ("S", ev.ControlGroup("/box", cpu_quota=0.5, throttled=0.87), "CPU quota (0.5 CPU) in 87% of its periods"),
        ("S", ev.ControlGroup("/box", throttled=0.01), None),
        ("S", ev.ControlGroup("/box", memory_limit=1000, memory_used=999), "999 of the 1,000 bytes"),
        ("S", ev.ControlGroup("/box", memory_limit=1000, memory_used=500), None),
        ("T", None, "stopped by a signal"),
        ("t", None, "A debugger has stopped it"),
        ("S", None, None),
    ],
)
def test_what_holds_a_process_up_from_outside(
    state: str, group: Optional[ev.ControlGroup], said: Optional[str]
) -> None:
    """A process that may not run is told from one that hangs; limits that do not bite are not mentioned."""
    process = ev.Process(1, argv=("x",), exe="/x", state=state, cgroup=group, threads=(ev.Thread(1, is_main=True),))
    evidence = ev.Evidence(ev.Trigger("pid"), (process,), machine=ev.Machine(load=1.0))
    assert "Process 77 traces it" in details.held_up(ev.replace(process, tracer=77))
    shown = " ".join(textreport.render(evidence, fi.Diagnosis(None, "n"), color=False).split())
    assert said in shown if said else "control group" not in shown and "stopped" not in shown
    assert ev.decode(ev.encode(evidence)) == evidence


def test_programs_that_cannot_be_looked_into() -> None:
    """Neither a set-user-id program nor a zombie is called "not a Python program": nobody knows."""
    closed = ev.Process(7, argv=("su",), state="S", threads=(ev.Thread(7, name="su", state="S", is_main=True),))
    ended = ev.Process(8, state="Z", threads=(ev.Thread(8, name="sh", state="Z", is_main=True),))
    evidence = ev.Evidence(ev.Trigger("pid"), (closed, ended))
    shown = " ".join(textreport.render(evidence, fi.Diagnosis(None, "n"), color=False).split())
    assert "Process 7: su a program that could not be inspected" in shown
    assert "Process 8: [sh] a zombie" in shown
    assert "not a Python program" not in shown
