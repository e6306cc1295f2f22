"""A parent that waits for a child: who of them leads, and when it is no such wait."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from postmortem.evidence import Evidence, Process, Resource, Task, Wait, Waker
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import Deed

from .....support.diagnosed import classify
from .....support.make import (
    IDLE_LOOP,
    RESTING,
    counters,
    evidence,
    found,
    frame,
    loop,
    process,
    resting,
    silent,
    stack,
    thread,
    two_locks,
)

AT_EXIT = (frame("_exit_function", 357, "/usr/lib/python3.12/multiprocessing/util.py"),)


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


def test_workers_that_wait_for_a_program_that_has_ended() -> None:
    """Its exit handler joins them, and nobody gives them orders any more: where they were started is the line to change."""
    waits = Wait("process", "wait4", pid=2, endless=True)
    parent = process([thread(1, AT_EXIT, wait=waits)])
    orders = Wait("pipe", "read", resource="p", endless=True)
    pipe = Resource("p", "pipe", "pipe", wakers=(Waker("end", "kernel", pid=1),))
    worker = thread(2, [frame("make_desks", 50)], wait=orders, is_main=True)
    child = process([worker], pid=2, ppid=1, resources=(pipe,))
    report = classify(evidence(parent, child)).findings
    assert (report[0].pattern, report[0].confidence, report[0].culprits[0].line) == ("child-wait", "likely", 50)
    beside = (*pipe.wakers, Waker("end", "kernel", pid=3))
    child = changed(child, resources=(changed(pipe, wakers=beside),))
    feeds = process([thread(3, [frame("feed")], counters=counters(0.9))], pid=3, ppid=1)
    assert found(evidence(parent, child, feeds)).get("child-wait") != "likely"  # the other worker may give it orders


def test_a_child_that_cannot_write_is_no_child_wait() -> None:
    """A full pipe is another cause than a child that takes long."""
    child = process([thread(2, [frame("emit")], wait=Wait("pipe", "write", endless=True), is_main=True)])
    assert "child-wait" not in found(parent_and_child(child))


def test_a_child_that_has_ended_is_not_waited_for() -> None:
    """A zombie writes nothing any more: somebody else keeps its output open."""
    assert silent(parent_and_child(process([], state="Z", python=None)), "child-wait")


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


def test_a_child_that_waits_for_what_a_third_process_has_is_no_cause() -> None:
    """The lock on the file leads: the child has not ended because of it, and its holder is another process still."""
    wait = Wait("process", "wait4", "p", endless=True, pid=2)
    awaited = Resource("p", "process", "child", wakers=(Waker("runner", "kernel", 2),))
    parent = process([thread(1, [frame("run", 40)], wait=wait, is_main=True)], resources=(awaited,))
    asks = thread(2, [frame("store", 48)], wait=Wait("file", "flock", "f", endless=True), is_main=True)
    held = Resource("f", "file-lock", "lock on a file", owner_pid=3, locked=True, waiters=(2,))
    child = process([asks], pid=2, ppid=1, resources=(held,))
    naps = thread(3, [frame("index", 32)], wait=Wait("sleep", "clock_nanosleep", timeout_s=0.5), is_main=True)
    leading = found(evidence(parent, child, process([naps], pid=3, ppid=2)))
    assert next(iter(leading)) == "file-lock-wait" and leading.get("child-wait") != "likely"


def test_a_shell_between_them_whose_child_works() -> None:
    """The parent waits for a shell, and the shell for a program that is at work."""
    parent = process(
        [thread(1, stack("subprocess._wait", "build", "main"), wait=Wait("process", "wait4", pid=2, endless=True))]
    )
    shell = process(
        [thread(2, wait=Wait("process", "wait4", endless=True), is_main=True)],
        python=None, pid=2, ppid=1, argv=("sh", "-c", "compile"),
    )  # fmt: skip
    compiler = process([thread(3, is_main=True)], python=None, pid=3, ppid=2, argv=("compile",))
    assert found(evidence(parent, shell, compiler)).get("child-wait") != "likely"
    sleeps = changed(
        compiler, threads=(thread(3, wait=Wait("sleep", "clock_nanosleep", timeout_s=900.0), is_main=True),)
    )
    assert found(evidence(parent, shell, sleeps))["child-wait"] == "possible"


@pytest.mark.parametrize(("deeds", "expected"), [(("ends",), "possible"), ((), "likely"), (None, "likely")])
def test_a_parent_whose_thread_may_come_to_end_the_child(deeds: Optional[Tuple[Deed, ...]], expected: str) -> None:
    """A timer of it that will kill the child: neither the child's long sleep nor the wait for it is endless then."""
    timer = thread(9, stack("threading.wait", "threading.run"), wait=Wait("event", endless=False), deeds=deeds)
    sleeps = Wait("sleep", "clock_nanosleep", timeout_s=3600.0, endless=False)
    child = process([thread(2, [frame("fetch", 23)], is_main=True, wait=sleeps)], pid=2, ppid=1)
    reads = Wait("process", "wait4", pid=2, endless=True)
    known = evidence(process([thread(1, stack("subprocess.wait", "main"), wait=reads), timer], pid=1), child)
    told = found(known)
    assert told["sleeping"] == expected
    assert told.get("child-wait", "possible") == "possible"
