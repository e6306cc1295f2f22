"""Pools of processes: what their workers do, and whether a result can still come."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest

from postmortem.evidence import Pool, Process, PythonFrame, Resource, Thread, Wait
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import WaitKind
from postmortem.extract.cross_process.workers import KIND, is_idle, with_workers

LIB = "/usr/lib/python3.12/multiprocessing"


def frames(*places: str) -> Any:
    return tuple(PythonFrame(f"{LIB}/{file}.py", 1, name) for file, _dot, name in (p.partition(".") for p in places))


def worker(pid: int, syscall: str = "futex", age: Optional[float] = 9.0, above: str = "get") -> Process:
    stack = frames("synchronize.__enter__", f"queues.{above}", "pool.worker", "process.run")
    wait = Wait("semaphore", syscall, endless=True)
    return Process(pid, 1, threads=(Thread(pid, wait=wait, stack=stack, is_main=True),), age_s=age)


def handler(tid: int, syscall: str, *places: str) -> Thread:
    return Thread(tid, f"H-{tid}", wait=Wait("other", syscall, endless=True), stack=frames(*places))


def parent(**known: Any) -> Process:
    pool = Pool("process-pool-1", "multiprocessing.Pool", "multiprocessing.Pool p", 2, (31, 32, 33), (2, 3), pending=1)
    threads = [
        Thread(1, is_main=True),
        handler(31, "poll", "connection.wait", "pool._wait_for_updates", "pool._handle_workers"),
        handler(32, "futex", "pool._handle_tasks"),
        handler(33, "read", "connection._recv", "connection.recv", "pool._handle_results"),
    ]
    result = Resource("pool-result-1", KIND, "the result of job 1", waiters=(1,), part_of="process-pool-1")
    made = Process(1, threads=tuple(threads), pools=(pool,), resources=(result,))
    return changed(made, **known)


def read(*processes: Process) -> Process:
    return with_workers(processes)[0]


def test_a_result_that_is_nowhere_never_comes() -> None:
    """All workers rest, one reads an empty pipe, both handlers wait: the steps say so."""
    found = read(parent(), worker(2, "read"), worker(3))
    assert found.pools[0].idle == (2, 3)
    assert (found.resources[0].closed, found.resources[0].wakers) == (True, ())
    assert len(found.resources[0].because) == 4


def with_handler(number: int, **wait: Any) -> Process:
    made: List[Thread] = list(parent().threads)
    made[number] = changed(made[number], **wait)
    return parent(threads=tuple(made))


@pytest.mark.parametrize(
    "processes",
    [
        (parent(), worker(2, "read", above="put"), worker(3)),  # it brings a result
        (parent(), worker(2), worker(3)),  # nobody reads: a job may lie in the pipe
        (with_handler(2, stack=frames("queues.put", "pool._handle_tasks")), worker(2, "read"), worker(3)),
        (with_handler(2, wait=None), worker(2, "read"), worker(3)),
        (with_handler(3, wait=Wait("gil", "futex")), worker(2, "read"), worker(3)),  # it has read one just now
        (parent(threads=parent().threads[:1]), worker(2, "read"), worker(3)),  # no handlers were read
    ],
)
def test_any_part_at_work_may_bring_it(processes: Any) -> None:
    """Then nothing is closed."""
    assert read(*processes).resources[0].closed is None


def test_who_works_is_named() -> None:
    """As those who could bring the result."""
    found = read(parent(), worker(2, "read", above="put"), worker(3))
    assert [w.pid for w in found.resources[0].wakers] == [2]


def test_workers_that_are_gone_or_new() -> None:
    """One is not among the living; one is younger than it takes to start a pool."""
    found = read(parent(), worker(3)).pools[0]
    assert (found.processes, found.gone, found.replaced) == ((3,), (2,), 0)
    found = read(parent(), worker(2), worker(3, age=1.0)).pools[0]
    assert found.replaced == 1
    found = read(parent(), worker(2), worker(3, age=8.9)).pools[0]
    assert found.replaced == 0
    assert read(parent(), worker(2), worker(3, age=None)).pools[0].replaced is None


def test_a_worker_rests_only_where_it_takes_jobs() -> None:
    """A job that waits for a lock is no rest; neither is a wait with an end."""
    assert is_idle(worker(2))
    assert not is_idle(worker(2, above="put"))
    job = (*frames("synchronize.__enter__", "queues.get"), PythonFrame("/app/p.py", 3, "job"), *frames("pool.worker"))
    busy = worker(2)
    assert not is_idle(changed(busy, threads=(changed(busy.threads[0], stack=job),)))
    timed = changed(busy.threads[0], wait=Wait("semaphore", "futex", endless=False))
    assert not is_idle(changed(busy, threads=(timed,)))


def test_a_worker_whose_queue_is_of_a_class_of_its_own() -> None:
    """A library's `get` takes the next job when it reads a pipe; a function of the program of that name is a job."""

    def takes(file: str, kind: WaitKind = "pipe") -> bool:
        inner, outer = frames("connection._recv", "connection.recv"), frames("pool.worker", "process.run")
        stack = (*inner, PythonFrame(file, 147, "get"), *outer)
        wait = Wait(kind, "read", endless=True)
        return is_idle(Process(2, 1, threads=(Thread(2, wait=wait, stack=stack, is_main=True),)))

    library = "/venv/lib/python3.12/site-packages/joblib/pool.py"
    assert (takes(library), takes("/app/p.py"), takes(library, "socket")) == (True, False, False)


def test_the_copy_of_multiprocessing_that_pathos_uses() -> None:
    """Its pools are told of as those of the original."""
    stack = tuple(
        changed(f, file=f.file.replace("multiprocessing", "site-packages/multiprocess"))
        for f in frames("queues.get", "pool.worker", "process.run")
    )
    assert is_idle(
        Process(2, 1, threads=(Thread(2, wait=Wait("pipe", "read", endless=True), stack=stack, is_main=True),))
    )


def test_results_that_only_a_join_waits_for_are_known_too() -> None:
    """Pool.join waits for all of them: they have a resource without waiters."""
    found = read(parent(resources=()), worker(2, "read"), worker(3))
    assert [(r.part_of, r.closed, r.waiters) for r in found.resources] == [("process-pool-1", True, ())]
    drained: Dict[str, Any] = {"pools": (changed(parent().pools[0], pending=0),), "resources": ()}
    assert read(parent(**drained), worker(2), worker(3)).resources == ()
