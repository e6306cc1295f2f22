"""What the commands say, of evidence that no real program has left here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, List, cast

from postmortem.cpython.frames.chains import Recursion
from postmortem.evidence import HeldLock, Process, PythonFrame, Resource, Task, TaskWait, Thread
from postmortem.gdbchild import locks, show
from postmortem.gdbchild.asking import Asked
from postmortem.gdbchild.subject import Subject

ASKED = Asked((), None, {})


def subject(process: Process) -> Subject:
    return cast(Subject, SimpleNamespace(process=process))


def texts(lines: Any) -> List[str]:
    return [text for _style, text in lines]


def test_who_holds_a_lock() -> None:
    """A thread, by what is known of it, and where it took it; nobody that is known; a thread that has ended; another process.
    What is of the kernel, of tasks, or a GIL that nobody wants, is no lock here."""
    frame = PythonFrame("/srv/a.py", 5, "f")
    process = Process(
        1,
        threads=(Thread(7, holds=(HeldLock("a", frame, 0, "with-slot"),)), Thread(8)),
        resources=(
            Resource("a", "lock", "Lock a", 7, "with-slot", (8,)),
            Resource("b", "lock", "Lock b", waiters=(7,)),
            Resource("c", "rlock", "RLock c", 9, "recorded", owner_gone=True),
            Resource("d", "shared-semaphore", "semaphore d", owner_pid=2, owner_basis="inferred"),
            Resource("e", "thread", "thread x", 8, waiters=(7,)),
            Resource("f", "gil", "GIL", 7, "recorded"),
            Resource("g", "pipe", "pipe 3", waiters=(7,)),
            Resource("h", "async-lock", "asyncio.Lock h"),
        ),
    )
    header, *rows = [line.split("  ") for line in texts(locks.listed(subject(process), ASKED))]
    shown = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert header[0] == "LOCK"
    assert shown == [
        ["Lock a", "lock", "7", "with", "8", "f at /srv/a.py:5"],
        ["Lock b", "lock", "unknown", "-", "7"],
        ["RLock c", "rlock", "a thread that has ended", "record", "none"],
        ["semaphore d", "shared-semaphore", "process 2", "code", "none"],
        ["thread x", "thread", "8", "join", "7"],
    ]
    assert texts(locks.listed(subject(Process(1)), ASKED)) == ["No thread holds or waits for a known lock."]


def test_what_tasks_await() -> None:
    """A lock with its holder, a semaphore with its places and those who hold some, others' ends, a turn, a sleep."""
    held = HeldLock("s", PythonFrame("/srv/a.py", 5, "f"), 0, "with-slot")
    process = Process(
        1,
        resources=(
            Resource("l", "async-lock", "asyncio.Lock gate", owner_task="t1"),
            Resource("s", "async-semaphore", "asyncio.Semaphore s", value=0, limit=2),
        ),
        tasks=(
            Task("t1", "one", "pending", None, wait=TaskWait("lock", "l"), holds=(held,)),
            Task("t2", "two", "pending", None, wait=TaskWait("semaphore", "s")),
            Task("t3", "three", "pending", None, wait=TaskWait("tasks", tasks=("t1", "t2", "x", "y"), any=True)),
            Task("t4", "fo\x1bur", "pending", None, ready=True),
            Task("t5", None, "running", None, wait=TaskWait("sleep", detail="sleep(3)")),
            Task("t6", "six", "done", None),
        ),
    )
    assert texts(locks.tasks(subject(process), ASKED)) == [
        "one (pending, awaits asyncio.Lock gate, held by one)",
        "two (pending, awaits asyncio.Semaphore s (0 of 2), held by one)",
        "three (pending, awaits one of one, two, a task that is not listed and 1 more)",
        "fo\\x1bur (pending, ready to run)",
        "a task (running, awaits sleep(3))",
        "six (done)",
    ]
    assert texts(locks.tasks(subject(process), Asked(("no",), None, {}))) == ["No task is named no."]


def test_long_stacks_are_counted() -> None:
    """A recursion is shown once; the middle of what is still too long is a number."""
    lines = [("", str(number)) for number in range(200)]
    shown = texts(show.stack(lines, None, 1000))
    assert shown[:60] == [str(number) for number in range(60)]
    assert shown[60:62] == ["      … 920 frames not shown", "180"]
    recursion = Recursion([None, None], 50, 3, False)  # type: ignore[list-item]
    shown = texts(show.stack([("", str(number)) for number in range(106)], recursion, 106))
    assert shown == [
        "0",
        "1",
        "2",
        "3",
        "4",
        "      … these 2 frames 49 more times, on other lines",
        "103",
        "104",
        "105",
    ]


def test_names_steer_nothing() -> None:
    """Neither a terminal nor a CI runner obeys them, and none is longer than its place."""
    assert show.clean("a\x1b[2J\nb") == "a\\x1b[2J\\nb"
    assert not show.clean("::set-output::x").startswith("::")
    assert len(show.clean("x" * 1000)) == show.MAX_NAME
    assert show.tids(list(range(25))).endswith(", 19 and 5 more")
