"""Agents that could still signal an awaited object, read out of a core of a program with one wait of each sort."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postmortem.extract.ownership import grading, wakers

from ..support.awaitedobjects import awaited, process_in
from ..support.interpreters import Program, matrix
from ..support.inwords import reason
from ..support.takingcores import kernel_core

pytestmark = [pytest.mark.live]
PROGRAM = (Path(__file__).parent / "reach_program.py").read_text()


@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_what_only_its_waiters_reach_is_closed_and_nothing_else(
    python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each `shut_…` is closed, each `open_…` is not, and those who reach one are named; free-threaded interpreters say
    nothing. Signal handlers are those that the program has set."""
    for searching in (wakers, grading):  # what is found is under test, not how fast this machine is today
        monkeypatch.setattr(searching, "SECONDS", 60.0)
    with Program(python, PROGRAM, tmp_path, cwd=tmp_path) as program:
        process, gaps = process_in(kernel_core(program, tmp_path), program.pid)
    assert [(h.signal, h.function and h.function.function) for h in process.signal_handlers or ()] == [
        (10, "on_signal"),
        (12, "__call__"),
    ]
    found = awaited(process)
    if python.free_threaded:
        assert not any(resource.closed for name, resource in found.items() if name.startswith(("shut", "open")))
        assert not any("free-threaded" in reason(gap) for gap in gaps)  # nobody waits for those who wait
        return
    shut = {name: (r.closed, r.wakers) for name, r in found.items() if name.startswith("shut_")}
    assert shut == dict.fromkeys(shut, (True, ())) and len(shut) == 10
    assert all(found[name].because for name in shut)
    others = (
        "open_other",
        "open_reader",
        "open_timer",
        "open_atexit",
        "open_start",
    )  # closed, but for somebody who is named
    opened = {name: r for name, r in found.items() if name.startswith("open_") and name not in others}
    assert {name: r.closed for name, r in opened.items()} == dict.fromkeys(opened) and len(opened) == 13
    assert found["unpacked"].closed is (True if python.version >= (3, 15) else None)
    # known to a global of a module that no code names: said apart, because more than the waiters refer to them
    unnamed = {name for name, r in found.items() if r.unnamed}
    assert unnamed >= {"open_global", "open_traceback", "open_registered", "open_cached", "open_entry"}
    assert unnamed.isdisjoint(("open_callback", "open_foreign", "open_generator"))
    named = {name: " ".join(w.name or "" for w in r.wakers) for name, r in found.items()}
    assert "global REGISTRY of __main__" in named["open_global"] and "Selector" in named["open_reader"]
    assert "global REGISTRY of __main__" in named["open_generator"] and "weak" in named["open_callback"]
    tids = {thread.name: thread.tid for thread in process.threads}
    assert found["shared"].closed and [w.tid for w in found["shared"].wakers] == [tids["sharer"]]
    # what a selector or a timer leads to is done by the thread whose loop it is
    for name in ("open_reader", "open_timer"):
        assert not found[name].closed or {w.tid for w in found[name].wakers} == {process.pid}
    # what the main thread calls when its code has ended, and what a thread was started with
    assert found["open_atexit"].closed and [(w.tid, w.grade) for w in found["open_atexit"].wakers] == [
        (process.pid, None)
    ]
    dozer = next(t.tid for t in process.threads if any(f.function == "dozer" for f in t.python))
    assert found["open_start"].closed and [w.tid for w in found["open_start"].wakers] == [dozer]
    assert named["open_fork"].startswith("the hooks of the interpreter")
    # a thread's own variables: others may get at the table of all of them, or at the Thread (3.14), but do not
    assert {waker.grade for name in ("of_local", "of_context") for waker in found[name].wakers} <= {"refers"}
    assert not any(reason(gap).startswith("the Context") or reason(gap).startswith("the dict") for gap in gaps)
    assert "global REGISTRY" in named["open_queued"] and "global REGISTRY" in named["open_entry"]
    holder = next(task.id for task in process.tasks if task.stack and task.stack[-1].function == "holder")
    assert found["open_other"].closed and [w.task for w in found["open_other"].wakers] == [holder]
