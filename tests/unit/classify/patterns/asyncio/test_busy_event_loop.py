"""Event loops that spin, and those that work."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import pytest

from postmortem.evidence import Evidence, Loop, Process, PythonFrame, Task, TaskWait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import (
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
COMPUTING = (
    frame("crunch", 8),
    frame("batch", 9),
    *stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever"),
)


def test_a_lone_polling_loop_is_busy() -> None:
    """One task in sleep(0), full CPU, samples in the machinery."""
    assert found(evidence(one_loop(TURNING, 0.99, poller("t")))) == {"busy-event-loop": "likely"}
    assert lines(evidence(one_loop(TURNING, 0.99, poller("t")))) == [40]


VENV = "/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("package", "turn", "kind", "tid"),
    [
        ("trio", ("_real_async_yield", "trio/_core/_traps.py"), "trio", 1),
        ("gevent", ("sleep", "gevent/hub.py"), "gevent", None),
    ],
)
@pytest.mark.parametrize(
    ("line", "waits", "works", "expected"),
    [
        (8, None, False, "likely"),
        (8, TaskWait("sleep", endless=False), False, None),
        (8, None, True, None),
        (0, None, False, None),
    ],
    ids=["polls", "sleeps", "computes", "library"],
)
def test_a_task_that_only_yields(
    package: str, turn: Tuple[str, str], kind: str, tid: Optional[int], line: int, waits: Optional[TaskWait], works: bool,
    expected: Optional[str],
) -> None:  # fmt: skip
    """It waits for nothing but its turn at a line of the program, and the loop only turns: trio's tasks, gevent's greenlets."""
    yields = frame(turn[0], 71, f"{VENV}/{turn[1]}")
    calls = frame("waiter", line) if line else frame("send_all", 80, f"{VENV}/{package}/_stream.py")
    task = Task("t", "waiter", "pending", "loop-1", (yields, calls), None, wait=waits)
    turning = (frame("run", 647, f"{VENV}/{package}/_run.py"), frame("main", 14))
    frames = (frame("crunch", 5), *turning) if works else turning
    main = thread(1, frames, counters=counters(0.99), samples=samples((50, frames)))
    known = process([main], loops=(changed(loop("loop-1", tid or 0), kind=kind, tid=tid),), tasks=(task,))
    assert found(evidence(known)).get("busy-event-loop") == expected


@pytest.mark.parametrize(("reads", "expected"), [(0, "likely"), (10, "possible")])
def test_a_call_of_twisted_that_schedules_itself(reads: int, expected: str) -> None:
    """Most samples show the reactor's own code; those of a loaded server also show what serves descriptors."""
    main_loop = frame("mainLoop", 694, f"{VENV}/twisted/internet/base.py")
    polls = (frame("doPoll", 238, f"{VENV}/twisted/internet/epollreactor.py"), main_loop)
    called = (frame("check", 6), frame("runUntilCurrent", 1094, f"{VENV}/twisted/internet/base.py"), main_loop)
    serves = (frame("_doReadOrWrite", 244, f"{VENV}/twisted/internet/epollreactor.py"), *polls)
    main = thread(1, polls, counters=counters(0.99), samples=samples((40, polls), (10, called), (reads, serves)))
    known = process([main], loops=(changed(loop("loop-1", 1), kind="twisted"),))
    assert (found(evidence(known)).get("busy-event-loop"), lines(evidence(known))[0]) == (expected, 6)


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


@pytest.mark.parametrize(("reads", "expected"), [(4, "possible"), (0, "likely")])
def test_a_server_under_load_is_not_spinning(reads: int, expected: str) -> None:
    """Its samples show the loop's own code, too, but also transports that wake the tasks; a spinning loop has none of those."""
    serving = (
        frame("serve", 27),
        *stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever"),
    )
    reading = (*stack("asyncio.selector_events._read_ready__data_received"), *serving[1:])
    sampled = samples((35, TURNING), (15, serving), *([(reads, reading)] if reads else []))
    main = thread(1, TURNING, counters=counters(0.98), samples=sampled)
    assert found(evidence(process([main], loops=(loop("loop-1", 1),)))).get("busy-event-loop") == expected


def test_a_watched_descriptor_that_no_sample_caught() -> None:
    """The callback is over before a sample sees it; the loop's own table of descriptors names it."""
    main = thread(1, TURNING, counters=counters(0.98), samples=samples((50, TURNING)))
    watching = changed(loop("loop-1", 1), watchers=(frame("on_readable", 17),))
    known = evidence(process([main], loops=(watching,)))
    assert (found(known), lines(known)) == ({"busy-event-loop": "likely"}, [17])


def computing_coroutine(**known: Any) -> Evidence:
    """A thread whose loop runs one step of a coroutine, in which the same line computes all the time."""
    own = (frame("take_due", 16), frame("run", 35), frame("main", 47))
    frames = (*own, *stack("asyncio.events._run", "asyncio.base_events._run_once"))
    main = thread(1, frames, gil="holds", counters=counters(0.99), samples=samples((25, frames), (25, frames[1:])))
    loop = Loop(
        "loop-1",
        1,
        **{"ready": 0, "scheduled": 1, "turned": False, "callback_lasts_s": 1.1, "next_timer_s": -2.2, **known},
    )
    step = Task("task-1", "reader", "running", "loop-1", (frame("run", 35), frame("main", 47)))
    return evidence(process([main], loops=(loop,), tasks=(step, Task("task-2", "beat", "pending", "loop-1"))))


def test_a_coroutine_that_computes_for_ever_while_a_timer_is_late() -> None:
    """Its loop did not turn: others wait for it, which tells it from a computation that nobody minds."""
    report = classify(computing_coroutine()).findings[0]
    assert (report.pattern, report.confidence) == ("python-busy-loop", "likely")
    assert any("2.2 s late" in fact for fact in report.evidence)


@pytest.mark.parametrize("known", [{"next_timer_s": 0.5}, {"turned": None}, {"callback_lasts_s": None}])
def test_a_coroutine_that_keeps_nobody_waiting_is_only_possible(known: Dict[str, Any]) -> None:
    """Or one of which it is not known that it was the same step."""
    assert found(computing_coroutine(**known)).get("python-busy-loop") in (None, "possible")


@pytest.mark.parametrize(
    ("inside", "cpu", "expected"),
    [
        ("site-packages.asyncio_gevent.selector.select", 0.95, "likely"),
        ("site-packages.asyncio_gevent.selector.select", 0.3, None),
        ("redraw", 0.95, None),
    ],
)
def test_a_selector_that_never_waits(inside: str, cpu: float, expected: Optional[str]) -> None:
    """The loop turns without a callback, in a greenlet, say, so that its thread is not known. A selector that runs code of the
    program, such as a window's, does not turn in vain."""
    turns = [*stack(inside, "asyncio.base_events._run_once", "asyncio.base_events.run_forever")]
    hub = thread(1, stack("site-packages.gevent.hub.run"), counters=counters(cpu), samples=samples((90, turns)))
    known = process([hub], loops=(Loop("loop-1", None, "asyncio", 0, 0, readers=1),))
    assert found(evidence(known)).get("busy-event-loop") == expected


@pytest.mark.parametrize(
    ("switches", "calls", "expected"),
    [
        (2, {}, "likely"),
        (200, {"futex": 6, "running": 20}, "likely"),
        (200, {"poll": 6, "running": 20}, None),
        (200, {"futex": 2}, None),
    ],
    ids=["never-sleeps", "wants-the-gil", "sleeps-in-select", "hardly-looked-at"],
)
def test_a_librarys_select_loop_that_turns(switches: int, calls: Dict[str, int], expected: Optional[str]) -> None:
    """It gives up the CPU while it waits for the GIL, too: only sleeps in the call of select show that nothing is ready."""
    file = f"{VENV}/wire/core.py"
    outer = (frame("loop", 245, file), frame("main", 14))
    selects, writes = (frame("poll", 172, file), *outer), (frame("write", 113, file), frame("poll", 189, file), *outer)
    used = changed(counters(0.9, switches), syscalls=calls)
    main = thread(1, selects, counters=used, samples=samples((40, selects), (30, writes)))
    known = changed(evidence(process([main])), sources={file: {172: "r, w, e = select.select(r, w, e, timeout)"}})
    assert found(known).get("busy-event-loop") == expected
