"""GitHub's annotations: at the lines to change, no more than a step shows, escaped as the runner reads them."""

from __future__ import annotations

from typing import Dict, List, Tuple

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.findings import Confidence
from postmortem.report.machine import github

from ....support.samples import sleeper, thrash


def read(text: str) -> List[Tuple[str, Dict[str, str], str]]:
    """As the runner does: command, properties, message."""
    found = []
    for line in text.splitlines():
        _, head, message = line.split("::", 2)
        command, _, listed = head.partition(" ")
        pairs = (pair.split("=", 1) for pair in listed.split(","))
        found.append((command, {key: _plain(value) for key, value in pairs}, _plain(message)))
    return found


def _plain(text: str) -> str:
    for code, mark in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, mark)
    return text


def blame(file: str, *lines: int, confidence: Confidence = "proven", **place: int) -> fi.Diagnosis:
    culprits = tuple(fi.Culprit(1, 1, None, file, line, "f", "    f(x)", **place) for line in lines)
    finding = fi.Finding("sleeping", confidence, "100 % sure, really: yes", "e", "Do: this, or that", culprits=culprits)
    return fi.Diagnosis("sleeping", "s", (finding,))


def test_an_annotation_stands_at_the_line() -> None:
    """File relative to the checkout, line, columns of a single line; percent signs, colons and commas come through."""
    evidence = ev.Evidence(ev.Trigger("pid"), (ev.Process(1, cwd="/repo"),))
    diagnosis = blame("/repo/a,b:c%.py", 7, end_line=7, column=4, end_column=8)
    ((command, properties, message),) = read(github.render(evidence, diagnosis))
    assert command == "error"
    assert properties == {
        "file": "a,b:c%.py",
        "line": "7",
        "endLine": "7",
        "col": "5",
        "endColumn": "9",
        "title": "postmortem: sleeping, proven",
    }
    assert message == "100 % sure, really: yes\nIn f, process 1, thread 1.\nWhat to do: Do: this, or that"


def test_the_command_follows_from_the_confidence() -> None:
    """Only what is proven is an error; what is only possible is a notice."""
    evidence = ev.Evidence(ev.Trigger("pid"), (ev.Process(1),))
    kinds = [
        read(github.render(evidence, blame("/a.py", 1, confidence=c)))[0][0] for c in ("proven", "likely", "possible")
    ]
    assert kinds == ["error", "warning", "notice"]


def test_a_step_shows_ten_at_most() -> None:
    """Four places of the leading finding, one each of five others; sixty tasks at one line are one."""
    evidence = ev.Evidence(ev.Trigger("pid"), (ev.Process(1),))
    diagnosis = blame("/a.py", *range(1, 30))
    many = ev.replace(diagnosis, findings=diagnosis.findings * 20)
    assert len(read(github.render(evidence, many))) == 9
    assert [command for command, _, _ in read(github.render(*thrash()))] == ["warning", "notice"]


def test_without_a_verdict_a_deadline_is_still_an_error() -> None:
    """At no line."""
    assert github.render(*sleeper()) == (
        "::error title=postmortem%3A no verdict::The command had not ended after 1 s. No known pattern was recognised.\n"
    )
    calm = ev.Evidence(ev.Trigger("pid"), (ev.Process(1),))
    assert github.render(calm, fi.Diagnosis(None, "s")).startswith("::notice ")


def test_code_without_a_file_is_named_in_the_message() -> None:
    """There is no line to show it at."""
    evidence = ev.Evidence(ev.Trigger("pid"), (ev.Process(1),))
    ((_, properties, message),) = read(github.render(evidence, blame("<string>", 3)))
    assert set(properties) == {"title"}
    assert "At <string>:3." in message
