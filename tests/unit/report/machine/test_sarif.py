"""SARIF: results at the lines to change, columns and files as forges want them, what is missing as notifications."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Tuple
from urllib.parse import unquote

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.findings import Confidence
from postmortem.report.machine import paths, sarif

from ....support.samples import detailed, native, py, sleeper, thrash

FILE = "/repo/src/größe 1.py"


def run(evidence: ev.Evidence, diagnosis: fi.Diagnosis) -> Dict[str, Any]:
    (only,) = json.loads(sarif.render(evidence, diagnosis))["runs"]
    return only


def blamed(
    file: str = FILE,
    source: Optional[str] = None,
    checkout: Optional[str] = None,
    cwd: Optional[str] = None,
    **place: Any,
) -> Dict[str, Any]:
    """The location of the only result, for one culprit at line 7."""
    thread = ev.Thread(1, stack=(py("f", 7, file),))
    process = ev.Process(1, threads=(thread,), cwd=cwd)
    found = ev.Evidence(ev.Trigger("pid"), (process,), checkout=checkout)
    culprit = fi.Culprit(1, 1, None, file, 7, "f", source, **place)
    finding = fi.Finding("sleeping", "proven", "s", "e", "r", culprits=(culprit,))
    (result,) = run(found, fi.Diagnosis("sleeping", "s", (finding,)))["results"]
    (location,) = result["locations"]
    return location


@pytest.mark.parametrize(
    ("cwd", "checkout", "file", "uri", "base"),
    [
        ("/repo", None, FILE, "src/gr%C3%B6%C3%9Fe%201.py", "%SRCROOT%"),
        ("/repo/src", "/repo", FILE, "src/gr%C3%B6%C3%9Fe%201.py", "%SRCROOT%"),
        ("/elsewhere", None, FILE, "file:///repo/src/gr%C3%B6%C3%9Fe%201.py", None),
        (None, None, FILE, "file:///repo/src/gr%C3%B6%C3%9Fe%201.py", None),
        ("/rep", None, FILE, "file:///repo/src/gr%C3%B6%C3%9Fe%201.py", None),
        ("/repo", None, "src/../a.py", "a.py", "%SRCROOT%"),
        (None, None, "a b.py", "a%20b.py", None),
        ("/repo", None, "/repo/a:b?c#d%20.py", "a%3Ab%3Fc%23d%2520.py", "%SRCROOT%"),
    ],
)
def test_files_below_the_root_are_relative(
    cwd: Optional[str], checkout: Optional[str], file: str, uri: str, base: Optional[str]
) -> None:
    """Forges show results of relative files alone; the checkout of a CI server comes before the working directory."""
    artifact = blamed(file, cwd=cwd, checkout=checkout)["physicalLocation"]["artifactLocation"]
    assert artifact == ({"uri": uri, "uriBaseId": base} if base else {"uri": uri})
    if base is None and file.startswith("/"):
        assert unquote(uri) == f"file://{file}"


def test_the_root_is_told() -> None:
    """Files are found by the root without a repository; it ends in a slash (§3.14.14)."""
    evidence, diagnosis = thrash(2)
    assert "originalUriBaseIds" not in run(evidence, diagnosis)
    told = run(ev.replace(evidence, checkout="/a b/"), diagnosis)["originalUriBaseIds"]
    assert told == {"%SRCROOT%": {"uri": "file:///a%20b/"}}
    assert paths.root(ev.replace(evidence, checkout="/")) is None


@pytest.mark.parametrize(
    ("source", "column", "end", "expected"),
    [
        ("    f(x)", 4, 8, (5, 9)),
        ("grüße = f(x)", 10, 14, (9, 13)),  # two letters of two bytes
        ("s = '\U0001f600'; f(x)", 12, 16, (11, 15)),  # four bytes, two UTF-16 code units
        ("\tf(x)", 1, 5, (2, 6)),
        ("f(x)", 0, 99, None),  # the file has changed since
        (None, 4, 8, None),
    ],
)
def test_columns_are_utf16_code_units(
    source: Optional[str], column: int, end: int, expected: Optional[Tuple[int, int]]
) -> None:
    """The interpreter counts bytes of UTF-8; where the line is not known, the whole line is meant."""
    place: Dict[str, Any] = {"end_line": 7, "column": column, "end_column": end}
    region = blamed(source=source, **place)["physicalLocation"]["region"]
    assert region["startLine"] == 7
    assert (region.get("startColumn"), region.get("endColumn")) == (expected or (None, None))


def test_code_without_a_file_has_no_file() -> None:
    """``<string>`` is none; the function is named all the same. A line in a file comes before it."""
    location = blamed("<string>")
    assert "physicalLocation" not in location
    assert location["logicalLocations"] == [{"fullyQualifiedName": "f of <string>", "kind": "function"}]


def test_every_result_is_somewhere() -> None:
    """Forges refuse a log otherwise: without a line to change it is where it shows, at last the program itself."""
    evidence, _ = sleeper()
    finding = fi.Finding("sleeping", "possible", "s", "e", "r")
    (only,) = run(evidence, fi.Diagnosis("sleeping", "s", (finding,)))["results"][0]["locations"]
    assert only["physicalLocation"]["artifactLocation"]["uri"] == "file:///usr/bin/sleep"
    culprits = (fi.Culprit(7, 7, None, "<string>", 1, "f"), fi.Culprit(7, 7, None, "/a.py", 2, "g"))
    blaming = ev.replace(finding, culprits=culprits)
    (only,) = run(evidence, fi.Diagnosis("sleeping", "s", (blaming,)))["results"][0]["locations"]
    assert only["physicalLocation"]["region"] == {"startLine": 2}


@pytest.mark.parametrize(("confidence", "level"), [("proven", "error"), ("likely", "warning"), ("possible", "note")])
def test_the_level_follows_from_the_confidence(confidence: Confidence, level: str) -> None:
    """In the result and in its rule."""
    finding = fi.Finding("sleeping", confidence, "s", "Why. And more", "r", ("nonsense", "https://x.org/a"))
    found = run(ev.Evidence(ev.Trigger("pid")), fi.Diagnosis("sleeping", "s", (finding,)))
    (rule,) = found["tool"]["driver"]["rules"]
    assert (found["results"][0]["level"], rule["defaultConfiguration"]["level"]) == (level, level)
    assert (rule["helpUri"], rule["shortDescription"]["text"]) == ("https://x.org/a", "Why.")


def test_results_refer_to_their_rules_and_are_told_apart() -> None:
    """One rule a pattern; the signature is the leading result's fingerprint, others have one of their own."""
    evidence, diagnosis = thrash(3)
    lead, other = diagnosis.findings
    found = run(evidence, fi.Diagnosis(lead.pattern, "sig", (lead, other, other)))
    rules = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert rules == ["gil-thrash", "busy-event-loop"]
    assert [rules[result["ruleIndex"]] for result in found["results"]] == [r["ruleId"] for r in found["results"]]
    prints = [result["partialFingerprints"]["postmortem/v1"] for result in found["results"]]
    assert prints == ["sig", "sig/busy-event-loop", "sig/busy-event-loop/2"]


def test_equal_stacks_of_culprits_are_shown_once() -> None:
    """Sixty threads at one line: one stack; those who suffer are related locations."""
    lead = run(*thrash(60))["results"][0]
    assert len(lead["stacks"]) == 1
    assert [related["id"] for related in lead["relatedLocations"]] == [1]
    assert "also affected" in lead["relatedLocations"][0]["message"]["text"]


def test_a_deep_stack_is_bounded() -> None:
    """Sixty frames; and a native file that is relative to wherever it was built is no file of ours."""
    stack = run(*detailed())["results"][0]["stacks"][0]["frames"]
    assert len(stack) == 60
    frame = ev.NativeFrame("f", "/lib/libc.so.6", 1, "./nptl/futex.c", 3)
    thread = ev.Thread(1, stack=(frame, native("g")))
    evidence = ev.Evidence(ev.Trigger("pid"), (ev.Process(1, threads=(thread,)),))
    finding = fi.Finding("p", "likely", "s", "e", "r", culprits=(fi.Culprit(1, 1, None, "/a.py", 1, "f"),))
    shown = run(evidence, fi.Diagnosis("p", "s", (finding,)))["results"][0]["stacks"][0]["frames"][0]
    assert "physicalLocation" not in shown["location"] and shown["module"] == "/lib/libc.so.6"


def test_what_is_missing_is_notified() -> None:
    """Gaps with their remedy, patterns that could not be decided, and a timeout for which nothing was found."""
    told = run(*thrash(2))["invocations"][0]["toolExecutionNotifications"]
    assert [(note["level"], note["descriptor"]["id"]) for note in told] == [
        ("warning", "gap/py-spy"),
        ("note", "undecided/network-wait"),
    ]
    assert "Next time: pip install py-spy" in told[0]["message"]["text"]
    (none,) = run(*sleeper())["invocations"][0]["toolExecutionNotifications"]
    assert none["message"]["text"] == "The command had not ended after 1 s. No known pattern was recognised."


def test_brackets_and_braces_are_no_links_and_placeholders() -> None:
    """§3.11.5 and §3.11.6: they are escaped in messages."""
    finding = fi.Finding("p", "likely", "a[0](1) {0} \\n", "e", "r")
    found = run(ev.Evidence(ev.Trigger("pid")), fi.Diagnosis("p", "s", (finding,)))
    assert found["results"][0]["message"]["text"].startswith("a\\[0\\](1) {{0}} \\\\n\n")


def test_several_targets_are_runs_with_names() -> None:
    """GitHub refuses runs of one tool that cannot be told apart."""
    log = json.loads(sarif.render_many([("x/core", *sleeper()), ("x/core", *sleeper())]))
    assert [r["automationDetails"]["id"] for r in log["runs"]] == ["postmortem/1-x_core/", "postmortem/2-x_core/"]
