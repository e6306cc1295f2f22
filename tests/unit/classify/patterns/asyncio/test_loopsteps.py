"""What the stack of a loop's thread shows of its callbacks."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import pytest

from postmortem.classify.facts.view import View
from postmortem.classify.patterns.asyncio import loopsteps
from postmortem.evidence import Backlog, Process, PythonFrame, Task, Thread, Wait
from postmortem.evidence import replace as changed

from .....support.make import counters, evidence, frame, loop, process, samples, stack, thread

TURN = stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
SELECT = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
STEP = (frame("fetch", 12), frame("handle", 20), *TURN)


def looked_at(*looks: Any, frames: Sequence[PythonFrame] = STEP, **known: Any) -> Tuple[View, Process, Thread]:
    one = thread(1, frames, samples=samples(*looks), **known)
    view = View(evidence(process([one])))
    return view, view.processes[0], one


@pytest.mark.parametrize(
    ("frames", "above"),
    [
        (STEP, 2),
        ((frame("on_message", 3), frame("_run_callback", 700, "/x/site-packages/tornado/ioloop.py"), *TURN[1:]), 1),
        ((frame("handle", 3), frame("uvloop.loop.Handle._run", 66, "uvloop/loop.pyx"), frame("main", 9)), None),
        ((frame("handle", 3), frame("_run", 66, "uvloop/loop.pyx"), frame("main", 9)), 1),
        (SELECT, None),
        ((*stack("asyncio.selector_events._read_from_self"), *TURN), None),
        (TURN, None),
    ],
)
def test_a_step_is_what_stands_above_the_loop(frames: Tuple[PythonFrame, ...], above: Optional[int]) -> None:
    """The frames above whatever runs one callback; what is the loop's own machinery alone is none."""
    found = loopsteps.step(frames)
    assert (None if found is None else len(found)) == above


@pytest.mark.parametrize(("there", "line"), [(90, 12), (89, 20)])
def test_the_line_that_keeps_it(there: int, line: int) -> None:
    """The innermost function that nearly all samples inside a step show; samples of the loop itself do not count."""
    other = (frame("store", 30), *STEP[1:])
    seen = looked_at((there, STEP), (100 - there, other), (50, SELECT))
    kept = loopsteps.kept_in(*seen)
    assert kept is not None and kept.line == line
    assert round(loopsteps.inside(*seen), 2) == 0.67


def test_many_steps_are_kept_by_none() -> None:
    """Each sample in another callback; and without samples it is where it is now."""
    assert loopsteps.kept_in(*looked_at(*((20, (frame(f"job{n}", n), *TURN)) for n in range(5)))) is None
    kept = loopsteps.kept_in(*looked_at())
    assert kept is not None and kept.line == 12 and loopsteps.inside(*looked_at()) == 0.0


def test_who_waits_does_not_compute() -> None:
    """Whatever its counters say of the moments before."""
    view, _process, one = looked_at(counters=counters(1.0))
    assert loopsteps.computes(view, one)
    assert not loopsteps.computes(view, changed(one, wait=Wait("socket")))
    assert not loopsteps.computes(view, changed(one, counters=None))


def test_a_queue_that_this_thread_fills() -> None:
    """One without a bound, that grows, by a line of the thread's stack."""
    backlog = Backlog("q", "asyncio.Queue", "rows", 900, 0, 100, 1.0, filled_at=(frame("fetch", 12),))
    one = thread(1, STEP)
    assert loopsteps.fills(process([one], backlogs=(backlog,)), one) == "rows"
    for other in (
        changed(backlog, limit=1000),
        changed(backlog, growth=0),
        changed(backlog, filled_at=(frame("fetch", 13),)),
    ):
        assert loopsteps.fills(process([one], backlogs=(other,)), one) is None


def test_a_coroutine_of_the_running_task() -> None:
    """Told from the functions that it calls, by the task's own chain; of another loop's tasks nothing follows."""
    task = Task("t", "T", "running", "loop-1", (frame("handle", 20),))
    known = process([thread(1, STEP)], tasks=(task,))
    assert loopsteps.is_coroutine(known, loop("loop-1", 1), frame("handle", 21))
    assert not loopsteps.is_coroutine(known, loop("loop-1", 1), frame("fetch", 12))
    assert not loopsteps.is_coroutine(known, loop("loop-2", 1), frame("handle", 20))
    assert loopsteps.is_coroutine(known, None, frame("handle", 20))


@pytest.mark.parametrize(
    ("state", "alone"),
    [
        ({"ready": 0, "scheduled": 0, "watched": 0}, True),
        ({"ready": 1, "scheduled": 0, "watched": 0}, False),
        ({"ready": 0, "scheduled": 1, "watched": 0}, False),
        ({"ready": 0, "scheduled": 0, "watched": 2}, False),
        ({"ready": 0, "scheduled": 0, "watched": None}, False),
    ],
)
def test_a_loop_with_nothing_else_to_do(state: Any, alone: bool) -> None:
    """No task, callback, timer or descriptor beside what runs; what is unknown may be one."""
    one = changed(loop("loop-1", 1), **state)

    def known(*tasks: Task) -> Process:
        return process([thread(1, STEP)], loops=(one,), tasks=tasks)

    running, other = Task("t", "T", "running", "loop-1"), Task("u", "U", "pending", "loop-1")
    assert loopsteps.is_alone(known(running), one) == alone
    assert not loopsteps.is_alone(known(running, other), one)
    assert loopsteps.others(known(running, other), one) == [other]
    assert not loopsteps.is_alone(known(), None)


def test_a_job_of_a_native_pool_is_no_step_of_a_loop() -> None:
    """Each thread of gevent's pool has a hub beside the greenlet that does its jobs; nothing else runs on it."""
    pool = "/venv/lib/python3.12/site-packages/gevent/threadpool.py"
    job = (frame("pack", 51), frame("__run_task", 173, pool), frame("run", 192, pool))
    for stack_, expected in ((job, None), (job[:1], "task-1")):
        one = thread(2, stack_)
        task = Task("task-1", "Greenlet", "running", "loop-1", stack_)
        known = process([one], loops=(changed(loop("loop-1", 2), kind="gevent"),), tasks=(task,))
        running = loopsteps.running(known, one)
        assert (running.id if running is not None else None) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("client = Client()", True),
        ("await client.get()", False),
        ("async with Client() as client:", False),
        (None, False),
    ],
)
def test_one_line_of_the_program_that_calls_a_library_in_each_callback(source: Optional[str], expected: bool) -> None:
    """Whatever line of the library takes the time below it; not if the line awaits, or is not known."""
    library = "/venv/lib/python3.12/site-packages/httpx/_config.py"
    looks = tuple((15, (frame("load", 140 + n, library), frame("link", 80), *TURN)) for n in range(6))
    one = thread(1, STEP, samples=samples(*looks, (10, SELECT)))
    known = evidence(process([one]))
    known = changed(known, sources={frame("link", 80).file: {80: source}} if source is not None else {})
    turn = changed(loop("loop-1", 1), turn_s=0.3, turn_done=33)
    assert (loopsteps.same_call(View(known), turn, one) is not None) is expected


@pytest.mark.parametrize(("took", "found"), [(1.2, True), (0.3, False)])
def test_most_samples_are_enough_for_long_callbacks(took: float, found: bool) -> None:
    """Each of them delays the loop by itself, whatever else is ready; of short ones nearly all have to make the call."""
    library = "/venv/lib/python3.12/site-packages/httpx/_config.py"
    one = thread(1, STEP, samples=samples((70, (frame("load", 145, library), frame("link", 80), *TURN)), (30, SELECT)))
    known = View(evidence(process([one])))
    same = loopsteps.same_call(known, changed(loop("loop-1", 1), turn_s=took, turn_done=16), one)
    assert (same is not None) is found
    assert same is None or (same.frame.function, same.share) == ("link", 0.7)
