"""Recursion that does not come back, told from one that does by what its stack had in every sample."""

from __future__ import annotations

from typing import List, Optional

import pytest

from postmortem.evidence import Evidence, Loop, PythonFrame, Recursion, Task, Wait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, process, samples, thread

MAIN = frame("main", 50)
WALK = frame("walk", 12)


def deep(times: int) -> List[PythonFrame]:
    return [WALK] * times + [MAIN]


def recursing(
    now: int, *seen: int, cpu: float = 2.0, switches: int = 0, window: Optional[float] = 2.0, **known: object
) -> Evidence:
    """A stack of ``now`` turns, which samples found as deep as ``seen``."""
    if window is not None:
        known.update(counters=counters(cpu, switches, seconds=window))
        known.update(samples=samples(*((30, deep(n)) for n in seen)))
    return evidence(process([thread(1, deep(now), gil="holds", **known)]), window=window)


def test_a_recursion_that_stays_is_named_by_its_line() -> None:
    """Hundreds of turns in every sample: the line that calls itself is to blame."""
    known = recursing(300, 290, 300)
    assert (found(known)["runaway-recursion"], lines(known)) == ("likely", [12])
    assert "walk, 300 times" in classify(known).findings[0].summary


@pytest.mark.parametrize(("least", "expected"), [(40, "likely"), (39, "possible"), (8, "possible"), (7, None)])
def test_how_many_turns_have_to_stay(least: int, expected: Optional[str]) -> None:
    """By the shallowest sample: walks of trees come back to the depth of the tree, and say so."""
    known = recursing(60, least, 60)
    assert found(known).get("runaway-recursion") == expected
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert ("but returns" in ruled.get("runaway-recursion", "")) == (expected is None)


@pytest.mark.parametrize(("now", "expected"), [(12, "possible"), (11, None)])
def test_how_deep_it_is_now(now: int, expected: Optional[str]) -> None:
    """Nobody calls a dozen frames deep."""
    assert found(recursing(now, now, now + 1)).get("runaway-recursion") == expected


def test_who_works_at_the_bottom_does_not_recurse() -> None:
    """Hundreds of turns, and none begins or ends during the window: a loop in the innermost call, or in what it calls."""
    known = recursing(300, 300)
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert "without recursing further" in ruled["runaway-recursion"] and "runaway-recursion" not in found(known)
    leaf = samples((30, deep(300)), (30, [frame("parse", 3), frame("scan", 4), *deep(300)]))
    stuck = changed(known.processes[0].threads[0], samples=leaf)
    known = changed(known, processes=(changed(known.processes[0], threads=(stuck,)),))
    assert "runaway-recursion" not in found(known)
    assert found(recursing(300, 300, 301))["runaway-recursion"] == "likely"


def test_one_look_may_have_missed() -> None:
    """A sample in twenty is shallower where the stack could not be read whole: it does not count."""
    known = recursing(300, 300)
    seen = samples((96, deep(300)), (4, deep(2)))
    stuck = changed(known.processes[0].threads[0], samples=seen)
    assert found(changed(known, processes=(changed(known.processes[0], threads=(stuck,)),))) == {
        "runaway-recursion": "likely",
        **{k: "possible" for k in found(known) if k != "runaway-recursion"},
    }


def test_one_moment_is_possible() -> None:
    """A deep stack in a core of a thread that runs; a shallower one says nothing, and neither does one that is not known to
    run."""
    assert found(recursing(40, window=None))["runaway-recursion"] == "possible"
    assert "runaway-recursion" not in found(recursing(39, window=None))
    assert "runaway-recursion" not in found(evidence(process([thread(1, deep(300))]), window=None))


def test_who_rests_deep_down_does_not_recurse() -> None:
    """It waits at the bottom, or uses little CPU: the wait is the thing."""
    assert "runaway-recursion" not in found(recursing(300, 290, 300, wait=Wait("socket", "recvfrom", endless=True)))
    assert "runaway-recursion" not in found(recursing(300, 290, 300, cpu=0.5))


def test_a_recursion_that_waits_for_a_moment_at_each_level() -> None:
    """Each level asks a peer: the thread uses less than a core, or is found in the call, but its stack stays deep."""
    assert found(recursing(300, 290, 300, cpu=1.4))["runaway-recursion"] == "likely"
    calls = Wait("socket", "recvfrom", endless=True)
    assert found(recursing(300, 290, 300, cpu=0.1, switches=80, wait=calls))["runaway-recursion"] == "likely"


def test_a_turn_through_several_functions() -> None:
    """As the extraction found it, where evidence does not keep all frames; each of them is named."""
    turn = (frame("visit", 7), frame("children", 9))
    known = [frame("visit", 7), frame("children", 9)] * 60 + [MAIN]
    stuck = thread(
        1,
        known,
        gil="holds",
        counters=counters(1.0),
        samples=samples((80, known), (9, known[2:])),
        recursion=Recursion(900, 450, turn),
    )
    report = classify(evidence(process([stuck]))).findings[0]
    assert (report.pattern, report.confidence) == ("runaway-recursion", "likely")
    assert "children → visit, 450 times" in report.summary and "900 Python frames" in report.evidence[0]
    assert [c.line for c in report.culprits] == [7, 9]


@pytest.mark.parametrize(("now", "expected"), [(1000, "likely"), (999, None)])
def test_a_stack_too_deep_to_be_sampled(now: int, expected: Optional[str]) -> None:
    """It waits a little at each level, and no sampler got through it: as deep as no interpreter allows by itself."""
    naps = Wait("sleep", "clock_nanosleep", timeout_s=0.0005, endless=False)
    known = recursing(now, cpu=0.1, switches=2000, wait=naps)
    assert found(known).get("runaway-recursion") == expected


@pytest.mark.parametrize(
    ("times", "moved", "expected"), [(1000, True, "likely"), (999, True, None), (1000, False, None)]
)
def test_a_coroutine_that_awaits_itself(times: int, moved: bool, expected: Optional[str]) -> None:
    """The chain of a task's coroutines is a stack, too: it goes on all the time, deeper and deeper."""
    again = PythonFrame("/app/links.py", 24, "resolve")
    task = Task("t", "Task-1", "pending", "l", (again,) * times, "Future", moved=moved)
    loops = thread(1, (frame("main", 50),), wait=Wait("event-loop", "epoll_wait", endless=False))
    known = evidence(process([loops], tasks=(task,), loops=(Loop("l", 1, ready=0, scheduled=1),)))
    assert found(known).get("runaway-recursion") == expected
    assert expected is None or lines(known)[0] == 24
