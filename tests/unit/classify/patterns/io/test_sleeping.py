"""Sleeps: judged by their length, and by what others get done meanwhile."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

from postmortem.evidence import End, Resource, Task, Wait, Waker
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import (
    RESTING,
    counters,
    evidence,
    found,
    frame,
    lines,
    loop,
    process,
    resting,
    stack,
    thread,
)


@pytest.mark.parametrize(("length", "expected"), [(3600.0, "likely"), (1.5, "possible"), (None, "possible")])
def test_sleeping_is_judged_by_its_length(length: float, expected: str) -> None:
    """An hour against two seconds allowed is the reason; a second between two rounds is a rhythm."""
    known = resting(Wait("sleep", "clock_nanosleep", timeout_s=length), "pause", "main")
    assert found(evidence(known)) == {"sleeping": expected}


@pytest.mark.parametrize(("function", "expected"), [("get_repo", "likely"), ("serve_forever", "possible")])
def test_a_long_sleep_inside_a_librarys_call_beside_a_server(function: str, expected: str) -> None:
    """A main thread that sleeps may keep its servers alive; not inside a call that is to return."""
    client = frame(function, 363, file="/venv/lib/python3.9/site-packages/github/client.py")
    nap = Wait("sleep", "pselect6", timeout_s=2640.0)
    main = thread(1, (client, *stack("audit", "main")), wait=nap, is_main=True, counters=counters())
    serves = thread(2, stack("socketserver.serve_forever"), wait=Wait("socket", "accept4", endless=True))
    assert found(evidence(process([main, serves], listening=(80,)))).get("sleeping") == expected


def test_a_program_without_python_sleeps() -> None:
    """Its command and the system call are named, no line is."""
    known = process(
        [thread(1, wait=Wait("sleep", "clock_nanosleep", timeout_s=60.0))], python=None, argv=("sleep", "60")
    )
    report = classify(evidence(known, seconds=1.0)).findings[0]
    assert report.pattern == "sleeping" and not report.culprits
    assert "not a Python program" in report.summary and "clock_nanosleep" in report.summary


def test_sleeping_is_not_all_when_others_work() -> None:
    """The main thread sleeps while a worker computes: no finding about sleep."""
    worker = thread(2, [frame("work")], counters=counters(0.9), gil="holds")
    main = thread(1, [frame("main")], wait=Wait("sleep", timeout_s=3600.0), counters=counters())
    assert "sleeping" not in found(evidence(process([main, worker])))


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize(
    ("cpu", "wakes", "expected"), [(0.03, 0, "possible"), (0.001, 900, "possible"), (0.001, 3, "likely")]
)
def test_a_sleep_while_others_get_something_done_is_no_hang(
    same_process: bool, cpu: float, wakes: int, expected: str
) -> None:
    """Threads, or processes of the tree, that wake all the time were only not seen at work at the moment of capture."""
    other = thread(2, stack("queue.get", "consume"), wait=Wait("condition", "futex"), counters=counters(cpu, wakes))
    main = thread(1, [frame("main")], wait=Wait("sleep", timeout_s=3600.0), counters=counters())
    if same_process:
        known = evidence(process([main, other]))
    else:
        known = evidence(process([main]), changed(process([changed(other, is_main=True)]), pid=2, ppid=1))
    finding = next(f for f in classify(known).findings if f.pattern == "sleeping")
    assert finding.confidence == expected
    assert ("nothing else computes" in finding.summary) == (expected == "likely")


def test_sleeping_tasks_while_others_get_something_done() -> None:
    """Where the sleep is a coroutine's, the program is idle by its root, and nothing is found."""
    nap = Task("task-1", "nap", "pending", "loop-1", (*stack("asyncio.tasks.sleep"), frame("retry", 20)), "Future")
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", timeout_s=36.0, endless=False), counters=counters())
    other = thread(2, stack("queue.get", "consume"), wait=Wait("condition", "futex"), counters=counters(0.0, 400))
    known = process([main, other], loops=(loop("loop-1", 1, 0),), tasks=(nap,))
    assert found(evidence(known)) == {}


@pytest.mark.parametrize(("left", "expected"), [(36.0, {"sleeping": "likely"}), (1.0, {})])
def test_asyncio_sleep_is_a_sleep(left: float, expected: Dict[str, str]) -> None:
    """Every task sleeps, or waits for one that does; the loop's own timer tells how long. A short one is a rhythm."""
    nap = Task("task-1", "nap", "pending", "loop-1", (*stack("asyncio.tasks.sleep"), frame("retry", 20)), "Future")
    outer = Task("task-2", "main", "pending", "loop-1", (frame("main", 30),), "_GatheringFuture")
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", timeout_s=left, endless=False), counters=counters())
    known = process([main], loops=(loop("loop-1", 1, 0),), tasks=(nap, outer))
    assert found(evidence(known)) == expected
    assert not expected or lines(evidence(known)) == [20]
    busy = changed(outer, awaiting="Future", stack=(frame("main", 30),))
    assert found(evidence(changed(known, tasks=(nap, busy)))) == {}


@pytest.mark.parametrize("server", [True, False])
def test_a_sleep_between_two_attempts_to_get_a_lock_of_a_server(server: bool) -> None:
    """The thread waits for the lock; without a server, as with a marker file, only the sleep is known."""
    acquire = frame("acquire", 215, "/venv/lib/python3.12/site-packages/redis/lock.py")
    nap = Wait("sleep", "pselect6", timeout_s=5.0, endless=False)
    main = thread(1, (acquire, frame("run", 39)), wait=nap, counters=counters(), is_main=True)
    ends = Resource("s", "socket", "socket", ends=(End(1, 4, "rw"), End(9, 7, "rw")))
    redis = process([thread(9, is_main=True)], pid=9, python=None, argv=("redis-server",), resources=(ends,))
    known = evidence(process([main]), *([redis] if server else []))
    assert ("sleeping" in found(known)) is not server
    assert ("database-lock-wait" in found(known)) is server


@pytest.mark.parametrize(("length", "expected"), [(900.0, "likely"), (1.5, None)])
def test_workers_that_all_sleep_before_they_take_the_next_item(length: float, expected: Optional[str]) -> None:
    """The main thread waits for room in their queue; a thread that only counts its items takes none."""
    naps = Wait("sleep", "clock_nanosleep", timeout_s=length, remaining_s=length - 1, endless=False)
    workers = [thread(tid, (frame("fetch", 68),), wait=naps, counters=counters()) for tid in (2, 3)]
    gauge = thread(4, (frame("gauge", 90),), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.5), counters=counters())
    able = tuple(Waker("reach", "memory", tid=tid, grade="names") for tid in (2, 3))
    queue = Resource(
        "q", "queue", "Queue Mirror.todo (20 of 20 places taken)", waiters=(1,), closed=True,
        wakers=(*able, Waker("reach", "memory", tid=4, grade="refers")),
    )  # fmt: skip
    main = thread(
        1,
        (*stack("queue.put"), frame("round", 81)),
        wait=Wait("condition", "futex", "q", endless=True),
        counters=counters(),
    )
    known = evidence(process([main, *workers, gauge], resources=(queue,), signal_handlers=(), cancels=()))
    assert found(known).get("sleeping") == expected
