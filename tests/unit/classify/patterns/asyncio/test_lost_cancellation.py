"""lost-cancellation: cancelled tasks that went on; told from those that clean up, are to be told yet, or nobody awaits."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from postmortem.evidence import Cancellation, Evidence, Resource, Task, TaskWait, Wait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import evidence, found, frame, lines, loop, process, stack, thread

SELECT = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever", "main")
CAUGHT = (frame("serve", 14),)
LOST = Cancellation(1, False, False, "called", CAUGHT)


def cancelled(
    known: Optional[Cancellation], wait: Optional[TaskWait] = None, closed: bool = True, **more: Any
) -> Evidence:
    """Task-2 waits for a queue that nobody fills; Task-1 awaits it, unless ``alone``."""
    queue = Resource("q", "async-queue", "asyncio.Queue q", waiting_tasks=("t2",), closed=closed or None, named=True)
    served = Task(
        "t2", "Task-2", "pending", "loop-1", (frame("serve", 12),),
        wait=wait or TaskWait("queue", "q", endless=True), ready=False, cancellation=known,
    )  # fmt: skip
    main = Task(
        "t1", "Task-1", "pending", "loop-1", (frame("main", 20),),
        wait=TaskWait("task", tasks=("t2",), endless=True), ready=False, cancellation=more.get("main"),
    )  # fmt: skip
    running = changed(loop("loop-1", 1, 0), main_task=None if more.get("alone") else "t1", scheduled=0, watched=0)
    return evidence(
        process(
            [thread(1, SELECT, wait=Wait("event-loop", "epoll_wait", endless=True))],
            loops=(running,),
            tasks=(served,) if more.get("alone") else (main, served),
            resources=(queue,),
            signal_handlers=(),
            cancels=(),
        )
    )


def test_a_task_that_went_on_is_proven() -> None:
    """The clause that caught it comes first, then where the task waits again, then who awaits it."""
    known = cancelled(LOST)
    first = classify(known).findings[0]
    assert (first.pattern, first.confidence, lines(known)) == ("lost-cancellation", "proven", [14, 12, 20])


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (Cancellation(None, False, False, "called"), "likely"),  # up to 3.10, by the source alone
        (Cancellation(None, False, False, "awaited"), "proven"),  # wait_for awaits only what it has cancelled
        (Cancellation(None, False, False, "closing"), "proven"),
        (Cancellation(1, False, False), "possible"),  # perhaps of an earlier time limit
        (Cancellation(1, False, False, None, CAUGHT), "proven"),
        (Cancellation(1, False, None, "called"), "possible"),  # it may be cleaning up
    ],
)
def test_the_confidence_follows_from_what_was_read(known: Cancellation, expected: str) -> None:
    """A count alone may be old; a clause, or who cancelled it, tells; without the state of the coroutines it stays open."""
    assert found(cancelled(known)).get("lost-cancellation") == expected


@pytest.mark.parametrize(
    "known",
    [None, Cancellation(1, True, False, "called"), Cancellation(1, False, True, None, CAUGHT)],
    ids=["never cancelled", "not delivered yet", "cleaning up"],
)
def test_what_was_not_lost_is_not_meant(known: Optional[Cancellation]) -> None:
    """A task that nobody cancelled, that has not run since, or that is in a clause that handles it."""
    assert "lost-cancellation" not in found(cancelled(known))


def test_a_clean_up_that_whoever_cancelled_it_waits_for() -> None:
    """It may take its time, or wait for what does not come, as a query does that is to be cancelled in vain."""
    assert found(cancelled(Cancellation(1, False, True, "called")))["lost-cancellation"] == "possible"


def test_nobody_waits_for_its_end() -> None:
    """Then it may go on as it likes, unless the loop's run waits for it."""
    assert "lost-cancellation" not in found(cancelled(Cancellation(1, False, False, None, CAUGHT), alone=True))
    assert (
        found(cancelled(Cancellation(1, False, False, "closing", CAUGHT), alone=True))["lost-cancellation"] == "proven"
    )


def test_a_task_that_sleeps_in_rounds_is_likely_by_its_clause_or_its_canceller() -> None:
    """Its wait ends, and the next one begins: a clause shows that it goes on, or who cancelled it waits; a count may be old."""
    sleep = TaskWait("sleep", endless=False, timeout_s=1.0, remaining_s=0.4)
    assert found(cancelled(LOST, sleep))["lost-cancellation"] == "likely"
    assert found(cancelled(Cancellation(1, False, False, "called"), sleep))["lost-cancellation"] == "likely"
    assert found(cancelled(Cancellation(None, False, False, "called"), sleep))["lost-cancellation"] == "possible"
    assert found(cancelled(Cancellation(1, False, False), sleep))["lost-cancellation"] == "possible"
    assert "lost-cancellation" not in found(cancelled(Cancellation(None, False, False), sleep))


def test_who_awaits_a_cancelled_task_has_lost_nothing() -> None:
    """A cancelled canceller waits on, because the task below it does not end."""
    known = cancelled(LOST, main=Cancellation(1, False, False, "called"))
    assert lines(known)[0] == 14 and classify(known).findings[0].summary.startswith("Task-2")
