"""JSON of a bundle, made to fit."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

from postmortem import evidence
from postmortem.extract.recorded import documents
from postmortem.extract.recorded.shapes import (
    MISSING,
    digits,
    integer,
    listed,
    null_or,
    number,
    pid_of,
    read_json,
    record,
    row,
    table,
    text,
    whole,
)
from postmortem.foreign.held import Folder
from tests.support.bundles import evidence_of

#: Values that are never what a field holds, or are too much of it.
GARBAGE: List[Any] = [
    None, True, -1, 1 << 63, 10**20 - 1, 1e300, 1e-300, "²", "", "x" * 300, "\ud800", [], [[[]]], [None, {}, "²", -1],
    {}, {"²": {}}, {"1": 1},
    {"before": {"cpu.stat": "nr_periods ²"}, "after": 7},
]  # fmt: skip

NET = {
    "sockets": {"9": {"proto": "tcp", "local": "127.0.0.1:80", "remote": "127.0.0.1:81", "state": "LISTEN", "peer": 10}},
    "listening_ports": [80], "pipes": {"5": [[7, 3, "r"], [7, 4, "w"]]}, "known": [7], "inherited": ["pipe:[5]"],
    "fill": {"5": {"bytes": 0, "capacity": 65536, "alone": False, "side": "r"}}, "fill_after": {"5": {"bytes": 0}},
    "timeouts": {"9": [0.0, 0.0]}, "special": {"7": {"6": {"kind": "epoll", "watches": [[3, 1]]}}}, "in_flight": [],
    "locks": [{"kind": "FLOCK", "mode": "WRITE", "pid": 7, "device": [8, 1], "inode": 3, "waits": [{"pid": 7}], "alive": True}],
    "locked_files": {"/x": {"device": [8, 1], "inode": 3, "through": [[7, 5, "FLOCK"]]}},
    "beyond": {"ends": {"pipe:[5]": [[8, 1, "w"]]}, "processes": {"8": {"name": "sh", "call": "read", "file": "/dev/tty"}},
               "looked_at": 3, "not_looked_at": 0, "unread": {"older": 0}, "all_visible": True},
}  # fmt: skip
FILES = {
    "manifest.json": {"processes": [7], "root_pid": 7, "steps": [{"step": "net", "ok": False}], "timings": {"pause_s": 0.1},
                      "trigger": {"kind": "timeout", "seconds": 3.0}, "checkout": "/w"},
    "raw/proc/7/process.json": {
        "pid": 7, "ppid": 1, "argv": ["python", "app.py"], "exe": "/usr/bin/python3", "state": "S", "age_s": 3.0,
        "cpus_allowed": "0-3", "ns_pids": [7, 1], "fds": {"3": "pipe:[5]", "5": "/x", "6": "anon_inode:[eventpoll]",
        "9": "socket:[9]"}, "threads": {"7": {"comm": "python", "own_tid": 1}, "8": {"comm": "b"}},
        "maps": ["7f0000000000-7f0000001000 rw-s 00000000 00:01 5 /dev/shm/sem.x"], "root": 1, "rights": [0, 0],
        "signals_caught": 2, "tracer_pid": 3, "tracer_name": "gdb",
    },
    "raw/proc/7/window.json": {
        "began": 1.0, "seconds": 2.0, "cpu_s": 0.1, "io": {"syscr": 1}, "rss_growth": 0, "threads": {"7": {
            "name": "a", "state": "S", "states": {"S": 3}, "voluntary_switches": 1, "syscalls": {"read": 3},
            "last_syscall": {"name": "read", "nr": 0, "args": [3, 0, 0, 0, 0, 0], "sp": 1, "pc": 1},
            "course": [[0.1, "S", "futex", 7]]}, "8": {"last_syscall": {"name": "wait4", "args": [9, 0, 0, 0, 0, 0]}}},
        "probes": {"gil": {"switches": 3, "seconds": 2.0, "holders": [[1.0, 7]]}, "queues": {"items": {"7": [1, 2]}}},
    },
    "raw/proc/net.json": NET,
    "raw/proc/machine.json": {
        "seconds": 2.0, "machine": {"before": {"vmstat": "oom_kill 1"}, "after": {"vmstat": "oom_kill 2", "loadavg": "1 2 3",
        "meminfo": "MemTotal: 1 kB", "stat": "cpu 1 2 3 4 5 6 7 8"}}, "processes": {"7": {"": "/a"}}, "cgroups": {"": {
            "/a": {"before": {"cpu.stat": "nr_periods 1"}, "after": {"cpu.stat": "nr_periods 2", "cpu.max": "1 2",
            "memory.max": "4096", "memory.current": "1"}}}},
    },
    "raw/proc/sharers.json": {"beyond": {"00:01:5": [9]}, "unread": 0, "not_looked_at": 0},
    "raw/pyspy/7.chrometrace.json": [
        {"ph": "B", "name": "thread (7): a", "ts": 0, "tid": 1, "args": {}},
        {"ph": "B", "name": "f", "ts": 0, "tid": 1, "args": {"filename": "/a.py", "line": 2}},
        {"ph": "E", "name": "f", "ts": 9000, "tid": 1, "args": {}},
    ],
}  # fmt: skip


def places(value: Any, way: Tuple[Any, ...] = ()) -> Iterator[Tuple[Any, ...]]:
    """The way to each value inside."""
    yield way
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        yield from places(inside, (*way, key))


def replaced(value: Any, way: Tuple[Any, ...], other: Any) -> Any:
    if not way:
        return other
    found = copy.copy(value)
    found[way[0]] = replaced(value[way[0]], way[1:], other)
    return found


def write(folder: Path, files: Any) -> None:
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_value_of_each_file_may_be_anything(tmp_path: Path, name: str) -> None:
    """One misfit after the other: there is evidence every time, and it can be written down and read again."""
    write(tmp_path, FILES)
    whole_one = evidence_of(tmp_path)
    assert whole_one.processes[0].argv == ("python", "app.py") and whole_one.processes[0].resources
    for way in places(FILES[name]):
        for other in GARBAGE:
            write(tmp_path, {name: replaced(FILES[name], way, other)})
            found = evidence_of(tmp_path)
            evidence.decode(evidence.encode(found))


@pytest.mark.parametrize(
    "data", [b"\0", b"[" * 100_000, b'{"threads": {"7": NaN}}', b'{"a": ' + b"1" * 500 + b"}", b"\xff"]
)
def test_what_is_no_json_is_missing(tmp_path: Path, data: bytes) -> None:
    """Neither an error nor a value."""
    (tmp_path / "x.json").write_bytes(data)
    with Folder.at(str(tmp_path)) as folder:
        assert read_json(folder, "x.json") is None
        assert documents.read(folder, "x.json", documents.WINDOW) == {}
        assert read_json(folder, "x.json", len(data) - 1) is None


def test_numbers_that_names_and_texts_hold() -> None:
    """Decimal ASCII digits alone; a PID is positive and fits into an int."""
    assert [digits(each) for each in ("0", "12", "²", "\u0663", "-1", "", " 1", "9" * 30)] == [0, 12] + [None] * 6
    assert [pid_of(each) for each in ("1", "0", "2147483648", "²", "1.core")] == [1, None, None, None, None]
    assert [number(each) for each in (1, 2.5, True, "1", float("inf"), float("nan"), 10**400)] == [1.0, 2.5] + [
        None
    ] * 5
    assert [integer(each) for each in (1, 2.5, True, 1 << 63, 1e300)] == [1, 2, None, None, None]


def test_shapes_lose_what_does_not_fit() -> None:
    """Fields, items and rows; a field that is unknown on purpose stays so."""
    shape = record(a=whole(0), b=listed(text), c=table(whole(), pid_of), d=row(whole(), text), e=null_or(text))
    value = {"a": 1, "b": ["x", 1], "c": {"7": 1, "²": 1, "8": "x"}, "d": [1, "x"], "e": None, "other": 1}
    assert shape(value) == {"a": 1, "b": ["x"], "c": {"7": 1}, "d": [1, "x"], "e": None}
    assert shape({"a": True, "b": {}, "c": [], "d": [1], "e": 1}) == {}
    assert shape([]) is MISSING
