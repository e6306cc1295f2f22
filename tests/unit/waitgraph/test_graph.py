"""The wait graph on made-up evidence: cycles, who can still move, chains, roots, and the sentences that say why."""

from __future__ import annotations

from typing import Tuple

import pytest

from postmortem.evidence import Counters, End, Resource, SignalHandler, TaskWait, Thread, Wait, Waker, replace
from postmortem.waitgraph import Agent

from ...support.inwords import reasons
from ...support.work import lines_run
from .make import PID, graph, idle_loop, lock, process, running, task, waiting


def T(tid: int, pid: int = PID) -> Agent:
    return Agent(pid, tid)


def t(ident: str) -> Agent:
    return Agent(PID, task=ident)


@pytest.mark.parametrize(
    ("syscall", "handlers", "moves"),
    [("pselect6", (SignalHandler(17),), True), ("pselect6", (), False), ("read", (SignalHandler(17),), False)],
)
def test_signals_write_to_a_pipe_of_the_process_alone(
    syscall: str, handlers: Tuple[SignalHandler, ...], moves: bool
) -> None:
    """A manager polls it, and another thread waits for the event that a handler sets: no circle. Without a handler nothing
    writes there, and a blocking read is of something else."""
    own = Resource("pipe-1", "pipe", "pipe", ends=(End(PID, 3, "r"), End(PID, 4, "w")), closed=True)
    own = replace(own, waiters=(PID,), wakers=(Waker("end", "kernel", PID, PID + 1),))
    main = Thread(PID, is_main=True, wait=Wait("pipe", syscall, "pipe-1", endless=True, fd=3))
    signalled = Resource("event-1", "event", "Event", waiters=(PID + 1,))
    made = graph(process([main, waiting(PID + 1, "event-1", "event")], [own, signalled], signal_handlers=handlers))
    assert made.heeds_signals(made.edges[T(PID)][0]) == moves
    assert made.stuck(T(PID)) is None or not moves


@pytest.mark.parametrize("number", [2, 3, 10])
def test_a_circle_of_locks_is_a_proven_cycle(number: int) -> None:
    """Each of n threads holds what the one before it wants: one cycle of n edges, all of them stuck, proven."""
    threads = [waiting(PID + i, f"lock-{(i + 1) % number}") for i in range(number)]
    made = graph(process(threads, [lock(f"lock-{i}", PID + i) for i in range(number)]))
    (cycle,) = made.cycles
    assert cycle.agents == tuple(T(PID + i) for i in range(number))
    assert cycle.sure
    assert {made.stuck(T(PID + i)) for i in range(number)} == {"proven"}


def test_a_cycle_over_an_inferred_holder_is_likely_only() -> None:
    """One guessed holder, and nothing is proven."""
    threads = [waiting(100, "a"), waiting(101, "b")]
    made = graph(process(threads, [lock("a", 101), lock("b", 100, "inferred")]))
    assert not made.cycles[0].sure
    assert made.stuck(T(100)) == "likely"


def test_a_timeout_breaks_a_cycle() -> None:
    """A waiter with a timeout can move, and so can all others: the cycle is there, but no thread is stuck in it."""
    threads = [waiting(100, "a"), waiting(101, "b", wait={"endless": False})]
    made = graph(process(threads, [lock("a", 101), lock("b", 100)]))
    assert not made.cycles[0].sure
    assert made.stuck_agents == frozenset()


def test_a_thread_that_wants_its_own_lock_is_a_cycle_of_one() -> None:
    """The shortest circle."""
    made = graph(process([waiting(100, "a")], [lock("a", 100)]))
    assert made.cycles[0].agents == (T(100),)


def test_a_cycle_goes_through_the_gil_and_a_join() -> None:
    """A mutex, the GIL and a joined thread are edges like any other."""
    threads = [waiting(100, joins=101), waiting(101, "mutex-1", "mutex"), waiting(102, "gil-0", "gil"), running(103)]
    gil = Resource("gil-0", "gil", "the GIL", 100, "recorded")
    made = graph(process(threads, [lock("mutex-1", 102, "recorded", kind="mutex"), gil]))
    assert [edge.waiter.tid for edge in made.cycles[0].edges] == [100, 101, 102]
    assert made.stuck(T(102)) == "proven"
    assert made.stuck(T(103)) is None


def test_everybody_on_conditions_is_stuck() -> None:
    """Nobody of the process runs, and nothing outside can wake one: nobody will ever notify."""
    threads = [waiting(100, "q", "condition"), waiting(101, "c", "condition")]
    made = graph(process(threads, [Resource("q", "queue", "Queue jobs"), Resource("c", "condition", "Condition c")]))
    assert made.stuck(T(100)) == made.stuck(T(101)) == "proven"
    assert set(made.roots()) == {T(100), T(101)}
    assert "only code in process 100 could signal these" in reasons(made, made.reasons(T(100)))[-1]


def test_one_who_runs_may_signal_all() -> None:
    """A single thread that runs, or sleeps, is enough for there to be no proof."""
    threads = [waiting(100, "q", "condition"), running(101)]
    assert graph(process(threads, [Resource("q", "queue", "Queue jobs")])).stuck_agents == frozenset()


def test_a_closed_object_is_stuck_beside_running_threads() -> None:
    """When memory shows that nobody refers to it, what the others do is of no matter."""
    nobody = Resource("q", "queue", "Queue jobs", closed=True, because=("only get() refers to it",))
    made = graph(process([waiting(100, "q", "condition"), running(101)], [nobody]))
    assert made.stuck(T(100)) == "proven"
    assert "only get() refers to it" in reasons(made, made.reasons(T(100)))


def test_a_signal_handler_may_signal() -> None:
    """The program's own handler, or handlers that nobody could read, take the proof away."""
    threads, resources = [waiting(100, "c", "condition")], [Resource("c", "condition", "Condition c")]
    handled = graph(process(threads, resources, signal_handlers=(SignalHandler(10),)))
    unread = graph(process(threads, resources, signal_handlers=None))
    assert handled.stuck(T(100)) is None
    assert unread.stuck(T(100)) == "likely"


def test_a_thread_that_woke_over_the_window_gets_signalled() -> None:
    """It waits for no lock that somebody holds, and was woken again and again: it is one that moves."""
    moving = waiting(100, "c", "condition", counters=Counters(1.0, 0.0, 50))
    assert graph(process([moving], [Resource("c", "condition", "Condition c")])).stuck(T(100)) is None


def test_a_lock_whose_holder_is_gone_has_a_root() -> None:
    """The waiter is the root: nobody else is to blame for him."""
    made = graph(
        process(
            [waiting(100, "r"), waiting(101, "s"), running(102)], [lock("r", None, owner_gone=True), lock("s", 100)]
        )
    )
    assert made.stuck(T(101)) == "proven"
    assert made.roots() == (T(100),)
    chain = made.chain(T(101))
    assert [edge.waiter for edge in chain.edges] == [T(101), T(100)]
    assert chain.end == "gone"


def test_tasks_that_await_each_other_are_a_cycle_beside_a_busy_loop() -> None:
    """Two asyncio locks in two orders: proven although the loop serves others."""
    locks = [lock("a", kind="async-lock", owner_task="2"), lock("b", kind="async-lock", owner_task="1")]
    tasks = [
        task("1", TaskWait("lock", "a", endless=True)),
        task("2", TaskWait("lock", "b", endless=True)),
        task("3", ready=True),
    ]
    loop_thread = waiting(100, kind="event-loop")
    made = graph(process([loop_thread], locks, loops=(idle_loop(100, scheduled=3),), tasks=tuple(tasks)))
    assert made.cycles[0].agents == (t("1"), t("2"))
    assert made.stuck(t("1")) == "proven"
    assert made.stuck(t("3")) is None


def test_a_future_of_an_idle_loop_is_never_set() -> None:
    """No timer, no descriptor, no other thread: the loop and its task wait for each other."""
    future = Resource("f", "async-future", "a Future of main")
    tasks = (task("1", TaskWait("future", "f", endless=True)),)
    thread = waiting(100, kind="event-loop")
    dead = graph(process([thread], [future], loops=(idle_loop(100),), tasks=tasks))
    serving = graph(process([thread], [future], loops=(idle_loop(100, watched=200),), tasks=tasks))
    unread = graph(process([thread], [future], loops=(idle_loop(100, watched=None),), tasks=tasks))
    assert dead.stuck(t("1")) == dead.stuck(T(100)) == "proven"
    assert serving.stuck(t("1")) is None
    assert unread.stuck(t("1")) is None


def test_a_loop_that_waits_for_its_own_task_is_a_cycle() -> None:
    """result() on the loop's thread: the thread needs the task, the task needs its turn on that thread."""
    future = Resource("f", "future", "Future of fetch", wakers=(Waker("runner", "memory", task="1"),), closed=True)
    made = graph(
        process([waiting(100, "f", "condition")], [future], loops=(idle_loop(100),), tasks=(task("1", ready=True),))
    )
    assert made.cycles[0].agents == (T(100), t("1"))
    assert made.stuck(t("1")) == "proven"


def test_gather_needs_all_and_wait_any_one() -> None:
    """One stuck task holds a gather up; a wait for the first one only when every one is stuck."""
    locks = [lock("a", kind="async-lock", owner_task="1")]
    stuck, free = task("1", TaskWait("lock", "a", endless=True)), task("2", TaskWait("sleep"))

    def made(any_: bool) -> object:
        several = task("3", TaskWait("tasks", tasks=("1", "2"), any=any_, endless=True))
        return graph(
            process(
                [waiting(100, kind="event-loop")],
                locks,
                loops=(idle_loop(100, scheduled=1),),
                tasks=(stuck, free, several),
            )
        ).stuck(t("3"))

    assert made(False) == "proven"
    assert made(True) is None


def test_a_child_is_as_stuck_as_all_its_threads() -> None:
    """The parent waits for the child, the child's only thread for a lock whose holder was not forked along."""
    parent = process([waiting(100, kind="process", wait={"pid": 200})])
    child = process(
        [waiting(200, "r")],
        [lock("r", owner_gone=True)],
        pid=200,
        ppid=100,
    )
    made = graph(parent, child)
    assert made.stuck(T(100)) == "proven"
    assert made.roots() == (T(200, 200),)
    assert [edge.waiter for edge in made.chain(T(100)).edges] == [T(100), Agent(200), T(200, 200)]


def test_a_full_pipe_between_parent_and_child_is_stuck() -> None:
    """The parent waits for the child, the child writes to a pipe that only the parent could read."""
    pipe = Resource(
        "pipe-1",
        "pipe",
        "pipe to process 100",
        wakers=(Waker("end", "kernel", pid=100),),
        closed=True,
        ends=(End(100, 3, "r"), End(200, 1, "w")),
    )
    parent = process([waiting(100, kind="process", wait={"pid": 200})])
    child = process(
        [waiting(200, "pipe-1", "pipe")],
        [pipe],
        pid=200,
        ppid=100,
    )
    assert graph(parent, child).stuck(T(200, 200)) == "proven"


def test_an_unknown_child_may_end() -> None:
    """Nothing is known of a process that was not captured."""
    assert graph(process([waiting(100, kind="process", wait={"pid": 999})])).stuck_agents == frozenset()


def test_who_waits_behind_a_cycle_is_found() -> None:
    """Victims: directly, and through others."""
    threads = [
        waiting(100, joins=103),
        waiting(101, "a"),
        waiting(102, "b"),
        waiting(103, "a"),
        waiting(104, "q", "condition"),
    ]
    made = graph(process(threads, [lock("a", 102), lock("b", 101), Resource("q", "queue", "Queue q")]))
    assert made.behind(frozenset(made.cycles[0].agents)) == (T(100), T(103))


def test_a_chain_says_how_it_ends() -> None:
    """In a circle, with somebody who runs, with a peer, with nobody."""
    resources = [
        lock("a", 101),
        lock("b", 102),
        Resource("s", "socket", "socket to 10.0.0.1:80"),
        Resource("f", "future", "a Future", closed=True),
    ]
    threads = [
        waiting(100, "a"),
        waiting(101, "b"),
        running(102),
        waiting(103, "s", "socket"),
        waiting(104, "f", "condition"),
    ]
    made = graph(process(threads, resources))
    assert [made.chain(T(tid)).end for tid in (100, 102, 103, 104)] == ["runs", "runs", "outside", "nobody"]
    assert made.chain(T(100)).last == T(102)


def test_a_stopped_thread_can_be_continued() -> None:
    """A lock that a stopped thread holds is no deadlock."""
    stopped = Thread(101, state="T", wait=waiting(101, "b").wait)
    made = graph(process([waiting(100, "a"), stopped], [lock("a", 101), lock("b", 100)]))
    assert made.stuck_agents == frozenset()


def test_large_graphs_are_built_in_linear_work() -> None:
    """Ten times the agents take about ten times the work, not a hundred times: a chain, a crowd on one lock, a circle."""

    def work(number: int) -> int:
        threads = [waiting(PID + i, f"lock-{(i + 1) % number}") for i in range(number)]
        tasks = tuple(task(str(i), TaskWait("tasks", tasks=(str(i + 1),), endless=True)) for i in range(number - 1))
        whole = process(
            threads, [lock(f"lock-{i}", PID + i) for i in range(number)], tasks=tasks, loops=(idle_loop(PID),)
        )

        def questions() -> None:
            made = graph(whole)
            assert len(made.cycles[0].edges) == number
            assert made.chain(T(PID)).end in ("circle", "cut")
            made.roots()

        return lines_run(questions)

    assert work(3000) < 12 * work(300)


def test_those_who_wait_for_the_same_share_a_sentence() -> None:
    """Fifty workers on one queue are one step of the proof."""
    threads = [waiting(PID + n, "q", "condition") for n in range(50)]
    made = graph(process(threads, [Resource("q", "queue", "Queue jobs")]))
    steps = reasons(made, made.reasons(*(T(PID + n) for n in range(50))))
    assert steps[0].startswith("T100 (100), T101 (101), T102 (102), T103 (103) and 46 more: each waits for Queue jobs")
    assert len(steps) == 2
    assert steps[1].endswith("the program has set no signal handler")


def test_a_loop_that_watches_a_stuck_child_is_stuck() -> None:
    """Its only descriptor is a pipe of which the other end is a child's that writes into another, full one."""
    out = Resource("out", "pipe", "output of the child", wakers=(Waker("end", "kernel", pid=200),), closed=True)
    future = Resource("f", "async-future", "a Future of communicate")
    waits = (task("1", TaskWait("future", "f", endless=True)),)
    parent = process(
        [waiting(100, kind="event-loop")],
        [future, out],
        tasks=waits,
        loops=(idle_loop(100, watched=1, descriptors=("out",)),),
    )
    full = Resource("err", "pipe", "errors of the child", wakers=(Waker("end", "kernel", pid=100),), closed=True)
    child = process([waiting(200, "err", "pipe")], [full], pid=200, ppid=100)
    assert graph(parent, child).stuck(t("1")) == "proven"
    running_child = process([running(200)], [full], pid=200, ppid=100)
    assert graph(parent, running_child).stuck(t("1")) is None


def test_who_could_only_signal_is_not_to_blame() -> None:
    """Main joins the worker, the worker waits for a queue that only main could put something into: the worker's wait is the
    root, and there is no circle of locks."""
    reach = Resource("q", "queue", "Queue jobs", wakers=(Waker("reach", "memory", tid=100),), closed=True)
    made = graph(process([waiting(100, joins=101), waiting(101, "q", "condition"), running(102)], [reach]))
    assert made.stuck(T(100)) == made.stuck(T(101)) == "proven"
    assert made.roots() == (T(101),)
    assert made.cycles == ()
    assert made.behind(frozenset((T(101),))) == (T(100),)


@pytest.mark.parametrize(("cancels", "expected"), [((), "proven"), (("cancel",), "likely"), (None, "likely")])
def test_a_task_may_be_cancelled_by_whoever_runs(cancels: object, expected: str) -> None:
    """Nobody can set the future, but code that cancels tasks may get at them all the same; when nobody runs, nobody does."""
    nobody = Resource("f", "async-future", "a Future", closed=True)
    waits = task("1", TaskWait("future", "f", endless=True))
    heartbeat = task("2", TaskWait("sleep"))
    thread = waiting(100, kind="event-loop")
    beside = graph(
        process([thread], [nobody], loops=(idle_loop(100, scheduled=1),), tasks=(waits, heartbeat), cancels=cancels)
    )
    alone = graph(process([thread], [nobody], loops=(idle_loop(100),), tasks=(waits,), cancels=cancels))
    assert beside.stuck(t("1")) == expected
    assert alone.stuck(t("1")) == "proven"


def test_who_was_notified_only_has_to_wake() -> None:
    """Found in its wait, though the signal has come: it moves, and so does whom only it could signal."""
    reach = Resource("c", "condition", "Condition turns", wakers=(Waker("reach", "memory", tid=102),), closed=True)
    asleep = [waiting(100, "c", "condition"), waiting(101, "c", "condition")]
    assert graph(process([*asleep, waiting(102, joins=101)], [reach])).stuck(T(100)) == "proven"
    woken = [asleep[0], waiting(101, "c", "condition", wait={"over": True})]
    made = graph(process([*woken, waiting(102, joins=101)], [reach]))
    assert made.stuck(T(100)) is made.stuck(T(101)) is made.stuck(T(102)) is None


def test_a_closed_object_whose_waiter_wakes_again_and_again_is_signalled() -> None:
    """Memory shows nobody who could, yet somebody does."""
    reach = Resource("c", "condition", "Condition turns", closed=True)
    moving = waiting(100, "c", "condition", counters=Counters(1.0, 0.1, 30_000))
    assert graph(process([moving, running(101)], [reach])).stuck(T(100)) is None


def test_edges_tell_what_remains_of_their_wait() -> None:
    """Waits of a thread and of a task have it; the task's turn does not."""
    timed = waiting(PID, "a", wait={"endless": False, "remaining_s": 82_800.0})
    asleep = task("t", TaskWait("event", endless=False, remaining_s=4.2))
    found = graph(process([timed], [lock("a", 9)], tasks=(asleep,), loops=(idle_loop(PID),))).edges
    edges = [edge for several in found.values() for edge in several]
    assert {(e.kind, e.remaining_s) for e in edges if not e.waiter.is_process} == {
        ("lock", 82_800.0),
        ("turn", None),
        ("event", 4.2),
    }
