"""Values and exceptions against what the interpreters themselves say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from postmortem.cpython.frames.exceptions import exceptions
from postmortem.cpython.state.interpreter import Python
from postmortem.cpython.state.values import Values
from postmortem.memory import ProcMem

from ..support.interpreters import ROOT, Program, matrix

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", matrix())]


def test_own_values(python: str, tmp_path: Path) -> None:
    """An interpreter that describes its own values finds what it has: numbers, texts, containers, instances, locks,
    code; bounded, without ends to cycles, and without what names call a secret."""
    done = subprocess.run(
        [os.fspath(python), str(ROOT / "tests" / "live" / "values_check.py")],
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr


EXCEPTIONS = """
import json, sys, threading
gate, reached = threading.Event(), threading.Semaphore(0)
def parked():
    reached.release()
    gate.wait()
class Bare(Exception): pass
def fails(): raise Bare("because", 7)                 # fails
def nested():
    try:
        fails()
    except Bare:
        try:
            json.loads("{")
        except ValueError:
            parked()
def generator():
    try:
        raise TypeError("inside")                     # generator
    except TypeError:
        parked()
        yield
def through():
    try:
        1 / 0                                         # through
    except ZeroDivisionError:
        list(generator())
def finally_():
    try:
        raise OSError(2, "x")                         # finally
    finally:
        parked()
class Leaves:
    def __enter__(self): pass
    def __exit__(self, *_): parked()
def with_():
    with Leaves():
        fails()
def calm():
    try: fails()
    except Bare: pass
    parked()
for f in (nested, through, finally_, with_, calm):
    threading.Thread(target=f, daemon=True, name=f.__name__).start()
    reached.acquire()
print("ready", flush=True)
sys.stdin.read()
"""


def test_exceptions_being_handled(python: str, tmp_path: Path) -> None:
    """A thread inside except, finally or __exit__ shows the exception, its class as tracebacks name it, and the line that
    raised it; a running generator's before its caller's; what is over does not show."""
    with Program(python, EXCEPTIONS, tmp_path) as program, ProcMem(program.pid) as memory:
        reader = Python(memory)
        values = Values(reader.frames)
        threads = {t.name: exceptions(reader.frames, t.address) for t in reader.interpreters[0].threads}
        found = {
            name: [(e.type, e.handled, e.code.name if e.code else None, e.line) for e in raised]
            for name, raised in threads.items()
        }
        line = program.line_of
        assert next(row[:3] for row in found["nested"]) == ("json.decoder.JSONDecodeError", True, "raw_decode")
        assert found["through"] == [
            ("TypeError", True, "generator", line("generator")),
            ("ZeroDivisionError", True, "through", line("through")),
        ]
        assert found["finally_"] == [("FileNotFoundError", True, "finally_", line("finally"))]
        assert found["with_"] == [("Bare", True, "fails", line("fails"))]
        assert found["calm"] == found["MainThread"] == []
        said = {e.type: values.message(e.address) for raised in threads.values() for e in raised}
        assert said["TypeError"] == "inside"
        assert said["Bare"] == "'because', 7"
