"""Counters and samples of the observation window; bundles cut short or damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

from postmortem.evidence import Process, PythonFrame, Thread
from postmortem.extract.recorded.window import NO_WINDOW, assigned, counters, whole
from postmortem.extract.sourcecode.sources import read_sources
from tests.support.bundles import files_here, samples_of, window_of


def event(kind: str, name: str, seconds: float, line: int = 0, tid: int = 9) -> Dict[str, Any]:
    return {"ph": kind, "name": name, "ts": int(seconds * 1e6), "tid": tid, "args": {"filename": "/a.py", "line": line}}


def test_samples_are_stacks_with_their_share_of_time(tmp_path: Path) -> None:
    """A trace of changes becomes distinct stacks, weighed by how long each lasted, the main track's name as its tid."""
    events: List[Dict[str, Any]] = [
        event("B", "thread (42): Main: the one", 0.0),
        event("B", "<module>", 0.0, 1),
        event("B", "A.run", 0.0, 5),
        event("E", "A.run", 0.6, 5),
        event("B", "A.run", 0.6, 6),
        event("E", "A.run", 1.0, 6),
        event("E", "<module>", 1.0, 1),
        event("E", "thread (42): Main: the one", 1.0),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    samples = samples_of(path, rate=50)[42]
    assert [(s.count, [(f.function, f.line) for f in s.frames]) for s in samples] == [
        (30, [("run", 5), ("<module>", 1)]),
        (20, [("run", 6), ("<module>", 1)]),
    ]


def test_torn_stacks_are_left_out(tmp_path: Path) -> None:
    """A sample that lost its outer frames is no stack of its own."""
    events: List[Dict[str, Any]] = [event("B", "thread (42): Main", 0.0)]
    for begin, end, *names in ((0.0, 0.5, "<module>", "run"), (0.5, 0.6, "run"), (0.6, 1.0, "<module>", "run")):
        events += [event("B", name, begin, 1) for name in names] + [
            event("E", name, end, 1) for name in reversed(names)
        ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([*events, event("E", "thread (42): Main", 1.0)]))
    assert [[f.function for f in s.frames] for s in samples_of(path)[42]] == [["run", "<module>"]]


def test_tracks_named_by_pthread_t(tmp_path: Path) -> None:
    """Up to Python 3.10 py-spy knows a thread by its pthread_t only: kept as that, and given to nobody where the process
    has several threads and no interpreter tells which is which."""
    ident = 0x7F7CF67FC6C0
    name = f"thread (0x{ident:X}): MainThread"
    events = [event("B", name, 0.0), event("B", "<module>", 0.0, 1), event("E", "<module>", 1.0), event("E", name, 1.0)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    samples = samples_of(path)
    assert list(samples) == [ident] and len(samples[ident]) == 1
    assert assigned(samples, {42, 43}) == {}
    assert assigned(samples, {42}) == {42: samples[ident]}
    both = {42: samples[ident], ident: samples[ident]}
    assert assigned(both, {42, 43}) == {42: samples[ident]}


def test_damaged_files_are_no_window(tmp_path: Path) -> None:
    """Missing, cut or absurd files mean unknown, not an error."""
    assert window_of(tmp_path / "none.json") == NO_WINDOW
    for text in ("", "{", "[]", '{"threads": 5}', '{"threads": {"x": {}}, "seconds": "y"}', "[" * 5000):
        (tmp_path / "w.json").write_text(text)
        window = window_of(tmp_path / "w.json")
        assert window.threads == {} and counters(window, 1) is None
        assert samples_of(tmp_path / "w.json") == {}


def test_counters_keep_unknown_unknown(tmp_path: Path) -> None:
    """A counter that was not read is None, never zero."""
    (tmp_path / "w.json").write_text(json.dumps({"seconds": 1.0, "threads": {"7": {"voluntary_switches": 3}}}))
    found = counters(window_of(tmp_path / "w.json"), 7)
    assert found is not None and (found.voluntary_switches, found.cpu_s) == (3, None)


def test_what_a_process_did_as_a_whole(tmp_path: Path) -> None:
    """Faults and calls of ended threads count too; without a window nothing is known."""
    raw = {"seconds": 2.0, "threads": {}, "cpu_s": 1.5, "major_faults": 3, "io": {"syscr": 7, "rchar": 9}}
    (tmp_path / "w.json").write_text(json.dumps(raw))
    found = whole(window_of(tmp_path / "w.json"))
    assert found is not None
    assert (found.seconds, found.cpu_s, found.major_faults, found.minor_faults) == (2.0, 1.5, 3, None)
    assert (found.read_calls, found.write_calls, found.voluntary_switches) == (7, None, None)
    assert whole(NO_WINDOW) is None


def test_only_python_sources_are_quoted(tmp_path: Path) -> None:
    """A hostile core may name any file: only regular Python sources are read, and only the lines around a frame."""
    source = tmp_path / "ok.py"
    source.write_text("one\ntwo\nthree\nfour\nfive\n")
    secret = tmp_path / "secret"
    secret.write_text("hidden\n")
    (tmp_path / "pipe.py").symlink_to("/dev/zero")
    names = [str(source), str(secret), str(tmp_path / "pipe.py"), "relative.py", "/etc/passwd"]
    frames = tuple(PythonFrame(name, 2, "f") for name in names)
    with files_here() as files:
        found = read_sources([Process(1, threads=(Thread(1, stack=frames),))], lambda _pid: files).lines
    assert found == {str(source): {1: "one", 2: "two", 3: "three"}}
