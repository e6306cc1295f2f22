"""What takes a proof away although no agent of the graph can end the wait."""

from __future__ import annotations

import signal
from typing import Any, Tuple

import pytest

from postmortem.evidence import PythonFrame, PythonInfo, Resource, SignalHandler, TaskWait, Thread, Wait, Waker
from postmortem.waitgraph import Agent, WaitGraph

from .make import PID, graph, idle_loop, lock, process, running, task, waiting


def circle(**known: Any) -> WaitGraph:
    """Main and a thread hold what the other one wants."""
    return graph(process([waiting(100, "a"), waiting(101, "b")], [lock("a", 101), lock("b", 100)], **known))


@pytest.mark.parametrize(
    ("signals", "proven"),
    [
        ((), True),
        ((signal.SIGALRM,), False),
        ((signal.SIGUSR1,), False),
        ((signal.SIGTERM, signal.SIGINT), True),
        ((signal.SIGCHLD,), True),
    ],
)
def test_a_handler_may_get_the_main_thread_out_of_a_circle(signals: Tuple[int, ...], proven: bool) -> None:
    """An alarm may raise; requests to end are no way to go on, and without children none of them ends."""
    made = circle(signal_handlers=tuple(map(SignalHandler, signals)))
    assert made.proves(made.cycles[0]) is proven
    assert made.stuck(Agent(PID, 100)) == ("proven" if proven else "likely")


def test_a_handler_that_only_sets_a_flag_gets_nobody_out_of_a_circle() -> None:
    """The wait goes on when it returns."""
    made = circle(signal_handlers=(SignalHandler(signal.SIGUSR1, quiet=True),))
    assert made.proves(made.cycles[0])
    made = circle(signal_handlers=(SignalHandler(signal.SIGUSR1, quiet=True), SignalHandler(signal.SIGUSR2)))
    assert not made.proves(made.cycles[0])


def test_unknown_handlers_leave_a_circle_proven() -> None:
    """That somebody uses an alarm to get out of a lock is far-fetched; a lone core may not tell."""
    made = circle(signal_handlers=None)
    assert made.proves(made.cycles[0])


def test_handlers_run_in_the_main_thread_alone() -> None:
    """A circle of other threads is none of their business."""
    threads = [running(100), waiting(101, "a"), waiting(102, "b")]
    made = graph(process(threads, [lock("a", 102), lock("b", 101)], signal_handlers=(SignalHandler(signal.SIGALRM),)))
    assert made.proves(made.cycles[0])


def test_the_end_of_the_main_task_cancels_the_others() -> None:
    """While it goes on, a future that nobody can set is likely for ever, not certainly."""
    nobody = Resource("f", "async-future", "a Future", closed=True)
    waits, main = task("1", TaskWait("future", "f", endless=True)), task("2", TaskWait("sleep"))
    thread = waiting(100, kind="event-loop")

    def stuck(main_task: str) -> object:
        loop = idle_loop(100, scheduled=1, main_task=main_task)
        return graph(process([thread], [nobody], loops=(loop,), tasks=(waits, main))).stuck(Agent(PID, task="1"))

    assert stuck("2") == "likely"
    assert stuck("1") == "proven"


def test_native_threads_may_call_back() -> None:
    """They may keep pointers that no reference count tells of."""
    nobody = Resource("q", "queue", "Queue q", closed=True)
    own = waiting(100, "q", "condition", ident=7, stack=(PythonFrame("/app/a.py", 1, "f"),))
    beside = Thread(102, ident=8, stack=(PythonFrame("/app/a.py", 2, "g"),))
    native = graph(process([own, beside, Thread(101)], [nobody], python=PythonInfo("3.12.1")))
    alone = graph(process([own, beside], [nobody], python=PythonInfo("3.12.1")))
    assert (native.stuck(Agent(PID, 100)), alone.stuck(Agent(PID, 100))) == ("likely", "proven")


def test_code_that_cancels_may_cancel_futures_of_threads() -> None:
    """A job in the queue of an executor, which a supervisor may take out again."""
    queued = Resource("f", "future", "Future of job", wakers=(Waker("runner", "memory", tid=101),), closed=True)
    threads = [waiting(100, "f", "condition"), waiting(101, "f", "condition"), running(102)]
    assert graph(process(threads, [queued])).stuck(Agent(PID, 101)) == "proven"
    assert graph(process(threads, [queued], cancels=("cancel",))).stuck(Agent(PID, 101)) == "likely"


@pytest.mark.parametrize(
    ("catches", "expected"), [((signal.SIGUSR1,), "likely"), ((signal.SIGTERM,), "proven"), (None, "proven")]
)
def test_a_process_that_catches_signals_may_act_on_them(catches: Any, expected: str) -> None:
    """Its handler may write what the other one reads."""
    pipe = Resource("p", "pipe", "a pipe", wakers=(Waker("end", "kernel", pid=200),), closed=True)
    parent = process([waiting(100, "p", "pipe")], [pipe])
    back = Resource("q", "pipe", "a pipe back", wakers=(Waker("end", "kernel", pid=100),), closed=True)
    child = process([waiting(200, "q", "pipe")], [back], pid=200, ppid=100, catches=catches)
    assert graph(parent, child).stuck(Agent(PID, 100)) == expected


def _quiet(tid: int) -> Thread:
    return Thread(tid, name=f"T{tid}", wait=Wait("sleep", timeout_s=0.5), quiet=True)


def test_a_thread_that_only_sleeps_and_counts_disarms_nothing() -> None:
    """Neither where any agent may end a wait, nor where it refers to what is awaited."""
    event = Resource("e", "event", "an Event", wakers=(Waker("reach", "memory", tid=101),))
    for heartbeat, stuck in ((_quiet(101), "proven"), (running(101), None)):
        made = graph(process([waiting(100, "e", "event"), heartbeat], [event]))
        assert made.stuck(Agent(PID, 100)) == stuck
        assert made.stuck(Agent(PID, 101)) is None
        assert made.goes_on(PID) is (stuck is None)


def test_a_process_whose_last_moving_thread_is_quiet_does_nothing() -> None:
    """A child that waits for a lock of its parent does not end, whatever its heartbeat counts."""
    child = process([waiting(200, "l"), _quiet(201)], [lock("l", 200)], pid=200, ppid=PID)
    ends = Resource("p", "process", "child", closed=True, wakers=(Waker("runner", "kernel", pid=200),))
    made = graph(process([waiting(100, "p", "process")], [ends]), child)
    assert made.stuck(Agent(PID, 100)) == "proven"


def test_a_quiet_thread_writes_to_no_pipe() -> None:
    """It shares the descriptors of its process, and neither writes to one nor closes it."""
    pipe = Resource("p", "pipe", "a pipe", closed=True, wakers=(Waker("end", "kernel", pid=PID, tid=101),))
    assert graph(process([waiting(100, "p", "pipe"), _quiet(101)], [pipe])).stuck(Agent(PID, 100)) == "proven"
    assert graph(process([waiting(100, "p", "pipe"), running(101)], [pipe])).stuck(Agent(PID, 100)) is None


def test_what_a_quiet_thread_holds_is_awaited_of_it() -> None:
    """Its loop is known to have no effect, not that it never ends."""
    made = graph(process([waiting(100, "l"), _quiet(101)], [lock("l", 101)]))
    assert made.stuck(Agent(PID, 100)) is None
