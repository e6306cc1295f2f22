"""Threads of a process that have the other end of what another of its threads waits for."""

from __future__ import annotations

from typing import List, Optional, Tuple

from postmortem.evidence import End, Process, Resource, Task, TaskWait, Thread, Wait, Waker
from postmortem.extract.cross_process.serving import with_servers, with_serving_tasks

PID = 10
ENDS = (End(PID, 4, "rw"), End(PID, 5, "rw"))
PAIR = Resource(
    "socket-1",
    "socket",
    "socket",
    ends=ENDS,
    waiters=(PID,),
    closed=True,
    wakers=(Waker("end", "kernel", pid=PID, name="descriptor 5"),),
)


def thread(tid: int, fd: Optional[int], resource: Optional[str] = None) -> Thread:
    return Thread(tid, wait=Wait("socket", "recvfrom", fd=fd, resource=resource, endless=True))


def wakers(*others: Thread) -> List[Tuple[Optional[int], str]]:
    (found,) = with_servers(PID, [PAIR], [thread(PID, 4, "socket-1"), *others], {}, None)
    return [(w.tid, w.basis) for w in found.wakers]


def test_the_thread_that_waits_at_the_other_end_is_named() -> None:
    """It is a guess that nobody else would answer there: nothing is proven by it."""
    assert wakers(thread(11, 5), thread(12, 7)) == [(11, "inferred")]


def test_any_other_thread_may_answer() -> None:
    """When none is seen to have it, each may, but not who waits; a process with one thread stays a process."""
    assert wakers(thread(11, None), thread(12, 7)) == [(11, "kernel"), (12, "kernel")]
    assert wakers() == [(None, "kernel")]


def test_ends_of_other_processes_stay() -> None:
    """Only this one's own is split among its threads."""
    shared = Resource(
        "pipe-1",
        "pipe",
        "pipe",
        ends=(End(PID, 4, "r"), End(20, 5, "w")),
        waiters=(PID,),
        wakers=(Waker("end", "kernel", pid=20),),
    )
    assert with_servers(PID, [shared], [thread(PID, 4, "pipe-1"), thread(11, None)], {}, None) == (shared,)


def answering(wait: TaskWait, serves: int = 5) -> List[Tuple[Optional[int], Optional[str], str]]:
    """Return the wakers of a client's socket when a task of its process serves a descriptor."""
    task = Task("task-1", "handler", "pending", "loop-1", wait=wait, serves=(serves,))
    own = Resource("socket-2", "socket", "socket", ends=(ENDS[1], ENDS[0]))
    client = Process(PID, tasks=(task,), resources=(PAIR, own))
    (found,) = with_serving_tasks([client])
    return [(w.pid, w.task, w.basis) for w in found.resources[0].wakers]


def test_the_task_that_serves_the_other_end_comes_before_its_process() -> None:
    """Whatever else it waits for; the process stays a waker, since others of its tasks may use the connection, too."""
    process = (PID, None, "kernel")
    assert answering(TaskWait("future")) == [(PID, "task-1", "inferred"), process]
    assert answering(TaskWait("descriptor", "socket-2")) == [process]  # it waits for what comes on that very connection
    assert answering(TaskWait("future"), serves=4) == [process]  # the waiter's own end
