"""Clients that wait for a peer, told from servers that wait by design."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

from postmortem.evidence import End, Pool, Process, Resource, Task, TaskWait, Thread, Wait, Waker
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import TaskWaitKind, WakerGrade

from .....support.diagnosed import classify
from .....support.make import (
    IDLE_LOOP,
    RESTING,
    counters,
    evidence,
    firm,
    found,
    frame,
    lines,
    loop,
    process,
    resting,
    samples,
    silent,
    stack,
    thread,
    verdict,
)

SOCKET = Wait("socket", "recvfrom", resource="socket-1", fd=3, endless=True)


def socket(**known: object) -> Resource:
    return Resource("socket-1", "socket", "socket a → b", local="a:1", remote="b:80", **known)  # type: ignore[arg-type]


def test_a_client_without_a_timeout() -> None:
    """The main thread in recv on a connection that it made."""
    known = resting(SOCKET, "socket.readinto", "fetch", "main", resources=(socket(accepted=False),))
    assert (found(evidence(known)), lines(evidence(known))) == ({"network-wait": "likely"}, [2])


@pytest.mark.parametrize("what", [{"accepted": True}, {"listening": True}])
def test_a_server_waits_by_design(what: Dict[str, bool]) -> None:
    """A listening socket and an accepted connection are how an idle server looks."""
    assert found(evidence(resting(SOCKET, "socket.readinto", "serve", resources=(socket(**what),)))) == {}


def test_a_socket_with_a_timeout_ends_by_itself() -> None:
    """poll with an end is no endless wait: that the program waits there is all there is to say."""
    wait = Wait("socket", "poll", resource="socket-1", timeout_s=5.0, endless=False)
    known = evidence(resting(wait, "fetch", resources=(socket(accepted=False),)))
    assert silent(known, "network-wait") and firm(known) == {}


def test_a_worker_that_nobody_waits_for_is_only_possible() -> None:
    """A background reader may be idle by design."""
    worker = thread(2, stack("socket.readinto", "listen"), wait=SOCKET)
    known = process([thread(1, [frame("main")]), worker], resources=(socket(accepted=False),))
    assert found(evidence(known)) == {"network-wait": "possible"}


def test_a_worker_whose_work_is_collected_matters() -> None:
    """The main thread waits in Queue.join for whatever the workers do: their wait is its wait."""
    worker = thread(2, stack("socket.readinto", "fetch"), wait=SOCKET)
    main = thread(1, stack("threading.wait", "queue.join", "run"), wait=Wait("condition", "futex", endless=True))
    known = evidence(process([main, worker], resources=(socket(accepted=False),)))
    assert (verdict(known), firm(known)) == ("network-wait", {"network-wait": "likely"})


def test_many_who_wait_for_the_same_peer_are_one_finding() -> None:
    """At the same line: counted, the one that matters most first; another line is another finding."""
    client = [thread(n, stack("socket.readinto", "fetch"), wait=SOCKET, is_main=n == 3) for n in (2, 3, 4)]
    elsewhere = thread(5, (*stack("socket.readinto"), frame("poll", 77)), wait=SOCKET)
    answers = classify(evidence(process([*client, elsewhere], resources=(socket(accepted=False),)))).findings
    assert [(f.confidence, len(f.culprits)) for f in answers] == [("likely", 1), ("possible", 1)]
    assert "2 other threads wait in the same way" in answers[0].summary and "T-3" in answers[0].summary


def client_loop(*others: Thread, **peer: object) -> Process:
    main = thread(1, RESTING, wait=IDLE_LOOP, counters=counters())
    ask = Task("task-1", "ask", "pending", "loop-1", (frame("ask", 9),), "Future")
    watching = changed(loop("loop-1", 1, 0), sockets=("socket-1",))
    return process([main, *others], loops=(watching,), tasks=(ask,), resources=(socket(**peer),))


def test_a_future_that_only_a_peer_can_resolve() -> None:
    """No timer, no other thread, one connection that it made: the task waits for that peer."""
    known = changed(client_loop(accepted=False), listening=())
    assert (found(evidence(known)), lines(evidence(known))) == ({"network-wait": "likely"}, [9])


def test_a_task_without_a_name() -> None:
    """It is called by its id."""
    known = changed(client_loop(accepted=False), listening=())
    known = changed(known, tasks=tuple(changed(task, name=None) for task in known.tasks))
    assert classify(evidence(known)).findings[0].summary.startswith("task-1 ")


def test_a_future_that_somebody_else_may_resolve() -> None:
    """With an accepted connection, or a thread that still works, the future is no peer's alone: silence."""
    worker = thread(2, [frame("work")], gil="holds", counters=counters(0.1))
    assert found(evidence(changed(client_loop(accepted=True), listening=()))) == {}
    assert found(evidence(changed(client_loop(worker, accepted=False), listening=()))) == {}


@pytest.mark.parametrize(
    ("function", "moved", "timers", "confidence"),
    [
        ("data_received", False, 0, "likely"),
        ("data_received", True, 0, None),
        ("data_received", None, 0, None),  # and the loop's thread moves
        ("data_received", False, 1, None),
        ("on_timer", False, 0, None),
    ],
)
def test_a_future_that_a_protocol_sets(
    function: str, moved: Optional[bool], timers: int, confidence: Optional[str]
) -> None:
    """Another thread's work sets none; another function than a transport's callback might be its, and a timer the loop's."""
    beats = thread(2, [frame("beat")], wait=Wait("sleep", "clock_nanosleep", endless=False), counters=counters(0.0, 5))
    known = changed(client_loop(beats, accepted=False), listening=())
    wait = TaskWait("future", "f", endless=True)
    sets = Waker("reach", "memory", tid=1, grade="names", site=frame(function, 22))
    awaited = Resource("f", "async-future", "Future f", waiting_tasks=("task-1",), wakers=(sets,), named=False)
    turning = changed(known.loops[0], scheduled=timers, main_task="task-1")
    ticks = changed(IDLE_LOOP, endless=False, timeout_s=0.1, remaining_s=0.1)
    loops = changed(known.threads[0], wait=ticks, counters=counters(0.01, 10))
    known = changed(
        known,
        threads=(loops, beats),
        tasks=(changed(known.tasks[0], wait=wait, moved=moved, ready=False),),
        loops=(turning,),
        resources=(*known.resources, awaited),
    )
    assert found(evidence(known)).get("network-wait") == confidence


@pytest.mark.parametrize(("kind", "confidence"), [("event", None), ("sleep", "likely")])
def test_an_answer_that_a_task_of_the_same_process_may_still_give(
    kind: TaskWaitKind, confidence: Optional[str]
) -> None:
    """Its server's task waits for a signal that may come, as that of a long poll does."""
    known = changed(
        client_loop(accepted=False, peer_in_tree=True, wakers=(Waker("end", "kernel", pid=1),)), listening=()
    )
    serves = Task("task-2", "serve", "pending", "loop-1", (frame("serve", 4),), "Future", wait=TaskWait(kind, "e"))
    asks = changed(
        known.tasks[0], stack=(*stack("asyncio.streams._wait_for_data"), frame("ask", 9)), resource="socket-1"
    )
    ticks = Task("task-3", "tick", "pending", "loop-1", (frame("tick", 5),), "Future", wait=TaskWait("sleep"))
    event = Resource("e", "async-event", "Event", wakers=(Waker("reach", "memory", task="task-3", grade="names"),))
    known = changed(known, tasks=(asks, serves, ticks), resources=(*known.resources, event))
    assert found(evidence(known)).get("network-wait") == confidence


@pytest.mark.parametrize(
    ("grade", "endless", "expected"),
    [("names", True, "possible"), ("refers", True, "likely"), ("names", False, "likely")],
)
def test_a_peer_that_waits_for_a_signal_of_its_own(grade: WakerGrade, endless: bool, expected: str) -> None:
    """A dispatcher's thread waits until another one gives it work for its client; a heartbeat, which wakes anyway, is none."""
    known = resting(SOCKET, "socket.readinto", "fetch", resources=(link(),))
    wait = Wait("condition", "futex", "c", endless=endless)
    serves = thread(92, stack("threading.wait", "next_list", "serve"), wait=wait)
    gives = Waker("reach", "memory", tid=93, grade=grade)
    changed_ = Resource("c", "condition", "Condition changed", waiters=(92,), wakers=(gives,))
    peer = process(
        [thread(91, stack("accept"), wait=Wait("socket", "accept4", endless=True)), serves],
        pid=9,
        resources=(changed_,),
    )
    assert found(evidence(known, peer)).get("network-wait") == expected
    assert "pipe-never-closed" not in found(evidence(known, peer)) or expected == "likely"


def link() -> Resource:
    """A socket whose other end another process has, by no name that is known."""
    wakers = (Waker("end", "kernel", pid=9, name="descriptor 5"),)
    return Resource("socket-1", "socket", "socket with PID 9", wakers=wakers, peer_in_tree=True)


@pytest.mark.parametrize(("timer", "expected"), [(0.8, "possible"), (3600.0, "likely"), (None, "likely")])
def test_a_peer_in_the_same_process_that_a_timer_will_wake(timer: Optional[float], expected: str) -> None:
    """Another loop of the process is at the other end; what it waits for comes soon, or in an hour, or never."""
    here = socket(accepted=False, peer_in_tree=True)
    there = Resource("socket-2", "socket", "socket b → a", local="b:80", remote="a:1", accepted=True)
    main = thread(1, (*stack("socket.readinto"), frame("fetch", 2)), wait=SOCKET, is_main=True)
    serves = thread(2, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=timer is None))
    other = changed(loop("loop-2", 2, ready=0), sockets=("socket-2",), next_timer_s=timer)
    known = evidence(process([main, serves], resources=(here, there), loops=(other,)))
    assert found(known)["network-wait"] == expected


@pytest.mark.parametrize(("left", "expected"), [(4.0, "possible"), (3600.0, "likely")])
def test_a_peer_in_the_same_process_that_sleeps(left: float, expected: str) -> None:
    """The thread that serves the connection has slept for a while, and will answer then; in an hour is too late."""
    here = socket(accepted=False, waiters=(1,), wakers=(Waker("end", "kernel", tid=2),), closed=True, peer_in_tree=None)
    main = thread(1, (*stack("socket.readinto"), frame("fetch", 2)), wait=SOCKET, is_main=True)
    nap = Wait("sleep", "clock_nanosleep", timeout_s=left, remaining_s=left, endless=False)
    engine = thread(2, (frame("simulate", 24),), wait=nap, counters=counters())
    known = evidence(process([main, engine], resources=(here,)))
    assert found(known).get("network-wait") == expected


@pytest.mark.parametrize(
    ("left", "request_", "expected"), [(1.2, True, "possible"), (3600.0, True, "likely"), (1.2, False, "likely")]
)
def test_requests_of_the_process_itself_that_are_at_work(left: float, request_: bool, expected: str) -> None:
    """A server in the same process answers one after the other: some thread of it will come to this connection, too."""
    ends = (End(1, 3, "rw"), End(1, 4, "rw"))
    here = socket(accepted=False, waiters=(1,), ends=ends, peer_in_tree=True)
    main = thread(1, (*stack("socket.readinto"), frame("fetch", 2)), wait=SOCKET, is_main=True, counters=counters())
    nap = Wait("sleep", "clock_nanosleep", timeout_s=left, remaining_s=left, endless=False)
    serves = (frame("handler_thread", 71, "/venv/lib/python3.11/site-packages/waitress/task.py"),) if request_ else ()
    engine = thread(2, (frame("seal", 24), *serves), wait=nap, counters=counters())
    known = evidence(process([main, engine], resources=(here,)), window=1.0)
    assert found(known).get("network-wait") == expected


@pytest.mark.parametrize(
    ("queued", "accepted", "left", "expected"),
    [(1, True, None, True), (0, True, None, False), (1, False, None, False), (1, True, 5.0, False)],
    ids=["silent-clients", "nothing-queued", "own-requests", "give-up"],
)
def test_a_servers_workers_that_silent_clients_keep(
    queued: int, accepted: bool, left: Optional[float], expected: bool
) -> None:
    """Each by itself serves as it should; together they keep the next request from being served at all."""
    links = [
        Resource(
            f"s-{tid}",
            "socket",
            f"socket b → c{tid}",
            local="b:80",
            remote=f"c:{tid}",
            accepted=accepted,
            waiters=(tid,),
        )
        for tid in (2, 3)
    ]
    waits = changed(SOCKET, endless=left is None, remaining_s=left, timeout_s=left)
    workers = [
        thread(
            tid,
            (frame("read", 63, "/venv/lib/python3.12/site-packages/web/http.py"),),
            wait=changed(waits, resource=f"s-{tid}"),
            counters=counters(),
        )
        for tid in (2, 3)
    ]
    pool = Pool("executor-1", "ThreadPoolExecutor", "ThreadPoolExecutor pool", threads=(2, 3), queued=queued, limit=2)
    polls = thread(
        1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters()
    )
    known = evidence(process([polls, *workers], resources=tuple(links), pools=(pool,), listening=(80,)), window=1.0)
    told = [f for f in classify(known).findings if "to send something" in str(f.summary)]
    assert [(f.pattern, f.confidence) for f in told] == ([("network-wait", "likely")] if expected else [])


@pytest.mark.parametrize(
    ("calls", "cpu", "accepted", "expected"),
    [
        ({"recvfrom": 24, "running": 1}, 0.02, False, "possible"),
        ({"recvfrom": 5, "running": 20}, 0.8, False, None),
        ({"recvfrom": 4}, 0.02, False, None),
        ({"recvfrom": 24, "running": 1}, 0.02, True, None),
    ],
    ids=["waits", "computes", "hardly-looked-at", "serves"],
)
def test_a_client_that_waits_round_by_round(
    calls: Dict[str, int], cpu: float, accepted: bool, expected: Optional[str]
) -> None:
    """It gets its answers, and still spends nearly all its time waiting for them: what it asks for could be asked at once."""
    frames = (frame("pending", 72), frame("main", 9))
    used = changed(counters(cpu, 24), syscalls=calls)
    main = thread(1, frames, wait=SOCKET, counters=used, samples=samples((50, frames)), is_main=True)
    known = evidence(process([main], resources=(socket(accepted=accepted),)), window=1.0)
    assert found(known).get("network-wait") == expected
    assert not expected or lines(known) == [72]


@pytest.mark.parametrize(
    ("threads", "switches", "left", "expected"),
    [(1, 0, None, "likely"), (2, 0, None, None), (1, 50, None, None), (1, 0, 5.0, None)],
    ids=["alone", "another-thread", "moves", "gives-up"],
)
def test_two_servers_that_ask_each_other(
    threads: int, switches: int, left: Optional[float], expected: Optional[str]
) -> None:
    """Each is in a request of the other, whose second request nobody accepts. A thread that is free would answer it."""

    def server(pid: int, line: int, peer: int) -> Process:
        ends = (End(pid, 7, "rw"), End(peer, 5, "rw"))
        asked = Resource(
            "s", "socket", f"socket to {peer}", local=f"h:{pid}0", remote=f"h:{peer}", waiters=(pid,), ends=ends,
            accepted=False, peer_in_tree=True, wakers=(Waker("end", "kernel", pid=peer),),
        )  # fmt: skip
        wait = changed(SOCKET, resource="s", fd=7, endless=left is None, remaining_s=left, timeout_s=left)
        frames = (frame("answer", line), *stack("socketserver.serve_forever"))
        main = thread(pid, frames, wait=wait, is_main=True, counters=counters(0.01, switches))
        free = thread(pid + 9, (frame("other", 3),), wait=Wait("socket", "accept4", endless=True))
        return process([main, *([free] if threads > 1 else [])], pid=pid, resources=(asked,), listening=(pid,))

    known = evidence(server(10, 12, 20), changed(server(20, 24, 10), ppid=10))
    told = [f for f in classify(known).findings if "answers" in str(f.summary)]
    assert [f.confidence for f in told] == ([expected] if expected else [])
    assert not told or ({c.line for c in told[0].culprits}, told[0].pattern) == ({12, 24}, "network-wait")


@pytest.mark.parametrize(
    ("accepting", "kept", "left", "expected"),
    [
        (False, True, None, "likely"),
        (True, True, None, "possible"),
        (False, False, None, "possible"),
        (False, True, 295.0, "likely"),
        (False, True, 5.0, "possible"),
    ],
)
def test_a_server_that_waits_for_one_client_while_others_wait_to_be_accepted(
    accepting: bool, kept: bool, left: Optional[float], expected: str
) -> None:
    """Nobody accepts meanwhile: its line leads. One whose other thread waits for connections, or that has the other end of the
    client's, is a server like any other; the client may wait for what it does not want to say."""
    silent_one = Resource("socket-1", "socket", "socket b → c", local="b:80", remote="c:3", accepted=True)
    end = Resource("socket-2", "socket", "socket b → a", local="b:80", remote="a:1", accepted=True)
    waits = changed(SOCKET, syscall="poll", endless=left is None, remaining_s=left, timeout_s=left)
    serving = [thread(1, (frame("serve", 57),), wait=waits, is_main=True, counters=counters())]
    if accepting:
        serving.append(thread(2, (frame("accept", 90),), wait=Wait("socket", "accept4", endless=True)))
    server = process(serving, pid=1, listening=(80,), resources=(silent_one, *(() if kept else (end,))))
    asks = thread(5, (frame("field_computer", 87),), wait=SOCKET, is_main=True, counters=counters())
    client = process([asks], pid=5, ppid=1, resources=(socket(accepted=False, peer_in_tree=True),))
    report = classify(evidence(server, client, window=1.0)).findings
    told = {(finding.culprits[0].pid, finding.confidence) for finding in report if finding.pattern == "network-wait"}
    assert ((1, "likely") in told) == (expected == "likely")
    assert (report[0].culprits[0].pid == 1) == (expected == "likely")
