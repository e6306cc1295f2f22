"""fork-lost-thread: a forked process waits for the work of a thread that only its parent has."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem.evidence import (
    Calling,
    Evidence,
    LeftBehind,
    Loop,
    NativeFrame,
    Pool,
    PythonFrame,
    Resource,
    Task,
    TaskWait,
    Thread,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed
from postmortem.findings import Finding

from .....support.diagnosed import classify
from .....support.make import claimed, counters, evidence, frame, process, stack, thread

GOMP, LIBC = "/venv/lib/libgomp-a34b3233.so.1.0.0", "/usr/lib/x86_64-linux-gnu/libc.so.6"
LAUNCH = (*stack("multiprocessing.popen_fork._launch", "multiprocessing.process.start"), frame("main", 30))


def told(known: Evidence) -> Optional[Finding]:
    return next((f for f in classify(known).findings if f.pattern == "fork-lost-thread"), None)


def method(line: int, qualname: str, file: str = "/app/service.py") -> PythonFrame:
    return PythonFrame(file, line, qualname.rpartition(".")[2], qualname)


def joins(serves: Tuple[str, ...] = ("q-2",), server: Any = None, forked: Any = True, **wait: Any) -> Evidence:
    """The child joins its copy of a queue; in the parent a thread gets from the original."""
    drains = server or (*stack("threading.wait", "queue.get"), method(12, "Outbox.drain"))
    consumer = thread(11, drains, name="outbox", wait=Wait("condition", "futex", "q-1", endless=True))
    main = thread(1, [frame("main", 31)], wait=Wait("process", "wait4", pid=2, endless=True))
    queue = Resource("q-2", "queue", "Queue Outbox.queue (empty, 1 unfinished)", waiters=(2,), closed=True)
    waits = Wait("condition", "futex", "q-2", endless=wait.get("endless", True))
    flushes = thread(
        2, (*stack("threading.wait", "queue.join"), method(21, "Outbox.flush"), *LAUNCH), wait=waits, is_main=True
    )
    lost = (LeftBehind(11, "outbox", serves),)
    child = process([flushes], pid=2, ppid=1, resources=(queue,), forked=forked, left_behind=lost, signal_handlers=())
    return evidence(process([main, consumer]), child)


def test_the_consumer_of_a_queue_was_not_forked() -> None:
    """It awaits the original of the same object: proven, with the waiting line, the fork and where the consumer is."""
    found = told(joins())
    assert found is not None and classify(joins()).findings[0].pattern == "fork-lost-thread"
    assert found.confidence == "proven"
    assert [(c.pid, c.line) for c in found.culprits] == [(2, 21), (2, 30), (1, 12)]
    assert "outbox (11) of its parent 1 serves" in found.summary


@pytest.mark.parametrize(
    ("items", "beside", "confidence"),
    [
        (3, Wait("sleep", "nanosleep", endless=False, timeout_s=0.5), "likely"),
        (0, Wait("sleep", "nanosleep", endless=False, timeout_s=0.5), "possible"),
        (3, Wait("socket", "recvfrom", "s", endless=True), "possible"),
    ],
)
def test_a_queue_that_no_thread_of_the_child_empties(items: int, beside: Wait, confidence: str) -> None:
    """Items lie there, though references to it were not read, unless another thread may have taken one and work on it."""
    known = joins()
    child = known.processes[1]
    queue = changed(child.resources[0], closed=None, value=items)
    beats = thread(3, [frame("beat", 40)], wait=beside, counters=counters(switches=2))
    flushes = changed(child.threads[0], counters=counters())
    child = changed(child, resources=(queue,), threads=(flushes, beats))
    finding = told(changed(known, processes=(known.processes[0], child), window_s=1.0))
    assert finding is not None and finding.confidence == confidence


@pytest.mark.parametrize(
    ("known", "confidence"),
    [
        ({"serves": ()}, "likely"),  # methods of one class
        ({"serves": (), "server": (method(12, "Other.run"),)}, "possible"),
        ({"serves": (), "server": (method(12, "Other.run", "/app/other.py"),)}, None),
        ({"endless": False}, None),
    ],
)
def test_a_thread_that_may_serve_something_else(known: Any, confidence: Optional[str]) -> None:
    """Without the same object, the class or module of the thread has to be the one that waits; a wait with an end is none."""
    assert claimed(joins(**known), "fork-lost-thread") == confidence


@pytest.mark.parametrize(
    ("closed", "beside", "expected"),
    [
        (True, Wait("sleep", endless=False), "likely"),
        (None, Wait("sleep", endless=False), "likely"),
        (None, None, None),  # it is at work, and may do that job
    ],
)
def test_the_workers_of_a_thread_pool_were_not_forked(
    closed: Optional[bool], beside: Optional[Wait], expected: Optional[str]
) -> None:
    """A future that no pool of the child has, and a pool in the parent whose workers stayed there.

    Who else refers to the future need not be known where the other threads of the child rest.
    """
    future = Resource("f-1", "future", "Future (pending)", waiters=(2,), closed=closed, state="pending")
    waits = Wait("condition", "futex", "f-1", endless=True)
    frames = (*stack("threading.wait", "concurrent.futures._base.result"), frame("region", 13))
    pool = Pool("e-1", "ThreadPoolExecutor", "ThreadPoolExecutor lookup", threads=(11,), idle=(11,))
    worker = thread(11, stack("concurrent.futures.thread._worker"), name="lookup_0")
    main = thread(1, [frame("main", 31)], wait=Wait("process", "wait4", pid=2, endless=True))
    child = process(
        [thread(2, frames, wait=waits, is_main=True), thread(3, [frame("beat", 54)], wait=beside)],
        pid=2, ppid=1, resources=(future,), forked=True, left_behind=(LeftBehind(11, "lookup_0"),), signal_handlers=(),
        cancels=(),
    )  # fmt: skip
    found = told(evidence(process([main, worker], pools=(pool,)), child))
    sure = found is not None and found.confidence != "possible"
    assert (found.confidence if found is not None and sure else None) == expected
    if found is not None and sure:
        assert found.culprits[0].line == 13


def native(name: str, module: str) -> NativeFrame:
    return NativeFrame(name, module, 0x100)


def team(*others: Thread, helpers: int = 3, left: bool = True) -> Evidence:
    """The child waits in libgomp for its team; the parent has the team's threads."""
    inside = (native("syscall", LIBC), native("gomp_team_end", GOMP), native("scale", "/app/_scale.so"))
    idle = (native("syscall", LIBC), native("gomp_thread_start", GOMP), native("start_thread", LIBC))
    waits = Wait("futex", "futex", endless=True)
    scales = thread(2, (*inside, frame("scale", 8), *LAUNCH), wait=waits, is_main=True)
    main = thread(1, [frame("main", 31)], wait=Wait("process", "wait4", pid=2, endless=True))
    threads = [thread(20 + n, idle, wait=waits, name=None) for n in range(helpers)]
    lost = tuple(LeftBehind(t.tid) for t in threads) if left else ()
    child = process([scales, *others], pid=2, ppid=1, forked=True, left_behind=lost, signal_handlers=())
    return evidence(process([main, *threads]), child)


def test_the_threads_of_a_native_pool_were_not_forked() -> None:
    """The library's own record cannot be read: likely, never proven."""
    found = told(team())
    assert found is not None and (found.confidence, found.culprits[0].line) == ("likely", 8)
    assert "libgomp-a34b3233.so.1.0.0" in found.summary and "cannot be read" in " ".join(found.evidence)
    assert told(team(helpers=0)) is None


def test_a_child_with_a_thread_of_its_own_in_the_library() -> None:
    """It may be the one that is waited for."""
    own = thread(9, (native("gomp_thread_start", GOMP),), wait=Wait("futex", "futex", endless=True))
    assert told(team(own)) is None


def test_another_caller_that_waits_in_the_library_is_no_help() -> None:
    """Two jobs of a child have called it, and both wait for threads that were not forked. So does a worker whose job is the C
    function itself, and has no frame of its own."""
    inside = (native("syscall", LIBC), native("gomp_team_end", GOMP))
    file = "/usr/lib/python3.12/concurrent/futures/thread.py"
    runs = (frame("run", 58, file=file), frame("_worker", 83, file=file))
    caller = thread(9, (*inside, *runs), wait=Wait("futex", "futex", endless=True))
    found = told(team(caller))
    assert found is not None and found.confidence == "likely"


@pytest.mark.parametrize(("lasts", "cpu", "confidence"), [(1.0, 0.01, "likely"), (0.2, 0.01, None), (1.0, 0.95, None)])
def test_a_library_that_wakes_and_waits_again(lasts: float, cpu: float, confidence: Optional[str]) -> None:
    """gRPC waits a fifth of a second at a time: one call for the whole window that does nothing is as good as endless."""
    known = team()
    waiter = known.processes[1].threads[0]
    timed = changed(
        waiter,
        wait=Wait("futex", "futex", endless=False, timeout_s=0.2),
        calling=Calling("cygrpc.next_event", lasts_s=lasts),
        counters=counters(cpu=cpu, switches=6),
    )
    child = changed(known.processes[1], threads=(timed,))
    found = told(changed(known, processes=(known.processes[0], child), window_s=1.0))
    assert (found.confidence if found is not None else None) == confidence


def test_a_child_in_a_core_of_its_own() -> None:
    """Its parent was not read: possible, and that is said."""
    whole = team()
    alone = evidence(process(whole.processes[1].threads, pid=2, ppid=1, signal_handlers=()), window=None)
    found = told(alone)
    assert found is not None and found.confidence == "possible"
    assert "the parent was not read" in " ".join(found.evidence)


def test_a_core_of_its_own_that_shows_the_fork() -> None:
    """Control blocks of threads that it does not have are proof of the fork: likely."""
    whole = team()
    threads = whole.processes[1].threads
    alone = evidence(process(threads, pid=2, ppid=1, forked=True, signal_handlers=()), window=None)
    found = told(alone)
    assert found is not None and found.confidence == "likely"
    assert "control blocks" in " ".join(found.evidence)


PACKAGE = "/venv/lib/python3.12/site-packages/pgpool"


def asks_pool(*beside: Thread, helper: str = PACKAGE, holder: Optional[int] = None) -> Evidence:
    """A forked worker waits in a library's pool for a minute; a helper thread of the library is in the parent only.

    ``helper``: the package of the thread that was left behind. ``holder``: another thread that has a part of the pool.
    """
    held = (Waker("holder", "memory", tid=holder),) if holder is not None else ()
    pool = Resource("pool-1", "pool", "pgpool.Pool desk (size 4)", waiters=(2,), value=3, limit=4, wakers=held)
    changes = Resource("c-1", "condition", "Condition Pool.changed", waiters=(2,))
    waits = Wait("condition", "futex", "c-1", endless=False, remaining_s=59.0, gate="pool-1")
    frames = (*stack("threading.wait"), frame("getconn", 212, f"{PACKAGE}/pool.py"), frame("assign", 40))
    parked = (*stack("threading.wait"), frame("run", 77, f"{helper}/sched.py"), *stack("threading._bootstrap"))
    worker = thread(11, parked, name="desk-scheduler", wait=Wait("event", "futex", endless=True))
    main = thread(1, [frame("main", 88)], wait=Wait("process", "wait4", pid=2, endless=True))
    child = process(
        [thread(2, frames, wait=waits, is_main=True, counters=counters()), *beside],
        pid=2, ppid=1, resources=(pool, changes), forked=True, left_behind=(LeftBehind(11, "desk-scheduler"),),
    )  # fmt: skip
    return evidence(process([main, worker]), child)


def test_a_librarys_own_threads_were_not_forked() -> None:
    """The pool has parts left, and its helpers hand them out: a time limit turns the hang into an error only."""
    tick = thread(3, [frame("tick", 36)], wait=Wait("sleep", endless=False), counters=counters())
    assert claimed(asks_pool(tick), "fork-lost-thread") == "likely"


@pytest.mark.parametrize(
    "known",
    [
        asks_pool(thread(3, [frame("returns", 90, f"{PACKAGE}/pool.py")], wait=Wait("lock", "futex", endless=True))),
        asks_pool(thread(3, [frame("computes", 90)])),
        asks_pool(helper="/venv/lib/python3.12/site-packages/metrics"),
        asks_pool(thread(3, [frame("holds", 90)], wait=Wait("sleep", endless=False)), holder=3),
    ],
    ids=["another thread is in the library", "another thread works", "another library's thread", "a part is held here"],
)
def test_a_library_that_the_forked_process_serves_itself(known: Evidence) -> None:
    """What the thread waits for may come from a thread that the process has."""
    assert claimed(known, "fork-lost-thread") in (None, "possible")


@pytest.mark.parametrize(
    ("module", "here", "expected"),
    [
        ("/site/store/_store.abi3.so", (), "fork-lost-thread"),
        ("/site/store/libblas.so", (), "future-never-resolved"),  # it starts its threads anew
        ("/site/store/_store.abi3.so", ("/site/store/_store.abi3.so",), "future-never-resolved"),
    ],
)
def test_what_an_extension_module_promised_a_task(module: str, here: Tuple[str, ...], expected: str) -> None:
    """The runtime of an extension module was left behind; that nothing in the process resolves its futures follows from that."""
    future = Resource("f-1", "async-future", "Future awaited in put", waiting_tasks=("t-1",), closed=True)
    put = Task(
        "t-1", "Task-1", "pending", "l", (frame("put", 20),), "Future", wait=TaskWait("future", "f-1", endless=True)
    )
    running = Loop("l", 2, ready=0, scheduled=0, watched=0, signals=(), main_task="t-1")
    rests = Wait("event-loop", "epoll_wait", endless=True)
    loops = thread(2, stack("selectors.select", "asyncio.base_events._run_once"), wait=rests, is_main=True)
    idle = Wait("futex", "futex", endless=True)
    own = [thread(30 + n, (native("park", name),), wait=idle, name=None) for n, name in enumerate(here)]
    child = process(
        [loops, *own], pid=2, ppid=1, loops=(running,), tasks=(put,), resources=(future,), forked=True,
        signal_handlers=(), cancels=(),
    )  # fmt: skip
    helper = thread(20, (native("syscall", LIBC), native("park", module)), wait=idle, name=None)
    main = thread(1, [frame("main", 31)], wait=Wait("process", "wait4", pid=2, endless=True))
    leading = classify(evidence(process([main, helper]), child)).findings[0]
    assert leading.pattern == expected
    assert expected != "fork-lost-thread" or (leading.confidence, leading.culprits[0].line) == ("likely", 20)
    assert "proven" not in {
        f.confidence
        for f in classify(evidence(process([main, helper]), child)).findings
        if f.pattern == "future-never-resolved" and expected == "fork-lost-thread"
    }


@pytest.mark.parametrize(("beside", "expected"), [(False, "fork-lost-thread"), (True, "missed-wakeup")])
def test_what_a_librarys_thread_hands_back_through_a_queue(beside: bool, expected: str) -> None:
    """The program itself waits for an item that only the library's sender would put, which the parent alone has."""
    queue = Resource("q-1", "queue", "Queue Client.responses (empty)", waiters=(2,), closed=True)
    waits = Wait("condition", "futex", "q-1", endless=True)
    gets = thread(2, (*stack("threading.wait", "queue.get"), frame("confirm", 49)), wait=waits, is_main=True)
    beat = thread(3, [frame("beat", 9)], wait=Wait("sleep", endless=False), counters=counters())
    sends = (
        *stack("threading.wait", "queue.get"),
        frame("_sender", 80, "/venv/lib/python3.12/site-packages/hive/send.py"),
    )
    sender = thread(11, sends, name="sender", wait=Wait("condition", "futex", "q-0", endless=False))
    main = thread(1, [frame("main", 81)], wait=Wait("process", "wait4", pid=2, endless=True))
    child = process(
        [gets, *([beat] if beside else [])], pid=2, ppid=1, resources=(queue,), forked=True,
        left_behind=(LeftBehind(11, "sender"),), signal_handlers=(), cancels=(),
    )  # fmt: skip
    leading = classify(evidence(process([main, sender]), child)).findings[0]
    assert (leading.pattern, leading.culprits[0].line) == (expected, 49)
    assert leading.confidence != "proven"


@pytest.mark.parametrize("here", [False, True])
def test_tasks_that_wait_in_a_library_for_its_own_thread(here: bool) -> None:
    """Two greenlets wait in the module that the parent's helper runs; not if this process has such a helper, too."""
    library = "/venv/lib/python3.12/site-packages/green"
    asks = (
        frame("wait", 125, f"{library}/event.py"),
        frame("execute", 124, f"{library}/helpers.py"),
        frame("scale", 48),
    )
    works = (*stack("threading.wait", "queue.get"), frame("work", 78, f"{library}/helpers.py"))
    tasks = tuple(
        Task(f"t-{n}", f"T-{n}", "pending", "l", asks, "Event", wait=TaskWait("future", f"f-{n}", endless=True))
        for n in (1, 2)
    )
    futures = tuple(
        Resource(
            f"f-{n}", "async-future", f"green.Event {n}", waiting_tasks=(f"t-{n}",),
            wakers=(Waker("reach", "memory", task=f"t-{3 - n}"),), closed=True,
        )
        for n in (1, 2)
    )  # fmt: skip
    waits = Wait("condition", "futex", "q-0", endless=False)
    hub = thread(2, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), is_main=True)
    child = process(
        [hub, *([thread(30, works, wait=waits)] if here else [])], pid=2, ppid=1, tasks=tasks, resources=futures,
        loops=(Loop("l", 2, main_task="t-0"),), forked=True, left_behind=(LeftBehind(20, "helper"),),
    )  # fmt: skip
    helper = thread(20, works, name="helper", wait=waits)
    main = thread(1, [frame("main", 31)], wait=Wait("process", "wait4", pid=2, endless=True))
    found = classify(evidence(process([main, helper]), child)).findings
    sure = {f.culprits[0].line for f in found if f.pattern == "fork-lost-thread" and f.confidence == "likely"}
    assert (48 in sure) is not here
