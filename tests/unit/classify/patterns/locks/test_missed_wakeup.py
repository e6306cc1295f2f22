"""Waits for a signal that no thread is left to send."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import pytest

from postmortem.evidence import Loop, Resource, SignalHandler, Thread, Wait, Waker, replace
from postmortem.evidence.vocabulary import ResourceKind

from .....support.diagnosed import classify
from .....support.make import (
    counters,
    evidence,
    found,
    frame,
    lines,
    lock,
    locked,
    process,
    silent,
    stack,
    thread,
    verdict,
)


def waits(tid: int, resource: str, line: int, *library: str, **known: Any) -> Thread:
    """A thread that waits in the standard library, called at a line of the program."""
    return thread(
        tid, (*stack(*library), frame("work", line)), wait=Wait("condition", "futex", resource, endless=True), **known
    )


def jobs(ident: str = "q") -> Resource:
    return Resource(ident, "queue", "Queue Outbox.queue (empty, 1 unfinished)")


def whole(threads: Sequence[Thread], **known: Any) -> Any:
    return evidence(process(threads, **{"resources": (jobs(),), "signal_handlers": (), **known}))


JOIN, GET = ("threading.wait", "queue.join"), ("threading.wait", "queue.get")


def test_everybody_waiting_is_proven() -> None:
    """Main joins the queue, the workers get from it: proven, blamed on the program's lines, main's first."""
    known = whole([waits(1, "q", 53, *JOIN), waits(2, "q", 20, *GET), waits(3, "q", 20, *GET)])
    assert found(known)["missed-wakeup"] == "proven"
    assert verdict(known) == "missed-wakeup"
    assert lines(known)[:2] == [53, 20]


def test_unread_signal_handlers_leave_a_doubt() -> None:
    """A handler that nobody could read might signal: an idle service that waits for SIGTERM looks like this."""
    assert found(whole([waits(1, "q", 53, *JOIN)], signal_handlers=None))["missed-wakeup"] == "possible"


def test_a_signal_handler_may_end_the_loop_around_a_wait() -> None:
    """A worker that looks for a job once a second also asks whether it shall stop: what a handler sets is not read."""
    polls = Wait("condition", "futex", "q", polls_s=1.0, detail="for an item in a queue", verb="waits")
    worker = thread(1, (*stack(*GET), frame("work", 20)), wait=polls)
    stop = SignalHandler(15, frame("stop", 7), quiet=False)
    unnamed = replace(jobs(), closed=None, unnamed=True, waiters=(1,))
    told = [
        found(whole([worker], resources=(unnamed,), signal_handlers=several))["missed-wakeup"]
        for several in ((stop,), ())
    ]
    assert told == ["possible", "likely"]


def test_somebody_who_runs_or_sleeps_may_signal() -> None:
    """Then it is a wait like any other."""
    sleeper = thread(2, stack("threading.run"), wait=Wait("sleep", "clock_nanosleep", timeout_s=5.0, endless=False))
    assert silent(whole([waits(1, "q", 53, *JOIN), sleeper]), "missed-wakeup")


def test_somebody_who_was_woken_over_the_window_gets_work() -> None:
    """A consumer that moves."""
    moving = waits(1, "q", 53, *GET, counters=counters(switches=40))
    assert "missed-wakeup" not in found(whole([moving]))


def test_idle_workers_alone_are_healthy() -> None:
    """An executor's workers that nobody can reach wait where idle ones do; main, that does something else, is not hung."""
    idle = thread(
        2,
        stack("threading.wait", "concurrent.futures.thread._worker", "threading.run"),
        wait=Wait("condition", "futex", "q", endless=True),
    )
    main = thread(1, (frame("crunch"),))
    known = whole([main, idle], resources=(Resource("q", "queue", "the queue of jobs", closed=True),))
    assert "missed-wakeup" not in found(known)


def test_who_waits_behind_a_lock_cycle_is_its_victim() -> None:
    """The signal may be what the deadlocked threads owe."""
    cycle = (lock("a", 3, (2,)), lock("b", 2, (3,)))
    threads = [
        waits(1, "q", 53, *JOIN),
        thread(2, stack("work"), wait=locked("a")),
        thread(3, stack("work"), wait=locked("b")),
    ]
    known = whole(threads, resources=(jobs(), *cycle))
    assert set(found(known)) == {"lock-order-deadlock"}


def test_an_object_that_nobody_refers_to_is_proven_beside_running_threads() -> None:
    """Memory says so: what the others do is of no matter, when somebody waits for the waiter."""
    closed = Resource("q", "queue", "Queue Outbox.queue", closed=True, because=("nothing else refers to it",))
    joining = thread(3, stack("work"), wait=Wait("lock", "futex", endless=True), joins=2)
    known = whole([thread(1, (frame("crunch"),)), waits(2, "q", 20, *GET), joining], resources=(closed,))
    assert found(known)["missed-wakeup"] == "proven"


@pytest.mark.parametrize(("kind", "expected"), [("barrier", "proven"), ("event", "possible")])
def test_nobody_waits_at_a_barrier_only_to_keep_others_alive(kind: ResourceKind, expected: str) -> None:
    """One party has ended before it came; a thread beside them goes on."""
    line = Resource("line", kind, "Barrier Cluster.line_up (4 of 5 have arrived)", waiters=(1, 2), closed=True)
    beats = thread(3, (frame("beat", 9),), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.5, endless=False))
    both = [waits(tid, "line", 46, "threading.wait") for tid in (1, 2)]
    assert found(whole([*both, beats], resources=(line,)))["missed-wakeup"] == expected


def test_who_parks_beside_others_is_worth_a_look_only() -> None:
    """A main thread that keeps servers alive in an Event of its own: nobody can set it, and nobody should."""
    closed = Resource("q", "event", "Event stop (not set)", closed=True)
    known = whole([waits(1, "q", 20, "threading.wait"), thread(2, (frame("serve"),))], resources=(closed,))
    assert found(known) == {"missed-wakeup": "possible"}


def test_a_request_does_not_wait_on_purpose() -> None:
    """A server's thread works for a client, which waits for the end of what nobody can end."""
    closed = Resource("q", "event", "Event Session.event (not set)", closed=True)
    frames = (*stack("threading.wait"), frame("receive", 20), *stack("socketserver.process_request_thread"))
    request = thread(3, frames, wait=Wait("condition", "futex", "q", endless=True))
    main = thread(1, (frame("rest", 70),), wait=Wait("sleep", "clock_nanosleep", timeout_s=1.0, endless=False))
    assert found(whole([main, request, thread(2, (frame("serve"),))], resources=(closed,)))["missed-wakeup"] in (
        "likely",
        "proven",
    )


def asleep(seconds: float) -> Any:
    """Two threads wait for a queue to which only main refers, who sleeps and is joined by nobody; a third joins them."""
    reach = Resource("q", "queue", "Queue jobs", wakers=(Waker("reach", "memory", tid=1),), closed=True)
    main = thread(1, (frame("rest", 70),), wait=Wait("sleep", "clock_nanosleep", timeout_s=seconds, endless=False))
    joining = thread(4, (frame("collect", 80),), wait=Wait("lock", "futex", endless=True), joins=2)
    return whole([main, waits(2, "q", 20, *GET), waits(3, "q", 20, *GET), joining], resources=(reach,))


def test_a_sender_who_sleeps_for_an_hour_is_possible_only() -> None:
    """He may rest on purpose: worth a look, no more. The waiter's line is named, and who sleeps."""
    known = asleep(3600.0)
    assert found(known)["missed-wakeup"] == "possible"
    finding = next(f for f in classify(known).findings if f.pattern == "missed-wakeup")
    assert finding.culprits[0].line == 20
    assert "T-1 (1) refers to it, and sleeps for 3600 s" in finding.evidence


def test_a_sender_who_naps_is_nothing() -> None:
    """He is back before anybody worries."""
    assert "missed-wakeup" not in found(asleep(30.0))


def test_who_waits_while_others_want_its_import_missed_nothing() -> None:
    """The one who would signal wants a module that main is importing: import-deadlock says so, and alone."""
    event = Resource("e", "event", "Event SERVER.listening (not set)")
    module = Resource("m", "import-lock", "import of module hooks", 1, "recorded", waiters=(2,))
    importing = thread(2, (frame("load", 9),), wait=locked("m"))
    known = whole([waits(1, "e", 18, "threading.wait"), importing], resources=(event, module))
    assert found(known) == {"import-deadlock": "proven"}


@pytest.mark.parametrize(("tid", "expected"), [(2, "likely"), (3, None)])
def test_a_handler_leaves_who_is_known_to_signal_in_the_way(tid: int, expected: Optional[str]) -> None:
    """The thread whose code names the event wants the module: what a handler might set is no excuse. One that is free is."""
    names = Waker("reach", "memory", tid=tid, grade="names"), Waker("reach", "memory", name="global SERVER")
    event = Resource("e", "event", "Event SERVER.listening (not set)", waiters=(1,), wakers=names)
    module = Resource("m", "import-lock", "import of module hooks", 1, "recorded", waiters=(2,))
    importing = thread(2, (frame("load", 9),), wait=locked("m"))
    beats = thread(3, (frame("beat", 5),), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.5, endless=False))
    stop = SignalHandler(15, frame("stop", 7), quiet=False)
    several = [waits(1, "e", 18, "threading.wait"), importing, beats]
    known = whole(several, resources=(event, module), signal_handlers=(stop,))
    assert found(known).get("import-deadlock") == expected


def test_a_callback_that_a_blocked_loop_would_run_may_be_the_signal() -> None:
    """Main runs an event loop and joins a worker, the worker waits for an item: the loop's own thread stands in the way."""
    runs = (
        *stack("threading.join"),
        frame("leave", 40),
        *stack("asyncio.events._run", "asyncio.base_events._run_once"),
        frame("<module>", 70),
    )
    main = thread(1, runs, wait=Wait("lock", "futex", endless=True), joins=2)
    loops = (Loop("loop-1", 1, ready=2, scheduled=0, watched=0, signals=()),)
    known = whole([main, waits(2, "q", 30, *GET)], loops=loops, cancels=())
    assert verdict(known) == "loop-self-wait" and lines(known) == [40]
    assert silent(known, "missed-wakeup")
    free = whole([main, waits(2, "q", 30, *GET)], loops=(Loop("loop-1", 1, ready=0, scheduled=0, watched=0),))
    assert "missed-wakeup" in found(free)


def counted(*others: Thread, **known: Any) -> Any:
    permits = Resource("n", "semaphore", "a semaphore wanted in enter of _gate.so", native=True)
    waiting = thread(1, [frame("visit", 7)], wait=Wait("semaphore", "futex", "n", endless=True))
    return whole([waiting, *others], resources=(permits, *known.pop("resources", ())), **known)


def test_what_a_native_semaphore_is_for_was_not_read() -> None:
    """Nothing can end the wait; but it may be a lock that somebody holds: never proven."""
    assert found(counted())["missed-wakeup"] == "likely"
    assert "what a semaphore wanted in enter" in " ".join(classify(counted()).findings[0].evidence)


def test_a_librarys_native_thread_that_waits_for_work_misses_nothing() -> None:
    """Without a frame of Python, and nobody waits for it."""
    work = Resource("c", "condition", "a condition variable wanted in serve of libmatrix.so", native=True)
    helper = thread(9, (), wait=Wait("condition", "futex", "c", endless=True), name=None)
    told = whole([waits(1, "q", 53, *JOIN), helper], resources=(jobs(), work))
    assert found(told)["missed-wakeup"] == "proven"
    assert "1 other thread" not in classify(told).findings[0].summary


@pytest.mark.parametrize(
    ("left", "joined", "wakers", "expected"),
    [
        (21_000.0, True, (), "likely"),
        (30.0, True, (), "possible"),
        (21_000.0, False, (), None),
        (21_000.0, True, (Waker("reach", "memory", tid=3, grade="names"),), "possible"),
    ],
    ids=["gives-up-tomorrow", "gives-up-soon", "nobody-waits-for-it", "somebody-can-signal"],
)
def test_a_wait_that_only_a_far_time_limit_will_end(
    left: float, joined: bool, wakers: Tuple[Waker, ...], expected: Optional[str]
) -> None:
    """A scheduler's thread sleeps on an event that has been replaced; its limit is the time until the next job."""
    event = Resource("e", "event", "Event whose name was not found (not set)", waiters=(2,), closed=True, wakers=wakers)
    wait = Wait("condition", "futex", "e", endless=False, timeout_s=left + 5, remaining_s=left)
    waits_long = thread(2, (*stack("threading.wait"), frame("loop", 28)), wait=wait, counters=counters())
    beats = thread(3, (frame("beat", 9),), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.5, endless=False))
    ends = Resource("t", "thread", "thread APScheduler", 2, "recorded", waiters=(1,) if joined else ())
    close = Wait("lock", "futex", "t", endless=True) if joined else Wait("sleep", "clock_nanosleep", timeout_s=1.0)
    main = thread(1, (*stack("threading.join"), frame("close", 79)), wait=close, counters=counters())
    known = whole([main, waits_long, beats], resources=(event, ends))
    assert found(known).get("missed-wakeup") == expected
