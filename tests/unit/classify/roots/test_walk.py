"""The path from a wait to its root: along what is owed, through loops and processes, and where it ends."""

from __future__ import annotations

from typing import Any, Sequence, Tuple

import pytest

from postmortem.classify.facts.view import View
from postmortem.classify.roots.walk import Way, follow
from postmortem.evidence import Loop, Pool, Process, Resource, Task, TaskWait, Thread, Wait, Waker
from postmortem.evidence.vocabulary import EndMode, WakerGrade
from postmortem.waitgraph import Agent

from ....support.make import RESTING, evidence, frame, lock, locked, process, stack, thread
from ....support.pipes import CHILD, FULL, OTHER, PARENT, child, of, pipe, waits

MAIN = Agent(1, 1)


def way(*processes: Process, start: Agent = MAIN) -> Way:
    return follow(View(evidence(*processes)), start)


def whole(threads: Sequence[Thread], *resources: Resource, **known: Any) -> Process:
    return process(threads, resources=resources, **{"signal_handlers": (), "cancels": (), **known})


def event(*wakers: Waker, ident: str = "e", closed: bool = True) -> Resource:
    return Resource(ident, "event", f"Event {ident}", wakers=wakers, closed=closed)


def wants(tid: int, resource: str, endless: bool = True) -> Thread:
    return thread(tid, [frame("work", tid)], wait=locked(resource, endless))


def listens(tid: int, resource: str) -> Thread:
    wait = Wait("event", "futex", resource, endless=True)
    return thread(tid, (*stack("threading.wait"), frame("work", tid)), wait=wait)


def reach(tid: int, grade: Any = None) -> Waker:
    known: WakerGrade = grade
    return Waker("reach", "memory", tid=tid, grade=known)


def test_one_who_waits_for_nothing_is_its_own_root() -> None:
    """A thread that runs; and one that the evidence does not have."""
    one = way(whole([thread(1, [frame("main")])]))
    assert (one.start, one.end, one.edge, one.cycle) == (Agent(1, 1), Agent(1, 1), None, ())
    assert way(whole([]), start=Agent(1, 9)).agents == (Agent(1, 9),)


def test_holders_are_followed_to_the_first_wait_that_nobody_owes() -> None:
    """Main wants what 2 holds, who wants what 3 holds, who waits for an event that nobody has."""
    one = way(whole([wants(1, "a"), wants(2, "b"), listens(3, "e")], lock("a", 2), lock("b", 3), event()))
    assert [agent.tid for agent in one.agents] == [1, 2, 3]
    assert [edge.resource for edge in one.edges] == ["a", "b"]
    assert one.edge is not None
    assert one.edge.resource == "e"


def test_a_holder_that_runs_is_the_end() -> None:
    """There is no wait at it."""
    one = way(whole([wants(1, "a"), thread(2, [frame("crunch")])], lock("a", 2)))
    assert (one.end, one.edge, len(one.edges)) == (Agent(1, 2), None, 1)


def test_a_holder_that_has_ended_owes_nothing() -> None:
    """The wait for its lock is the root."""
    gone = Resource("a", "rlock", "RLock", waiters=(1,), locked=True, owner_gone=True)
    one = way(whole([wants(1, "a"), thread(2, [frame("crunch")])], gone))
    assert one.agents == (Agent(1, 1),)
    assert one.edge is not None
    assert one.edge.gone


def test_a_cycle_is_an_end_of_its_own() -> None:
    """The waiter behind it is on the path, and in no cycle."""
    one = way(whole([wants(1, "a"), wants(2, "b"), wants(3, "c")], lock("a", 2), lock("b", 3), lock("c", 2)))
    assert [edge.waiter.tid for edge in one.cycle] == [2, 3]
    assert (one.edge, [agent.tid for agent in one.agents]) == (None, [1, 2, 3])


def test_a_cycle_over_a_mere_signal_is_none() -> None:
    """One holds a lock that the other wants, who only could set the first one's event: the event is the root."""
    one = way(whole([wants(1, "a"), listens(2, "e")], lock("a", 2), event(reach(1))))
    assert not one.cycle
    assert (one.end, one.edge is not None and one.edge.resource) == (Agent(1, 2), "e")


def test_those_who_could_signal_are_not_followed() -> None:
    """While they can move, or wait for signals themselves: the event is the root."""
    free = thread(2, [frame("crunch")])
    assert way(whole([listens(1, "e"), free], event(reach(2, "names")))).end == Agent(1, 1)
    both = whole([listens(1, "e"), listens(2, "f")], event(reach(2)), event(reach(1), ident="f"))
    one = way(both)
    assert (one.end, one.cycle, one.edge is not None and one.edge.resource) == (Agent(1, 1), (), "e")


@pytest.mark.parametrize("named", [True, False])
def test_a_signaller_that_is_held_up_is_followed(named: bool) -> None:
    """It is to set the event, and wants a lock that is lost: that is the root; also where any thread could be the one."""
    lost = Resource("a", "rlock", "RLock", waiters=(2,), locked=True, owner_gone=True)
    known = event(reach(2)) if named else Resource("e", "event", "Event e")
    one = way(whole([listens(1, "e"), wants(2, "a")], known, lost))
    assert (one.end, one.edge is not None and one.edge.resource) == (Agent(1, 2), "a")


@pytest.mark.parametrize(
    ("wakers", "end"),
    [
        ((reach(2, "names"), reach(3, "refers")), 2),  # the only one whose code may do it
        ((reach(2, "names"), reach(3, "names")), 1),
        ((reach(2, "names"), Waker("reach", "memory", name="global X")), 1),
        ((reach(2, "names"), Waker("reach", "memory", name="global X", grade="refers")), 2),
        ((reach(3, "refers"),), 1),
    ],
)
def test_the_only_one_able_to_signal_is_followed(wakers: Sequence[Waker], end: int) -> None:
    """While it waits for a peer, say; beside another one, or a waker that is no agent, it need not be the one."""
    peer = Resource("s", "socket", "socket", remote="b:80", accepted=False)
    asks = thread(2, [frame("ask", 2)], wait=Wait("socket", "recvfrom", "s", endless=True))
    one = way(whole([listens(1, "e"), asks, thread(3, [frame("beat")])], event(*wakers), peer))
    assert one.end == Agent(1, end)


@pytest.mark.parametrize(("serves", "end"), [(True, 2), (False, 1)])
def test_beside_a_server_the_one_whose_code_is_known_to_signal_is_followed(serves: bool, end: int) -> None:
    """A server's thread may do it for a client that comes; a thread at work may do it at once."""
    accepts = Wait("socket", "accept4", endless=True)
    third = thread(3, stack("serve"), wait=accepts) if serves else thread(3, [frame("crunch")])
    peer = Resource("s", "socket", "socket", remote="b:80", accepted=False)
    asks = thread(2, [frame("ask", 2)], wait=Wait("socket", "recvfrom", "s", endless=True))
    assert way(whole([listens(1, "e"), asks, third], event(reach(2, "names"), reach(3)), peer)).end == Agent(1, end)


def test_of_several_that_could_end_a_wait_one_that_cannot_move_comes_first() -> None:
    """A semaphore that two threads have: the one that waits for ever is the way on."""
    permits = Resource("p", "semaphore", "Semaphore p", wakers=tuple(Waker("holder", "memory", tid=n) for n in (2, 3)))
    threads = [thread(1, [frame("main")], wait=Wait("semaphore", "futex", "p", endless=True))]
    threads += [thread(2, [frame("crunch")]), listens(3, "e")]
    assert way(whole(threads, permits, event())).end == Agent(1, 3)


def test_any_of_several_tasks_is_enough() -> None:
    """asyncio.wait(FIRST_COMPLETED): the path goes on along one of them, and ends."""
    any_ = TaskWait("tasks", None, ("b", "c"), True, True)
    stuck = TaskWait("future", "f", endless=True)
    tasks = (
        Task("a", "a", "pending", "l", (frame("a"),), "wait", wait=any_, ready=False),
        Task("b", "b", "pending", "l", (frame("b"),), "Future", wait=TaskWait("sleep", endless=False), ready=False),
        Task("c", "c", "pending", "l", (frame("c"),), "Future", wait=stuck, ready=False),
    )
    future = Resource("f", "async-future", "Future f", closed=True)
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=False))
    loops = (Loop("l", 1, ready=0, scheduled=1, watched=0, main_task="a"),)
    one = way(whole([main], future, loops=loops, tasks=tasks))
    assert one.agents == (Agent(1, 1), Agent(1, task="a"), Agent(1, task="c"))


def looping(*tasks: Task, ready: int = 0, **known: Any) -> Process:
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=True))
    loops = (Loop("l", 1, ready=ready, scheduled=0, watched=0, main_task=known.pop("main", "a")),)
    return whole([main], *known.pop("resources", ()), loops=loops, tasks=tasks, **known)


def test_a_loops_main_task_is_what_its_thread_does() -> None:
    """Through it to what it awaits; without one, or where it is done, the loop is the root."""
    wait = TaskWait("future", "f", endless=True)
    task = Task("a", "a", "pending", "l", (frame("a"),), "Future", wait=wait, ready=False)
    future = Resource("f", "async-future", "Future f", closed=True)
    one = way(looping(task, resources=(future,)))
    assert (one.end, one.edge is not None and one.edge.resource) == (Agent(1, task="a"), "f")
    for none in (looping(task, resources=(future,), main=None), looping(main="a")):
        assert way(none).end == Agent(1, 1)
    done = Task("a", "a", "done", "l", (frame("a"),), "Future")
    assert way(looping(done)).end == Agent(1, 1)


def test_a_task_whose_loop_is_blocked_needs_its_turn_first() -> None:
    """The loop's thread waits for a lock inside a callback: whatever the task awaits comes after that."""
    main = thread(1, [frame("handle", 3)], wait=locked("a"))
    wait = TaskWait("future", "f", endless=True)
    task = Task("t", "t", "pending", "l", (frame("a"),), "Future", wait=wait, ready=False)
    resources = (lock("a", 2), Resource("f", "async-future", "Future f", closed=True))
    loops = (Loop("l", 1, ready=1, scheduled=0, watched=0),)
    known = whole([main, thread(2, [frame("crunch")])], *resources, loops=loops, tasks=(task,))
    one = way(known, start=Agent(1, task="t"))
    assert one.agents == (Agent(1, task="t"), Agent(1, 1), Agent(1, 2))


# ---------------------------------------------------------------------- other processes


def parent() -> Process:
    awaited = child(CHILD)
    return of(PARENT, (waits(awaited, "wait4", PARENT, "fetch"),), (awaited,))


def test_a_child_is_followed_to_its_main_thread() -> None:
    """And on, to what that waits for; a child that is not captured is the end."""
    lost = Resource("a", "rlock", "RLock", waiters=(CHILD,), locked=True, owner_gone=True)
    main = thread(CHILD, [frame("work")], wait=locked("a"), is_main=True)
    one = way(parent(), of(CHILD, (main,), (lost,)), start=Agent(PARENT, PARENT))
    assert (one.end, one.edge is not None and one.edge.resource) == (Agent(CHILD, CHILD), "a")
    runs = of(CHILD, (thread(CHILD, [frame("crunch")], is_main=True),), ())
    assert way(parent(), runs, start=Agent(PARENT, PARENT)).end == Agent(CHILD, CHILD)
    assert way(parent(), start=Agent(PARENT, PARENT)).end == Agent(PARENT, PARENT)


def test_a_process_that_serves_is_followed_to_its_only_thread_that_is_held_up() -> None:
    """Its main thread waits for whoever connects; with two such threads it is unknown which one it is, with none it rests."""
    serves = thread(CHILD, stack("serve"), wait=Wait("socket", "accept", endless=True), is_main=True)

    def end(*held_up: int) -> Agent:
        threads = (serves, *(wants(tid, "a") for tid in held_up))
        inside = of(CHILD, threads, (lock("a", None, held_up),))
        return way(parent(), inside, start=Agent(PARENT, PARENT)).end

    assert end(51) == Agent(CHILD, 51)
    assert end(51, 52) == Agent(PARENT, PARENT)
    assert end() == Agent(PARENT, PARENT)


def test_a_server_whose_main_thread_sleeps_owes_no_answer() -> None:
    """A loop of another thread has the connection; one that has others leaves it to the thread that sleeps."""
    ends = (Waker("end", "kernel", pid=9),)
    peer = Resource("s", "socket", "socket", local="b:9", remote="b:80", wakers=ends, peer_in_tree=True)
    asks = whole([thread(1, [frame("ask")], wait=Wait("socket", "recvfrom", "s", endless=True))], peer)
    asleep = thread(9, [frame("main")], wait=Wait("sleep", "clock_nanosleep", endless=False), is_main=True)
    turns = thread(10, RESTING, wait=Wait("event-loop", "epoll_wait", endless=True))
    loops = (Loop("l", 10, sockets=("t",)),)
    has = Resource("t", "socket", "socket", local="b:80", remote="b:9", accepted=True)
    other = Resource("t", "socket", "socket", local="b:81", listening=True)
    assert way(asks, process((asleep, turns), pid=9, resources=(has,), loops=loops)).end == Agent(1, 1)
    assert way(asks, process((asleep, turns), pid=9, resources=(other,), loops=loops)).end == Agent(9, 9)


def test_full_pipes_lead_to_each_other() -> None:
    """The parent waits for a child that cannot write: a cycle over two processes."""
    full = pipe(FULL, CHILD, ((CHILD, 1, "w"), (PARENT, 5, "r")))
    writer = of(CHILD, (waits(full, "write", CHILD, "emit", fd=1),), (full,))
    one = way(parent(), writer, start=Agent(PARENT, PARENT))
    assert [edge.waiter.pid for edge in one.cycle] == [PARENT, CHILD]


def test_readers_of_one_pipe_owe_each_other_nothing() -> None:
    """A sister that has the write end too, and reads the same pipe: the pipe is the root."""
    ends: Tuple[Tuple[int, int, EndMode], ...] = ((CHILD, 5, "r"), (OTHER, 5, "r"), (OTHER, 6, "w"))
    readers = [
        of(pid, (waits(pipe(FULL, pid, ends), "read", pid, "get"),), (pipe(FULL, pid, ends),)) for pid in (CHILD, OTHER)
    ]
    one = way(*readers, start=Agent(CHILD, CHILD))
    assert (one.end, one.edge is not None) == (Agent(CHILD, CHILD), True)


def test_a_path_has_a_bound() -> None:
    """A chain of a hundred locks is followed for sixty agents."""
    threads = [wants(n, f"l{n}") for n in range(1, 100)]
    locks = [lock(f"l{n}", n + 1) for n in range(1, 100)]
    assert len(way(whole(threads, *locks)).agents) == 60


@pytest.mark.parametrize(
    ("file", "end"), [("/usr/lib/python3/site-packages/web/protocol.py", "t1"), ("/app/x.py", "t2")]
)
def test_a_servers_task_between_two_requests_holds_nobody_up(file: str, end: str) -> None:
    """It could signal what the first task waits for, but waits for the next request; one of the program's own is followed."""
    signal = Resource(
        "c",
        "async-condition",
        "asyncio.Condition c",
        waiting_tasks=("t1",),
        wakers=(Waker("reach", "memory", task="t2"),),
    )
    socket = Resource("f", "socket", "socket 1.2.3.4:80", waiting_tasks=("t2",))
    wanting = Task(
        "t1", "one", "pending", "l", (frame("take"),), wait=TaskWait("condition", "c", endless=True), ready=False
    )
    serving = Task(
        "t2",
        "two",
        "pending",
        "l",
        (frame("start", 1, file),),
        wait=TaskWait("descriptor", "f", endless=True),
        ready=False,
    )
    selects = thread(1, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True))
    served = whole(
        [selects], signal, socket, tasks=(wanting, serving), loops=(Loop("l", 1, watched=3),), listening=(80,)
    )
    assert way(served, start=Agent(1, task="t1")).end == Agent(1, task=end)


def test_a_result_of_a_process_pool_is_followed_to_the_worker_at_work() -> None:
    """Not to the pool's own thread, which only passes results on, and not to a worker that is idle."""
    wants = thread(1, [frame("main", 80)], wait=Wait("condition", "futex", "f", endless=True), is_main=True)
    manager = thread(
        2,
        stack("multiprocessing.connection.wait", "concurrent.futures.process.wait_result_broken_or_wakeup"),
        wait=Wait("pipe", "poll", endless=True),
    )
    future = Resource("f", "future", "Future", waiters=(1,), wakers=(Waker("runner", "memory", tid=2),))
    pool = Pool("p", "ProcessPoolExecutor", "pool", limit=2, threads=(2,), processes=(7, 8), idle=(7,))
    parent = process([wants, manager], resources=(future,), pools=(pool,))
    idle, busy = (process([thread(n, [frame("run", n)], is_main=True)], pid=n, ppid=1) for n in (7, 8))
    way = follow(View(evidence(parent, idle, busy)), Agent(1, 1))
    assert way.end == Agent(8, 8)


@pytest.mark.parametrize(("method", "end"), [("get", Agent(2, 22)), ("put", Agent(2, 20))])
def test_a_client_of_a_manager_leads_to_the_thread_that_serves_it(method: str, end: Agent) -> None:
    """To the one in the method that the client asks for; without one there, to what the server's main thread waits for."""
    asks = (
        *stack("multiprocessing.connection.recv", "multiprocessing.managers._callmethod"),
        frame("get", 2, "<string>"),
    )
    ends = (Waker("end", "kernel", pid=2),)
    client = whole(
        [thread(1, (*asks, frame("outer", 5)), wait=Wait("socket", "read", "s", endless=True))],
        Resource("s", "socket", "socket", wakers=ends, peer_in_tree=True),
    )
    serve = stack("multiprocessing.managers.serve_client")
    server = process(
        [
            thread(20, stack("multiprocessing.managers.serve_forever"), wait=Wait("sleep", "clock_nanosleep"), is_main=True),
            thread(21, (*stack("multiprocessing.connection.recv"), *serve), wait=Wait("socket", "read", endless=True)),
            thread(22, (*stack(f"queue.{method}"), *serve), wait=Wait("condition", "futex", "q", endless=True)),
        ],
        resources=(Resource("q", "queue", "Queue", waiters=(22,)),), pid=2, ppid=1,
    )  # fmt: skip
    assert way(client, server).end == end
