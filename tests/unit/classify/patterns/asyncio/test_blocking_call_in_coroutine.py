"""A call that keeps an event loop's thread: told from callbacks that come back, and from loops that have nothing else to do."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem.evidence import Backlog, Calling, Evidence, Loop, PythonFrame, Resource, Task, Thread, Wait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import (
    counters,
    evidence,
    found,
    frame,
    held,
    lines,
    locked,
    loop,
    process,
    samples,
    stack,
    thread,
)

TURN = stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
SELECT = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
STEP = (frame("fetch", 12), frame("handle", 20), *TURN)
READS = Wait("socket", "recvfrom", endless=True)
TASKS = (
    Task("t", "T", "running", "loop-1", (frame("handle", 20),)),
    *(Task(f"u{n}", f"U{n}", "pending", "loop-1", (frame("idle", 40),)) for n in range(3)),
)
KEPT = changed(loop("loop-1", 1), turned=False, callback_lasts_s=2.0, turn_s=3.0, next_timer_s=-2.5)
Looks = Tuple[Tuple[int, Tuple[PythonFrame, ...]], ...]


def blocked(
    one: Loop = KEPT,
    looks: Looks = ((90, STEP),),
    cpu: Optional[float] = 0.0,
    tasks: Tuple[Task, ...] = TASKS,
    wakes: int = 0,
    **known: Any,
) -> Evidence:
    """One thread, in a callback of its loop. ``cpu`` None: a lone core. ``wakes``: in the window of a second."""
    known.setdefault("wait", READS)
    if cpu is not None:
        known.update(counters=counters(cpu, wakes), samples=samples(*looks))
    main = thread(1, STEP, **known)
    return evidence(process([main], loops=(one,), tasks=tasks), window=1.0 if cpu is not None else None)


def test_a_call_that_keeps_the_loop_is_named() -> None:
    """The loop's own turn says that it is the same callback: the line is to blame, the other tasks are kept."""
    report = classify(blocked()).findings[0]
    assert (report.pattern, report.confidence) == ("blocking-call-in-coroutine", "likely")
    assert lines(blocked()) == [12, 20] and len(report.victims) == 3
    said = " ".join(report.evidence)
    assert "began 3.0 s ago" in said and "2.5 s late" in said and "3 other tasks" in said


def test_the_coroutines_own_call_comes_second() -> None:
    """However deep the computation, the line that would await something else is among the first, and no line comes twice."""
    deep = (
        frame("<genexpr>", 3),
        frame("length", 3),
        frame("improve", 5),
        frame("plan", 7),
        frame("handle", 20),
        *TURN,
    )
    main = thread(1, deep, wait=READS, counters=counters(), samples=samples((90, deep)))
    assert lines(evidence(process([main], loops=(KEPT,), tasks=TASKS))) == [3, 20, 5]


def test_a_cell_of_a_notebook_blocks_its_kernels_loop_on_purpose() -> None:
    """The awaited object is the cause: here a lock that nobody is known to hold."""
    shell = PythonFrame("/v/site-packages/IPython/core/interactiveshell.py", 3823, "run_code")
    wants = (frame("<module>", 4, "/tmp/ipykernel_7/12.py"), shell, *TURN)
    lock = Resource("lock-1", "lock", "Lock l", waiters=(1,), locked=True)
    main = thread(1, wants, wait=locked("lock-1"), counters=counters(), samples=samples((90, wants)))
    known = evidence(process([main], loops=(KEPT,), tasks=TASKS, resources=(lock,)), window=1.0)
    assert "blocking-call-in-coroutine" not in found(known)
    assert found(known)["orphaned-lock"]


def test_a_computation_is_only_believed_with_the_loops_turn() -> None:
    """All samples may show one function of many short callbacks; when the turn is known, it is likely."""
    busy = samples((90, STEP))
    unknown = changed(KEPT, turned=None, callback_lasts_s=None, turn_s=None)
    assert found(blocked(unknown, cpu=1.0, wait=None, samples=busy))["blocking-call-in-coroutine"] == "possible"
    assert found(blocked(cpu=1.0, wait=None))["blocking-call-in-coroutine"] == "likely"


@pytest.mark.parametrize(("inside", "expected"), [(90, "likely"), (89, None)])
def test_of_a_loop_that_tells_nothing_nearly_all_samples_are_inside(inside: int, expected: Optional[str]) -> None:
    """uvloop's turn is in C. A call that waits, in nine samples of ten, keeps it."""
    unknown = changed(KEPT, turned=None, callback_lasts_s=None, turn_s=None)
    known = blocked(unknown, ((inside, STEP), (100 - inside, SELECT)))
    assert found(known).get("blocking-call-in-coroutine") == expected
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert ("the callbacks of the loop of T-1 (1) return" in ruled.get("blocking-call-in-coroutine", "")) == (
        expected is None
    )


def because(known: Evidence) -> str:
    assert "blocking-call-in-coroutine" not in found(known)
    return {r.pattern: r.because for r in classify(known).ruled_out}["blocking-call-in-coroutine"]


def test_a_loop_that_turns_is_not_kept() -> None:
    """It began a turn during the window; or its turn is long, of many callbacks."""
    punctual = changed(KEPT, callback_lasts_s=None, next_timer_s=-0.1)
    assert "began another turn during the window" in because(blocked(changed(punctual, turned=True), wakes=200))
    assert "from callback to callback" in because(blocked(punctual, wakes=200))


@pytest.mark.parametrize(("wakes", "expected"), [(6, "likely"), (200, None)])
def test_long_calls_between_two_turns(wakes: int, expected: Optional[str]) -> None:
    """The first timer has just been served, but the thread wakes so seldom that each call at this line lasts long."""
    served = changed(KEPT, callback_lasts_s=None, turned=True, next_timer_s=-0.05)
    assert found(blocked(served, wakes=wakes)).get("blocking-call-in-coroutine") == expected


@pytest.mark.parametrize("turned", [True, False])
def test_one_callback_after_the_other_makes_the_same_call(turned: bool) -> None:
    """A request for each of many tasks: the loop turns, or its turn goes on, and its timers are late all the same."""
    late = changed(KEPT, callback_lasts_s=None, turned=turned)
    report = classify(blocked(late)).findings[0]
    assert (report.pattern, report.confidence) == ("blocking-call-in-coroutine", "likely")
    assert "in one callback after the other, in 100% of the samples" in " ".join(report.evidence)
    other = (frame("store", 30), frame("handle", 21), *TURN)
    assert "blocking-call-in-coroutine" not in found(blocked(late, ((60, STEP), (40, other))))
    assert found(blocked(late, cpu=1.0, wait=None))["blocking-call-in-coroutine"] == "possible"


@pytest.mark.parametrize(("done", "expected"), [(1, "likely"), (30, "possible"), (100, None)])
def test_few_callbacks_that_compute_for_long(done: int, expected: Optional[str]) -> None:
    """A password hash for each request: seconds a callback, and timers that are late; many short ones are another cause."""
    late = changed(KEPT, callback_lasts_s=None, turned=False, turn_s=6.0, turn_done=done, next_timer_s=-5.0)
    assert found(blocked(late, cpu=1.0, wait=None)).get("blocking-call-in-coroutine") == expected


def test_a_coroutine_that_computes_itself_makes_no_call() -> None:
    """It does not await; there is no call to move to a thread."""
    running = changed(TASKS[0], stack=(frame("fetch", 12), frame("handle", 20)))
    assert "does not await" in because(blocked(cpu=1.0, wait=None, tasks=(running, *TASKS[1:])))


@pytest.mark.parametrize(("file", "expected"), [("gevent/pywsgi.py", "possible"), ("eventlet/greenthread.py", None)])
def test_a_greenlet_that_computes_in_what_a_server_has_called(file: str, expected: Optional[str]) -> None:
    """A request is answered by a call; a greenlet's own function computes as a coroutine does."""
    outer = frame("run", 900, f"/venv/lib/python3.12/site-packages/{file}")
    stacked = (frame("fetch", 12), outer)
    running = changed(TASKS[0], stack=stacked)
    hub = Loop("loop-1", 1, "gevent", running_task="T", watched=3)
    main = thread(1, stacked, counters=counters(1.0), samples=samples((90, stacked)))
    known = evidence(process([main], loops=(hub,), tasks=(running, *TASKS[1:])))
    assert found(known).get("blocking-call-in-coroutine") == expected


@pytest.mark.parametrize(("share", "expected"), [(90, "likely"), (89, None)])
def test_a_librarys_coroutine_inside_one_call(share: int, expected: Optional[str]) -> None:
    """The call is an ordinary function's, and on the stack all the time: the coroutine that made it cannot await."""
    detect = frame("detect", 30, "/venv/lib/python3.12/site-packages/chardet/__init__.py")
    text = frame("text", 700, "/venv/lib/python3.12/site-packages/aiohttp/client_reqrep.py")
    chain = (text, frame("handle", 20))
    deep, away = (detect, *chain, *TURN), (*chain, *TURN)
    task = changed(TASKS[0], stack=chain)
    main = thread(1, deep, counters=counters(1.0), samples=samples((share, deep), (100 - share, away)))
    known = evidence(process([main], loops=(KEPT,), tasks=(task, *TASKS[1:])))
    assert found(known).get("blocking-call-in-coroutine") == expected


def test_a_queue_without_a_bound_is_the_cause() -> None:
    """Putting into it never waits, and so never gives the loop a turn."""
    known = blocked(cpu=1.0, wait=None)
    backlog = Backlog("q", "asyncio.Queue", "rows", 100, 0, 50, 1.0, filled_at=(frame("fetch", 12),))
    known = changed(known, processes=(changed(known.processes[0], backlogs=(backlog,)),))
    assert "fills rows" in because(known)


def test_who_waits_for_ever_has_another_cause() -> None:
    """The loop's thread waits for a lock that it has itself: that is the verdict."""
    itself = blocked(wait=locked("l"), holds=(held("l", 1),))
    own = Resource("l", "lock", "Lock l", 1, "with-slot", (1,), True)
    known = changed(itself, processes=(changed(itself.processes[0], resources=(own,)),))
    assert "for good" in because(known)


def test_of_one_moment() -> None:
    """A wait without a limit holds up the loop's other tasks; any other wait is possible, and whoever may be between two
    calls is unknown; a sleep says itself that it is long."""
    unknown = changed(KEPT, turned=None, callback_lasts_s=None, turn_s=None)
    assert found(blocked(unknown, cpu=None))["blocking-call-in-coroutine"] == "likely"
    assert found(blocked(unknown, cpu=None, tasks=TASKS[:1]))["blocking-call-in-coroutine"] == "possible"
    for endless in (None, False):
        limited = Wait("socket", "recvfrom", endless=endless)
        assert found(blocked(unknown, cpu=None, wait=limited))["blocking-call-in-coroutine"] == "possible"
    running = classify(blocked(unknown, cpu=None, wait=None))
    assert "blocking-call-in-coroutine" in {a.pattern for a in running.abstained}
    for seconds, expected in ((5.0, "likely"), (4.9, "possible")):
        sleeps = blocked(unknown, cpu=None, wait=Wait("sleep", "clock_nanosleep", timeout_s=seconds))
        assert found(sleeps)["blocking-call-in-coroutine"] == expected


def test_a_script_that_is_one_coroutine_keeps_nobody() -> None:
    """No other task, callback, timer or descriptor: what it waits for is the thing, and this is possible at most."""
    alone = changed(KEPT, ready=0, scheduled=0, watched=0, next_timer_s=None)
    assert found(blocked(alone, tasks=TASKS[:1]))["blocking-call-in-coroutine"] == "possible"
    assert found(blocked(changed(alone, watched=1), tasks=TASKS[:1]))["blocking-call-in-coroutine"] == "likely"


def test_how_long_the_call_lasts_is_told() -> None:
    """When it was the same call in C at the window's beginning."""
    report = classify(blocked(calling=Calling("_socket.socket.recv", lasts_s=2.0))).findings[0]
    assert "the same call of _socket.socket.recv for 2.0 s" in " ".join(report.evidence)


def test_no_loop_no_callback() -> None:
    """A thread that is in no callback, and one in select, are not meant."""
    for frames in ((frame("fetch", 12),), SELECT):
        one: Thread = thread(1, frames, wait=READS, counters=counters())
        assert "blocking-call-in-coroutine" not in found(evidence(process([one])))


def test_an_idle_worker_of_gevents_pool_keeps_nobody() -> None:
    """It has a hub of its own, on which it runs nothing, and waits for a job in a lock."""
    waiting = stack("gevent._threading.wait", "gevent._threading.get", "gevent.threadpool.run")
    worker = thread(2, waiting, wait=locked("lock-1"), counters=counters(0.0), samples=samples((90, waiting)))
    running = Task("g", "Greenlet-1", "running", "loop-2", waiting, "running")
    behind = Task("m", "main greenlet", "pending", "loop-2", (frame("handle", 20),))
    main = thread(1, stack("gevent.hub.run"), wait=Wait("event-loop", "epoll_wait", endless=False), is_main=True)
    hubs = (Loop("loop-1", 1, "gevent"), Loop("loop-2", 2, "gevent"))
    known = evidence(process([main, worker], loops=hubs, tasks=(running, behind)))
    assert "blocking-call-in-coroutine" not in found(known)


def test_a_callback_that_runs_the_loop_itself_blocks_nothing() -> None:
    """nest_asyncio: the innermost frame is the selector of the very loop, which goes on with its other tasks."""
    nested = (*SELECT, frame("ask", 20), *TURN)
    rests = Wait("event-loop", "epoll_wait", timeout_s=0.5, endless=False)
    main = thread(1, nested, wait=rests, counters=counters(), samples=samples((90, nested)))
    one = changed(loop("loop-1", 1, ready=0), next_timer_s=0.3)
    assert "blocking-call-in-coroutine" not in found(evidence(process([main], loops=(one,), tasks=TASKS)))
    another = loop("loop-2", 1, ready=0)
    known = evidence(process([main], loops=(one, another), tasks=TASKS))
    assert found(known)["blocking-call-in-coroutine"] == "likely"


@pytest.mark.parametrize("step", [("runUntilCurrent", "base.py"), ("_doReadOrWrite", "epollreactor.py")])
def test_a_call_that_keeps_a_reactor_of_twisted(step: Tuple[str, str]) -> None:
    """Its timers and its descriptors are served on one thread, too."""
    package = "/venv/lib/python3.12/site-packages/twisted/internet"
    main_loop = frame("mainLoop", 694, f"{package}/base.py")
    frames = (frame("fetch", 12), frame(step[0], 1094, f"{package}/{step[1]}"), main_loop)
    main = thread(1, frames, wait=READS, counters=counters(0.0, 2), samples=samples((50, frames)))
    reactor = changed(loop("loop-1", 1), kind="twisted", turned=None, callback_lasts_s=None, turn_s=None)
    known = evidence(process([main], loops=(reactor,)))
    assert found(known)["blocking-call-in-coroutine"] == "likely"
    assert [culprit.line for culprit in classify(known).findings[0].culprits] == [12]
