"""Output of each command: its name → the lines for gdb to print."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator

from .. import report
from ..cpython.heap.gclists import counts
from ..cpython.objects.builtins import NotThat
from ..foreign.numbers import is_decimal
from . import locks, threads
from .asking import Asked, Wrong
from .show import Line, clean, table, tids
from .subject import Subject

__all__ = ["Line", "Wrong", "to"]

Answer = Callable[[Subject, Asked], Iterator[Line]]


def to(subject: Subject, asked: Dict[str, Any]) -> Iterator[Line]:
    """Yield the answer to a command of gdb's. Raises Wrong, NotPython, Fault, NotThat."""
    command = _COMMANDS.get(str(asked.get("command")))
    if command is None:
        raise Wrong("gdb's scripts and postmortem are of different versions: reinstall both")
    return command(subject, Asked.of(asked))


def _why(subject: Subject, _asked: Asked) -> Iterator[Line]:
    text = report.FORMATS["text"].render(subject.evidence, subject.diagnosis, False, 80)
    yield from (("", line) for line in text.splitlines())


def _gil(subject: Subject, _asked: Asked) -> Iterator[Line]:
    process = subject.process
    for interpreter in subject.python.interpreters:
        gil = interpreter.gil
        yield "bold", f"Interpreter {interpreter.id}"
        if gil is None:
            yield "", "  its GIL record cannot be read, or this build has none"
            continue
        waiting = [t.tid for t in process.threads if t.gil == "waits" and t.interpreter == interpreter.id]
        holder = subject.context.threads.tid_of_state(gil.holder)
        interval = "unknown" if gil.interval_s is None else f"{gil.interval_s * 1000:g} ms"
        yield "", f"  locked: { {True: 'yes', False: 'no', None: 'unknown'}[gil.locked] }"
        yield "", f"  holder: {holder if holder is not None else 'none' if gil.locked is False else 'unknown'}"
        yield "", f"  switch interval: {interval}"
        yield "", f"  changes of holder: {'unknown' if gil.switches is None else gil.switches}"
        yield "", f"  waiters: {tids(waiting)}"
    yield from threads.problems(subject)


def _objects(subject: Subject, asked: Asked) -> Iterator[Line]:
    if len(asked.arguments) > 1 or not all(is_decimal(word) for word in asked.arguments):
        raise Wrong("Usage: pm-objects [COUNT]")
    python = subject.python
    for interpreter in python.interpreters:
        try:
            found = counts(python, interpreter)
        except NotThat as exc:
            yield "", f"Interpreter {interpreter.id}: {exc}"
            continue
        most = int(asked.arguments[0]) if asked.arguments else 20
        rows = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:most]
        yield "bold", f"Interpreter {interpreter.id}: {sum(found.values())} objects of {len(found)} types"
        yield from table(("COUNT", "TYPE"), [(str(number), clean(name)) for name, number in rows])


_COMMANDS: Dict[str, Answer] = {
    "pm-why": _why,
    "pm-threads": threads.listed,
    "pm-bt": threads.backtrace,
    "pm-locals": threads.local_variables,
    "pm-locks": locks.listed,
    "pm-tasks": locks.tasks,
    "pm-gil": _gil,
    "pm-objects": _objects,
}
