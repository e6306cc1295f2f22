"""Grades of agents that can reach an awaited object, read out of a core of a program with bystanders and rescuers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from postmortem.extract.ownership import grading, wakers

from ..support.awaitedobjects import awaited, process_in
from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, matrix
from ..support.takingcores import kernel_core

pytestmark = [pytest.mark.live]
PROGRAM = (Path(__file__).parent / "graded_program.py").read_text()


@pytest.mark.parametrize("python", matrix())
def test_bystanders_refer_and_rescuers_name(python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody names what a ``seen_…`` awaits, and all that reach it refer to it; somebody names each ``saved_…``, and the
    operation's place is in the program."""
    monkeypatch.setattr(wakers, "SECONDS", 60.0)  # what is found is under test, not how fast this machine is today
    monkeypatch.setattr(grading, "SECONDS", 60.0)
    with Program(python, PROGRAM, tmp_path, cwd=tmp_path) as program:
        process, _gaps = process_in(kernel_core(program, tmp_path), program.pid)
    found = awaited(process)
    reached = {name: [w for w in r.wakers if w.role == "reach"] for name, r in found.items()}
    seen = {name for name in reached if name.startswith("seen_")}
    saved = {name for name in reached if name.startswith("saved_")}
    assert len(seen) == 6 and len(saved) == 17
    if python.free_threaded:  # references cannot be followed, so nothing is graded
        assert not any(reached.values())
        return
    assert {n: {w.grade for w in reached[n]} - {"refers"} for n in seen} == {name: set() for name in seen}
    named = {name: [w for w in reached[name] if w.grade == "names"] for name in saved}
    assert [name for name in saved if not named[name]] == []
    named.pop("saved_timer")  # threading.Timer itself calls what it was given
    where = {name: {w.site.file for w in each if w.site} for name, each in named.items()}
    assert where == {name: {str(program.path)} for name in named}


#: Permits that are given back later, by what is called then: nobody who is at work has one.
GIVEN_BACK = {
    "timer": """
import threading
permits = threading.Semaphore(1)
def serve():
    permits.acquire()
    later = threading.Timer(3600, permits.release)
    later.daemon = True
    later.start()
serve()
print("ready", flush=True)
serve()
""",
    "loop": """
import asyncio
async def serve(permits):
    await permits.acquire()
    asyncio.get_running_loop().call_later(3600, permits.release)
async def main():
    permits = asyncio.Semaphore(1)
    await serve(permits)
    print("ready", flush=True)
    await serve(permits)
asyncio.run(main())
""",
}


@pytest.mark.parametrize("by", list(GIVEN_BACK))
def test_permits_that_are_given_back_later(by: str, tmp_path: Path) -> None:
    """A timer's thread and a loop's timer both call the release: that nobody gives the permit back is possible at most."""
    with Program(sys.executable, GIVEN_BACK[by], tmp_path) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.3")
    assert {finding["confidence"] for finding in report["findings"]} <= {"possible"}
