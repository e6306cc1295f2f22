"""Loops with so much to do that each waits for its turn: told from healthy load, polling and idle queues."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from postmortem.evidence import Evidence, Task
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, loop, poller, process, samples, stack, thread

TURN = stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
SELECT = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
WORK = (frame("score", 8), frame("serve", 20), *TURN)


#: Half a second for all of them.
TURNS: Dict[str, Any] = {"turn_s": 0.25, "turn_callbacks": 200, "turn_done": 100}


def crowded(ready: int = 200, inside: int = 90, window: bool = True, **known: Any) -> Evidence:
    tasks = tuple(Task(f"t{n}", f"T{n}", "pending", "loop-1", (frame("serve", 20),), ready=True) for n in range(ready))
    measured = {"counters": counters(1.0), "samples": samples((inside, WORK), (100 - inside, SELECT))} if window else {}
    one = changed(loop("loop-1", 1, ready), spawned_at=(frame("accept", 30),), **known)
    return evidence(process([thread(1, WORK, **measured)], loops=(one,), tasks=tasks), window=1.0 if window else None)


def test_a_starved_loop_says_where_the_time_goes() -> None:
    """Where most samples are, the coroutine around it, and where tasks are made in numbers."""
    known = crowded(turn_s=0.5, turn_callbacks=200, turn_done=100, next_timer_s=-0.7)
    report = classify(known).findings[0]
    assert (report.pattern, report.confidence, lines(known)) == ("event-loop-starvation", "likely", [8, 20, 30])
    said = " ".join(report.evidence)
    assert "the whole turn takes about 1 s" in said and "0.70 s late" in said and "200 tasks wait" in said


@pytest.mark.parametrize(("ready", "expected"), [(20, "likely"), (19, "possible"), (8, "possible"), (7, None)])
def test_how_many_stand_ready(ready: int, expected: Optional[str]) -> None:
    """Servers under load have a handful."""
    turn = {**TURNS, "turn_callbacks": ready, "turn_done": ready // 2}
    assert found(crowded(ready, **turn)).get("event-loop-starvation") == expected


def test_how_long_a_turn_takes_has_to_be_known() -> None:
    """Between two callbacks nothing tells it, and a healthy loop may have as many; a timer that is late does."""
    assert found(crowded())["event-loop-starvation"] == "possible"
    assert found(crowded(next_timer_s=-0.1))["event-loop-starvation"] == "likely"
    assert found(crowded(next_timer_s=-0.09))["event-loop-starvation"] == "possible"


def test_a_huge_ready_queue_makes_long_turns() -> None:
    """However little each callback does: nothing else tells how long they take, and no timer is there to be late."""
    assert found(crowded(9_999))["event-loop-starvation"] == "possible"
    assert found(crowded(10_000))["event-loop-starvation"] == "likely"


def test_callbacks_of_the_present_turn_count() -> None:
    """They are out of the queue, and wait all the same."""
    assert found(crowded(0, turn_s=1.0, turn_callbacks=50, turn_done=1))["event-loop-starvation"] == "likely"


@pytest.mark.parametrize(("done", "expected"), [(100, "likely"), (101, "possible"), (5, "likely"), (4, "possible")])
def test_a_turn_that_is_soon_over_keeps_nobody(done: int, expected: str) -> None:
    """Two hundred callbacks that take a twentieth of a second for a hundred: a tenth in all, and less is short. A handful tells
    nothing of the others."""
    known = crowded(turn_s=0.05, turn_callbacks=200, turn_done=done)
    assert found(known)["event-loop-starvation"] == expected


@pytest.mark.parametrize(("inside", "expected"), [(70, "likely"), (69, None)])
def test_a_loop_that_rests_is_not_starved(inside: int, expected: Optional[str]) -> None:
    """Much was ready at that moment, but the samples show it in select."""
    known = crowded(inside=inside, **TURNS)
    assert found(known).get("event-loop-starvation") == expected
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert ("show no work" in ruled.get("event-loop-starvation", "")) == (expected is None)


@pytest.mark.parametrize(("ready", "inside", "expected"), [(1000, 10, "likely"), (1000, 9, None), (999, 30, None)])
def test_a_crowd_keeps_the_loop_itself_busy(ready: int, inside: int, expected: Optional[str]) -> None:
    """Among a thousand callbacks the bookkeeping for them takes most of a long turn; it is no loop that spins."""
    known = crowded(ready, inside=inside, turn_s=0.25, turn_callbacks=ready, turn_done=ready // 2)
    assert found(known).get("event-loop-starvation") == expected
    assert ready < 1000 or found(known).get("busy-event-loop") != "likely"


def test_who_only_polls_is_another_matter() -> None:
    """What stands ready awaits its next turn and no more: no work is in the samples."""
    tasks = tuple(changed(poller(f"t{n}"), ready=True) for n in range(30))
    one = thread(1, SELECT, counters=counters(1.0), samples=samples((90, SELECT)))
    known = evidence(process([one], loops=(loop("loop-1", 1, 30),), tasks=tasks))
    assert "event-loop-starvation" not in found(known)
    assert "event-loop-starvation" in {r.pattern for r in classify(known).ruled_out}


@pytest.mark.parametrize(("ready", "expected"), [(20, "possible"), (19, None)])
def test_without_a_window_many_that_stand_ready_are_possible(ready: int, expected: Optional[str]) -> None:
    """One moment cannot tell whether the callbacks get their turns: with fewer it abstains."""
    report = classify(crowded(ready, window=False))
    assert {f.pattern: f.confidence for f in report.findings}.get("event-loop-starvation") == expected
    assert ("event-loop-starvation" in {a.pattern for a in report.abstained}) == (expected is None)


def test_a_loop_that_nothing_runs_has_no_turns() -> None:
    """Nothing is said of it."""
    known = crowded()
    nobodys = changed(known.processes[0], loops=(changed(loop("loop-1", 1, 200), tid=None),))
    assert "event-loop-starvation" not in found(changed(known, processes=(nobodys,)))


@pytest.mark.parametrize(
    ("done", "inside", "library", "expected"),
    [
        (80, 95, True, "blocking-call-in-coroutine"),
        (900, 95, True, "event-loop-starvation"),
        (80, 80, True, "event-loop-starvation"),
        (80, 95, False, "event-loop-starvation"),
    ],
)
def test_callbacks_that_all_make_one_slow_call(done: int, inside: int, library: bool, expected: str) -> None:
    """Nearly all samples are at one line of a library, and each callback lasts: that call is the cause, not their number."""
    file = "/venv/lib/python3.12/site-packages/client/config.py" if library else "/app/service.py"
    loads, other = (frame("load", 149, file), *WORK[1:]), (frame("send", 7, file), *WORK[1:])
    one = loop("loop-1", 1, 200)
    one = changed(one, turn_s=1.0, turn_callbacks=done + 200, turn_done=done)
    waiting = tuple(Task(f"t{n}", f"T{n}", "pending", "loop-1", (frame("serve", 20),), ready=True) for n in range(200))
    running = Task("r", "R", "running", "loop-1", (frame("serve", 20),))
    several = samples((inside, loads), (100 - inside, other))
    main = thread(1, loads, counters=counters(1.0), samples=several)
    known = evidence(process([main], loops=(one,), tasks=(*waiting, running)), window=1.0)
    first = classify(known).findings[0]
    assert (first.pattern, first.confidence) == (expected, "likely")
    assert 20 in lines(known)
