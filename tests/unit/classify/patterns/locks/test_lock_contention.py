"""Locks that many want and that move: told from dead ones, from short ones, and from what is waited for on purpose."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

import pytest

from postmortem.classify.facts.view import View
from postmortem.classify.patterns.locks.lockqueues import queue_of
from postmortem.evidence import Evidence, PythonFrame, Resource, Task, TaskWait, Wait
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import ResourceKind

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, held, lines, lock, locked, process, samples, thread

TAKES = [frame("save", 20), frame("work", 30)]
INSIDE = [frame("write", 4), frame("save", 21), frame("work", 30)]
AWAY = [frame("fetch", 12), frame("work", 31)]
Looks = Sequence[Tuple[int, Sequence[PythonFrame]]]
#: Nearly all the time in the queue, and through it now and then.
QUEUING: Looks = ((90, TAKES), (10, AWAY))


def contended(
    count: int = 6, looks: Looks = QUEUING, kind: ResourceKind = "lock", window: Optional[float] = 1.0
) -> Evidence:
    """``count`` threads that want a lock, and one that holds it and writes."""
    seen = samples(*looks) if window is not None else ()
    waiting = [
        thread(n, TAKES, wait=locked("l"), samples=seen, counters=counters(0.01, 20)) for n in range(3, 3 + count)
    ]
    holder = thread(
        2,
        INSIDE,
        holds=(held("l", 1, 20),),
        wait=Wait("file", "write"),
        counters=counters(0.1, 50),
        samples=samples((50, INSIDE), (50, AWAY)) if window is not None else (),
    )
    main = thread(1, [frame("main", 50)], wait=Wait("sleep", "nanosleep"), counters=counters())
    wanted = lock("l", 2, [t.tid for t in waiting], kind=kind)
    return evidence(process([main, holder, *waiting], resources=(wanted,)), window=window)


def test_a_lock_that_moves_is_named_with_what_its_holder_does() -> None:
    """What is done while it is held, and where it is taken, are to blame; who queues is kept."""
    report = classify(contended()).findings[0]
    assert (report.pattern, report.confidence) == ("lock-contention", "likely")
    assert report.culprits[0].line == 4 and 20 in [c.line for c in report.culprits]
    assert len(report.victims) == 6 and "service.py:4 in write" in report.summary


@pytest.mark.parametrize(("count", "expected"), [(5, "likely"), (4, "possible"), (2, "possible"), (1, None)])
def test_one_waiter_is_no_queue(count: int, expected: Optional[str]) -> None:
    """Two at the moment of capture, and one and a half on average, are the least; a few may take turns on purpose."""
    assert found(contended(count)).get("lock-contention") == expected


@pytest.mark.parametrize(
    ("file", "expected"), [("/usr/lib/python3.12/logging/__init__.py", "likely"), (None, "possible")]
)
def test_two_that_queue_for_a_handler_of_logging(file: Optional[str], expected: str) -> None:
    """It writes to a slow peer while it has its lock: no message is to wait for another."""
    known = contended(2)
    one = known.processes[0]
    taken = held("l", 1, 20)
    taken = changed(taken, frame=frame("handle", 966, file)) if file is not None else taken
    threads = tuple(changed(t, holds=(taken,)) if t.holds else t for t in one.threads)
    assert found(changed(known, processes=(changed(one, threads=threads),)))["lock-contention"] == expected


@pytest.mark.parametrize(("at", "expected"), [(50, "likely"), (25, "possible"), (24, None)])
def test_how_many_want_it_on_average(at: int, expected: Optional[str]) -> None:
    """Six threads that are a quarter of the time there are one and a half; fewer, and it says how many. Those that are
    elsewhere for most of the time only use it often."""
    known = contended(6, ((at, TAKES), (100 - at, AWAY)))
    assert found(known).get("lock-contention") == expected
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert ("on average" in ruled.get("lock-contention", "")) == (expected is None)


@pytest.mark.parametrize(("switches", "expected"), [(0, None), (50, "likely")])
def test_a_holder_that_waits_for_another_lock_is_not_the_cause(switches: int, expected: Optional[str]) -> None:
    """Nobody may hold that one any more. A holder that gets it again and again goes on."""
    known = contended()
    waits = changed(locked("inner"), endless=True)
    threads = tuple(
        changed(t, wait=waits, counters=counters(0.0, switches)) if t.tid == 2 else t
        for t in known.processes[0].threads
    )
    inner = lock("inner", None, [2])
    process = changed(known.processes[0], threads=threads, resources=(*known.processes[0].resources, inner))
    assert found(changed(known, processes=(process,))).get("lock-contention") == expected


def test_who_waits_for_the_next_item_holds_a_queues_lock_on_purpose() -> None:
    """The others of a pool of processes are to wait behind it: there is nothing to do."""
    known = contended()
    busy = known.processes[0]
    get = frame("get", 102, file="/usr/lib/python3.12/multiprocessing/queues.py")
    idle = changed(busy.threads[1], stack=(get, *INSIDE), wait=Wait("pipe", "read", endless=True))
    queue = changed(busy, threads=(busy.threads[0], idle, *busy.threads[2:]))
    assert "lock-contention" not in found(changed(known, processes=(queue,)))


@pytest.mark.parametrize(("does", "expected"), [("writes", "possible"), ("rests", None)])
def test_a_lock_that_was_given_to_nobody_does_not_move(does: str, expected: Optional[str]) -> None:
    """All samples of all waiters are in the queue, and they sleep: a holder that goes on may only be slow; one that does not
    is the cause by itself."""
    still = contended(looks=((100, TAKES),))
    holder = still.processes[0].threads[1]
    if does == "rests":
        holder = changed(holder, counters=counters(), samples=samples((100, INSIDE)))
    calm = tuple(changed(t, counters=counters()) if t.tid > 2 else t for t in still.processes[0].threads)
    threads = tuple(holder if t.tid == holder.tid else t for t in calm)
    known = changed(still, processes=(changed(still.processes[0], threads=threads),))
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert found(known).get("lock-contention") == expected
    if expected is None:
        assert "none of them" in ruled["lock-contention"] or "not move" in ruled["lock-contention"]


def test_a_holder_that_was_seen_to_wait_has_got_the_lock() -> None:
    """It changes hands too seldom for more: a waiter that was inside before, and a holder that was in the queue, are two."""
    waiting = [
        thread(n, TAKES, wait=locked("l"), samples=samples((99, TAKES)), counters=counters()) for n in range(3, 18)
    ]
    before = changed(waiting[0], samples=samples((60, INSIDE), (39, TAKES)))
    asks = Wait("socket", "recvfrom", endless=True)
    holder = thread(2, INSIDE, holds=(held("l", 1, 20),), wait=asks, samples=samples((99, TAKES)), counters=counters())
    threads = [thread(1, [frame("main", 50)], wait=locked("m"), counters=counters()), holder, before, *waiting[1:]]
    known = evidence(process(threads, resources=(lock("l", 2, [t.tid for t in waiting]),)))
    assert found(known)["lock-contention"] == "likely"


def test_waiters_that_can_never_move_do_not_contend() -> None:
    """The holder got the lock within the window, and wants one that a waiter has: the circle is the cause."""
    first = thread(
        2, INSIDE, holds=(held("l", 1, 20),), wait=locked("m"), samples=samples((99, TAKES)), counters=counters()
    )
    second = thread(
        3, TAKES, holds=(held("m", 1, 21),), wait=locked("l"), samples=samples((99, TAKES)), counters=counters()
    )
    third = thread(4, TAKES, wait=locked("l"), samples=samples((99, TAKES)), counters=counters())
    locks = (lock("l", 2, [3, 4]), lock("m", 3, [2]))
    known = found(evidence(process([first, second, third], resources=locks, signal_handlers=(), cancels=())))
    assert "lock-contention" not in known and "lock-order-deadlock" in known


def test_without_a_window_nothing_is_known_to_move() -> None:
    """From a core it abstains."""
    report = classify(contended(window=None))
    assert "lock-contention" in {a.pattern for a in report.abstained}
    assert "lock-contention" not in {f.pattern for f in report.findings}


@pytest.mark.parametrize("kind", ["condition", "event", "semaphore", "queue", "barrier"])
def test_who_waits_to_be_told_does_not_contend(kind: ResourceKind) -> None:
    """Workers wait on a condition until there is work, and go when it comes: nobody holds what they wait for."""
    assert "lock-contention" not in found(contended(kind=kind))


def test_a_queue_says_where_others_have_come_through() -> None:
    """Average and movers over the window; the block's own lines, by whoever was seen in them."""
    known = contended(looks=((60, TAKES), (20, INSIDE[1:]), (20, AWAY)))
    view, of = View(known), known.processes[0]
    queue = queue_of(view, of, of.resources[0], [t for t in of.threads if t.tid > 2])
    assert (round(queue.average, 1), queue.moved) == (3.6, 6)
    assert queue.holder is not None and queue.holder.tid == 2
    assert queue.under is not None and queue.under.line == 4
    assert [f.line for f in queue.inside(view)] == [21]


def tasks(waiting: int, moved: Optional[bool], owner: Optional[bool] = None) -> Evidence:
    at = (frame("call", 12), frame("main", 30))
    wait = TaskWait("lock", "l", endless=True)
    several = [Task(f"t{n}", f"T{n}", "pending", "loop", at, wait=wait, moved=moved) for n in range(waiting)]
    holding = Task(
        "o",
        "Owner",
        "pending",
        "loop",
        (frame("refresh", 20), *at),
        wait=TaskWait("sleep"),
        moved=owner,
        holds=(held("l", 1, 11),),
    )
    wanted = Resource(
        "l", "async-lock", "asyncio.Lock Session.lock", waiting_tasks=tuple(t.id for t in several), owner_task="o"
    )
    main = thread(1, [frame("main", 50)], wait=Wait("event-loop", "epoll_wait"), counters=counters(0.1, 50))
    return evidence(process([main], tasks=(holding, *several), resources=(wanted,)))


def test_tasks_queue_for_a_lock_of_asyncio() -> None:
    """By what each waited for when the window began; what the owner is at, and where it took the lock, are to blame.

    One hand-over alone is what any queue for a connection shows, and who came within the window may get it as soon.
    """
    crowd = tasks(9, True)
    some = tuple(changed(task, moved=number < 5) for number, task in enumerate(crowd.processes[0].tasks))
    known = changed(crowd, processes=(changed(crowd.processes[0], tasks=some),))
    report = next(f for f in classify(known).findings if f.pattern == "lock-contention")
    assert (report.confidence, report.culprits[0].line) == ("likely", 20) and len(report.victims) == 9
    assert found(tasks(9, False, True))["lock-contention"] == "possible"
    assert {found(tasks(count, True))["lock-contention"] for count in (3, 9)} == {"possible"}
    assert lines(known)


def test_tasks_of_a_lock_that_does_not_move() -> None:
    """Nobody moved, not even who has it: no; nobody knows: it abstains."""
    ruled = {r.pattern: r.because for r in classify(tasks(9, False, False)).ruled_out}
    assert "none of them" in ruled["lock-contention"]
    assert "lock-contention" in {a.pattern for a in classify(tasks(9, None)).abstained}
    assert "lock-contention" not in found(tasks(1, True))
