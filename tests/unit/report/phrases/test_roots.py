"""The root in words: idle, progressing and waiting programs, and when it is news beside a finding."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from postmortem.findings import Confidence, Culprit, Diagnosis, Finding, Root, RootKind, RootState, Victim
from postmortem.report.html import page as html
from postmortem.report.phrases import roots
from postmortem.report.text import markdown, textreport

from ....support.make import APP, evidence, frame, process, thread

KNOWN = evidence(process([thread(1, [frame("main", 7)], name="MainThread"), thread(2, [frame("work", 9)])]))


def root(state: RootState, kind: RootKind, tid: int = 1, **known: Any) -> Root:
    return Root(state, kind, 1, tid, **{"file": APP, "line": 7, "function": "main", **known})


def diagnosis(one: Root, confidence: Confidence = "likely", **known: Any) -> Diagnosis:
    culprit = Culprit(1, 2, None, APP, 9, "work")
    finding = Finding("orphaned-lock", confidence, "s", "e", "r", culprits=known.pop("culprits", (culprit,)), **known)
    return Diagnosis("orphaned-lock", "x", (finding,), root=one)


def test_every_kind_and_state_has_words() -> None:
    """None is said in its code."""
    assert set(roots.DOES) == set(get_args(RootKind))
    assert set(roots.STATES) == set(get_args(RootState))


@pytest.mark.parametrize(
    ("state", "kind", "said"),
    [
        ("idle", "loop", "The program is idle by design: thread 1 \"MainThread\" runs an event loop that waits for events at"),
        ("progressing", "python", "The program makes progress: thread 1 \"MainThread\" runs Python code at"),
        ("progressing", "queue", "for room in it at /app/service.py:7 in main, and moved during the window."),
        ("waiting", "thread", "The program waits: thread 1 \"MainThread\" waits for a thread to end at"),
    ],
)  # fmt: skip
def test_a_program_without_findings(state: RootState, kind: RootKind, said: str) -> None:
    """The rest by design, the progress or the wait, in all three reports, within their width."""
    one = Diagnosis(None, "x", root=root(state, kind))
    assert said in roots.sentences(KNOWN, root(state, kind))
    shown = textreport.render(KNOWN, one, color=False)
    assert all(len(line) <= 80 for line in shown.splitlines())
    for report in (shown, markdown.render(KNOWN, one)):
        assert said in " ".join(report.split())
    assert roots.STATES[state] in html.render(KNOWN, one)


def test_a_root_elsewhere_than_the_finding_is_told() -> None:
    """In one line under the summary, with the agent, the place and the number of others, in all three reports."""
    one = diagnosis(root("waiting", "pipe", others=2))
    waits = 'thread 1 "MainThread" waits for the other end of a pipe at /app/service.py:7 in main'
    said = f"Root: {waits}; 2 other agents end there, too."
    assert roots.line(KNOWN, one) == said
    assert said in " ".join(textreport.render(KNOWN, one, color=False).split())
    assert "Root: thread 1" in markdown.render(KNOWN, one)
    assert "waits for the other end of a pipe" in html.render(KNOWN, one)


@pytest.mark.parametrize(
    ("found", "news"),
    [
        (diagnosis(root("waiting", "lock", 2)), False),  # the finding names the thread
        (diagnosis(root("waiting", "lock", 3, line=9)), False),  # and the line
        (diagnosis(root("waiting", "lock", 3)), True),
        (diagnosis(root("waiting", "cycle", 3), victims=(Victim(1, 3),)), False),
        (diagnosis(root("waiting", "lock", 3), victims=(Victim(1, 3),)), True),
        (diagnosis(root("idle", "loop")), False),
        (diagnosis(root("idle", "loop"), "possible"), True),
        (diagnosis(root("progressing", "python"), "possible"), True),
        (Diagnosis(None, "x", root=root("waiting", "lock")), False),
        (Diagnosis(None, "x"), False),
    ],
)
def test_what_is_no_news(found: Diagnosis, news: bool) -> None:
    """A line or agent that the finding names; motion beside what is more than possible; no finding, no root."""
    assert (roots.line(KNOWN, found) is not None) == news


def test_the_process_and_tasks_are_named() -> None:
    """A process where there are several, a task by its name, and a process without threads as itself."""
    two = evidence(process([thread(1, [frame("main")])]), process([thread(3)], pid=3, ppid=1))
    assert "thread 3" in roots.sentences(two, Root("waiting", "sleep", 3, 3))
    assert "of process 3 sleeps." in roots.sentences(two, Root("waiting", "sleep", 3, 3))
    assert "task fetch waits for a result." in roots.sentences(KNOWN, Root("waiting", "future", 1, task="fetch"))
    assert "the process itself waits for a child process." in roots.sentences(KNOWN, Root("waiting", "process", 1))
