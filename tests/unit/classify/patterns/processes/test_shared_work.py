"""Patterns of processes that share locks and work, and what only looks like them."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem import evidence as ev
from postmortem.evidence import (
    Backlog,
    End,
    Evidence,
    Pool,
    Process,
    PythonFrame,
    Resource,
    Task,
    TaskWait,
    Thread,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import Deed, WakerBasis
from postmortem.findings import Finding

from .....support.diagnosed import classify
from .....support.make import claimed, counters, evidence, found, frame, held, lines, process, silent, stack, thread


def leading(known: Evidence) -> Finding:
    return classify(known).findings[0]


# ---------------------------------------------------------------------- semaphore-orphan


def clerk(pid: int, endless: bool = True, **lock: Any) -> Process:
    wait = Wait("semaphore", "futex", resource="s-1", endless=endless)
    frames = (*stack("multiprocessing.synchronize.__enter__"), frame("add", 9))
    resource = Resource("s-1", "shared-semaphore", "Lock Ledger.guard", key="k", waiters=(pid,), locked=True, **lock)
    return process([thread(pid, frames, is_main=True, wait=wait)], pid=pid, resources=(resource,))


def test_a_shared_lock_without_a_holder() -> None:
    """One finding for all that wait for it, with the lines of each; the parent that joins them is its victim."""
    gone: Any = {"owner_gone": True, "because": ("nobody has it",)}
    parent = process([thread(1, [frame("join", 3)], wait=Wait("process", "wait4", pid=2, endless=True))])
    report = classify(evidence(parent, clerk(2, **gone), clerk(3, **gone)))
    first = report.findings[0]
    assert (first.pattern, first.confidence, len(first.victims)) == ("semaphore-orphan", "proven", 2)
    assert {(c.pid, c.line) for c in first.culprits} == {(2, 9), (3, 9)}
    assert [f.pattern for f in report.findings].count("semaphore-orphan") == 1
    assert "nobody has it" in first.evidence


@pytest.mark.parametrize("lock", [{}, {"owner_tid": 3, "owner_pid": 3, "owner_basis": "recorded"}])
def test_a_shared_lock_that_somebody_has_is_none(lock: Any) -> None:
    """Idle workers wait like this; an unknown holder is not a lost one."""
    assert silent(evidence(clerk(2, **lock), process([thread(3)], pid=3)), "semaphore-orphan")


@pytest.mark.parametrize(
    ("function", "switches", "expected"), [("notify", 0, "likely"), ("notify", 9, None), ("wait", 0, None)]
)
def test_a_notifier_whose_sleeper_has_ended(function: str, switches: int, expected: Optional[str]) -> None:
    """Each process that is woken says so at once; one that was terminated in its sleep never does."""
    frames = (*stack(f"multiprocessing.synchronize.{function}"), frame("publish", 25))
    wait = Wait("semaphore", "futex", resource="s-1", endless=True)
    woken = Resource("s-1", "shared-semaphore", "Condition changed (its count of the woken)", key="k", waiters=(1,))
    known = evidence(
        process([thread(1, frames, is_main=True, wait=wait, counters=counters(switches=switches))], resources=(woken,)),
        window=1.0,
    )
    said = [f for f in classify(known).findings if f.pattern == "semaphore-orphan" and f.confidence == "likely"]
    assert bool(said) is (expected == "likely")
    assert not said or said[0].culprits[0].line == 25
    asleep = (
        *frames,
        *stack("multiprocessing.synchronize.wait"),
        frame("run", 101),
    )  # a handler wakes whom it interrupted
    itself = thread(1, asleep, is_main=True, wait=wait, counters=counters(switches=switches))
    known = evidence(process([itself], resources=(woken,)), window=1.0)
    assert "semaphore-orphan" not in {f.pattern for f in classify(known).findings if f.confidence == "likely"}


def test_a_pools_own_lock_is_blamed_on_who_uses_the_pool() -> None:
    """A worker that was killed while it had the lock of the pool's queue: no line of the program is in the others."""
    inner = (
        "synchronize.__enter__",
        "queues.get",
        "pool.worker",
        "process.run",
        "process._bootstrap",
        "popen_fork._launch",
    )
    frames = (*stack(*(f"multiprocessing.{name}" for name in inner)), frame("main", 5))
    wait = Wait("semaphore", "futex", resource="s-1", endless=True)
    gone = Resource("s-1", "shared-semaphore", "its lock", key="k", locked=True, owner_gone=True)
    idle = process([thread(2, frames, is_main=True, wait=wait)], pid=2, ppid=1, resources=(gone,))
    uses = thread(1, [frame("main", 7)], wait=Wait("condition", "futex", "r-1", endless=True))
    pool = Pool("p-1", "multiprocessing.Pool", "pool", processes=(2,), idle=(2,), pending=1)
    result = Resource("r-1", "pool-result", "a result", part_of="p-1")
    known = evidence(process([uses], pools=(pool,), resources=(result,)), idle)
    first = leading(known)
    assert "mp-worker-died" not in found(known)
    assert (first.pattern, [(c.pid, c.line) for c in first.culprits]) == ("semaphore-orphan", [(1, 7)])


def test_who_reads_what_the_one_behind_a_lost_lock_would_write() -> None:
    """The lock is the root: the pipe is open because its writer waits."""
    ends = (End(1, 3, "r"), End(1, 4, "w"))
    pipe = Resource(
        "pipe-1",
        "pipe",
        "pipe",
        wakers=(Waker("end", "kernel", 1, 1, name="descriptor 4"),),
        closed=True,
        ends=ends,
        key="pipe:[1]",
    )
    lost = Resource("s-1", "shared-semaphore", "lock", key="k", waiters=(1,), locked=True, owner_gone=True)
    puts = thread(1, [frame("put", 3)], wait=Wait("semaphore", "futex", resource="s-1", endless=True))
    reads = thread(2, [frame("write", 7)], wait=Wait("pipe", "read", resource="pipe-1", endless=True, fd=3))
    known = evidence(process([puts, reads], resources=(pipe, lost), signal_handlers=(), catches=()))
    assert leading(known).pattern == "semaphore-orphan"


def test_a_wait_with_an_end_is_no_proof() -> None:
    """It comes back."""
    assert found(evidence(clerk(2, endless=False, owner_gone=True)))["semaphore-orphan"] == "possible"


def lost_permits(wait: Any = True, **known: Any) -> Evidence:
    """Two processes wait for a semaphore that they would give back; the third one joins them."""
    line = frame("add", 9)
    reach = tuple(Waker("reach", "memory", pid) for pid in (1, 2, 3))
    lost = {"closed": True, "value": 0, "taken_at": (line,), "wakers": reach, **known}
    parent = process([thread(1, [frame("join", 3)], wait=Wait("process", "wait4", pid=2, endless=True))])
    return evidence(parent, clerk(2, wait, **lost), clerk(3, wait, **lost))


def test_a_named_semaphore_without_permits() -> None:
    """Native code's: only its value is known. It is lost if nothing works that could have it; only a window shows that."""
    lost: Any = {"native": True, "value": 0}
    parent = process([thread(1, [frame("join", 3)], wait=Wait("process", "wait4", pid=2, endless=True))])
    two = [changed(clerk(pid), resources=tuple(changed(r, **lost) for r in clerk(pid).resources)) for pid in (2, 3)]
    known = evidence(parent, *two)
    assert claimed(known, "semaphore-orphan") == "likely"
    works = thread(4, [frame("press", 5)], is_main=True, counters=counters(cpu=0.5))
    assert claimed(evidence(parent, *two, process([works], pid=4)), "semaphore-orphan") == "possible"
    assert silent(evidence(parent, clerk(2, value=0)), "semaphore-orphan")


@pytest.mark.parametrize(
    ("known", "confidence"),
    [
        ({}, "likely"),  # it may never have had a permit
        ({"limit": 2}, "proven"),  # a BoundedSemaphore had
        ({"taken_at": ()}, None),  # a signal
        ({"closed": None}, None),  # others may have it
        ({"wait": False}, None),  # with a time limit
        ({"value": None}, None),
    ],
)
def test_permits_that_nobody_has(known: Any, confidence: Any) -> None:
    """A semaphore that guards something, without anybody who has taken it, and all who could release it wait."""
    report = classify(lost_permits(**known))
    assert claimed(lost_permits(**known), "semaphore-orphan") == confidence
    assert confidence is not None or silent(lost_permits(**known), "semaphore-orphan")
    if confidence is not None:
        assert (report.findings[0].pattern, {c.pid for c in report.findings[0].culprits}) == (
            "semaphore-orphan",
            {2, 3},
        )


@pytest.mark.parametrize(("limit", "confidence"), [(None, "possible"), (2, "likely")])
def test_somebody_who_moves_may_yet_release_a_semaphore(limit: Any, confidence: str) -> None:
    """It may be a gate that opens later. One with a bound begins with all of its permits."""
    known = lost_permits(limit=limit)
    main, *others = known.processes
    moving = changed(main, threads=(*main.threads, thread(11, [frame("tick", 5)], wait=Wait("sleep", endless=False))))
    assert found(changed(known, processes=(moving, *others)))["semaphore-orphan"] == confidence


# ---------------------------------------------------------------------- fork-inherited-lock


def forked(basis: WakerBasis = "recorded", endless: bool = True, forked: Any = True, gone: Any = True) -> Evidence:
    waker = Waker("before-fork", basis, 1, 11, name="heartbeat")
    lock = Resource("l-1", "rlock", "RLock audit", waiters=(2,), locked=True, owner_gone=gone, wakers=(waker,))
    wait = Wait("rlock", "futex", resource="l-1", endless=endless)
    below = stack("multiprocessing.popen_fork._launch", "multiprocessing.process.start")
    frames = (frame("helper", 21), *below, frame("main", 30))
    child = process([thread(2, frames, is_main=True, wait=wait)], pid=2, ppid=1, resources=(lock,), forked=forked)
    main = thread(1, [frame("main", 31)], wait=Wait("process", "wait4", pid=2, endless=True))
    return evidence(process([main, thread(11, [frame("emit", 8)], name="heartbeat")]), child)


def test_a_lock_that_was_left_behind() -> None:
    """The waiting line and the one that forked are named, the thread that had it, and where the parent waits for the child."""
    first = leading(forked())
    assert (first.pattern, first.confidence) == ("fork-inherited-lock", "proven")
    assert [(c.pid, c.line) for c in first.culprits] == [(2, 21), (2, 30), (1, 31)]
    assert "heartbeat (11) of its parent 1" in first.summary


@pytest.mark.parametrize(
    ("known", "confidence"),
    [
        ({"basis": "inferred"}, "likely"),
        ({"gone": None}, "likely"),
        ({"endless": False}, "possible"),
        ({"forked": None}, None),
        ({"forked": False}, None),
    ],
)
def test_what_a_fork_lock_needs(known: Any, confidence: Any) -> None:
    """Inferred holders are likely; without a fork there is no such finding."""
    assert found(forked(**known)).get("fork-inherited-lock") == confidence


def test_a_thread_of_the_child_that_may_come_to_release_the_lock() -> None:
    """A timer that it started because it found the lock taken."""
    known = forked()
    main, child = known.processes
    lease = thread(12, stack("threading.wait"), wait=Wait("event", endless=False), deeds=("unlocks",))
    known = changed(known, processes=(main, changed(child, threads=(*child.threads, lease))))
    assert found(known)["fork-inherited-lock"] == "possible"


def own(depth: int) -> Evidence:
    frames = (frame("take", 6), *stack("multiprocessing.popen_fork._launch"), frame("start", 11))
    lock = Resource("l-1", "lock", "Lock turn", 2, "with-slot", (2,), True)
    wait = Wait("lock", "futex", resource="l-1", endless=True)
    taken = held("l-1", depth, line=9)
    return evidence(process([thread(2, frames, is_main=True, wait=wait, holds=(taken,))], pid=2, resources=(lock,)))


def test_the_forking_thread_held_it_itself() -> None:
    """The `with` lies in the part of the stack that is the parent's: the child never leaves it."""
    first = leading(own(depth=2))
    assert (first.pattern, first.confidence) == ("fork-inherited-lock", "proven")
    assert {c.line for c in first.culprits} == {6, 9, 11}


def test_another_thread_of_the_child_wants_what_the_forking_one_held() -> None:
    """The child joins a thread of its own, and that wants the lock: no question of the order of locks."""
    child = own(depth=2).processes[0]
    joining = changed(child.threads[0], wait=Wait("process", "futex", endless=True), joins=3)
    wanting = thread(3, (frame("store", 12),), wait=Wait("lock", "futex", resource="l-1", endless=True))
    lock = changed(child.resources[0], waiters=(3,))
    first = leading(evidence(changed(child, threads=(joining, wanting), resources=(lock,))))
    assert (first.pattern, first.confidence) == ("fork-inherited-lock", "proven")
    assert {c.line for c in first.culprits} == {12, 9, 11}


def test_a_lock_taken_after_the_fork_is_the_childs_own_matter() -> None:
    """It is taken twice, by code that does return there."""
    assert leading(own(depth=0)).pattern == "self-deadlock"


# ---------------------------------------------------------------------- mp-worker-died


@pytest.mark.parametrize(("holder", "said"), [(1, "proven"), (3, None)])
def test_items_of_a_queue_that_nobody_will_call_done(holder: int, said: Any) -> None:
    """JoinableQueue.join of a queue that only this process has is stuck; while another one has it, that may be at work."""
    queue = Resource(
        "s-1",
        "shared-semaphore",
        "JoinableQueue jobs (its notification)",
        waiters=(1,),
        closed=True,
        wakers=(Waker("reach", "memory", pid=holder),),
    )
    frames = (*stack("multiprocessing.synchronize.wait", "multiprocessing.queues.join"), frame("main", 7))
    wait = Wait("semaphore", "futex", resource="s-1", endless=True)
    joins = process([thread(1, frames, wait=wait)], resources=(queue,), signal_handlers=(), catches=(), cancels=())
    dead = changed(process([thread(2)], pid=2, ppid=1), state="Z")
    assert found(evidence(joins, dead, process([thread(3)], pid=3))).get("mp-worker-died") == said


def pool(closed: Any = True, idle: Tuple[int, ...] = (2, 3), replaced: int = 1, endless: bool = True) -> Evidence:
    known = Pool("p-1", "multiprocessing.Pool", "multiprocessing.Pool b", 2, (), (2, 3), (), idle, replaced, pending=1)
    result = Resource(
        "r-1",
        "pool-result",
        "the result of job 5",
        waiters=(1,),
        part_of="p-1",
        closed=closed,
        because=("all rest",) if closed else (),
    )
    frames = (*stack("threading.wait", "multiprocessing.pool.wait", "multiprocessing.pool.get"), frame("build", 40))
    main: Thread = thread(1, frames, wait=Wait("condition", "futex", resource="r-1", endless=endless))
    workers = [process([thread(pid, is_main=True)], pid=pid, ppid=1, age_s=9.0 - pid) for pid in (2, 3)]
    return evidence(process([main], pools=(known,), resources=(result,)), *workers)


def test_a_result_that_nobody_can_bring() -> None:
    """Proven by the steps that say where it is not."""
    first = leading(pool())
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("mp-worker-died", "proven", 40)
    assert "all rest" in first.evidence
    assert any("younger" in fact for fact in first.evidence)


@pytest.mark.parametrize(("closed", "switches", "said"), [(True, 99, "likely"), (None, 99, None), (True, 0, None)])
def test_who_looks_again_and_again_for_a_result_that_never_comes(closed: Any, switches: int, said: Any) -> None:
    """A main thread that sleeps in between: likely when the result is known to be nowhere, else nothing is said."""
    known = pool(closed)
    first = known.processes[0]
    sleeps = changed(
        first.threads[0],
        wait=Wait("sleep", "nanosleep", timeout_s=0.01, endless=False),
        counters=counters(switches=switches),
    )
    polls = changed(known, processes=(changed(first, threads=(sleeps,)), *known.processes[1:]))
    assert found(polls).get("mp-worker-died") == said


@pytest.mark.parametrize(
    ("known", "confidence"),
    [
        ({"closed": None}, "likely"),
        ({"closed": None, "replaced": 0}, "possible"),
        ({"endless": False}, "possible"),
        ({"closed": None, "idle": (2,)}, None),  # a long task
    ],
)
def test_what_a_dead_worker_needs(known: Any, confidence: Any) -> None:
    """A worker at work may bring the result; a wait with an end comes back."""
    assert found(pool(**known)).get("mp-worker-died") == confidence


def alone(**known: Any) -> Evidence:
    """The parent of a pool in a core of its own: its workers were not read."""
    whole = pool(None, (), **known)
    tasks = thread(32, stack("multiprocessing.pool._handle_tasks"), wait=Wait("condition", "futex", endless=True))
    parent = whole.processes[0]
    pools = (changed(parent.pools[0], threads=(32,)),)
    return changed(whole, processes=(changed(parent, threads=(*parent.threads, tasks), pools=pools),), window_s=None)


def test_a_pool_in_a_core_of_its_parent_alone() -> None:
    """Its workers' numbers tell that others ended before them; without that, one may still be at work."""
    first = leading(alone())
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("mp-worker-died", "likely", 40)
    assert "mp-worker-died" not in found(alone(replaced=0))
    assert "mp-worker-died" not in found(alone(endless=False))


def test_a_thread_of_the_pool_itself_that_has_ended() -> None:
    """An exception ended the one that collects results: none arrives."""
    known = pool(None, idle=(2,))
    parent = known.processes[0]
    lost = changed(parent, pools=(changed(parent.pools[0], helpers_ended=("_handle_results",)),))
    first = leading(changed(known, processes=(lost, *known.processes[1:])))
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("missed-wakeup", "likely", 40)


@pytest.mark.parametrize(
    ("worker", "waits", "expected"),
    [
        (stack("queue.get"), "q-1", "likely"),
        ((frame("encode", 5),), "q-1", None),  # at work
        ((), None, None),  # a function in C
    ],
)
def test_a_thread_pool_without_a_thread_that_has_the_job(
    worker: Tuple[PythonFrame, ...], waits: Optional[str], expected: Optional[str]
) -> None:
    """All workers wait for the next job, and so does the thread that hands jobs out: the result cannot come any more."""
    asleep = Wait("condition", "futex", waits, endless=True)
    main = thread(
        1,
        (*stack("threading.wait", "multiprocessing.pool.next"), frame("run", 107)),
        wait=Wait("condition", "futex", "c-1", endless=True),
        counters=counters(),
    )
    runs = (*worker, *stack("multiprocessing.pool.worker"))
    workers = [thread(tid, runs, wait=asleep, counters=counters()) for tid in (2, 3)]
    hands = thread(4, stack("multiprocessing.pool._handle_tasks"), wait=asleep, counters=counters())
    jobs = Resource("q-1", "queue", "SimpleQueue inqueue (empty, no bound)", waiters=(2, 3))
    known = evidence(process([main, *workers, hands], resources=(jobs,), signal_handlers=()))
    assert found(known).get("mp-worker-died") == expected
    if expected:
        assert [c.line for c in leading(known).culprits] == [107]


def breaking(wait: Any, broken: Any = True) -> Evidence:
    """An executor's manager gives up and joins the feeder, which writes to a pipe that only this process has."""
    joins = stack(
        "threading.join", "multiprocessing.queues._finalize_join", "concurrent.futures.process.terminate_broken"
    )
    manager = thread(3, joins, wait=Wait("lock", "futex", endless=True), joins=4)
    feeder = thread(4, stack("multiprocessing.connection._send", "multiprocessing.queues._feed"), wait=wait)
    frames = (*stack("threading.join", "concurrent.futures.process.shutdown"), frame("encode_all", 36))
    main = thread(1, frames, wait=Wait("lock", "futex", endless=True), joins=3)
    full = Resource("p-1", "pipe", "pipe", wakers=(Waker("end", "kernel", 1),), closed=True, ends=(End(1, 6, "r"),))
    known = Pool("e-1", "ProcessPoolExecutor", "ProcessPoolExecutor pool", 2, (3,), (), (20,), broken=broken)
    dead = ev.Ended(20, "recorded", "ForkProcess-1", -9)
    return evidence(
        process([main, manager, feeder], pools=(known,), resources=(full,), ended=(dead,), signal_handlers=())
    )


def test_an_executor_that_gives_up_and_waits_for_its_feeder() -> None:
    """A worker was killed: the status says by what; a feeder that writes somewhere unknown leaves it likely."""
    first = leading(breaking(Wait("pipe", "write", "p-1", endless=True, fd=6)))
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("mp-worker-died", "proven", 36)
    assert "process 20 (ForkProcess-1) was ended by signal 9" in " ".join(first.evidence)
    unknown = breaking(Wait("pipe", "write", endless=True, fd=6))
    assert found(unknown)["mp-worker-died"] == "likely"
    assert "mp-worker-died" not in found(breaking(Wait("pipe", "write", "p-1", endless=True), broken=None))


def test_an_executor_that_gives_up_in_a_circle_with_its_feeder() -> None:
    """The feeder's error handler wants the lock under which the manager joins it: the circle is the cause."""
    known = breaking(Wait("lock", "futex", "l-1", endless=True))
    parent = known.processes[0]
    guard = Resource("l-1", "lock", "Lock", owner_tid=3, waiters=(4,))
    known = changed(known, processes=(changed(parent, resources=(guard,)),))
    assert leading(known).pattern == "lock-order-deadlock"
    assert found(known)["mp-worker-died"] == "possible"
    assert not any("writes" in line for one in classify(known).findings for line in one.evidence)


def idle_executor(processes: Tuple[int, ...] = (), pending: int = 30) -> Evidence:
    """The main thread waits for results of an executor whose manager waits for its workers."""
    result = Resource(
        "f-1", "future", "30 Futures", waiters=(1,), wakers=(Waker("runner", "memory", tid=3),), closed=True
    )
    frames = (*stack("threading.wait", "concurrent.futures._base.as_completed"), frame("execute", 75))
    main = thread(1, frames, wait=Wait("condition", "futex", "f-1", endless=True))
    manager = thread(
        3, stack("selectors.select", "concurrent.futures.process.run"), wait=Wait("pipe", "poll", endless=True)
    )
    known = Pool("e-1", "ProcessPoolExecutor", "ProcessPoolExecutor pool", 2, (3,), processes, pending=pending)
    return evidence(process([main, manager], pools=(known,), resources=(result,), signal_handlers=()))


def test_an_executor_whose_workers_have_all_left() -> None:
    """Each had done its last job, and none was started again; one that has workers, or nothing to do, waits by design."""
    first = leading(idle_executor())
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("mp-worker-died", "likely", 75)
    assert "mp-worker-died" not in found(idle_executor(processes=(20,)))
    known = idle_executor()
    parent = known.processes[0]
    unread = changed(parent, pools=(changed(parent.pools[0], gone=(20,)),))  # listed, but not captured: a lone core
    assert "mp-worker-died" not in found(changed(known, processes=(unread,)))
    assert "mp-worker-died" not in found(idle_executor(pending=0))


# ---------------------------------------------------------------------- mp-join-before-drain


def drain(behind: bool = False, reads: bool = False, joins: str = "join") -> Evidence:
    """The parent joins process 2, whose feeder thread writes, or waits for its turn behind that of process 3."""
    main = thread(
        1,
        (*stack(f"multiprocessing.process.{joins}"), frame("main", 13)),
        wait=Wait("process", "wait4", "proc", pid=2, endless=True),
    )
    child_of = Resource("proc", "process", "child 2", wakers=(Waker("runner", "kernel", 2),), closed=True)
    readers = tuple(Waker("end", "kernel", pid) for pid in (1, 2, 3))
    pipe = Resource("pipe", "pipe", "pipe to process 1", wakers=readers, closed=True, value=62000, limit=65536)
    lock = Resource("s-1", "shared-semaphore", "Lock w", 31, "recorded", owner_pid=3, key="k", locked=True)
    others = [thread(9, [frame("reader")])] if reads else []

    def child(pid: int, waits: Wait) -> Process:
        ending = stack("threading.join", "multiprocessing.queues._finalize_join", "multiprocessing.util._exit_function")
        feeder = thread(pid * 10 + 1, stack("multiprocessing.queues._feed"), name="QueueFeederThread", wait=waits)
        last = thread(pid, ending, is_main=True, joins=feeder.tid, wait=Wait("lock", "futex", endless=True))
        return process([last, feeder], pid=pid, ppid=1, resources=(pipe, lock))

    writes = Wait("pipe", "write", "pipe", endless=True)
    second = Wait("semaphore", "futex", "s-1", endless=True) if behind else writes
    return evidence(process([main, *others], resources=(child_of,)), child(2, second), child(3, writes))


@pytest.mark.parametrize("behind", [False, True])
def test_a_join_before_the_queue_is_drained(behind: bool) -> None:
    """Its own feeder writes, or waits for its turn behind another process's."""
    first = leading(drain(behind))
    assert (first.pattern, first.confidence, first.culprits[0].line) == ("mp-join-before-drain", "proven", 13)


def test_the_copy_of_multiprocessing_that_pathos_uses() -> None:
    """multiprocess is the same code elsewhere: the same verdict."""
    there = "/venv/lib/python3.12/site-packages/multiprocess/"
    known = ev.encode(drain()).decode().replace("/usr/lib/python3.12/multiprocessing/", there)
    assert found(ev.decode(known.encode()))["mp-join-before-drain"] == "proven"


def test_a_thread_that_may_read_is_a_doubt() -> None:
    """The parent has another thread, which runs: it may empty the pipe, and one moment does not show whether it does."""
    assert found(drain(reads=True)).get("mp-join-before-drain") == "possible"


@pytest.mark.parametrize(("deeds", "expected"), [(("reads",), "possible"), ((), "likely")])
def test_a_thread_that_comes_to_read_the_queue(deeds: Tuple[Deed, ...], expected: str) -> None:
    """It sleeps until its time has come; a thread that only counts never reads."""
    known, still = drain(), counters(switches=0)
    sleeps = Wait("sleep", "clock_nanosleep", endless=False, timeout_s=13.0)
    later = thread(9, [frame("run")], wait=sleeps, deeds=deeds)
    parent, *children = known.processes
    several = [
        changed(one, threads=tuple(changed(each, counters=still) for each in one.threads))
        for one in (changed(parent, threads=(*parent.threads, later)), *children)
    ]
    first = leading(changed(known, processes=tuple(several), window_s=1.0))
    assert (first.pattern, first.confidence) == ("mp-join-before-drain", expected)


@pytest.mark.parametrize(("reader", "expected"), [(None, True), (1, False)])
def test_a_process_that_ends_before_its_own_queue_is_drained(reader: Optional[int], expected: bool) -> None:
    """Its feeder thread cannot write, and only it has the read end of the pipe; another process that has it may read."""
    child = drain().processes[1]
    ends = (End(2, 3, "r"), End(2, 4, "w"), *((End(reader, 5, "r"),) if reader else ()))
    pipe, lock = child.resources
    queue = Backlog(
        "b", "multiprocessing.queues.Queue", "Sync.files", 7986, 0, 0, 1.0, filled_at=(frame("run", 85),), made_at=()
    )
    alone = changed(child, ppid=None, resources=(changed(pipe, ends=ends), lock), backlogs=(queue,))
    known = evidence(alone)
    assert (found(known).get("mp-join-before-drain") == "likely") is expected
    assert not expected or (lines(known) == [85] and "pipe-deadlock" not in found(known))


def test_a_wait_for_a_child_that_is_no_join() -> None:
    """os.waitpid says nothing of queues."""
    assert "mp-join-before-drain" not in found(drain(joins="poll"))


def lost_task(made: Optional[int] = 3, own: Tuple[str, ...] = (), cpu: float = 0.0) -> Evidence:
    """Return a program whose main task asks a library for a result, and the two children that are left of its pool."""
    library = "/venv/lib/python3.11/site-packages/aiomultiprocess"
    asks = (frame("results", 312, file=f"{library}/pool.py"), frame("run", 75))
    nap = TaskWait("sleep", endless=False, timeout_s=0.005)
    task = Task(
        "t", "main", "pending", "loop-1", (*stack("asyncio.tasks.sleep"), *asks), "Future", wait=nap, moved=True
    )
    polls = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=False), counters=counters()
    )
    begun = (
        frame("run", 80, file=f"{library}/core.py"),
        *stack("multiprocessing.process._bootstrap"),
        frame("main", 9),
    )
    waits = Wait("event-loop", "epoll_wait", endless=False)
    workers = [
        process(
            [thread(pid, (*stack(*own), *begun), is_main=True, wait=waits, counters=counters(cpu))], pid=pid, ppid=1
        )
        for pid in (2, 3)
    ]
    loops = (ev.Loop("loop-1", 1, ready=0, watched=0, main_task="t"),)
    return evidence(process([polls], tasks=(task,), loops=loops, children_made=made), *workers)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, ("mp-worker-died", "likely")),
        ({"made": 2}, ("future-never-resolved", "possible")),  # both are there
        ({"made": None}, ("future-never-resolved", "possible")),
        ({"own": ("shade",)}, ("future-never-resolved", "possible")),  # one is at work
    ],
)
def test_a_librarys_own_pool_that_lost_a_worker(known: Any, expected: Tuple[str, str]) -> None:
    """It asks for the result again and again; more children were made than there are, and those that are left are idle."""
    first = leading(lost_task(**known))
    assert (first.pattern, first.confidence) == expected
    assert [c.line for c in first.culprits] == [75]
