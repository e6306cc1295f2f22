"""A worker that waits for what a job in its own pool's queue was to do, read out of cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Set

import pytest

from postmortem.evidence import Process
from postmortem.extract.ownership import grading, wakers

from ..support.awaitedobjects import awaited, process_in
from ..support.interpreters import Program, matrix
from ..support.takingcores import kernel_core

pytestmark = [pytest.mark.live]

PROGRAM = """
import threading, time
from concurrent.futures import ThreadPoolExecutor

ready = threading.Semaphore(0)


class Answer:
    def __init__(self): self.here, self.value = threading.Event(), None
    def set(self, value): self.value = value; self.here.set()
    def get(self): self.here.wait(); return self.value


def ask(pool):
    answer = Answer()
    pool.submit(lambda: answer.set(1))
    ready.release()
    return answer.get()


def named(name, size, *sleepers):
    pool = ThreadPoolExecutor(size, thread_name_prefix=name)
    for seconds in sleepers: pool.submit(time.sleep, seconds)
    pool.submit(ask, pool)
    return pool


def gated():
    gate, pool = threading.Event(), ThreadPoolExecutor(1, thread_name_prefix="gated")
    for _ in range(2): pool.submit(gate.wait)
    return pool


def main():
    pools = [named("full", 1), named("other", 2, 1000), named("growing", 2)]
    waits = gated()
    for _ in pools: ready.acquire()
    time.sleep(0.5)
    print("ready", flush=True)
    time.sleep(1000)


main()
"""


def runners(process: Process) -> Dict[str, Set[str]]:
    """Map each waiting worker to the workers that could run the job which ends its wait."""
    names = {thread.tid: thread.name or "?" for thread in process.threads}
    return {
        name: {names.get(waker.tid or 0, "?") for waker in resource.wakers if waker.role == "runner"}
        for name, resource in awaited(process).items()
        if resource.kind == "event"
    }


@pytest.mark.parametrize("python", matrix())
def test_a_queued_job_leads_to_the_event_that_a_worker_awaits(
    python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read the workers of a full pool as the only runners of its queued job; a pool that may grow has run the job already."""
    monkeypatch.setattr(wakers, "SECONDS", 60.0)  # what is found is under test, not how fast this machine is today
    monkeypatch.setattr(grading, "SECONDS", 60.0)
    with Program(python, PROGRAM, tmp_path, cwd=tmp_path) as program:
        process, _gaps = process_in(kernel_core(program, tmp_path), program.pid)
    found = runners(process)
    if python.free_threaded:  # references cannot be followed
        assert found == {"full_0": set(), "other_1": set(), "gated_0": set()}
        return
    assert found == {"full_0": {"full_0"}, "other_1": {"other_0", "other_1"}, "gated_0": {"gated_0"}}
    events = {name: resource for name, resource in awaited(process).items() if resource.kind == "event"}
    assert all(resource.closed for resource in events.values())
    grades = {name: {waker.grade for waker in resource.wakers} for name, resource in events.items()}
    assert grades == {"full_0": {"names"}, "other_1": {"names"}, "gated_0": {"refers"}}, "the second one waits, too"
    codes = {
        name: {fact.code for fact in resource.because if not isinstance(fact, str)} for name, resource in events.items()
    }
    assert all({"job-queued", "pool-full", "only-waiters-and-jobs-refer"} <= several for several in codes.values())
