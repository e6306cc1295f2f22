"""Workers of task queues whose jobs wait for other jobs: celery, dramatiq."""

from __future__ import annotations

from typing import Tuple

from postmortem.evidence import Process, PythonFrame, Wait

from .....support.diagnosed import classify
from .....support.make import evidence, found, frame, lines, process, thread

SLEEPS = Wait("sleep", "clock_nanosleep", timeout_s=0.2, endless=False)
READS = Wait("pipe", "read", "p", endless=True)
SITE = "/venv/lib/python3.12/site-packages/"


def at(function: str, file: str) -> PythonFrame:
    """A frame of a library."""
    return frame(function, 1, file=SITE + file)


LOOP = (at("workloop", "billiard/pool.py"), at("__call__", "billiard/pool.py"))
JOB = (at("__protected_call__", "celery/app/trace.py"), at("trace_task", "celery/app/trace.py"), *LOOP)
ASKS = (at("wait_for", "celery/backends/base.py"), at("get", "celery/result.py"), frame("roll_up", 56), *JOB)
WORKS = (frame("total", 12), *JOB)
RESTS = (at("recv", "billiard/queues.py"), *LOOP)


def child(pid: int, frames: Tuple[PythonFrame, ...]) -> Process:
    """A process of celery's prefork pool."""
    wait = READS if frames is RESTS else SLEEPS
    return process([thread(pid, frames, wait=wait, is_main=True)], pid=pid, ppid=1)


def test_every_worker_waits_for_another_job() -> None:
    """Tasks that call get() for tasks of their own queue: the line of the program in them is named."""
    known = evidence(child(10, ASKS), child(11, ASKS))
    assert classify(known).verdict == "executor-self-deadlock" and lines(known) == [56]
    assert found(known)["executor-self-deadlock"] == "likely"


def test_a_worker_that_is_free_runs_the_other_job() -> None:
    """So does one that will be: its job waits for nothing."""
    assert "executor-self-deadlock" not in found(evidence(child(10, ASKS), child(11, RESTS)))
    assert "executor-self-deadlock" not in found(evidence(child(10, ASKS), child(11, WORKS)))
    assert "executor-self-deadlock" not in found(evidence(child(10, RESTS), child(11, RESTS)))


def test_workers_that_are_threads() -> None:
    """dramatiq's are; its consumers, which run a function of the same name, are no workers."""
    worker = (at("process_message", "dramatiq/worker.py"), at("run", "dramatiq/worker.py"))
    asks = (at("get_result", "dramatiq/results/backend.py"), frame("combine", 20), *worker)
    rests = (at("get", "dramatiq/common.py"), at("run", "dramatiq/worker.py"))
    consumes = (at("__next__", "dramatiq/brokers/redis.py"), at("run", "dramatiq/worker.py"))
    busy = [thread(2, asks, wait=SLEEPS), thread(3, consumes, wait=SLEEPS)]
    known = evidence(process(busy))
    assert found(known)["executor-self-deadlock"] == "likely" and lines(known) == [20]
    assert "executor-self-deadlock" not in found(evidence(process([*busy, thread(4, rests, wait=SLEEPS)])))


def test_workers_of_a_library_that_is_in_no_table() -> None:
    """Threads of one name with the same outermost functions; the scheduler beside them is no worker, an idle one is free."""
    outer = (at("loop", "huey/consumer.py"), at("_run", "huey/consumer.py"))
    asks = (
        at("get_raw_result", "huey/api.py"),
        at("get", "huey/api.py"),
        frame("bind", 38),
        at("_execute", "huey/api.py"),
    )
    job = (*asks, *outer)
    other = (at("acquire", "redis/lock.py"), *job[2:])
    busy = [thread(n, job, wait=SLEEPS, name=f"Worker-{n}") for n in (2, 3)]
    scheduler = thread(9, (at("sleep", "huey/consumer.py"), *outer), wait=SLEEPS, name="Scheduler")
    known = evidence(process([thread(1), *busy, scheduler]))
    assert found(known)["executor-self-deadlock"] == "likely" and lines(known) == [38]
    for one in (thread(4, outer, wait=SLEEPS, name="Worker-4"), thread(4, other, wait=SLEEPS, name="Worker-4")):
        assert "executor-self-deadlock" not in found(evidence(process([thread(1), *busy, scheduler, one])))
