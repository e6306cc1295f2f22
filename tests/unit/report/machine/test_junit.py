"""JUnit's XML: a target is a test, and what fails is what should turn a build red."""

from __future__ import annotations

from typing import Optional
from xml.etree import ElementTree

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.evidence.vocabulary import TriggerKind
from postmortem.findings import Confidence
from postmortem.report.machine import junit

from ....support.samples import sleeper, thrash
from ..validators import check


def case(evidence: ev.Evidence, diagnosis: fi.Diagnosis) -> ElementTree.Element:
    text = junit.render(evidence, diagnosis)
    check("junit", text)
    found = ElementTree.fromstring(text.encode()).find("testsuite/testcase")
    assert found is not None
    return found


def test_a_finding_is_a_failure_with_the_report() -> None:
    """Type and message stand where servers show them, the text report in the body, without colour."""
    found = case(*thrash())
    failure = found.find("failure")
    assert failure is not None and failure.text is not None
    assert (found.get("name"), found.get("time")) == ("python -m unittest test_ws", "2.000")
    assert failure.get("type") == "gil-thrash"
    assert (failure.get("message") or "").startswith("gil-thrash, likely: 61 threads hand the GIL to and fro")
    assert failure.text.startswith("Verdict: gil-thrash, likely\n")
    assert "\n    > 153      await anyio.sleep(0)\n" in failure.text and "\x1b" not in failure.text


@pytest.mark.parametrize(
    ("kind", "signal", "confidence", "type"),
    [
        ("timeout", None, None, "timeout"),
        ("stall", None, None, "stall"),
        ("timeout", None, "possible", "sleeping"),
        ("core", 11, None, "SIGSEGV"),
        ("core", 11, "possible", "sleeping"),
        ("core", None, "likely", "sleeping"),
        ("core", None, "possible", None),
        ("core", None, None, None),
        ("pid", None, None, None),
        ("signal", None, "possible", None),
    ],
)
def test_what_fails(
    kind: TriggerKind, signal: Optional[int], confidence: Optional[Confidence], type: Optional[str]
) -> None:
    """A deadline, a stall and a fatal signal are failures, recognised or not; a look at a healthy program passes, and its
    report is the test's output."""
    process = ev.Process(1, argv=("work",), fatal_signal=signal)
    evidence = ev.Evidence(ev.Trigger(kind, 2.0 if kind == "timeout" else None), (process,))
    findings = (fi.Finding("sleeping", confidence, "It sleeps.", "e", "r"),) if confidence else ()
    found = case(evidence, fi.Diagnosis("sleeping" if findings else None, "s", findings))
    failure, output = found.find("failure"), found.find("system-out")
    if type is None:
        assert failure is None and output is not None and (output.text or "").startswith("Verdict: ")
    else:
        assert failure is not None and output is None
        assert failure.get("type") == type
        assert findings or (failure.get("message") or "").endswith("No known pattern was recognised.")


def test_several_targets_are_several_tests() -> None:
    """Counted, each with the target's name beside the command."""
    text = junit.render_many([("a.core", *thrash()), ("b", ev.Evidence(ev.Trigger("core")), fi.Diagnosis(None, "s"))])
    check("junit", text)
    suite = ElementTree.fromstring(text.encode()).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [found.get("name") for found in suite.iter("testcase")] == ["python -m unittest test_ws (a.core)", "b"]
    empty = junit.render_many([])
    check("junit", empty)
    assert 'tests="0"' in empty


def test_without_a_process_it_still_has_a_name() -> None:
    """A capture that could read nothing at all."""
    assert case(ev.Evidence(ev.Trigger("timeout", 1.0)), fi.Diagnosis(None, "s")).get("name") == "unknown command"
    assert case(*sleeper()).get("name") == "sleep 60"
