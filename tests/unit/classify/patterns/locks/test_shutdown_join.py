"""An interpreter that waits at its exit for a thread."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem.evidence import Backlog, Process, Resource, Trigger, Wait, Waker
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import TriggerKind

from .....support.make import (
    APP,
    counters,
    evidence,
    found,
    frame,
    lines,
    process,
    stack,
    thread,
    verdict,
)


def shutting_down(worker_wait: Wait, **known: object) -> Process:
    main = thread(1, stack("threading._shutdown"), wait=Wait("lock", "futex", endless=True), joins=2)
    worker = thread(2, stack("threading.wait", "queue.get", "run_worker"), wait=worker_wait, daemon=False, **known)
    return process([main, worker])


def test_a_server_whose_main_function_returned_is_at_work() -> None:
    """Its acceptor keeps the process alive, and waits for clients: the root says that it is idle."""
    serving = shutting_down(Wait("socket", "accept4", endless=True))
    assert found(evidence(serving)) == {}


@pytest.mark.parametrize(
    ("package", "kind", "expected"),
    [("sshtunnel", "timeout", "likely"), ("sshtunnel", "pid", None), (None, "timeout", None)],
)
def test_a_librarys_server_serves_a_program_that_is_over(
    package: Optional[str], kind: TriggerKind, expected: Optional[str]
) -> None:
    """The package has started its thread itself, and nobody closed it. At a deadline the program should have ended; a running
    one that is looked at may be meant to serve, and so may one that runs the standard library's server in a thread."""
    main = thread(1, stack("threading._shutdown"), wait=Wait("lock", "futex", endless=True), joins=2)
    inside = [f"site-packages.{package}.serve"] if package else []
    frames = stack("selectors.select", "socketserver.serve_forever", *inside, "threading.run", "threading._bootstrap")
    listener = Resource("s", "socket", "socket 0.0.0.0:41855", waiters=(2,), listening=True)
    polls = Wait("socket", "poll", "s", timeout_s=0.1, endless=False)
    serves = thread(2, frames, wait=polls, daemon=False, counters=counters(switches=10))
    known = process([main, serves], resources=(listener,), listening=(41855,))
    assert found(changed(evidence(known), trigger=Trigger(kind, seconds=9.0))).get("shutdown-join") == expected


def test_the_thread_that_keeps_the_interpreter_is_the_culprit() -> None:
    """The main thread is at its end; the joined thread's own line is named."""
    known = evidence(shutting_down(Wait("condition", "futex", endless=True)))
    assert (verdict(known), found(known)["shutdown-join"], lines(known)) == ("shutdown-join", "likely", [3])


def test_a_last_worker_at_work_is_only_possible() -> None:
    """Waiting for a thread that computes is what exit is for."""
    known = evidence(shutting_down(Wait("condition", "futex", endless=True), counters=counters(0.9)))
    assert found(known)["shutdown-join"] == "possible"


def test_a_heartbeat_never_ends() -> None:
    """A sleep that ends by itself is harmless, unless the thread does the same again for ever."""
    known = shutting_down(Wait("sleep", "clock_nanosleep", timeout_s=1.0, endless=False))
    assert found(evidence(known))["shutdown-join"] == "possible"
    looping = changed(evidence(known), loops={APP: {3: (2,)}})
    assert found(looping)["shutdown-join"] == "likely"
    asking = changed(looping, sources={APP: {2: "    while not self.halted:"}})
    assert found(asking)["shutdown-join"] == "likely"


def test_a_loop_whose_header_is_the_wait_goes_on() -> None:
    """``while not stop.wait(0.25)``: the line of the wait is the loop's own."""
    known = evidence(shutting_down(Wait("condition", "futex", timeout_s=0.25, endless=False)))
    assert found(known)["shutdown-join"] == "possible"
    asking = changed(known, sources={APP: {3: "    while not self._stop.wait(self.interval):"}})
    assert found(asking)["shutdown-join"] == "likely"


@pytest.mark.parametrize(("left", "expected"), [(2.8, "possible"), (600.0, "likely")])
def test_a_thread_whose_result_is_being_made(left: float, expected: str) -> None:
    """The thread that will set the future sleeps for some seconds, as machines are paced; a sleep of minutes is no work."""
    shut = shutting_down(Wait("condition", "futex", "f-1", endless=True))
    paces = thread(
        9, (frame("make", 50),), daemon=True, counters=counters(),
        wait=Wait("sleep", "clock_nanosleep", timeout_s=left, remaining_s=left, endless=False),
    )  # fmt: skip
    colour = Resource(
        "f-1", "future", "Future colour", waiters=(2,), wakers=(Waker("reach", "memory", tid=9, grade="names"),)
    )
    known = evidence(changed(shut, threads=(*shut.threads, paces), resources=(*shut.resources, colour)))
    assert found(known)["shutdown-join"] == expected


@pytest.mark.parametrize(("growth", "expected"), [(-10, "possible"), (0, "likely"), (10, "likely")])
def test_a_thread_that_works_off_a_queue_may_end_with_it(growth: int, expected: str) -> None:
    """A journal is written to its end after the main function has; that of a queue which does not shrink never is."""
    paced = Wait("sleep", "clock_nanosleep", timeout_s=0.1, endless=False)
    process = shutting_down(paced, counters=counters(switches=10))
    thread = next(t for t in process.threads if not t.is_main)
    user = Waker("reach", "memory", tid=thread.tid)
    queue = Backlog("b", "queue.Queue", "Journal.entries", 238, 300, growth, 1.0, users=(user,))
    looping = changed(evidence(changed(process, backlogs=(queue,))), loops={APP: {3: (2,)}})
    assert found(looping)["shutdown-join"] == expected


def test_a_librarys_loop_need_not_end_either() -> None:
    """Its own thread polls for ever, in code that is all the library's."""
    poll = (frame("run", 48, "/venv/lib/python3.10/site-packages/firmata/util.py"), *stack("threading.run"))
    known = shutting_down(Wait("sleep", "clock_nanosleep", timeout_s=0.001, endless=False))
    threads = tuple(changed(t, stack=poll) if not t.is_main else t for t in known.threads)
    looping = changed(evidence(changed(known, threads=threads)), loops={poll[0].file: {48: (45,)}})
    assert found(looping)["shutdown-join"] == "likely"


def test_the_retries_of_a_library_come_to_an_end() -> None:
    """A job sleeps between two attempts, in a loop of the library that it called."""
    retries = frame("__call__", 48, "/venv/lib/python3.10/site-packages/tenacity/__init__.py")
    known = shutting_down(Wait("sleep", "clock_nanosleep", timeout_s=2.5, endless=False))
    threads = tuple(changed(t, stack=(retries, *t.stack)) if not t.is_main else t for t in known.threads)
    looping = changed(evidence(changed(known, threads=threads)), loops={retries.file: {48: (45,)}})
    assert found(looping)["shutdown-join"] == "possible"


def test_a_loop_over_items_ends_with_them() -> None:
    """A batch that the main function only started goes on after it, and paces itself."""
    known = evidence(shutting_down(Wait("sleep", "clock_nanosleep", timeout_s=0.2, endless=False)))
    batch = changed(known, loops={APP: {3: (2,)}}, sources={APP: {2: "    for day in range(240):"}})
    assert found(batch)["shutdown-join"] == "possible"
    rounds = changed(batch, loops={APP: {3: (2, 1)}}, sources={APP: {1: "while True:", 2: "    for day in days:"}})
    assert found(rounds)["shutdown-join"] == "likely"


@pytest.mark.parametrize(("native", "expected"), [(True, "likely"), (False, "possible")])
def test_the_timers_of_a_native_server_end_no_wait_of_its_client(native: bool, expected: str) -> None:
    """They wake it for its own housekeeping; a Python program may answer when its wait is over."""
    client = shutting_down(Wait("socket", "recvfrom", "s", endless=True))
    peer = Resource("s", "socket", "socket", waiters=(2,), closed=True, wakers=(Waker("end", "kernel", pid=9),))
    naps = Wait("other", "epoll_wait", "e", timeout_s=0.1, endless=False)
    watched = Resource(
        "e", "descriptors", "its clients", waiters=(9,), wakers=(Waker("end", "kernel", pid=1),), closed=True
    )
    server = process(
        [thread(9, () if native else stack("serve"), wait=naps, is_main=True)], pid=9, ppid=1, resources=(watched,)
    )
    server = changed(server, python=None, exe="/usr/bin/redis-server", argv=("redis-server",)) if native else server
    assert found(evidence(changed(client, resources=(peer,)), server))["shutdown-join"] == expected
