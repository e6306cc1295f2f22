"""Scopes of anyio that are cancelled for ever."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.evidence import Evidence, Loop, Task
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, process, samples, stack, thread

ANYIO = "/v/lib/python3.12/site-packages/anyio/_backends/_asyncio.py"
RUN = stack("asyncio.base_events._run_once", "asyncio.base_events.run_forever")
DELIVERS = (
    *stack("inspect.getcoroutinestate"),
    frame("_deliver_cancellation", 488, ANYIO),
    *stack("asyncio.events._run"),
    *RUN,
)
WAITS = (*stack("asyncio.locks.wait"), frame("wait", 1651, ANYIO), frame("farewell", 20), frame("visit", 32))
#: A step that a cancellation wakes stands where its task awaits.
STEP = (frame("visit_all", 35), *stack("asyncio.events._run"), *RUN)


def spinning(*more: Any, cpu: float = 0.95, **known: Any) -> Evidence:
    """A loop whose thread delivers, and turns; one task that waits shielded, one that is cancelled again and again."""
    seen = samples((10, DELIVERS), (10, stack("selectors.select") + RUN), (20, STEP), *more)
    main = thread(1, stack("selectors.select") + RUN, counters=counters(cpu), samples=seen)
    loop = Loop(
        "loop-1",
        1,
        ready=2,
        scheduled=0,
        watched=0,
        **{"ready_callbacks": (frame("_deliver_cancellation", 469, ANYIO),), **known},
    )
    tasks = (
        Task("task-1", "visit", "pending", "loop-1", WAITS, "Future", ready=False),
        Task(
            "task-2",
            "visit_all",
            "pending",
            "loop-1",
            (*stack("asyncio.tasks._wait"), frame("visit_all", 35)),
            ready=True,
        ),
    )
    return evidence(process([main], loops=(loop,), tasks=tasks))


def test_a_cancelled_scope_that_a_task_does_not_leave() -> None:
    """Named are the lines at which it stays, then anyio's; the remedy is a deadline for what is shielded."""
    report = classify(spinning()).findings[0]
    assert (report.pattern, report.confidence) == ("busy-event-loop", "likely")
    assert lines(spinning()) == [20, 32, 488] and "1 task has not left it" in report.summary
    assert "deadline" in report.remedy


def test_a_delivery_that_runs_at_the_moment_is_in_no_queue() -> None:
    """It is about to put itself there again: the samples say that it runs at every turn."""
    known = spinning(ready_callbacks=())
    inside = changed(known.processes[0].threads[0], stack=DELIVERS)
    known = changed(known, processes=(changed(known.processes[0], threads=(inside,)),))
    assert found(known)["busy-event-loop"] == "likely"
    assert "runs now" in " ".join(classify(known).findings[0].evidence)


@pytest.mark.parametrize(
    "calm",
    [
        spinning(cpu=0.1),
        spinning(ready_callbacks=()),
        spinning((200, (frame("crunch", 8), *stack("asyncio.events._run"), *RUN))),
    ],
)
def test_a_cancellation_that_is_under_way_is_nothing(calm: Evidence) -> None:
    """A loop that rests, one that delivers nothing, and one that has other work."""
    assert "busy-event-loop" not in found(calm)
