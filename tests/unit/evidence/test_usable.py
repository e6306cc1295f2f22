"""Evidence of another machine that is well-typed and cannot be: refused as a whole, with one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from postmortem import evidence, pipeline
from postmortem.bundle import Bundle
from postmortem.evidence import Evidence, Process, PythonFrame, Resource, Task, Thread, Trigger, decode, encode, usable

from ...support.inwords import reason, remedy

Plain = Dict[str, Any]


def plain() -> Plain:
    """A small process as JSON."""
    frame = PythonFrame("/srv/tide.py", 7, "work")
    threads = (Thread(1, stack=(frame,), is_main=True), Thread(2))
    resources = (Resource("lock-1", "lock", "Lock", waiters=(1,)), Resource("lock-2", "lock", "Lock"))
    tasks = (Task("task-1", "a", "pending", None), Task("task-2", "b", "pending", None))
    processes = (Process(1, threads=threads, resources=resources, tasks=tasks), Process(2))
    found: Plain = json.loads(encode(Evidence(Trigger("timeout", 1.0), processes)))
    return found


def refused(value: Plain) -> str:
    with pytest.raises(ValueError, match=r"not readable as postmortem\.evidence/2: ") as caught:
        decode(json.dumps(value).encode())
    return str(caught.value)


def test_what_is_usable_is_read() -> None:
    """The clean one, and numbers at the very bounds."""
    value = plain()
    value["processes"][0]["threads"][0]["stack"][0]["line"] = (1 << 64) - 1
    value["trigger"]["seconds"] = 1e15
    assert decode(json.dumps(value).encode()).processes[0].threads[0].python[0].line == (1 << 64) - 1


@pytest.mark.parametrize("number", [1 << 64, -(1 << 63) - 1, 10**400])
@pytest.mark.parametrize(
    "path", [("pid",), ("threads", 0, "tid"), ("threads", 0, "stack", 0, "line"), ("resources", 0, "waiters", 0)]
)
def test_integers_have_64_bits(number: int, path: List[Any]) -> None:
    """Wherever they stand: ids, lines, entries of lists."""
    value = plain()
    at: Any = value["processes"][0]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = number
    assert "an integer of more than 64 bits" in refused(value)


def test_seconds_are_such_as_clocks_show() -> None:
    """1e308 is a float, and what is added to it is none."""
    value = plain()
    value["trigger"]["seconds"] = 1e308
    assert "a number beyond 2e+19" in refused(value)
    value = plain()
    value["processes"][0]["cgroup"] = {"path": "/", "stalls": {"cpu some": -1e300}}
    assert "a number beyond" in refused(value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda ps: ps[1].update(pid=1), "it has process 1 twice"),
        (lambda ps: ps[0]["threads"][1].update(tid=1), "it has thread 1 of process 1 twice"),
        (lambda ps: ps[0]["resources"][1].update(id="lock-1"), "it has resource lock-1 of process 1 twice"),
        (lambda ps: ps[0]["tasks"][1].update(id="task-1"), "it has task task-1 of process 1 twice"),
    ],
)
def test_ids_name_one_thing(change: Callable[[List[Plain]], None], sentence: str) -> None:
    """Everything that looks something up by its id would otherwise see either of two."""
    value = plain()
    change(value["processes"])
    assert sentence in refused(value)


def test_what_is_nested_too_deeply_is_refused() -> None:
    """Not with a RecursionError."""
    deep = '{"unknown":' + "[" * 200_000 + "]" * 200_000 + ',"trigger":{"kind":"pid"}}'
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(deep.encode())


def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes, processes, threads and references each have a bound with its own sentence."""
    for name, sentence in (
        ("MOST_BYTES", "larger than"),
        ("MOST_PROCESSES", "2 processes, more than 1"),
        ("MOST_AGENTS", "2 threads, more than 1"),
        ("MOST_REFERENCES", "name 2 threads and tasks, more than 1"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(usable, name, 1)
            value = plain()
            value["processes"][0]["resources"][0]["waiters"] = [1, 2]
            assert sentence in refused(value)


def test_another_schema_is_named() -> None:
    """An older or newer version's evidence is told apart from a damaged one."""
    value = {**plain(), "schema": "postmortem.evidence/7"}
    with pytest.raises(
        ValueError, match=r"written as 'postmortem.evidence/7', this version reads postmortem.evidence/2"
    ):
        decode(json.dumps(value).encode())


@pytest.mark.parametrize("content", [b"{", b'{"trigger": {"kind": 7}}', b"\xff"])
def test_a_bundle_says_that_its_evidence_is_not_usable(content: bytes, tmp_path: Path) -> None:
    """The report is made of what else is there, and a gap names the file, the reason and the remedy."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "manifest.json").write_bytes(b'{"processes": []}')
    (tmp_path / "evidence.json").write_bytes(content)
    for found, _diagnosis in (pipeline.load_bundle(tmp_path), pipeline.analyze_target(str(tmp_path))):
        (gap,) = [gap for gap in found.gaps if gap.subject == "evidence.json"]
        assert reason(gap).startswith("it is not usable: ")
        assert remedy(gap)
    (tmp_path / "evidence.json").unlink()
    found, _diagnosis = pipeline.load_bundle(tmp_path)
    assert not [gap for gap in found.gaps if gap.subject == "evidence.json"]


def test_the_limit_of_recorded_evidence_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger is a gap that names the variable; with it the evidence is read."""
    with Bundle.create(tmp_path / "b") as bundle:
        bundle.write("evidence.json", encode(Evidence(Trigger("timeout"), window_s=7.0)))
        bundle.write("raw/proc/machine.json", b"{}")
    monkeypatch.setattr(evidence, "MOST_BYTES", 10)
    found, _diagnosis = pipeline.load_bundle(tmp_path / "b")
    (gap,) = [gap for gap in found.gaps if gap.subject == "evidence.json"]
    assert "larger than" in reason(gap)
    assert str(remedy(gap)).startswith("set POSTMORTEM_MAX_EVIDENCE=1G")
    monkeypatch.setenv("POSTMORTEM_MAX_EVIDENCE", "1M")
    assert pipeline.load_bundle(tmp_path / "b")[0].window_s == 7.0
