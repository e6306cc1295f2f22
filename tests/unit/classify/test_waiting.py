"""Patterns of waiting: peers, children, sleeps, exit, and loops that never end."""

from __future__ import annotations

from typing import Dict, List, Tuple

import pytest

from postmortem.classify.engine import classify
from postmortem.classify.facts.knowledge import own_frame
from postmortem.evidence import Evidence, Process, PythonFrame, Resource, Task, Thread, Wait
from postmortem.evidence import replace as changed

from ...support.make import (
    APP,
    LIB,
    counters,
    evidence,
    found,
    frame,
    held,
    lines,
    lock,
    locked,
    loop,
    process,
    samples,
    stack,
    thread,
    two_locks,
    verdict,
)


def resting(wait: Wait, *functions: str, **known: object) -> Process:
    return process([thread(1, stack(*functions), wait=wait, counters=counters())], **known)


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
    """poll with an end is no endless wait."""
    wait = Wait("socket", "poll", resource="socket-1", timeout_s=5.0, endless=False)
    assert found(evidence(resting(wait, "fetch", resources=(socket(accepted=False),)))) == {}


def test_a_worker_that_nobody_waits_for_is_only_possible() -> None:
    """A background reader may be idle by design."""
    worker = thread(2, stack("socket.readinto", "listen"), wait=SOCKET)
    known = process([thread(1, [frame("main")]), worker], resources=(socket(accepted=False),))
    assert found(evidence(known)) == {"network-wait": "possible"}


def test_a_worker_whose_work_is_collected_matters() -> None:
    """The main thread waits in Queue.join for whatever the workers do: their wait is its wait."""
    worker = thread(2, stack("socket.readinto", "fetch"), wait=SOCKET)
    main = thread(1, stack("threading.wait", "queue.join", "run"), wait=Wait("condition", "futex", endless=True))
    assert found(evidence(process([main, worker], resources=(socket(accepted=False),)))) == {"network-wait": "likely"}


def test_many_who_wait_for_the_same_peer_are_one_finding() -> None:
    """At the same line: counted, the one that matters most first; another line is another finding."""
    client = [thread(n, stack("socket.readinto", "fetch"), wait=SOCKET, is_main=n == 3) for n in (2, 3, 4)]
    elsewhere = thread(5, (*stack("socket.readinto"), frame("poll", 77)), wait=SOCKET)
    answers = classify(evidence(process([*client, elsewhere], resources=(socket(accepted=False),)))).findings
    assert [(f.confidence, len(f.culprits)) for f in answers] == [("likely", 1), ("possible", 1)]
    assert "2 other threads wait likewise" in answers[0].summary and "T-3" in answers[0].summary


@pytest.mark.parametrize(("length", "expected"), [(3600.0, "likely"), (1.5, "possible"), (None, "possible")])
def test_sleeping_is_judged_by_its_length(length: float, expected: str) -> None:
    """An hour against two seconds allowed is the reason; a second between two rounds is a rhythm."""
    known = resting(Wait("sleep", "clock_nanosleep", timeout_s=length), "pause", "main")
    assert found(evidence(known)) == {"sleeping": expected}


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
    """The same where the sleep is a coroutine's."""
    nap = Task("task-1", "nap", "pending", "loop-1", (*stack("asyncio.tasks.sleep"), frame("retry", 20)), "Future")
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", timeout_s=36.0, endless=False), counters=counters())
    other = thread(2, stack("queue.get", "consume"), wait=Wait("condition", "futex"), counters=counters(0.0, 400))
    known = process([main, other], loops=(loop("loop-1", 1, 0),), tasks=(nap,))
    assert found(evidence(known)) == {"sleeping": "possible"}


def parent_and_child(child: Process) -> Evidence:
    parent = process(
        [thread(1, stack("subprocess._wait", "build", "main"), wait=Wait("process", "wait4", pid=2, endless=True))]
    )
    return evidence(parent, changed(child, pid=2, ppid=1))


def test_a_child_that_is_no_python_leaves_the_lead_to_its_parent() -> None:
    """The only line to change is the parent's."""
    child = process(
        [thread(2, wait=Wait("sleep", "clock_nanosleep", timeout_s=900.0), is_main=True)],
        python=None,
        argv=("sleep", "900"),
    )
    report = classify(parent_and_child(child)).findings
    assert [f.pattern for f in report] == ["child-wait", "sleeping"]
    assert report[0].because_of == ("sleeping",) and report[0].culprits[0].line == 2


def test_the_childs_own_diagnosis_leads() -> None:
    """A Python child with a proven cause: its line is the answer, the parent's wait stands behind."""
    child = two_locks()
    child = changed(child, threads=tuple(changed(t, is_main=t.tid == 1) for t in child.threads))
    report = classify(parent_and_child(child)).findings
    assert [f.pattern for f in report] == ["lock-order-deadlock", "child-wait"]
    assert report[1].because_of == ("lock-order-deadlock",)


def test_a_parent_whose_child_has_not_started_its_program() -> None:
    """It names no child, and waits for that one alone: no supervisor."""
    parent = resting(Wait("process", "clone3", endless=True), "spawn", "main")
    child = process([thread(2, [frame("spawn", 3)], is_main=True, wait=Wait("other", "openat"))], pid=2, ppid=1)
    assert found(evidence(parent, child)) == {"child-wait": "likely"}
    waits = resting(Wait("process", "wait4", endless=True), "supervise", "main")
    assert found(evidence(waits, child)) == {"child-wait": "possible"}


def test_a_child_that_cannot_write_is_no_child_wait() -> None:
    """A full pipe is another cause than a child that takes long."""
    child = process([thread(2, [frame("emit")], wait=Wait("pipe", "write", endless=True), is_main=True)])
    assert "child-wait" not in found(parent_and_child(child))


def test_a_child_that_has_ended_is_not_waited_for() -> None:
    """A zombie writes nothing any more: somebody else keeps its output open."""
    assert "child-wait" not in found(parent_and_child(process([], state="Z", python=None)))


def shutting_down(worker_wait: Wait, **known: object) -> Process:
    main = thread(1, stack("threading._shutdown"), wait=Wait("lock", "futex", endless=True), joins=2)
    worker = thread(2, stack("threading.wait", "queue.get", "run_worker"), wait=worker_wait, daemon=False, **known)
    return process([main, worker])


def test_a_server_whose_main_function_returned_is_at_work() -> None:
    """Its acceptor keeps the process alive, and waits for clients."""
    serving = shutting_down(Wait("socket", "accept4", endless=True))
    assert found(evidence(serving))["shutdown-join"] == "possible"


def test_the_thread_that_keeps_the_interpreter_is_the_culprit() -> None:
    """The main thread is at its end; the joined thread's own line is named."""
    known = evidence(shutting_down(Wait("condition", "futex", endless=True)))
    assert (verdict(known), found(known)["shutdown-join"], lines(known)) == ("shutdown-join", "likely", [3])


def test_a_last_worker_at_work_is_only_possible() -> None:
    """Waiting for a thread that computes is what exit is for."""
    known = evidence(shutting_down(Wait("condition", "futex", endless=True), counters=counters(0.9)))
    assert found(known)["shutdown-join"] == "possible"


def spinning(*stacks: Tuple[int, List[PythonFrame]]) -> Process:
    return process([thread(1, stacks[0][1], counters=counters(0.99), gil="holds", samples=samples(*stacks))])


def test_a_busy_loop_names_the_function_it_never_leaves() -> None:
    """What is on every sample is named; with nobody waiting it is possible, behind a lock that it holds likely."""
    base = [frame("main", 1)]
    known = spinning((30, [frame("next_day", 9), frame("search", 21), *base]), (20, [frame("search", 22), *base]))
    assert found(evidence(known)) == {"python-busy-loop": "possible"}
    assert set(lines(evidence(known))) == {21, 22}
    waiter = thread(2, [frame("runner")], wait=locked("lock-1"), counters=counters())
    holder = changed(known.threads[0], holds=(held("lock-1", 2),))
    both = changed(known, threads=(holder, waiter), resources=(lock("lock-1", 1, (2,)),))
    assert found(evidence(both)) == {"python-busy-loop": "likely"}


def test_who_joins_a_busy_thread_is_not_held_up_by_its_lock() -> None:
    """The main thread joins it: whether that takes too long nobody knows, however the join is written down."""
    busy = thread(2, stack("work"), counters=counters(1.0), samples=samples((50, stack("work"))))
    main = thread(1, stack("threading.join", "main"), joins=2, wait=Wait("lock", "futex", "thread-1", endless=True))
    ends = Resource("thread-1", "thread", "thread T-2", 2, "recorded", (1,))
    assert found(evidence(process([main, busy], resources=(ends,))))["python-busy-loop"] == "possible"


def test_a_batch_that_moves_on_is_no_busy_loop() -> None:
    """Nothing of the program but its outermost frames stays: that is progress as far as one can see."""
    known = spinning(
        (20, [frame("load"), frame("main")]), (20, [frame("clean"), frame("main")]), (10, [frame("fit"), frame("main")])
    )
    assert set(found(evidence(known)).values()) <= {"possible"}


IDLE_LOOP = Wait("event-loop", "epoll_wait", endless=True)
RESTING = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")


def client_loop(*others: Thread, **peer: object) -> Process:
    main = thread(1, RESTING, wait=IDLE_LOOP, counters=counters())
    ask = Task("task-1", "ask", "pending", "loop-1", (frame("ask", 9),), "Future")
    watching = changed(loop("loop-1", 1, 0), sockets=("socket-1",))
    return process([main, *others], loops=(watching,), tasks=(ask,), resources=(socket(**peer),))


def test_a_future_that_only_a_peer_can_resolve() -> None:
    """No timer, no other thread, one connection that it made: the task waits for that peer."""
    known = changed(client_loop(accepted=False), listening=())
    assert (found(evidence(known)), lines(evidence(known))) == ({"network-wait": "likely"}, [9])


def test_a_future_that_somebody_else_may_resolve() -> None:
    """With an accepted connection, or a thread that still works, the future is no peer's alone: silence."""
    worker = thread(2, [frame("work")], gil="holds", counters=counters(0.1))
    assert found(evidence(changed(client_loop(accepted=True), listening=()))) == {}
    assert found(evidence(changed(client_loop(worker, accepted=False), listening=()))) == {}


@pytest.mark.parametrize(("left", "expected"), [(36.0, "likely"), (1.0, "possible")])
def test_asyncio_sleep_is_a_sleep(left: float, expected: str) -> None:
    """Every task sleeps, or waits for one that does; the loop's own timer tells how long."""
    nap = Task("task-1", "nap", "pending", "loop-1", (*stack("asyncio.tasks.sleep"), frame("retry", 20)), "Future")
    outer = Task("task-2", "main", "pending", "loop-1", (frame("main", 30),), "_GatheringFuture")
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", timeout_s=left, endless=False), counters=counters())
    known = process([main], loops=(loop("loop-1", 1, 0),), tasks=(nap, outer))
    assert (found(evidence(known)), lines(evidence(known))) == ({"sleeping": expected}, [20])
    busy = changed(outer, awaiting="Future", stack=(frame("main", 30),))
    assert found(evidence(changed(known, tasks=(nap, busy)))) == {}


def test_a_heartbeat_never_ends() -> None:
    """A sleep that ends by itself is harmless, unless the thread does the same again for ever."""
    known = shutting_down(Wait("sleep", "clock_nanosleep", timeout_s=1.0, endless=False))
    assert found(evidence(known))["shutdown-join"] == "possible"
    looping = changed(evidence(known), loops={APP: {3: (2,)}})
    assert found(looping)["shutdown-join"] == "likely"


def test_a_child_of_asyncio() -> None:
    """await process.wait() on a loop that rests is a wait for a child like any other."""
    task = Task(
        "task-1", "main", "pending", "loop-1", (*stack("asyncio.subprocess.wait"), frame("encode", 14)), "Future"
    )
    parent = process(
        [thread(1, RESTING, wait=IDLE_LOOP, counters=counters())], loops=(loop("loop-1", 1, 0),), tasks=(task,)
    )
    child = process(
        [thread(2, wait=Wait("sleep", "nanosleep", timeout_s=900.0), is_main=True)], python=None, pid=2, ppid=1
    )
    report = classify(evidence(parent, child)).findings
    assert [f.pattern for f in report] == ["child-wait", "sleeping"] and report[0].culprits[0].line == 14


def test_code_made_of_a_string_is_blamed_only_where_there_is_no_other() -> None:
    """A manager's proxy has its methods from a string; a program given with -c has nothing else."""
    proxy, caller = frame("append", 2, "<string>"), frame("add", 7)
    assert own_frame((proxy, caller)) == caller
    assert own_frame((proxy, frame("put", 1, f"{LIB}/queue.py"))) == proxy
