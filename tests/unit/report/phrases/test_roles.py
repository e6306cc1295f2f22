"""What is said of the lines to change: which lock is taken there, and which is waited for."""

from __future__ import annotations

from typing import Dict

from postmortem.evidence import (
    Evidence,
    HeldLock,
    Process,
    PythonFrame,
    Resource,
    Task,
    TaskWait,
    Thread,
    Trigger,
    Wait,
    replace,
)
from postmortem.evidence.vocabulary import ResourceKind
from postmortem.findings import Culprit
from postmortem.report.phrases import roles

OUTER, INNER = PythonFrame("/app/a.py", 3, "pay"), PythonFrame("/app/a.py", 5, "pay")
LOCKS = tuple(Resource(name, "lock", f"Lock {name}", None, None) for name in ("journal", "accounts"))


def known() -> Evidence:
    waiter = Thread(
        7,
        "payer",
        wait=Wait("lock", "futex", "accounts"),
        stack=(INNER,),
        holds=(HeldLock("journal", OUTER, 0, "with-slot"),),
    )
    task = Task("t1", "Task-1", "pending", "loop-1", (INNER,), "Lock", wait=TaskWait("lock", "accounts"))
    return Evidence(Trigger("core"), (Process(1, threads=(waiter,), resources=LOCKS, tasks=(task,)),))


def culprit(frame: PythonFrame, tid: object = 7, task: object = None, pid: int = 1) -> Culprit:
    return Culprit(pid, tid, task, frame.file, frame.line, frame.function)  # type: ignore[arg-type]


def test_the_lock_that_a_line_takes_and_the_one_that_it_wants() -> None:
    """Two lines of one thread are told apart by what happens there."""
    assert roles.of(known(), [culprit(OUTER)]) == "Acquires Lock journal here and holds it."
    assert roles.of(known(), [culprit(INNER)]) == "Waits here for Lock accounts."


def test_a_task_waits_as_a_thread_does() -> None:
    """By its name or its id."""
    for name in ("Task-1", "t1"):
        assert roles.of(known(), [culprit(INNER, None, name)]) == "Waits here for Lock accounts."


def test_nothing_is_said_of_other_lines() -> None:
    """Nothing is said of a line that neither takes nor waits, of an unknown thread, of no line."""
    assert roles.of(known(), [culprit(PythonFrame("/app/a.py", 9, "main"))]) == ""
    assert roles.of(known(), [culprit(OUTER, 8)]) == roles.of(known(), [culprit(OUTER, 7, None, 2)]) == ""
    assert roles.of(known(), [culprit(PythonFrame("/app/a.py", None, "pay"))]) == ""


def test_a_part_of_many_is_no_lock() -> None:
    """A semaphore or a queue of connections gives out one of many, and an import is begun: none is held as a lock is."""
    kinds: Dict[ResourceKind, str] = {
        "semaphore": "Takes something from Lock journal here and still has it.",
        "import-lock": "Starts the Lock journal",
    }
    for kind, words in kinds.items():
        process = known().processes[0]
        changed = replace(process, resources=(Resource("journal", kind, "Lock journal"),))
        assert roles.of(replace(known(), processes=(changed,)), [culprit(OUTER)]).startswith(words)


def test_several_at_one_line_are_spoken_of_together() -> None:
    """Each with its own lock; and of a line where one takes and another waits only what both do is said."""
    one, waiter = known(), known().processes[0].threads[0]
    other = replace(waiter, tid=8, wait=Wait("lock", "futex", "journal"), holds=())
    both = replace(one, processes=(replace(one.processes[0], threads=(waiter, other)),))
    inner = [culprit(INNER), culprit(INNER, 8)]
    assert roles.of(both, inner) == "Waits here for Lock accounts or Lock journal (one each)."
    assert roles.of(both, [culprit(OUTER), culprit(OUTER, 8)]) == ""
    assert roles.of(both, []) == ""


def test_two_locks_in_one_line() -> None:
    """`with a, b:` takes both."""
    waiter = known().processes[0].threads[0]
    held = tuple(HeldLock(name, OUTER, 0, "with-slot") for name in ("journal", "accounts"))
    both = replace(known(), processes=(replace(known().processes[0], threads=(replace(waiter, holds=held),)),))
    assert roles.of(both, [culprit(OUTER)]) == "Acquires Lock journal and Lock accounts here and holds it."
