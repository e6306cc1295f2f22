"""What tasks wait for and hold, in the text report."""

from __future__ import annotations

from typing import Any

from postmortem.evidence import HeldLock, Process, PythonFrame, Resource, Task, TaskWait
from postmortem.report.phrases.tasks import Waits


def task(ident: str, wait: Any = None, **known: Any) -> Task:
    return Task(ident, f"job-{ident}", "pending", "loop-1", wait=wait, **known)


def said(*tasks: Task, **known: Any) -> str:
    return Waits(Process(1, tasks=tasks, **known)).of(tasks)


def test_a_lock_is_told_with_its_holder_and_what_is_held_meanwhile() -> None:
    """Both halves of an asyncio deadlock stand under the task."""
    lock = Resource("a", "async-lock", "asyncio Lock cache.lock", owner_task="2")
    other = Resource("b", "async-lock", "asyncio Lock log.lock")
    held = HeldLock("b", PythonFrame("/app/log.py", 12, "write"), 1, "with-slot")
    waiting = task("1", TaskWait("lock", "a", endless=True), holds=(held,))
    text = Waits(Process(1, tasks=(waiting, task("2")), resources=(lock, other))).of((waiting,))
    assert "asyncio Lock cache.lock, held by task job-2, without a time limit." in text
    assert "Holds asyncio Lock log.lock, acquired in write at /app/log.py:12." in text


def test_awaited_tasks_are_named_and_counted() -> None:
    """All of many, or the first of them."""
    many = tuple(str(n) for n in range(10))
    assert "all 10 tasks: 0, 1, 2 and 7 more" in said(task("x", TaskWait("tasks", tasks=many)))
    assert "the first of 10 tasks" in said(task("x", TaskWait("tasks", tasks=many, any=True)))


def test_tasks_that_wait_for_different_things_share_a_sentence() -> None:
    """A thousand names help nobody."""
    tasks = [task(str(n), TaskWait("future", detail=f"waits for reply {n}")) for n in range(1000)]
    assert said(*tasks) == "Each waits for a different future."


def test_what_remains_is_told_of_tasks_that_agree_on_it() -> None:
    """Several that began after each other differ in that alone: they still share a sentence."""
    late, soon = (TaskWait("event", detail="waits", endless=False, remaining_s=s) for s in (82_800.0, 4.2))
    assert said(task("1", late), task("2", late)) == "Waits, gives up in 23 h."
    assert said(task("1", soon)) == "Waits, times out in 4.2 s."
    assert said(task("1", late), task("2", soon)) == "Waits."


def test_a_ready_task_waits_for_its_turn() -> None:
    """Nothing else stops it."""
    assert said(task("1", ready=True)) == "Waits only for its turn."


def test_what_is_unknown_is_not_told() -> None:
    """The stack is all there is."""
    assert said(task("1")) == ""
