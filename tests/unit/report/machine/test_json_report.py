"""report.json keeps to its schema, says null for unknown, and is the same for the same evidence."""

from __future__ import annotations

import json
from typing import Callable

import jsonschema
import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report.machine import json_report

from ....support.samples import Sample, detailed, hostile, sleeper, thrash

SCHEMA = json.loads(json_report.schema())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

# The keys that the public interface names; they may grow, none may go.
TOP = "schema tool trigger verdict signature findings abstained ruled_out processes gaps timings"
FINDING = "pattern confidence summary explanation remedy references because_of culprits victims evidence"
PROCESS = "pid ppid argv exe state python interpreters gil threads resources loops tasks"
THREAD = "tid name state gil wait python native stack counters"


@pytest.mark.parametrize("sample", [thrash, sleeper, detailed])
def test_reports_follow_the_schema(sample: Callable[[], Sample]) -> None:
    """Whatever is rendered validates, alone and as one of several."""
    evidence, diagnosis = sample()
    VALIDATOR.validate(json.loads(json_report.render(evidence, diagnosis)))
    VALIDATOR.validate(json.loads(json_report.render_many([("core", evidence, diagnosis)] * 2)))


def test_the_schema_refuses_what_is_not_a_report() -> None:
    """Neither a missing key nor a value outside its list passes."""
    VALIDATOR.check_schema(SCHEMA)
    report = json.loads(json_report.render(*thrash()))
    assert VALIDATOR.is_valid(report)
    without = {key: value for key, value in report.items() if key != "verdict"}
    assert not VALIDATOR.is_valid(without)
    report["findings"][0]["confidence"] = "certain"
    assert not VALIDATOR.is_valid(report)
    report["findings"][0]["confidence"] = "likely"
    del report["processes"][0]["threads"][0]["wait"]
    assert not VALIDATOR.is_valid(report)


def test_every_public_key_is_there() -> None:
    """A script may read each key that the interface names without asking whether it exists."""
    report = json.loads(json_report.render(*thrash()))
    process = report["processes"][0]
    assert set(TOP.split()) <= set(report)
    assert set(FINDING.split()) <= set(report["findings"][0])
    assert set(PROCESS.split()) <= set(process)
    assert all(set(THREAD.split()) <= set(thread) for thread in process["threads"])
    assert process["gil"] == process["interpreters"][0]["gil"]
    assert process["gil"]["holder_tid"] == 101


def test_unknown_is_null_and_not_left_out() -> None:
    """A process of which nothing is known still has all its keys, and they are null."""
    evidence = ev.Evidence(ev.Trigger("core"), (ev.Process(1, threads=(ev.Thread(1),)),))
    report = json.loads(json_report.render(evidence, fi.Diagnosis(None, "s")))
    process = report["processes"][0]
    assert report["verdict"] is None
    assert [process[key] for key in ("ppid", "exe", "state", "python", "gil")] == [None] * 5
    assert [process["threads"][0][key] for key in ("name", "wait", "counters")] == [None] * 3
    assert report["timings"] == dict.fromkeys(("observe_s", "pause_s", "extract_s", "classify_s"))
    VALIDATOR.validate(report)


def test_python_and_native_are_the_parts_of_the_stack() -> None:
    """`stack` holds both in one order; `python` and `native` hold the same frames without the other kind."""
    thread = json.loads(json_report.render(*thrash()))["processes"][0]["threads"][0]
    kinds = [frame["kind"] for frame in thread["stack"]]
    assert kinds == ["native", "python", "python"]
    assert [frame["function"] for frame in thread["python"]] == ["call_soon_threadsafe", "receive"]
    assert [frame["function"] for frame in thread["native"]] == ["take_gil"]


def test_equal_evidence_gives_equal_bytes() -> None:
    """Also after the evidence went through its own file."""
    evidence, diagnosis = thrash()
    again = ev.decode(ev.encode(evidence))
    assert json_report.render(evidence, diagnosis) == json_report.render(again, diagnosis)


def test_names_that_are_no_text_are_still_written() -> None:
    """Lone surrogates come out as visible escapes: the file is UTF-8 that any reader takes."""
    text = json_report.render(*hostile())
    json.loads(text.encode("utf-8"))
    assert "\\\\udc80" in text


def test_what_is_known_of_a_single_thread() -> None:
    """Columns, locals, exceptions, the collector and the recursion stand in the thread, columns in culprits too."""
    report = json.loads(json_report.render(*detailed()))
    thread = report["processes"][0]["threads"][0]
    first = thread["python"][0]
    assert [first[key] for key in ("end_line", "column", "end_column")] == [20, 20, 24]
    assert first["locals"][1] == {"name": "api_key", "type": "str", "text": "<redacted>"}
    assert thread["python"][1]["locals"] is None
    assert [e["type"] for e in thread["exceptions"]] == ["KeyError", "app.ParseError"]
    assert thread["gc"] is True and report["processes"][0]["interpreters"][0]["collecting"] is True
    assert (thread["recursion"]["depth"], thread["recursion"]["times"]) == (100_002, 50_000)
    assert [f["function"] for f in thread["recursion"]["cycle"]] == ["parse_item", "parse_list"]
    assert thread["left_out"] == {"behind": 400, "frames": 99_502}
    culprit = report["findings"][0]["culprits"][0]
    assert [culprit[key] for key in ("end_line", "column", "end_column")] == [20, 21, 25]
