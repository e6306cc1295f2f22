"""Locks whose holders are gone, pools that wait for themselves, imports that wait for imports."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

import pytest

from postmortem.evidence import End, Loop, NativeFrame, Pool, Resource, Task, TaskWait, Thread, Wait, Waker, replace
from postmortem.evidence.vocabulary import ResourceKind, TaskWaitKind, WaitKind, WakerBasis, WakerGrade

from .....support.diagnosed import classify
from .....support.make import (
    APP,
    counters,
    evidence,
    found,
    frame,
    held,
    lines,
    lock,
    process,
    samples,
    silent,
    stack,
    thread,
    verdict,
)


def waits(tid: int, resource: str, line: int, kind: WaitKind = "condition", **known: Any) -> Thread:
    """A thread of the program that waits in the standard library, without a time limit unless told so."""
    wait = Wait(kind, "futex", resource, endless=known.pop("endless", True), gate=known.pop("gate", None))
    return thread(tid, (*stack("threading.wait"), frame("work", line)), wait=wait, **known)


def runs(tid: int) -> Thread:
    return thread(tid, (frame("crunch", 99),), counters=counters(cpu=0.5))


def whole(threads: Sequence[Thread], *resources: Resource, window: Optional[float] = 1.0, **known: Any) -> Any:
    one = process(threads, resources=resources, **{"signal_handlers": (), "cancels": (), **known})
    return evidence(one, window=window)


# ---------------------------------------------------------------------- orphaned-lock


def test_a_lock_that_was_handed_on_is_not_lost() -> None:
    """Another thread, which is at work, goes on to code that releases it: it was acquired for that one."""
    waiters = [waits(tid, "lock-1", 43, "lock") for tid in (1, 2)]
    known = whole([*waiters, runs(3)], lost(wakers=(Waker("reach", "memory", tid=3, grade="names"),)))
    assert found(known)["orphaned-lock"] == "possible"
    known = whole([*waiters, runs(3)], lost(wakers=(Waker("reach", "memory", tid=3, grade="refers"),)))
    assert found(known)["orphaned-lock"] == "likely"


@pytest.mark.parametrize(
    ("second", "made", "expected"),
    [("lock-1", 3, "likely"), ("lock-1", 0, "possible"), ("lock-2", 3, None), (None, 3, None)],
    ids=["same", "nobody ended", "another", "at rest"],
)
def test_a_lock_of_a_manager_that_none_of_its_clients_has(
    second: Optional[str], made: int, expected: Optional[str]
) -> None:
    """A client that has the lock is served by a thread that waits for its next request, or for another lock.

    One that asks for it twice looks the same as those who wait for one that has ended.
    """
    serving = (*stack("multiprocessing.managers.serve_client"),)
    names = [name for name in ("lock-1", second) if name is not None]
    wanted = [Wait("lock", "futex", name, endless=True) for name in names]
    idle = [] if second is not None else [Wait("socket", "read", "s", endless=True)]
    served = [thread(10 + n, serving, wait=wait, is_main=False) for n, wait in enumerate([*wanted, *idle])]
    locks = [
        Resource(
            name,
            "lock",
            f"Lock {name}",
            locked=True,
            waiters=tuple(t.tid for t in served if t.wait and t.wait.resource == name),
        )
        for name in dict.fromkeys(names)
    ]
    manager = process(served, pid=9, ppid=1, resources=tuple(locks), forked=True)
    clients = []
    for pid in (2, 3):
        asks = Resource("s", "socket", "socket", waiters=(pid,), ends=(End(pid, 4, "rw"), End(9, pid, "rw")))
        frames = (
            *stack("multiprocessing.managers._callmethod", "multiprocessing.managers.__enter__"),
            frame("merge", 34),
        )
        main = thread(pid, frames, wait=Wait("socket", "read", "s", endless=True), is_main=True)
        clients.append(process([main], pid=pid, ppid=1, resources=(asks,)))
    known = evidence(process([runs(1)], children_made=made), manager, *clients)
    leading = next((f for f in classify(known).findings if f.pattern == "orphaned-lock"), None)
    assert (leading.confidence if leading is not None else None) == expected
    assert leading is None or {(c.pid, c.line) for c in leading.culprits} == {(2, 34), (3, 34)}


def lost(**known: Any) -> Resource:
    """A plain lock that nobody holds, as far as stacks and sources say."""
    plain = Resource(
        "lock-1",
        "lock",
        "Lock Catalogue.lock",
        waiters=(1, 2),
        locked=True,
        because=("every stack was read",),
        taken_at=(frame("merge", 28),),
    )
    return replace(plain, **known)


LAB = "/v/site-packages/lab/lock.py"
WANTING = [waits(1, "lock-1", 40, "lock"), waits(2, "lock-1", 41, "lock"), runs(3)]


def test_a_recorded_holder_who_is_gone_is_proof() -> None:
    """An RLock names him: blamed on where it is taken, else on where it is wanted."""
    gone = Resource("rlock-1", "rlock", "RLock Ledger.guard", waiters=(1,), locked=True, owner_gone=True)
    known = whole([waits(1, "rlock-1", 12, "rlock"), runs(2)], gone)
    assert (verdict(known), found(known)["orphaned-lock"], lines(known)) == ("orphaned-lock", "proven", [12])


def test_a_wrapper_that_only_takes_it_is_not_all_to_blame() -> None:
    """Holder and waiter came through the same wrapper: its callers are named too, up to the program's line."""
    wrapper, manager = frame("acquire", 79, LAB), frame("__call__", 55, LAB)
    inner = (*stack("threading.acquire"), wrapper, manager, *stack("contextlib.__enter__"))
    stacked = (*inner, frame("move", 26), frame("main", 66))
    wants = thread(1, stacked, wait=Wait("rlock", "futex", "rlock-1", endless=True))
    gone = Resource(
        "rlock-1", "rlock", "RLock StrictLock._lock", waiters=(1,), locked=True, owner_gone=True, taken_at=(wrapper,)
    )
    assert lines(whole([wants, runs(2)], gone)) == [79, 55, 26]


def test_a_plain_lock_that_nobody_can_hold_is_likely_lost() -> None:
    """It records nobody, so there is no proof; the lines that take it by hand are to blame."""
    known = whole(WANTING, lost())
    assert (verdict(known), found(known)["orphaned-lock"], lines(known)) == ("orphaned-lock", "likely", [28])


@pytest.mark.parametrize(
    "known",
    [
        {"because": ()},  # somebody may hold it
        {"taken_at": ()},  # it may be a signal between threads, which nobody "holds"
        {"owner_tid": 3, "owner_basis": "inferred"},
        {"locked": False},
    ],
)
def test_what_may_be_held_is_not_lost(known: Any) -> None:
    """Each part of the reasoning is needed."""
    assert silent(whole(WANTING, lost(**known)), "orphaned-lock")


def test_waiters_who_move_or_give_up_lose_nothing() -> None:
    """A time limit, or waking over the window."""
    moving = [
        waits(1, "lock-1", 40, "lock", counters=counters(switches=9)),
        waits(2, "lock-1", 41, "lock", endless=False),
    ]
    assert silent(whole(moving, lost()), "orphaned-lock")


def test_the_holder_of_a_forked_process_may_live_in_its_parent() -> None:
    """That is another pattern's."""
    assert "orphaned-lock" not in found(whole(WANTING, lost(), forked=True))


# ---------------------------------------------------------------------- executor-self-deadlock


def future(ident: str, waiter: int, *workers: int, closed: Optional[bool] = True) -> Resource:
    wakers = tuple(Waker("runner", "memory", tid=tid) for tid in workers)
    return Resource(
        ident,
        "future",
        "Future of measure",
        waiters=(waiter,),
        wakers=wakers,
        closed=closed,
        state="pending",
        because=("it is in the queue",),
    )


def pool(*threads: int, idle: Tuple[int, ...] = ()) -> Pool:
    return Pool(
        "executor-1",
        "ThreadPoolExecutor",
        "ThreadPoolExecutor size (2 of 2 workers)",
        limit=2,
        threads=threads,
        idle=idle,
        queued=3,
    )


def test_workers_that_wait_for_their_own_queue_are_proof() -> None:
    """Although another thread runs: only workers take jobs from the queue."""
    known = whole(
        [waits(1, "f-1", 70), waits(2, "f-2", 31), waits(3, "f-3", 31), runs(4)],
        future("f-1", 1, 2),
        future("f-2", 2, 2, 3),
        future("f-3", 3, 2, 3),
        pools=(pool(2, 3),),
    )
    assert (verdict(known), found(known)["executor-self-deadlock"]) == ("executor-self-deadlock", "proven")
    assert lines(known) == [31]


def test_a_timer_that_may_cancel_the_jobs_in_the_queue() -> None:
    """The workers that wait for them go on then."""
    timer = replace(waits(4, "f-9", 90), wait=Wait("event", endless=False), deeds=("cancels",))
    known = whole(
        [waits(1, "f-1", 70), waits(2, "f-2", 31), waits(3, "f-3", 31), timer],
        future("f-1", 1, 2),
        future("f-2", 2, 2, 3),
        future("f-3", 3, 2, 3),
        pools=(pool(2, 3),),
    )
    assert found(known)["executor-self-deadlock"] == "possible"


def test_a_worker_that_waits_for_what_a_queued_job_leads_to() -> None:
    """An event is no future, but only workers of the pool can run the job that sets it; another thread may set it, too."""

    def event(*wakers: Waker) -> Resource:
        return Resource("event-1", "event", "Event Answer.here (not set)", waiters=(2,), closed=True, wakers=wakers)

    mine, other = Waker("runner", "memory", tid=2), Waker("reach", "memory", tid=3, grade="names")
    waiting, only = waits(2, "event-1", 31, "event"), replace(pool(2), limit=1)
    known = whole([waiting, runs(3)], event(mine), pools=(only,))
    assert (verdict(known), found(known)["executor-self-deadlock"]) == ("executor-self-deadlock", "proven")
    assert "executor-self-deadlock" not in found(whole([waiting, runs(3)], event(mine, other), pools=(only,)))


def test_a_worker_who_waits_for_another_worker_is_part_of_it() -> None:
    """One runs the job of the other, and waits for what is queued."""
    known = whole(
        [runs(1), waits(2, "f-2", 31), waits(3, "f-3", 31)],
        future("f-2", 2, 3),
        future("f-3", 3, 2, 3),
        pools=(pool(2, 3),),
    )
    assert found(known)["executor-self-deadlock"] == "proven"


def test_one_worker_who_works_is_enough() -> None:
    """He takes the next job when he is done; so does a pool that may still grow."""
    futures = future("f-1", 1, 2), future("f-2", 2, 2, 3)
    assert "executor-self-deadlock" not in found(whole([waits(2, "f-2", 31), runs(3)], *futures, pools=(pool(2, 3),)))
    growing = future("f-2", 2, 2, closed=None)
    assert "executor-self-deadlock" not in found(whole([waits(2, "f-2", 31), runs(4)], growing, pools=(pool(2),)))


def test_two_pools_that_wait_for_each_other_are_proof() -> None:
    """Each one's only worker waits for a job in the queue of the other."""
    render, fetch = pool(2), replace(pool(3), id="executor-2", description="ThreadPoolExecutor fetch (1 of 1 workers)")
    known = whole(
        [waits(1, "f-1", 70), waits(2, "f-2", 31), waits(3, "f-3", 41)],
        future("f-1", 1, 2),
        future("f-2", 2, 3),
        future("f-3", 3, 2),
        pools=(render, fetch),
    )
    assert (verdict(known), found(known)["executor-self-deadlock"]) == ("executor-self-deadlock", "proven")
    assert lines(known) == [31, 41]


def test_a_pool_that_waits_for_another_one_that_works_is_none() -> None:
    """The other one takes the job when it is done with its own."""
    render, fetch = pool(2), replace(pool(3), id="executor-2")
    known = whole([waits(2, "f-2", 31), runs(3)], future("f-2", 2, 3), pools=(render, fetch))
    assert "executor-self-deadlock" not in found(known)


def test_a_worker_may_wait_for_its_queue_through_a_coroutine() -> None:
    """It waits for a coroutine that has handed its work to the same pool."""
    through = Resource(
        "f-2",
        "future",
        "Future of save",
        waiters=(2,),
        wakers=(Waker("runner", "memory", task="task-1"),),
        closed=True,
        state="pending",
    )
    job = replace(future("f-3", 0, 2), kind="async-future", waiters=(), waiting_tasks=("task-1",))
    save = Task(
        "task-1", "save", "pending", "loop-1", (frame("save", 51),), wait=TaskWait("thread", "f-3", endless=True)
    )
    main = thread(1, stack("asyncio.run"), wait=Wait("event-loop", "epoll_wait", endless=True))
    loop = Loop("loop-1", 1, ready=0, scheduled=0, watched=0, signals=())
    known = whole([main, waits(2, "f-2", 31)], through, job, pools=(pool(2),), tasks=(save,), loops=(loop,))
    assert (verdict(known), found(known)["executor-self-deadlock"]) == ("executor-self-deadlock", "proven")
    assert lines(known) == [31, 51]


def manager(tid: int) -> Pool:
    return Pool("process-pool-1", "ProcessPoolExecutor", "ProcessPoolExecutor pool", threads=(tid,), processes=(20,))


def test_the_manager_of_a_process_pool_is_no_worker() -> None:
    """Its thread waits for an answer of the workers, one of which waits in native code since the fork."""
    answer = Resource(
        "p-1", "pipe", "pipe", wakers=(Waker("end", "kernel", 20), Waker("end", "kernel", 1)), closed=True
    )
    collects = thread(3, stack("selectors.select"), wait=Wait("pipe", "poll", "p-1", endless=True))
    main = whole([waits(1, "f-1", 70), collects], future("f-1", 1, 3), answer, pools=(manager(3),))
    worker = process([thread(20, [frame("scale", 8)], wait=Wait("futex", "futex", endless=True))], pid=20, ppid=1)
    assert "executor-self-deadlock" not in found(replace(main, processes=(*main.processes, worker)))


def test_a_managers_callback_that_waits_for_the_same_pool() -> None:
    """A callback of one future runs in the manager thread, and waits for another one."""
    known = whole(
        [waits(1, "f-1", 70), waits(3, "f-2", 31)], future("f-1", 1, 3), future("f-2", 3, 3), pools=(manager(3),)
    )
    assert (verdict(known), found(known)["executor-self-deadlock"]) == ("executor-self-deadlock", "proven")
    assert lines(known) == [31]


# ---------------------------------------------------------------------- import-deadlock


IMPORTING = Resource("import-lock-1", "import-lock", "import of module rates", 1, "recorded", (2,))


def test_an_import_that_joins_a_thread_that_imports_is_proof() -> None:
    """Blamed on the join at import time, the import in the thread, and the import that began it."""
    main = waits(1, "thread-1", 9, "lock", joins=2, holds=(held("import-lock-1", 1, 3, "recorded"),))
    joined = Resource("thread-1", "thread", "thread worker", 2, "recorded", (1,))
    known = whole([main, waits(2, "import-lock-1", 4, "lock")], IMPORTING, joined)
    assert (verdict(known), found(known)["import-deadlock"]) == ("import-deadlock", "proven")
    assert lines(known) == [9, 4, 3]


@pytest.mark.parametrize(("left", "expected"), [(None, "proven"), (890.0, "likely"), (5.0, "possible")])
def test_an_import_that_waits_for_a_result_of_a_thread_that_imports(
    left: Optional[float], expected: Optional[str]
) -> None:
    """A time limit of minutes ends it with an error; one of seconds may be meant to."""
    main = waits(1, "event-1", 4, holds=(held("import-lock-1", 1, 3, "recorded"),))
    assert main.wait is not None
    main = replace(main, wait=replace(main.wait, endless=left is None, remaining_s=left, timeout_s=left))
    main = replace(main, counters=counters())
    signal = Resource(
        "event-1", "event", "Event", waiters=(1,), closed=True, wakers=(Waker("reach", "memory", tid=2, grade="names"),)
    )
    known = whole([main, waits(2, "import-lock-1", 33, "lock")], IMPORTING, signal)
    assert found(known).get("import-deadlock") == expected


def test_an_import_at_work_is_only_slow() -> None:
    """The import's lock comes free when the import is done: no deadlock."""
    known = whole([runs(1), waits(2, "import-lock-1", 4, "lock")], IMPORTING)
    assert "import-deadlock" not in found(known)


# ---------------------------------------------------------------------- pool-exhausted


def permits(value: int = 0, closed: Optional[bool] = True, basis: WakerBasis = "with-slot") -> Resource:
    wakers = tuple(Waker("holder", basis, tid=tid, frame=frame("place", 20 + tid)) for tid in (2, 3))
    return Resource(
        "semaphore-1",
        "semaphore",
        "BoundedSemaphore Pool.slots (0 of 2 permits left)",
        waiters=(2, 3, 4),
        wakers=wakers,
        closed=closed,
        value=value,
        limit=2,
    )


STARVING = [runs(1), *(waits(tid, "semaphore-1", 50, "semaphore") for tid in (2, 3, 4))]


def test_holders_who_want_more_exhaust_a_pool() -> None:
    """All permits are known by `with`: proven. The second taking is to blame, then the first."""
    known = whole(STARVING, permits())
    assert (verdict(known), found(known)["pool-exhausted"]) == ("pool-exhausted", "proven")
    assert lines(known) == [50, 22, 23]


def test_inferred_holders_make_it_likely() -> None:
    """What was read from source is no proof."""
    assert found(whole(STARVING, permits(closed=None, basis="inferred")))["pool-exhausted"] == "likely"


def test_a_pool_that_guards_itself_by_a_condition() -> None:
    """What its users have of it was inferred: likely. Without any known user it is a missed wake-up."""
    pool = replace(permits(basis="inferred"), id="condition-1", kind="condition", value=None)
    starving = [runs(1), *(waits(tid, "condition-1", 50, "condition") for tid in (2, 3, 4))]
    assert found(whole(starving, pool))["pool-exhausted"] == "likely"
    assert "pool-exhausted" not in found(whole(starving, replace(pool, wakers=())))


def test_a_holder_at_work_gives_it_back() -> None:
    """Nor is a pool exhausted of which a part is left, or of which a part is with nobody knows whom."""
    working = [runs(1), waits(2, "semaphore-1", 50, "semaphore"), runs(3), waits(4, "semaphore-1", 50, "semaphore")]
    assert "pool-exhausted" not in found(whole(working, permits()))
    assert "pool-exhausted" not in found(whole(STARVING, permits(value=1)))
    assert "pool-exhausted" not in found(whole(STARVING, replace(permits(), limit=3)))


def test_holders_in_a_circle_of_locks_are_that_ones_victims() -> None:
    """The pool is empty because its holders wait for each other's locks, not for more of the pool."""
    circle = [waits(2, "lock-3", 50, "lock"), waits(3, "lock-2", 51, "lock"), waits(4, "semaphore-1", 52, "semaphore")]
    pool_of_them = replace(permits(), waiters=(4,))
    known = whole([runs(1), *circle], pool_of_them, lock("lock-2", 2, (3,)), lock("lock-3", 3, (2,)))
    assert verdict(known) == "lock-order-deadlock" and "pool-exhausted" not in found(known)


def test_an_idle_consumer_has_nothing() -> None:
    """An empty queue whose items nobody is to put back is no pool."""
    queue = Resource("queue-1", "queue", "Queue jobs (empty, no bound)", waiters=(2,), value=0, limit=0)
    assert "pool-exhausted" not in found(whole([runs(1), waits(2, "queue-1", 50)], queue))


def gate(**known: Any) -> Resource:
    """A pool of a library, with two parts that threads 2 and 3 hold."""
    found = replace(permits(basis="memory"), id="pool-1", kind="pool", description="lab.pool.Pool (size 2, 2 in use)")
    return replace(found, **known)


def behind(thread: Thread) -> Thread:
    """A thread that sleeps on a condition inside of the pool."""
    assert thread.wait is not None
    return replace(thread, wait=replace(thread.wait, resource="condition-1", gate="pool-1"))


INNER = Resource("condition-1", "condition", "Condition Pool.changed", waiters=(2, 3, 4))
IN_LINE = [runs(1), *(behind(waits(tid, "condition-1", 50)) for tid in (2, 3, 4))]


def test_who_waits_for_a_gate_waits_for_its_holders() -> None:
    """The condition that each sleeps on is a detail: only who holds a part of the pool ends the wait."""
    known = whole(IN_LINE, INNER, gate())
    assert (verdict(known), found(known)["pool-exhausted"]) == ("pool-exhausted", "proven")
    assert lines(known) == [50, 22, 23]


def test_a_gate_of_which_not_all_holders_are_known() -> None:
    """Others may have a part and give it back, unless as many are known as there are."""
    assert found(whole(IN_LINE, INNER, gate(limit=3, closed=None)))["pool-exhausted"] == "possible"
    assert found(whole(IN_LINE, INNER, gate(limit=None, closed=None)))["pool-exhausted"] == "likely"


@pytest.mark.parametrize(
    ("inner_holders", "basis", "expected"),
    [((2, 3), "with-slot", "proven"), ((2,), "with-slot", "likely"), ((2, 3), "memory", "likely")],
)
def test_holders_of_whom_two_searches_tell(inner_holders: Tuple[int, ...], basis: WakerBasis, expected: str) -> None:
    """Each is in a `with` body of the pool, and has to put back an item of its queue: nobody else can go on."""
    held = tuple(Waker("holder", "inferred", tid=tid) for tid in inner_holders)
    items = Resource("condition-1", "queue", "Queue Pool.free (empty)", waiters=(2, 3, 4), wakers=held)
    with_bodies = tuple(replace(waker, basis=basis) for waker in gate().wakers)
    pool_of_them = gate(limit=None, closed=None, wakers=with_bodies)
    assert found(whole(IN_LINE[1:], items, pool_of_them))["pool-exhausted"] == expected


def test_time_limits_of_waits_for_a_gate_end_nothing() -> None:
    """All holders wait for more: each would get an error, none a part."""
    limited = [runs(1), *(behind(waits(tid, "condition-1", 50, endless=False)) for tid in (2, 3, 4))]
    assert found(whole(limited, INNER, gate()))["pool-exhausted"] == "likely"


@pytest.mark.parametrize("endless", [True, False])
def test_a_holder_that_joins_who_wants_a_part(endless: bool) -> None:
    """No order of locks would help: who has the only part waits for a thread that wants it, with a time limit or without."""
    joins = thread(
        1, (*stack("threading.join"), frame("joins", 60)), wait=Wait("thread", "futex", "thread-4", endless=True)
    )
    joined = Resource("thread-4", "thread", "thread T-4", wakers=(Waker("runner", "memory", tid=4),), waiters=(1,))
    holder = Waker("holder", "memory", tid=1, frame=frame("takes", 22))
    only = gate(limit=1, wakers=(holder,), waiters=(4,))
    inner = replace(INNER, waiters=(4,))
    known = whole([joins, behind(waits(4, "condition-1", 50, endless=endless))], inner, joined, only)
    assert (verdict(known), found(known)["pool-exhausted"] != "possible") == ("pool-exhausted", True)
    assert lines(known)[0] == 60
    assert "lock-order-deadlock" not in found(known)


@pytest.mark.parametrize(("owner", "expected"), [(None, "possible"), (5, "likely")])
def test_holders_that_want_a_lost_lock(owner: Optional[int], expected: str) -> None:
    """It may be the lock that keeps them, and with them the pool."""
    wants = Wait("lock", "futex", "lock-9", endless=False, remaining_s=900.0)
    keeps = [thread(tid, (frame("keeps", 60),), wait=wants, counters=counters()) for tid in (2, 3)]
    lost = replace(lock("lock-9", owner, (2, 3)), locked=True)
    others = [runs(1), behind(waits(4, "condition-1", 50)), thread(5, (frame("sleeps", 9),), wait=Wait("sleep"))]
    known = whole([*others, *keeps], INNER, gate(waiters=(4,)), lost)
    assert found(known)["pool-exhausted"] == expected


@pytest.mark.parametrize(
    "kind, switches, expected",
    [("sleep", 0, "possible"), ("event", 0, "possible"), ("event", 9, None), ("socket", 0, None)],
)
def test_holders_that_rest_elsewhere(kind: WaitKind, switches: int, expected: Optional[str]) -> None:
    """They took a part and keep it: possible, at the lines that took. Not if they work, or wait for a server."""
    keeps = [
        thread(tid, (frame("keeps", 60),), wait=Wait(kind, endless=False), counters=counters(switches=switches))
        for tid in (2, 3)
    ]
    known = whole([runs(1), *keeps, behind(waits(4, "condition-1", 50))], INNER, gate(waiters=(4,)))
    assert found(known).get("pool-exhausted") == expected
    if expected:
        assert lines(known) == [22, 23]


@pytest.mark.parametrize(
    "wait, function, limited, expected",
    [
        (Wait("socket", endless=True), "listen", False, "likely"),
        (Wait("socket", endless=True), "pop", False, "possible"),
        (Wait("event", endless=True), "wait", False, "likely"),
        (Wait("sleep", endless=False, remaining_s=900.0), "pause", False, "likely"),
        (Wait("sleep", endless=False, remaining_s=2.0), "pause", False, "possible"),
        (Wait("socket", endless=True), "listen", True, "possible"),
    ],
)
def test_holders_that_keep_their_parts_without_an_end(wait: Wait, function: str, limited: bool, expected: str) -> None:
    """A listener at a silent peer, an event, a long sleep: likely where who wants a part gives up late or never."""
    within = frame(function, 7, file="/venv/lib/python3.12/site-packages/broker.py")
    keeps = [thread(tid, (within, frame("keeps", 60)), wait=wait, counters=counters()) for tid in (2, 3)]
    wanting = behind(waits(4, "condition-1", 50, endless=not limited))
    known = whole([runs(1), *keeps, wanting], INNER, gate(waiters=(4,)))
    assert found(known)["pool-exhausted"] == expected
    moment = whole([runs(1), *keeps, wanting], INNER, gate(waiters=(4,)), window=None)
    assert found(moment)["pool-exhausted"] == "possible"


@pytest.mark.parametrize(("kind", "expected"), [("queue", "likely"), ("future", None)])
def test_consumers_that_keep_their_parts_while_nothing_comes(kind: TaskWaitKind, expected: Optional[str]) -> None:
    """Nobody can put an item into their queues any more; in a wait for a result, that wait is the cause."""
    keeps = tuple(
        Task(f"k{n}", "keeps", "pending", "loop-1", (frame("keeps", 60),), "Queue",
             wait=TaskWait(kind, f"q{n}", endless=True), moved=False, ready=False)
        for n in (1, 2)
    )  # fmt: skip
    wants = TaskWait("queue", "c", endless=True, gate="pool-9")
    main = Task("m", "main", "pending", "loop-1", (frame("count", 58),), "Queue", wait=wants, moved=False, ready=False)
    pool = Resource(
        "pool-9", "pool", "Pool (size 2, 2 in use)", limit=2, value=0, waiting_tasks=("m",), closed=True,
        wakers=tuple(Waker("holder", "with-slot", task=f"k{n}", frame=frame("takes", 22)) for n in (1, 2)),
    )  # fmt: skip
    made: ResourceKind = "async-queue" if kind == "queue" else "async-future"
    queues = tuple(Resource(f"q{n}", made, "Queue", waiting_tasks=(f"k{n}",), closed=True) for n in (1, 2))
    inner = Resource("c", "async-queue", "Queue", waiting_tasks=("m",))
    polls = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    loops = (Loop("loop-1", 1, main_task="m"),)
    known = whole([polls], pool, inner, *queues, tasks=(*keeps, main), loops=loops)
    assert found(known).get("pool-exhausted") == expected


def test_a_pool_whose_waiters_come_and_go_is_healthy() -> None:
    """A waiter that woke during the window got its part."""
    keeps = [thread(tid, (frame("keeps", 60),), wait=Wait("sleep", endless=False)) for tid in (2, 3)]
    lively = behind(waits(4, "condition-1", 50, counters=counters(switches=9)))
    assert "pool-exhausted" not in found(whole([runs(1), *keeps, lively], INNER, gate(waiters=(4,))))


@pytest.mark.parametrize(
    "waits_for, switches, expected", [("event", 0, "likely"), ("socket", 0, "possible"), ("event", 9, None)]
)
def test_a_pool_that_counts_all_its_parts_as_lent(waits_for: WaitKind, switches: int, expected: Optional[str]) -> None:
    """Nobody's frames lead to one: who waits is blamed. Another thread may work with one, or a waiter may go on."""
    other = thread(1, (frame("main", 70),), wait=Wait(waits_for, endless=True))
    waiters = [behind(waits(tid, "condition-1", 50, counters=counters(switches=switches))) for tid in (2, 3, 4)]
    known = whole([other, *waiters], INNER, gate(wakers=(), closed=None))
    assert found(known).get("pool-exhausted") == expected
    if expected == "likely":
        assert lines(known) == [50]


@pytest.mark.parametrize(("peer", "expected"), [(1, "likely"), (900, "possible")])
def test_a_client_of_the_process_itself_has_no_part(peer: int, expected: str) -> None:
    """It waits for an answer of those who want a part; one that waits for another process may have a part meanwhile."""
    asks = Resource("s", "socket", "socket", waiters=(1,), ends=(End(1, 7, "rw"), End(peer, 8, "rw")))
    client = thread(1, (frame("main", 70),), wait=Wait("socket", "recvfrom", "s", endless=False, remaining_s=900.0))
    waiters = [behind(waits(tid, "condition-1", 50, counters=counters())) for tid in (2, 3, 4)]
    known = whole([client, *waiters], INNER, asks, gate(wakers=(), closed=None))
    assert found(known).get("pool-exhausted") == expected


@pytest.mark.parametrize(("timers", "expected"), [(1, "likely"), (2, "possible"), (None, "possible")])
def test_a_timer_may_give_back_a_part_that_no_stack_leads_to(timers: Optional[int], expected: str) -> None:
    """One timer is that of the task that sleeps; another is of a callback, which may have anything."""
    beat = Task("t", "beat", "pending", "l", (frame("beat", 80),), wait=TaskWait("sleep", endless=False), ready=False)
    selects = thread(1, (frame("main", 70),), wait=Wait("event-loop", "epoll_wait", endless=False))
    waiters = [behind(waits(tid, "condition-1", 50, counters=counters())) for tid in (2, 3, 4)]
    running = Loop("l", 1, "asyncio", 0, timers)
    known = whole([selects, *waiters], INNER, gate(wakers=(), closed=None), loops=(running,), tasks=(beat,))
    assert found(known).get("pool-exhausted") == expected


@pytest.mark.parametrize(
    ("grade", "waker", "expected"),
    [("refers", 1, "likely"), ("names", 2, "likely"), ("names", 1, "possible"), (None, 1, "possible")],
)
def test_code_that_can_give_back_a_part_that_no_stack_leads_to(
    grade: Optional[WakerGrade], waker: int, expected: str
) -> None:
    """Two timers run in the loop's thread. What all code does is known: only a waiter's own would give back a part."""
    selects = thread(1, (frame("main", 70),), wait=Wait("event-loop", "epoll_wait", endless=False))
    waiters = [behind(waits(tid, "condition-1", 50, counters=counters())) for tid in (2, 3, 4)]
    inner = replace(INNER, wakers=(Waker("reach", "memory", tid=waker, grade=grade),))
    timed = Loop("l", 1, "asyncio", 0, 2)
    known = whole([selects, *waiters], inner, gate(wakers=(), closed=None), loops=(timed,))
    assert found(known).get("pool-exhausted") == expected


@pytest.mark.parametrize(
    ("known", "pattern"),
    [
        ({"limit": 3}, "pool-exhausted"),
        ({"taken_at": (frame("fetch", 7),)}, "pool-exhausted"),
        ({"taken_at": (frame("fetch", 7),), "released_at": (frame("open", 9),)}, "missed-wakeup"),
        ({}, "missed-wakeup"),
    ],
)
def test_a_semaphore_of_permits_is_exhausted(known: Dict[str, Any], pattern: str) -> None:
    """Bounded, or released only by functions that acquire it; otherwise it is a signal that nothing gives."""
    gate = Resource(
        "s", "semaphore", "Semaphore Gate.slots (no permits left)", waiters=(1,), value=0, closed=True, **known
    )
    main = thread(1, [frame("fetch", 7)], wait=Wait("semaphore", "futex", "s", endless=True))
    leading = classify(evidence(process([main], resources=(gate,), signal_handlers=()))).findings[0]
    assert (leading.pattern, leading.confidence) == (pattern, "proven")


@pytest.mark.parametrize(("unnamed", "expected"), [(True, "likely"), (None, "possible")])
def test_a_gate_that_no_running_code_opens_is_lost(unnamed: Optional[bool], expected: str) -> None:
    """Another function releases the lock, so that a running thread might; not if no code that can still run names it."""
    opened = lost(released_at=(frame("finish", 33),), unnamed=unnamed)
    assert found(whole([*WANTING[:2], runs(3)], opened))["orphaned-lock"] == expected


@pytest.mark.parametrize(("waiting", "moved", "said"), [(3, 0, "possible"), (1, 0, None), (3, 2, None)])
def test_a_pool_whose_holders_wait_long(waiting: int, moved: int, said: Optional[str]) -> None:
    """Each waits for a peer, whose answer may come; as many queue as the pool has parts, and hardly one gets its turn."""
    peer = Wait("socket", "recvfrom", timeout_s=20.0, endless=False)
    holders = [thread(n, (frame("send", 51),), wait=peer, counters=counters(0.0)) for n in (2, 3)]
    queue = [
        replace(waits(n, "q", 63, gate="p"), counters=counters(0.0, switches=50 if n - 10 < moved else 0))
        for n in range(10, 10 + waiting)
    ]
    pool = Resource(
        "p",
        "pool",
        "lab.Pool (size 2, 2 in use)",
        waiters=tuple(range(10, 10 + waiting)),
        value=0,
        limit=2,
        wakers=tuple(Waker("holder", "memory", tid=n, frame=frame("take", 63)) for n in (2, 3)),
    )
    inner = Resource("q", "queue", "Queue", waiters=tuple(range(10, 10 + waiting)))
    main = thread(1, (frame("main", 9),), wait=Wait("sleep", "clock_nanosleep", timeout_s=5.0))
    assert found(whole([main, *holders, *queue], pool, inner)).get("pool-exhausted") == said


@pytest.mark.parametrize(
    ("outermost", "waiting", "moved", "expected"),
    [
        ("/venv/lib/python3.12/site-packages/web/server.py", 12, 0, "likely"),
        ("/venv/lib/python3.12/site-packages/web/server.py", 12, 6, "possible"),
        ("/venv/lib/python3.12/site-packages/web/server.py", 6, 0, "possible"),
        (APP, 12, 0, "possible"),
    ],
    ids=["requests", "requests-that-go-on", "few-requests", "of-the-program"],
)
def test_requests_that_queue_for_a_librarys_pool(outermost: str, waiting: int, moved: int, expected: str) -> None:
    """A program that limits its own tasks wants them to queue; a server's requests all come late."""
    library = "/venv/lib/python3.12/site-packages/bridge/threads.py"
    inside, begun = frame("run_sync", 877, library), frame("serve", 9, outermost)
    holders = tuple(
        Task(f"h{n}", f"H{n}", "pending", "l", (inside, begun), "Future", wait=TaskWait("future", f"f-{n}", endless=True),
             moved=False)
        for n in (2, 3)
    )  # fmt: skip
    wants = TaskWait("event", "s", endless=True, gate="limiter")
    names = tuple(f"q{n}" for n in range(waiting))
    queued = tuple(
        Task(name, name, "pending", "l", (inside, begun), "Event", wait=wants, moved=n < moved)
        for n, name in enumerate(names)
    )
    workers = [thread(n, (frame("report", 26),), wait=Wait("socket", "recvfrom", "k", endless=True), counters=counters())
               for n in (2, 3)]  # fmt: skip
    resources = (
        *(
            Resource(f"f-{n}", "async-future", f"Future {n}", waiting_tasks=(f"h{n}",),
                     wakers=(Waker("reach", "memory", tid=n, grade="names"), Waker("reach", "memory", grade="names")))
            for n in (2, 3)
        ),
        Resource("limiter", "pool", "Limiter (size 2, 2 in use)", limit=2, value=0, waiting_tasks=names,
                 wakers=tuple(Waker("holder", "memory", task=f"h{n}", frame=inside) for n in (2, 3))),
        Resource("s", "async-event", "Event", waiting_tasks=names),
        Resource("k", "socket", "socket", remote="127.0.0.1:5", waiters=(2, 3)),
    )  # fmt: skip
    polls = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    known = whole([polls, *workers], *resources, tasks=(*holders, *queued), loops=(Loop("l", 1, main_task="h2"),))
    first = next(f for f in classify(known).findings if "Limiter" in str(f.summary))
    line = 9 if outermost == APP else 26
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("pool-exhausted", expected, line)


def test_holders_in_a_library_lead_to_the_program_behind_them() -> None:
    """Tasks have parts of a limiter, and await threads that want a connection: the threads' line comes first."""
    inside = frame("run_sync", 877, "/venv/lib/python3.12/site-packages/bridge/threads.py")
    at = (TaskWait("future", f"f-{n}", endless=True) for n in (2, 3))
    tasks = tuple(
        Task(f"t{n}", f"T{n}", "pending", "l", (inside,), "Future", wait=wait, moved=False)
        for n, wait in zip((2, 3), at)
    )
    wants = TaskWait("semaphore", "s", endless=True, gate="limiter")
    queued = tuple(
        Task(f"q{n}", f"Q{n}", "pending", "l", (inside,), "Event", wait=wants, moved=False) for n in range(2)
    )
    workers = [replace(waits(n, "i", 77, gate="inner"), counters=counters(0.0, switches=0)) for n in (2, 3)]
    resources = (
        *(
            Resource(f"f-{n}", "async-future", f"Future {n}", waiting_tasks=(f"t{n}",), closed=True, state="running",
                     wakers=(Waker("runner", "memory", tid=n),))
            for n in (2, 3)
        ),
        Resource("limiter", "pool", "Limiter (size 2, 2 in use)", limit=2, value=0, waiting_tasks=("q0", "q1"),
                 wakers=tuple(Waker("holder", "memory", task=f"t{n}", frame=inside) for n in (2, 3))),
        Resource("s", "async-event", "Event", waiting_tasks=("q0", "q1")),
        Resource("inner", "pool", "lab.Pool (size 1, 1 in use)", limit=1, value=0, waiters=(2, 3),
                 wakers=(Waker("holder", "memory", tid=4, frame=frame("borrow", 69)),)),
        Resource("i", "queue", "Queue", waiters=(2, 3)),
    )  # fmt: skip
    lends = thread(4, (frame("send", 71),), wait=Wait("socket", "recvfrom", timeout_s=2.0, endless=False))
    polls = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    known = whole([polls, lends, *workers], *resources, tasks=(*tasks, *queued), loops=(Loop("l", 1, main_task="t2"),))
    first = next(f for f in classify(known).findings if "Limiter" in str(f.summary))
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("pool-exhausted", "likely", 77)


@pytest.mark.parametrize(("limit", "others", "expected"), [(None, (), False), (1, (), True), (None, (3,), True)])
def test_a_connection_that_waits_for_its_peer_inside_itself(
    limit: Optional[int], others: Tuple[int, ...], expected: bool
) -> None:
    """Its only user waits in a method of it: no pool. One of known size may be asked twice by the same thread."""
    link = gate(
        waiters=(2, *others),
        limit=limit,
        wakers=(Waker("holder", "memory", tid=2, frame=frame("fetch", 70)),),
    )
    known = whole([runs(1), *(behind(waits(tid, "condition-1", 50)) for tid in (2, *others))], INNER, link)
    assert (found(known).get("pool-exhausted") in ("likely", "proven")) is expected


@pytest.mark.parametrize(("nested", "expected"), [(True, "likely"), (False, "possible")])
def test_a_pool_whose_holders_wait_for_those_who_want_a_part_of_another(nested: bool, expected: str) -> None:
    """Each that has a part of the outer pool joins a thread that queues for the inner one, or works on its own."""
    queue, still = (10, 11, 12), counters(0.0, switches=0)
    joins = [
        thread(n, (*stack("threading.join"), frame("ask", 51)), joins=n + 3, counters=still,
               wait=Wait("thread", "futex", f"ends-{n}", endless=True))
        for n in (2, 3)
    ]  # fmt: skip
    peer = Wait("socket", "recvfrom", timeout_s=2.0, endless=False)
    inner = [replace(waits(n, "i", 70, gate="inner"), counters=still) for n in (5, 6)]
    works = [thread(n, (frame("send", 70),), wait=peer, counters=still) for n in (5, 6)]
    waiting = [replace(waits(n, "q", 63, gate="outer"), counters=still) for n in queue]
    resources = (
        *(Resource(f"ends-{n}", "thread", f"thread T-{n + 3}", n + 3, "recorded", (n,)) for n in (2, 3)),
        Resource(
            "outer", "pool", "lab.Pool (size 2, 2 in use)", waiters=queue, value=0, limit=2,
            wakers=tuple(Waker("holder", "memory", tid=n, frame=frame("take", 63)) for n in (2, 3)),
        ),
        Resource(
            "inner", "pool", "lab.Inner (size 1, 1 in use)", waiters=(5, 6) if nested else (), value=0, limit=1,
            wakers=(Waker("holder", "memory", tid=4, frame=frame("borrow", 69)),),
        ),
        Resource("q", "queue", "Queue", waiters=queue),
        Resource("i", "queue", "Queue", waiters=(5, 6) if nested else ()),
    )  # fmt: skip
    lends = thread(4, (frame("send", 71),), wait=peer)
    main = thread(1, [frame("main", 9)], wait=Wait("sleep", "clock_nanosleep", timeout_s=5.0))
    known = whole([main, lends, *joins, *(inner if nested else works), *waiting], *resources)
    said = [f.confidence for f in classify(known).findings if f.pattern == "pool-exhausted"]
    assert said[:1] == [expected]


@pytest.mark.parametrize(
    ("function", "expected"), [("run_until_future", "executor-self-deadlock"), ("other", "pool-exhausted")]
)
def test_a_worker_that_runs_a_coroutine_which_needs_the_pool(function: str, expected: str) -> None:
    """asgiref's: what the coroutine is to put into the worker's queue is not seen, but a task waits for a queued job."""
    bridge = frame(function, 59, file="/venv/lib/python3.10/site-packages/asgiref/current_thread_executor.py")
    worker = replace(
        waits(2, "q", 35),
        stack=(*stack("queue.get"), bridge, frame("middleware", 35), *stack("concurrent.futures.thread._worker")),
    )
    box = Resource("q", "queue", "Queue box (empty)", waiters=(2,))
    runner = (Waker("runner", "memory", tid=2, name="worker"),)
    job = Resource("f", "async-future", "Future of load, queued", wakers=runner, waiting_tasks=("t",), state="pending")
    view = Task(
        "t", "view", "pending", "loop-1", (frame("view", 64),), "Future", wait=TaskWait("future", "f", endless=True)
    )
    pool = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-5", threads=(2,), limit=1, queued=1)
    serves = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    known = whole([serves, worker], box, job, tasks=(view,), pools=(pool,), loops=(Loop("loop-1", 1),))
    assert verdict(known) == expected


@pytest.mark.parametrize(("alone", "queued", "expected"), [(True, 1, True), (False, 1, False), (True, 0, False)])
def test_a_worker_that_asks_its_own_process(alone: bool, queued: int, expected: bool) -> None:
    """What answers it is a job that no worker is free to run; a server elsewhere, or one with free workers, may answer."""
    ends = (End(1, 14, "rw"), End(1 if alone else 900, 15, "rw"))
    asks = Resource(
        "s", "socket", "socket to this process", waiters=(2,), ends=ends, wakers=(Waker("end", "kernel", pid=1),)
    )
    worker = replace(waits(2, "s", 35), wait=Wait("socket", "recvfrom", resource="s", endless=True))
    runner = (Waker("runner", "memory", tid=2, name="worker"),)
    job = Resource("f", "async-future", "Future of view", wakers=runner, waiting_tasks=("t",), state="pending")
    view = Task(
        "t", "view", "pending", "loop-1", (frame("view", 64),), "Future", wait=TaskWait("thread", "f", endless=True)
    )
    pool = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-5", threads=(2,), limit=1, queued=queued)
    serves = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    known = whole(
        [serves, worker], asks, job, tasks=(view,), pools=(pool,), loops=(Loop("loop-1", 1),), listening=(80,)
    )
    assert ("executor-self-deadlock" in found(known)) is expected


@pytest.mark.parametrize(("queued", "expected"), [(8, "possible"), (7, None)])
def test_a_pool_that_may_be_too_small_for_jobs_that_wait_for_peers(queued: int, expected: Optional[str]) -> None:
    """Whether more of them would get more done is not to be seen; a short queue says nothing."""
    peer = Resource("s", "socket", "socket to 10.0.0.5:80", waiters=(2, 3))
    asks = Wait("socket", "recvfrom", resource="s", endless=True)
    workers = [replace(waits(tid, "s", 32), wait=asks, counters=counters(switches=1)) for tid in (2, 3)]
    main = thread(1, [frame("main", 3)], wait=Wait("sleep", "nanosleep", timeout_s=1.0, endless=False))
    several = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-5", threads=(2, 3), limit=2, queued=queued)
    assert found(whole([main, *workers], peer, pools=(several,))).get("pool-exhausted") == expected


def test_a_host_name_behind_slow_jobs_in_the_pool_of_a_loop() -> None:
    """asyncio resolves names in its default pool: what was to be quick waits for all the slow jobs before it."""
    peer = Resource("s", "socket", "socket to 10.0.0.5:80", waiters=(2, 3))
    asks = Wait("socket", "recvfrom", resource="s", endless=True)
    workers = [replace(waits(tid, "s", 32), wait=asks, counters=counters(switches=1)) for tid in (2, 3)]
    runner = (Waker("runner", "memory", tid=2), Waker("runner", "memory", tid=3))
    jobs = [Resource(f"f{n}", "async-future", "Future", waiting_tasks=(f"task-{n}",), wakers=runner) for n in (1, 2)]
    looks_up = (frame("getaddrinfo", 905, "/usr/lib/python3.12/asyncio/base_events.py"), frame("notify", 60))
    tasks = (
        Task(
            "task-1",
            "Task-1",
            "pending",
            "loop-1",
            stack=(frame("statement", 52),),
            wait=TaskWait("thread", "f1", endless=True),
        ),
        Task("task-2", "Task-2", "pending", "loop-1", stack=looks_up, wait=TaskWait("thread", "f2", endless=True)),
    )
    several = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor asyncio", threads=(2, 3), limit=2, queued=8)
    known = whole(workers, peer, *jobs, tasks=tasks, pools=(several,))
    assert found(known).get("pool-exhausted") == "likely"
    assert lines(known)[:2] == [32, 52]


@pytest.mark.parametrize(("switches", "expected"), [(0, "likely"), (40, None)])
def test_jobs_that_wait_for_a_signal_of_a_queued_job(switches: int, expected: Optional[str]) -> None:
    """Streams of a server wait for what a request that has no worker would bring: each seems to wait for the other's worker."""
    runners = tuple(Waker("runner", "memory", tid=tid) for tid in (2, 3))
    news = Resource("c", "condition", "Condition Feed.news", waiters=(2, 3), wakers=runners)
    streams = [waits(tid, "c", 13, counters=counters(switches=switches)) for tid in (2, 3)]
    several = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-5", threads=(2, 3), limit=2, queued=1)
    known = whole([runs(1), *streams], news, pools=(several,))
    assert found(known).get("pool-exhausted") == expected
    assert expected is None or "lock-order-deadlock" not in found(known)


@pytest.mark.parametrize(
    ("other", "grade", "expected"),
    [("refers", "names", "executor-self-deadlock"), ("names", "names", None), ("refers", "refers", "pool-exhausted")],
)
def test_jobs_whose_signal_comes_from_the_code_of_a_queued_job(
    other: WakerGrade, grade: WakerGrade, expected: Optional[str]
) -> None:
    """Unless code outside of the pool may give it, too. Jobs that wait like the others are no reason, yet the pool is full."""
    runners = tuple(Waker("runner", "memory", tid=tid, grade=grade) for tid in (2, 3))
    wakers = (*runners, Waker("reach", "memory", tid=1, grade=other))
    gate = Resource("e", "event", "Event Gate.open", waiters=(2, 3), wakers=wakers, unnamed=True)
    main = thread(1, (frame("main", 3),), wait=Wait("sleep", endless=False, timeout_s=9.0), counters=counters())
    jobs = [waits(tid, "e", 13, counters=counters()) for tid in (2, 3)]
    several = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-5", threads=(2, 3), limit=2, queued=1)
    said = found(whole([main, *jobs], gate, pools=(several,)))
    assert {name for name in ("executor-self-deadlock", "pool-exhausted") if said.get(name) == "likely"} == (
        {expected} if expected else set()
    )


@pytest.mark.parametrize(("library", "peer", "expected"), [(True, 1, True), (True, 900, False), (False, 1, False)])
def test_workers_that_wait_for_what_they_have_a_reactor_do(library: bool, peer: int, expected: bool) -> None:
    """Twisted passes the result on by a queue. A connection to elsewhere may bring it; a queue of the program says nothing."""
    asks = frame("blockingCallFromThread", 110, "/venv/lib/python3.12/site-packages/twisted/internet/threads.py")
    stacked = (*stack("queue.get"), *((asks,) if library else ()), frame("check", 53))
    wait = Wait("condition", "futex", "q", endless=True)
    jobs = [thread(tid, stacked, wait=wait, counters=counters()) for tid in (2, 3)]
    answer = Resource("q", "queue", "Queue", waiters=(2, 3), wakers=(Waker("reach", "memory", name="a class"),))
    ends = (End(1, 5, "rw"), End(peer, 6, "rw"))
    peers = Resource("s", "socket", "socket", remote="10.0.0.5:80", ends=ends)
    several = Pool("pool", "twisted.ThreadPool", "twisted.ThreadPool", threads=(2, 3), limit=2, queued=1)
    known = whole([runs(1), *jobs], answer, peers, pools=(several,))
    assert (found(known).get("executor-self-deadlock") == "likely") is expected
    reactor = Loop("loop-1", 1, "twisted", watched=None)  # what it watches is not known
    known = whole([runs(1), *jobs], answer, peers, pools=(several,), loops=(reactor,))
    assert "executor-self-deadlock" not in found(known)


@pytest.mark.parametrize(("peer", "expected"), [(1, "likely"), (900, "possible")])
def test_streams_that_go_on_while_a_request_of_the_process_itself_is_queued(peer: int, expected: str) -> None:
    """They are notified again and again, and end with their clients; the process asks for another job of the same pool."""
    library = "/venv/lib/python3.10/site-packages/grpc"
    outer = frame("_take_response", 555, f"{library}/_server.py")
    inside = (*stack("threading.wait"), frame("after", 31), frame("watch", 60), outer)
    wait = Wait("condition", "futex", "c", endless=False, timeout_s=2.0)
    streams = [
        thread(tid, inside, wait=wait, counters=counters(switches=20), samples=samples((50, inside))) for tid in (2, 3)
    ]
    blocks = (frame("_blocking", 1157, f"{library}/_channel.py"), frame("ask", 103))
    asks = thread(1, blocks, wait=Wait("futex", "futex", endless=False), counters=counters(switches=5))
    client = Resource(
        "s", "socket", "socket", remote="127.0.0.1:5", accepted=False, wakers=(Waker("end", "kernel", pid=peer),)
    )
    changed = Resource("c", "condition", "Condition changed", waiters=(2, 3))
    several = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor rpc", threads=(2, 3), limit=2, queued=1)
    assert found(whole([asks, *streams], client, changed, pools=(several,))).get("pool-exhausted") == expected


@pytest.mark.parametrize(("left", "expected"), [(0, "likely"), (1, None)])
def test_streams_that_ask_for_items_again_and_again(left: int, expected: Optional[str]) -> None:
    """Each asks for a second at a time and stays in its function; a job that left it is one of many that come and go."""
    inboxes = [Resource(f"q{tid}", "queue", "Queue inbox", waiters=(tid,)) for tid in (2, 3)]
    inside, outside = (*stack("queue.get"), frame("follow", 86)), (*stack("queue.get"), frame("other", 9))
    streams = [
        thread(
            tid,
            inside,
            wait=Wait("condition", "futex", f"q{tid}", endless=False, timeout_s=1.0),
            counters=counters(switches=2),
            samples=samples((50 - left, inside), (left, outside)),
        )
        for tid in (2, 3)
    ]
    several = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-5", threads=(2, 3), limit=2, queued=1)
    main = thread(1, (frame("main", 3),), wait=Wait("sleep", endless=False, timeout_s=9.0), counters=counters())
    assert found(whole([main, *streams], *inboxes, pools=(several,))).get("pool-exhausted") == expected


@pytest.mark.parametrize(
    ("grade", "computes", "expected"), [("names", False, "likely"), ("refers", False, None), ("names", True, None)]
)
def test_workers_inside_a_library_while_a_queued_job_is_waited_for(
    grade: WakerGrade, computes: bool, expected: Optional[str]
) -> None:
    """What they wait for there was not read; that a job behind them is waited for shows that the pool is too small."""
    rows = Resource("q", "queue", "Queue rows", waiters=(1,), wakers=(Waker("runner", "memory", tid=2, grade=grade),))
    main = waits(1, "q", 27, counters=counters())
    collects = (frame("collect", 90, file="/venv/lib/python3.12/site-packages/frames/lazy.py"), frame("task", 60))
    workers = [thread(tid, collects, wait=Wait("futex", "futex", endless=True), counters=counters()) for tid in (2, 3)]
    native = thread(4, (), counters=counters(cpu=1.0 if computes else 0.0), wait=None)
    several = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-5", threads=(2, 3), limit=2, queued=1)
    known = whole([main, *workers, native], rows, pools=(several,))
    assert found(known).get("pool-exhausted") == expected
    assert expected is None or lines(known)[0] == 27


@pytest.mark.parametrize(("peer", "queued", "expected"), [(1, 2, True), (900, 2, False), (1, 0, False)])
def test_requests_of_a_server_that_wait_for_its_own_answers(peer: int, queued: int, expected: bool) -> None:
    """Its client does not say what it waits for: the library runs the request, is called by it, and knows no other server."""
    library = "/venv/lib/python3.12/site-packages/grpc"
    stacked = (
        frame("_blocking", 1157, file=f"{library}/_channel.py"),
        frame("basket", 44),
        frame("_call_behavior", 555, file=f"{library}/_server.py"),
        frame("_worker", 92, file="/usr/lib/python3.12/concurrent/futures/thread.py"),
    )
    asks = thread(2, stacked, wait=Wait("futex", "futex", endless=False), counters=counters(switches=5))
    client = Resource(
        "s", "socket", "socket", remote="127.0.0.1:5", accepted=False, wakers=(Waker("end", "kernel", pid=peer),)
    )
    pool = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor rpc", threads=(2,), limit=1, queued=queued)
    known = whole([asks], client, pools=(pool,))
    assert (found(known).get("executor-self-deadlock") == "likely") is expected
    assert not expected or lines(known) == [44]


@pytest.mark.parametrize(("moves", "idle", "expected"), [(0, (), True), (40, (), False), (0, (3,), False)])
def test_workers_that_want_results_of_a_librarys_own_futures(moves: int, idle: Tuple[int, ...], expected: bool) -> None:
    """Which job completes them is not known; what a job waits for as a result is most often another job, and those are queued."""
    wanted = Resource("f-2", "future", "Future (pending, of no thread pool that was found)", waiters=(2, 3))
    several = [waits(tid, "f-2", 50, counters=counters(switches=moves)) for tid in (2, 3)]
    known = whole(several, wanted, pools=(pool(2, 3, idle=idle),))
    assert (found(known).get("executor-self-deadlock") == "likely") is expected
    assert not expected or (lines(known) == [50] and "pool-exhausted" not in found(known))


@pytest.mark.parametrize(
    ("package", "function", "by_protocol", "expected"),
    [
        ("broker", "listen", False, "likely"),
        ("broker", "fetch_rows", False, "possible"),
        ("broker", "fetch_rows", True, "possible"),
        ("anyio", "receive", True, "possible"),
    ],
)
def test_parts_that_tasks_keep_while_they_wait_for_a_peer(
    package: str, function: str, by_protocol: bool, expected: str
) -> None:
    """A consumer keeps its connection until a message comes; an answer may only be slow, whoever tells the task of it."""
    library = f"/venv/lib/python3.12/site-packages/{package}/streams.py"
    asks = TaskWait("event" if by_protocol else "descriptor", "e" if by_protocol else "s", endless=True)
    keeps = Task(
        "k", "keeps", "pending", "loop-1", (frame(function, 128, file=library),), "Future", wait=asks, moved=False
    )
    wants = TaskWait("condition", "c", endless=True, gate="pool-9")
    main = Task("m", "main", "pending", "loop-1", (frame("submit", 58),), "Future", wait=wants, moved=False)
    pool = Resource(
        "pool-9", "pool", "Pool (size 1, 1 in use)", limit=1, value=0, waiting_tasks=("m",),
        wakers=(Waker("holder", "memory", task="k", frame=frame("takes", 22)),),
    )  # fmt: skip
    inner = Resource("c", "async-condition", "Condition", waiting_tasks=("m",))
    told = Resource("e", "async-event", "Event (not set)", waiting_tasks=("k",), wakers=(
        Waker("reach", "memory", tid=1, grade="names", site=frame("data_received", 9, file=library)),
    ))  # fmt: skip
    link = Resource("s", "socket", "socket", remote="127.0.0.1:5")
    polls = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    known = whole([polls], pool, inner, told, link, tasks=(keeps, main), loops=(Loop("loop-1", 1, main_task="m"),))
    assert found(known).get("pool-exhausted") == expected


@pytest.mark.parametrize(
    ("peer", "queued", "beside", "expected"),
    [
        (1, 4, (), True),
        (900, 4, (), False),  # another process answers
        (1, 0, (), False),
        (1, 4, ("socketserver.process_request_thread",), False),  # another server of the process answers
    ],
)
def test_a_servers_workers_that_wait_for_answers_of_that_server(
    peer: int, queued: int, beside: Tuple[str, ...], expected: bool
) -> None:
    """Each handler asks the same server by HTTP; the requests that it sent are in the queue behind them all."""
    asked = tuple(
        Resource(f"s{tid}", "socket", "socket", waiters=(tid,), ends=(End(1, tid, "rw"), End(peer, 10 + tid, "rw")))
        for tid in (2, 3)
    )
    handlers = [
        replace(waits(tid, f"s{tid}", 21), wait=Wait("socket", "recvfrom", resource=f"s{tid}", endless=True))
        for tid in (2, 3)
    ]
    accepts = thread(
        1, (*stack("selectors.select"), frame("main", 90)), wait=Wait("event-loop", "epoll_wait", endless=False)
    )
    other = [thread(5, (frame("handle", 70), *stack(*beside)), wait=Wait("sleep", endless=False))] if beside else []
    pool = Pool("pool", "ThreadPoolExecutor", "ThreadPoolExecutor-0", threads=(2, 3), limit=2, queued=queued)
    known = whole([accepts, *handlers, *other], *asked, pools=(pool,), listening=(80,))
    assert ("executor-self-deadlock" in found(known)) is expected
    assert not expected or lines(known)[0] == 21


@pytest.mark.parametrize(
    ("ends", "served", "idle", "listening", "loops", "expected"),
    [
        ((2, 3), True, False, (40835,), (), True),
        ((9,), True, False, (40835,), (), False),  # one thread is known to have the other ends
        ((2, 3), False, False, (40835,), (), False),  # the group serves another address
        ((2, 3), True, True, (40835,), (), False),  # a thread of the group is free
        ((1, 2, 3, 9), None, False, (40835,), (), True),  # who accepts has all ends: they are of the only port
        ((1, 2, 3, 9), None, False, (40835, 80), (), False),
        ((1, 2, 3, 9), None, False, None, (), False),
        ((1, 2, 3, 9), None, False, (80,), (), False),
        ((1, 2, 3, 9), None, False, (40835,), (Loop("l", 1),), False),  # a task may serve it
    ],
)
def test_the_threads_of_a_librarys_server_that_ask_that_server(
    ends: Tuple[int, ...],
    served: Optional[bool],
    idle: bool,
    listening: Optional[Tuple[int, ...]],
    loops: Tuple[Loop, ...],
    expected: bool,
) -> None:
    """The library's own pool is on no list: its threads run requests, and the other ends of what they sent are nobody's."""
    run = frame("__run", 70, "/venv/lib/python3.10/site-packages/rpc/threadpool.py")
    outer = (*stack("socketserver.process_request_thread"), run, *stack("threading.run"))
    address = "127.0.0.1:40835"
    unserved = tuple(Waker("end", "kernel", tid=tid) for tid in ends)
    asked = [
        Resource(
            f"s{tid}",
            "socket",
            "socket",
            remote=address,
            ends=(End(1, tid, "rw"), End(1, 10 + tid, "rw")),
            wakers=unserved,
        )
        for tid in (2, 3)
    ]
    known_end = Resource(
        "s8", "socket", "socket", remote=address, wakers=(Waker("end", "kernel", tid=2 if served else 9),)
    )
    handlers = [
        thread(
            tid,
            (*stack("socket.readinto"), frame("declare", 22), *outer),
            wait=Wait("socket", "recvfrom", resource=f"s{tid}", endless=True),
        )
        for tid in (2, 3)
    ]
    free = [thread(4, (*stack("queue.get"), run), wait=Wait("condition", "futex", endless=True))] if idle else []
    accepts = thread(1, (*stack("selectors.select"), frame("main", 47)), wait=Wait("event-loop", "poll", endless=False))
    several = asked if served is None else [*asked, known_end]
    known = whole([accepts, *handlers, *free], *several, listening=listening, loops=loops)
    assert ("executor-self-deadlock" in found(known)) is expected
    assert not expected or lines(known)[0] == 22


@pytest.mark.parametrize(
    ("other", "peer", "expected"),
    [("asks", 3, True), ("works", 3, False), ("asks", 900, False)],
    ids=["all ask", "one works", "another process may accept"],
)
def test_the_worker_processes_of_a_server_that_ask_that_server(other: str, peer: int, expected: bool) -> None:
    """The first one's connection was accepted by the second, whose own connection nobody is left to accept."""
    serve = frame("handle_request", 178, "/venv/lib/python3.11/site-packages/gunicorn/workers/sync.py")
    begins = process(
        [thread(1, stack("queue.get"), wait=Wait("condition", "futex", endless=True), counters=counters())], pid=1
    )
    sockets = {
        2: (End(2, 8, "rw"), End(3, 9, "rw")),
        3: (End(3, 8, "rw"), End(1, 5, "rw"), End(2, 5, "rw"), End(peer, 5, "rw")),
    }
    workers = []
    for pid in (2, 3):
        wait = Wait("socket", "recvfrom", "s", endless=True) if other == "asks" or pid == 2 else None
        handler = thread(
            pid,
            (*stack("socket.readinto"), frame("total", 8), serve) if wait else (frame("total", 8), serve),
            wait=wait,
            counters=counters(cpu=0.0 if wait else 0.9),
            is_main=True,
        )
        asked = Resource("s", "socket", "socket", waiters=(pid,), ends=sockets[pid], peer_in_tree=True)
        workers.append(process([handler], pid=pid, ppid=1, resources=(asked,)))
    known = evidence(begins, *workers, window=1.0)
    assert (found(known).get("executor-self-deadlock") == "likely") is expected
    assert not expected or lines(known) == [8]


@pytest.mark.parametrize(
    ("between", "idle", "expected"),
    [("/venv/lib/libarrow.so", False, "likely"), (None, False, None), ("/venv/lib/libarrow.so", True, "possible")],
)
def test_native_workers_that_wait_where_their_caller_waits(
    between: Optional[str], idle: bool, expected: Optional[str]
) -> None:
    """All are in jobs. One in its own loop may be of another pool. What code in no file does, as a virtual machine's, is not
    known."""
    libc, arrow = "/usr/lib/x86_64-linux-gnu/libc.so.6", "/venv/lib/libarrow.so"

    def inside(*modules: Optional[str]) -> Tuple[NativeFrame, ...]:
        names = ("pthread_cond_wait", "Future::Wait", "job", "WorkerLoop")
        return tuple(NativeFrame(name if m else None, m, 0x10) for name, m in zip(names, modules))

    sleeps = Wait("condition", "futex", endless=True)
    caller = thread(1, (*inside(libc, arrow), frame("read", 31)), wait=sleeps, counters=counters())
    workers = [
        thread(tid, inside(libc, arrow, between, arrow), wait=sleeps, name=None, counters=counters()) for tid in (2, 3)
    ]
    loop = tuple(
        NativeFrame(name, module, 0x10) for name, module in (("pthread_cond_wait", libc), ("WorkerLoop", arrow))
    )
    free = [thread(4, loop, wait=sleeps, name=None, counters=counters())] if idle else []
    assert found(whole([caller, *workers, *free])).get("executor-self-deadlock") == expected


@pytest.mark.parametrize(
    ("endless", "queued", "expected"), [(True, 2, "likely"), (False, 2, "possible"), (True, 0, "possible")]
)
def test_threads_of_a_library_that_all_wait_while_tasks_queue_for_them(
    endless: bool, queued: int, expected: str
) -> None:
    """Tasks wait in the call that gives work to these threads, and others in the same call for what the threads do. Waits that
    give up soon free a thread."""
    venv = "/venv/lib/python3.12/site-packages"
    call = frame("run_sync", 33, f"{venv}/anyio/to_thread.py")
    inside = (*stack("queue.get"), frame("show", 64), frame("run", 867, f"{venv}/anyio/_backends/_asyncio.py"))
    wait = Wait("condition", "futex", "q", endless=endless, remaining_s=None if endless else 2.0)
    workers = [thread(tid, inside, wait=wait, counters=counters(), name="AnyIO worker") for tid in (2, 3)]
    loop = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    futures = [
        Resource(
            f"f-{tid}",
            "async-future",
            "Future",
            waiting_tasks=(f"t-{tid}",),
            wakers=(Waker("runner", "memory", tid=tid),),
        )
        for tid in (2, 3)
    ]
    served = [
        Task(
            f"t-{tid}",
            "served",
            "pending",
            "loop-1",
            (call,),
            "Future",
            wait=TaskWait("future", f"f-{tid}", endless=True),
        )
        for tid in (2, 3)
    ]
    behind = [
        Task(
            f"b-{n}",
            "behind",
            "pending",
            "loop-1",
            (frame("wait", 5), call),
            "Event",
            wait=TaskWait("event", "e", endless=True),
        )
        for n in range(queued)
    ]
    parts, turn = Resource("q", "queue", "Queue", waiters=(2, 3)), Resource("e", "async-event", "Event")
    known = whole(
        [loop, *workers], parts, turn, *futures, tasks=(*served, *behind), loops=(Loop("loop-1", 1, main_task="t-2"),)
    )
    assert found(known).get("pool-exhausted") == expected


@pytest.mark.parametrize(("moved", "likely"), [(None, True), (True, False)])
def test_a_task_that_wants_another_permit_of_the_only_one_that_it_has(moved: Optional[bool], likely: bool) -> None:
    """A greenlet is in the body of the semaphore's `with`, and enters another: others may refer to it, but none has a part."""
    wants = TaskWait("semaphore", "s", endless=True)
    task = Task(
        "t", "outer", "pending", "loop-1", (frame("inner", 5), frame("outer", 7)), None, wait=wants, moved=moved
    )
    gate = Resource(
        "s", "async-semaphore", "gevent.Semaphore sem (0 of 1 left)", limit=1, waiting_tasks=("t",),
        wakers=(
            Waker("holder", "with-slot", task="t", frame=frame("outer", 7)),
            Waker("reach", "memory", name="global sem", grade="refers"),
        ),
    )  # fmt: skip
    polls = thread(1, stack("gevent.hub.run"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters())
    known = whole([polls], gate, tasks=(task,), loops=(Loop("loop-1", 1, kind="gevent"),))
    assert (found(known).get("pool-exhausted") == "likely") is likely
