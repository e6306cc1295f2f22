"""Threads of a process that have the other end of what another of its threads waits for."""

from __future__ import annotations

from typing import List, Optional, Tuple

from postmortem.evidence import End, Resource, Thread, Wait, Waker
from postmortem.extract.cross_process.serving import with_servers

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
