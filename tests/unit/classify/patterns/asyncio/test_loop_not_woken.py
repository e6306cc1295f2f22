"""loop-not-woken: loops that sleep although callbacks are ready; told from idle loops, and from those about to turn."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from postmortem.evidence import Evidence, Task, Wait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, loop, process, samples, stack, thread

SELECT = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever", "main")
ENDLESS = Wait("event-loop", "epoll_wait", endless=True)


def asleep(
    ready: int = 1,
    wait: Wait = ENDLESS,
    switches: Optional[int] = 0,
    tasks: bool = True,
    window: bool = True,
    cpu: float = 0.0,
    beside: Any = (),
) -> Evidence:
    one = Task("t1", "Task-1", "pending", "loop-1", (frame("show", 12), frame("main", 20)), ready=ready > 0)
    known = changed(loop("loop-1", 1, ready), readied_at=(frame("sell", 5),) if ready else ())
    measured = {"counters": counters(cpu, switches or 0)} if window else {}
    return evidence(
        process([thread(1, SELECT, wait=wait, **measured), *beside], loops=(known,), tasks=(one,) if tasks else ()),
        window=1.0 if window else None,
    )


def test_a_loop_that_slept_through_is_proven() -> None:
    """The place that readied the callback comes before the line that awaits it."""
    known = asleep()
    first = classify(known).findings[0]
    assert (first.pattern, first.confidence, lines(known)) == ("loop-not-woken", "proven", [5, 12])


def test_one_moment_is_likely() -> None:
    """It might be woken just now."""
    assert found(asleep(window=False))["loop-not-woken"] == "likely"
    assert found(asleep(tasks=False))["loop-not-woken"] == "possible"


@pytest.mark.parametrize(("left", "expected"), [(5.0, "likely"), (4.9, None), (None, None)])
def test_a_timer_wakes_the_loop_before_long(left: Optional[float], expected: Optional[str]) -> None:
    """A near timer runs the ready callbacks; only a far one lets them wait."""
    wait = Wait("event-loop", "epoll_wait", endless=False, timeout_s=60.0, remaining_s=left)
    assert found(asleep(wait=wait)).get("loop-not-woken") == expected


def test_idle_loops_loops_that_turn_and_loops_being_woken_are_not_meant() -> None:
    """An empty ready queue; a loop that woke again and again; a thread inside of call_soon_threadsafe."""
    assert "loop-not-woken" not in found(asleep(0))
    assert "loop-not-woken" not in found(asleep(switches=3))
    assert "loop-not-woken" not in found(asleep(cpu=0.4))  # it asks its selector without a time limit, and never sleeps
    waking = thread(2, stack("asyncio.base_events.call_soon_threadsafe", "work"))
    assert "loop-not-woken" not in found(asleep(beside=(waking,)))


@pytest.mark.parametrize(("kind", "expected"), [("uvloop", "proven"), ("asyncio", "proven"), ("trio", None)])
def test_a_uvloop_keeps_its_ready_queue_alike(kind: str, expected: Optional[str]) -> None:
    """Its call_soon does not end the sleep in epoll either; other frameworks' queues mean something else."""
    known = asleep()
    loops = tuple(changed(one, kind=kind) for one in known.processes[0].loops)
    known = changed(known, processes=(changed(known.processes[0], loops=loops),))
    assert found(known).get("loop-not-woken") == expected


def test_a_reactor_that_sleeps_gets_its_own_remedy() -> None:
    """Twisted's methods have other names."""
    known = asleep(tasks=False)
    reactor = changed(known.processes[0].loops[0], kind="twisted", ready_callbacks=(frame("done", 8),))
    first = classify(changed(known, processes=(changed(known.processes[0], loops=(reactor,)),))).findings[0]
    assert (first.pattern, first.confidence) == ("loop-not-woken", "proven")
    assert "callFromThread" in first.remedy and "call_soon" not in first.remedy


@pytest.mark.parametrize(
    ("kind", "window", "expected"), [("gevent", True, "likely"), ("gevent", False, None), ("asyncio", True, None)]
)
def test_a_hub_of_gevent_that_slept_with_a_result_at_hand(kind: str, window: bool, expected: Optional[str]) -> None:
    """A hub without a timer wakes once a minute; how much of that is left is not known, but it slept through the window."""
    known = asleep(wait=Wait("event-loop", "epoll_wait", endless=False, timeout_s=60.0), window=window)
    hub = changed(known.processes[0].loops[0], kind=kind)
    known = changed(known, processes=(changed(known.processes[0], loops=(hub,)),))
    assert found(known).get("loop-not-woken") == expected
    assert expected is None or "hub" in classify(known).findings[0].remedy


def test_a_task_of_a_library_leads_to_the_line_that_runs_its_loop() -> None:
    """The task waits in the library's code alone, and no plain function that might have readied it is known."""
    inside = frame("_run_async", 696, "/venv/lib/python3.12/site-packages/prompts/application.py")
    known = asleep()
    one = known.processes[0]
    task, own = changed(one.tasks[0], stack=(inside,)), changed(one.loops[0], readied_at=())
    library = changed(known, processes=(changed(one, tasks=(task,), loops=(own,)),))
    runs = next(f.line for f in one.threads[0].python if f.function == "main")
    assert lines(library) == [runs, 696]


@pytest.mark.parametrize(
    ("kind", "ready", "expected"), [("gevent", True, "possible"), ("gevent", False, None), ("asyncio", True, None)]
)
def test_a_hub_that_turns_and_leaves_greenlets_asleep(kind: str, ready: bool, expected: Optional[str]) -> None:
    """What they wait for is there, and the hub sleeps between two timers; a loop of asyncio runs what is ready."""
    timed = Wait("event-loop", "epoll_wait", endless=False, timeout_s=0.3, remaining_s=0.2)
    known = asleep(wait=timed, switches=3)
    one = known.processes[0]
    hub, task = changed(one.loops[0], kind=kind), changed(one.tasks[0], ready=ready)
    assert (
        found(changed(known, processes=(changed(one, loops=(hub,), tasks=(task,)),))).get("loop-not-woken") == expected
    )


@pytest.mark.parametrize(("there", "expected"), [(True, "likely"), (False, "possible")])
def test_a_hub_whose_greenlets_nobody_can_have_made_ready_just_now(there: bool, expected: str) -> None:
    """All other threads were at one place for the whole window: what is ready has been so while the hub turned."""
    timed = Wait("event-loop", "epoll_wait", endless=False, timeout_s=0.3, remaining_s=0.2)
    known = asleep(wait=timed, switches=3)
    one = known.processes[0]
    here, before = (frame("acquire", 112), frame("pack", 51)), (frame("compress", 50), frame("pack", 50))
    polls = thread(9, here, samples=samples((60, here), (20, here if there else before)))
    known = changed(
        known,
        processes=(changed(one, threads=(one.threads[0], polls), loops=(changed(one.loops[0], kind="gevent"),)),),
    )
    assert found(known).get("loop-not-woken") == expected


@pytest.mark.parametrize(("kind", "expected"), [("eventlet", "likely"), ("asyncio", None)])
def test_a_hub_of_eventlet_that_watches_nothing_sleeps(kind: str, expected: Optional[str]) -> None:
    """Its selector is a plain sleep; that of another loop is no sleep."""
    known = asleep(wait=Wait("sleep", "pselect6", endless=False, timeout_s=60.0, remaining_s=52.0))
    one = known.processes[0]
    hub = changed(one.loops[0], kind=kind)
    assert found(changed(known, processes=(changed(one, loops=(hub,)),))).get("loop-not-woken") == expected
