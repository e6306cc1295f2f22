"""Event loops that spin, and those that work."""

from __future__ import annotations

from typing import Tuple

from postmortem.classify.engine import classify
from postmortem.evidence import Process, PythonFrame, Task
from postmortem.evidence import replace as changed

from .make import (
    counters,
    evidence,
    found,
    frame,
    lines,
    loop,
    poller,
    process,
    samples,
    stack,
    thread,
    verdict,
)


def one_loop(frames: Tuple[PythonFrame, ...], cpu: float, *tasks: Task, ready: int = 1) -> Process:
    main = thread(1, frames, counters=counters(cpu), samples=samples((50, frames)))
    return process([main], loops=(loop("loop-1", 1, ready),), tasks=tasks)


TURNING = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
COMPUTING = (frame("crunch", 8), frame("batch", 9), *stack("asyncio.events._run", "asyncio.base_events._run_once",
                                                         "asyncio.base_events.run_forever"))  # fmt: skip


def test_a_lone_polling_loop_is_busy() -> None:
    """One task in sleep(0), full CPU, samples in the machinery."""
    assert found(evidence(one_loop(TURNING, 0.99, poller("t")))) == {"busy-event-loop": "likely"}
    assert lines(evidence(one_loop(TURNING, 0.99, poller("t")))) == [40]


def test_a_computation_that_yields_is_not() -> None:
    """The same sleep(0), but the samples lie in work: no spin, and said so."""
    diagnosis = classify(evidence(one_loop(COMPUTING, 0.99, poller("t"))))
    assert all(f.confidence == "possible" for f in diagnosis.findings)
    assert "busy-event-loop" in {r.pattern for r in diagnosis.ruled_out}


def test_from_one_core_a_poller_is_only_possible() -> None:
    """One moment cannot tell a spin from a turn."""
    known = changed(one_loop(TURNING, 0.99, poller("t")), threads=(thread(1, TURNING),))
    assert found(evidence(known, window=None, kind="core")) == {"busy-event-loop": "possible"}


def test_a_descriptor_that_is_always_ready() -> None:
    """No task polls; one callback is called at every turn."""
    called = (
        frame("on_data", 33),
        *stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever"),
    )
    main = thread(1, TURNING, counters=counters(0.98), samples=samples((35, TURNING), (15, called)))
    known = process([main], loops=(loop("loop-1", 1),))
    assert (verdict(evidence(known)), lines(evidence(known))) == ("busy-event-loop", [33])


def test_a_server_under_load_is_not_spinning() -> None:
    """The same machinery in the samples, but what runs are tasks that transports wake: possible at most."""
    serving = (
        frame("serve", 27),
        *stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever"),
    )
    main = thread(1, TURNING, counters=counters(0.98), samples=samples((35, TURNING), (15, serving)))
    assert set(found(evidence(process([main], loops=(loop("loop-1", 1),)))).values()) <= {"possible"}


def test_a_watched_descriptor_that_no_sample_caught() -> None:
    """The callback is over before a sample sees it; the loop's own table of descriptors names it."""
    main = thread(1, TURNING, counters=counters(0.98), samples=samples((50, TURNING)))
    watching = changed(loop("loop-1", 1), watchers=(frame("on_readable", 17),))
    known = evidence(process([main], loops=(watching,)))
    assert (found(known), lines(known)) == ({"busy-event-loop": "likely"}, [17])
