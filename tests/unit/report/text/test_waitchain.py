"""The wait chain of the text report."""

from __future__ import annotations

from postmortem.evidence import Evidence, HeldLock, Process, PythonFrame, Resource, Thread, Trigger, Wait
from postmortem.findings import Culprit, Finding
from postmortem.report.text import waitchain
from postmortem.report.text.page import Page


def thread(tid: int, resource: str, line: int, **known: object) -> Thread:
    frames = (
        PythonFrame("/usr/lib/python3.12/threading.py", 300, "wait"),
        PythonFrame("/app/cache.py", line, f"step{tid}"),
    )
    return Thread(tid, f"worker-{tid}", wait=Wait("lock", "futex", resource, endless=True), stack=frames, **known)  # type: ignore[arg-type]


def lock(ident: str, owner: int) -> Resource:
    return Resource(ident, "lock", f"Lock {ident}", owner, "with-slot")


def shown(*processes: Process, blamed: int = 2) -> str:
    page = Page(80, False)
    culprit = Culprit(processes[-1].pid, blamed, None, "/app/cache.py", 1, "f")
    waitchain.show(
        page, Evidence(Trigger("core"), processes), Finding("x", "proven", "s", "e", "r", culprits=(culprit,))
    )
    return str(page)


def test_a_chain_leads_from_the_main_thread_into_the_circle() -> None:
    """Each link says what is wanted, who has it and since which line; the last one that back to the start, a wait-for cycle."""
    held = HeldLock("b", PythonFrame("/app/cache.py", 30, "put"), 1, "with-slot")
    main = Thread(1, "MainThread", is_main=True, wait=Wait("lock", "futex", endless=True), joins=2)
    text = shown(
        Process(
            1,
            threads=(main, thread(2, "a", 41, holds=(held,)), thread(3, "b", 52)),
            resources=(lock("a", 3), lock("b", 2)),
        )
    )
    lines = text.splitlines()
    assert lines[0] == "Who waits for whom"
    assert lines[1] == "  MainThread (1)"
    assert lines[2] == "    → joins worker-2 (2), at cache.py:41 in step2"
    assert "wants Lock a, held by worker-3 (3) (read from its `with`), now at" in lines[3]
    assert "held by worker-2 (2) since cache.py:30 in put" in text
    assert text.rstrip().endswith("back to the start, a wait-for cycle")


def test_a_chain_crosses_processes() -> None:
    """The parent waits for the child; which of its threads holds it up is said next."""
    parent = Process(
        1, threads=(Thread(1, "MainThread", is_main=True, wait=Wait("process", "wait4", pid=9, endless=True)),)
    )
    gone = Resource("r", "rlock", "RLock log.lock", owner_gone=True)
    child = Process(9, 1, ("python", "job.py"), threads=(thread(9, "r", 7, is_main=True),), resources=(gone,))
    text = shown(parent, child, blamed=9)
    assert "→ waits for process 9 (job.py)" in text
    assert "→ in which worker-9 (9) waits, at cache.py:7 in step9" in text
    assert text.rstrip().endswith("whose holder has ended")


def test_a_single_link_to_something_outside_is_no_chain() -> None:
    """The verdict itself says so."""
    main = Thread(1, "MainThread", is_main=True, wait=Wait("socket", "recvfrom", endless=True))
    assert shown(Process(1, threads=(main,)), blamed=1) == "\n"


def test_long_chains_are_cut() -> None:
    """A hundred links are counted, not shown."""
    threads = [thread(tid, f"l{tid}", tid) for tid in range(2, 100)]
    main = Thread(1, "MainThread", is_main=True, wait=Wait("lock", "futex", endless=True), joins=2)
    locks = [lock(f"l{tid}", tid + 1) for tid in range(2, 99)]
    text = shown(Process(1, threads=(main, *threads), resources=tuple(locks)))
    assert "more links" in text
    assert len(text.splitlines()) < 60
