"""JUnit XML, in the form of Jenkins' junit-10.xsd, as read by GitLab, GitHub actions and others.

A target is a test. It has failed if the leading finding is above *possible*, or if a time limit, a stall or a fatal
signal ended the program, whether or not the cause was recognised. Otherwise it has passed, and the report is its output.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple
from xml.sax.saxutils import escape as escaped
from xml.sax.saxutils import quoteattr

from ...evidence import Evidence
from ...findings import Diagnosis
from ...signalnames import signal_name
from .. import escape
from ..phrases import origins
from ..result import Result
from ..text import stacks, textreport

_WIDTH = 100
_NAME = 200


class _Failure(NamedTuple):
    """The failure of a test case."""

    type: str
    message: str


def render(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """Render a target as a test suite with one case."""
    return _suites([("", evidence, diagnosis)])


def render_many(results: Sequence[Result]) -> str:
    """Render several targets as one test suite."""
    return _suites(results)


def _suites(results: Sequence[Result]) -> str:
    failures = [_failure(evidence, diagnosis) for _, evidence, diagnosis in results]
    failed = sum(failure is not None for failure in failures)
    counts = f'tests="{len(results)}" failures="{failed}" errors="0"'
    seconds = sum(evidence.trigger.seconds or 0.0 for _, evidence, _ in results)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="postmortem" {counts} time="{_time(seconds)}">',
        f'<testsuite name="postmortem" {counts} skipped="0" time="{_time(seconds)}">',
    ]
    if len(results) == 1:
        lines += _properties(results[0][1], results[0][2])
    for result, failure in zip(results, failures):
        lines += _case(result, failure)
    return "\n".join([*lines, "</testsuite>", "</testsuites>", ""])


def _properties(evidence: Evidence, diagnosis: Diagnosis) -> List[str]:
    told = {
        "postmortem.verdict": diagnosis.verdict or "none",
        "postmortem.signature": diagnosis.signature,
        "postmortem.trigger": evidence.trigger.kind,
    }
    rows = [f"<property name={_attribute(name)} value={_attribute(value)}/>" for name, value in told.items()]
    return ["<properties>", *rows, "</properties>"]


def _case(result: Result, failure: Optional[_Failure]) -> List[str]:
    target, evidence, diagnosis = result
    body = escaped(textreport.render(evidence, diagnosis, color=False, width=_WIDTH))
    took = "" if evidence.trigger.seconds is None else f' time="{_time(evidence.trigger.seconds)}"'
    lines = [f'<testcase classname="postmortem" name={_attribute(_name(target, evidence))}{took}>']
    if failure is None:
        lines.append(f"<system-out>{body}</system-out>")
    else:
        lines.append(f"<failure type={_attribute(failure.type)} message={_attribute(failure.message)}>{body}</failure>")
    return [*lines, "</testcase>"]


def _name(target: str, evidence: Evidence) -> str:
    """Return the command without its program's directory: equal in every run, so that a server can track the test."""
    command = stacks.command(evidence.processes[0]) if evidence.processes else ""
    program, space, rest = command.partition(" ")
    command = escape.cut(escape.clean(f"{program.rsplit('/', 1)[-1]}{space}{rest}"), _NAME)
    named = escape.clean(target)
    return f"{command} ({named})" if command and named else command or named or "unknown command"


def _failure(evidence: Evidence, diagnosis: Diagnosis) -> Optional[_Failure]:
    """Return the failure of a target; None if it has passed."""
    leading = next(iter(diagnosis.findings), None)
    sure = leading is not None and leading.confidence != "possible"
    ended = _ended(evidence)
    if leading is not None and (sure or ended is not None):
        return _Failure(leading.pattern, f"{leading.pattern}, {leading.confidence}: {leading.summary}")
    if ended is not None:
        kind, why = ended
        return _Failure(kind, f"{why} No known pattern was recognised.")
    return None


def _ended(evidence: Evidence) -> Optional[Tuple[str, str]]:
    """Return the kind and sentence of what ended, or was about to end, the program; None if nothing did."""
    if evidence.trigger.kind in ("timeout", "stall"):
        return evidence.trigger.kind, origins.why(evidence)
    for process in evidence.processes[:1]:
        if process.fatal_signal:
            name = signal_name(process.fatal_signal)
            return name, f"Process {process.pid} was ended by {name}."
    return None


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _attribute(value: str) -> str:
    return quoteattr(escape.cut(escape.clean(value), 2000))
