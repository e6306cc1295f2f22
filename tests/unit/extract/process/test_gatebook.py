"""Gates of tasks whose wait is in a task of `wait_for`, as asyncio does up to 3.11."""

from __future__ import annotations

from typing import Tuple

import pytest

from postmortem.evidence import PythonFrame, Task, TaskWait
from postmortem.extract.process.gatebook import _of_wait_for

QUEUE = TaskWait("queue", "q", endless=True)
GET = PythonFrame("/lib/python3.9/asyncio/queues.py", 166, "get")
WAIT_FOR = PythonFrame("/lib/python3.9/asyncio/tasks.py", 481, "wait_for")
OWN = PythonFrame("/app/pool.py", 12, "wait_for")


def task(ident: str, wait: TaskWait, *stack: PythonFrame) -> Task:
    return Task(ident, ident, "pending", "loop-1", stack, wait=wait)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [((WAIT_FOR, OWN), (GET,), QUEUE), ((OWN,), (GET,), None), ((WAIT_FOR, OWN), (GET, OWN), None), ((), (GET,), None)],
)
def test_the_wait_of_the_inner_task(
    outer: Tuple[PythonFrame, ...], inner: Tuple[PythonFrame, ...], expected: TaskWait
) -> None:
    """Only below asyncio's own wait_for, and only where the inner task has none of the program's code."""
    awaits = TaskWait("task", tasks=("t2",), endless=False)
    first = task("t1", awaits, *outer)
    assert _of_wait_for(first, {"t2": task("t2", QUEUE, *inner)}) == (expected or awaits)
    assert _of_wait_for(first, {}) == awaits
