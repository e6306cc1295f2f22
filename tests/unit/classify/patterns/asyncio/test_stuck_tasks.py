"""Tasks that nobody can wake: circles, conversations, futures, and loops that wait for themselves."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import pytest

from postmortem.evidence import (
    End,
    Evidence,
    HeldLock,
    Loop,
    Process,
    Resource,
    SignalHandler,
    Task,
    TaskWait,
    Thread,
    Wait,
    Waker,
    replace,
)
from postmortem.evidence.vocabulary import ResourceKind, TaskWaitKind, WakerGrade

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, process, silent, stack, thread

RESTS = Wait("event-loop", "epoll_wait", endless=True)
TICKS = Wait("event-loop", "epoll_wait", timeout_s=0.2, endless=False)


def task(ident: str, *functions: str, wait: Optional[TaskWait] = None, **known: Any) -> Task:
    return Task(ident, ident, "pending", "loop-1", stack(*functions), "Future", wait=wait, ready=wait is None, **known)


def awaits(resource: str, kind: TaskWaitKind = "queue") -> TaskWait:
    return TaskWait(kind, resource, endless=True)


def joins(*tasks: str, any_: bool = False) -> TaskWait:
    return TaskWait("task", None, tasks, any_, True)


def resting(
    tasks: Sequence[Task], resources: Sequence[Resource] = (), wait: Wait = RESTS, scheduled: int = 0, **known: Any
) -> Evidence:
    """One thread that runs the loop of these tasks, and rests in its selector."""
    loop = Loop(
        "loop-1",
        1,
        ready=0,
        scheduled=scheduled,
        readers=1,
        watched=known.pop("watched", 0),
        signals=(),
        main_task=known.pop("main", "main"),
        sockets=known.pop("sockets", ()),
    )
    main = thread(1, stack("selectors.select", "asyncio.base_events._run_once"), wait=wait, counters=counters())
    known.setdefault("signal_handlers", ())
    known.setdefault("cancels", ())
    return evidence(process([main], loops=(loop,), tasks=tuple(tasks), resources=tuple(resources), **known))


def ticking(tasks: Sequence[Task], resources: Sequence[Resource] = (), **known: Any) -> Evidence:
    """The same beside a task that the clock wakes again and again."""
    tick = task("tick", "asyncio.tasks.sleep", "tick", wait=TaskWait("sleep", endless=False))
    return resting([*tasks, tick], resources, TICKS, 1, **known)


def queue(ident: str, *reached_by: str, closed: Optional[bool] = None) -> Resource:
    wakers = tuple(Waker("reach", "memory", task=one) for one in reached_by)
    return Resource(ident, "async-queue", f"asyncio.Queue {ident} (empty)", wakers=wakers, closed=closed)


def future(
    description: str = "Future Rpc.replies['a']", closed: Optional[bool] = True, named: Optional[bool] = True
) -> Resource:
    return Resource(
        "future-1", "async-future", description, closed=closed, because=("nobody refers to it",), named=named
    )


def test_a_circle_of_locks() -> None:
    """Each task holds the lock that the other wants: a proof, even while the loop does other things. To change: where
    they wait and where they took it."""
    locks = [
        Resource(f"lock-{n}", "async-lock", f"asyncio.Lock {n}", owner_task=o, owner_basis="with-slot", locked=True)
        for n, o in ((1, "a"), (2, "b"))
    ]
    both = [
        task(
            "a",
            "asyncio.locks.acquire",
            "move",
            wait=awaits("lock-2", "lock"),
            holds=(HeldLock("lock-1", frame("move", 20), 1, "with-slot"),),
        ),
        task(
            "b",
            "asyncio.locks.acquire",
            "back",
            wait=awaits("lock-1", "lock"),
            holds=(HeldLock("lock-2", frame("back", 30), 1, "with-slot"),),
        ),
    ]
    known = ticking(both, locks)
    assert found(known)["async-deadlock"] == "proven" and classify(known).verdict == "async-deadlock"
    assert lines(known) == [2, 30, 2, 20]


def test_an_owner_that_was_inferred_proves_nothing() -> None:
    """A lock taken by hand has the holder that its source makes likely."""
    lock = Resource("lock-1", "async-lock", "asyncio.Lock 1", owner_task="a", owner_basis="inferred", locked=True)
    known = ticking([task("a", "one", wait=joins("b")), task("b", "two", wait=awaits("lock-1", "lock"))], [lock])
    assert found(known)["async-deadlock"] == "likely"


def test_tasks_that_await_each_other() -> None:
    """A task that waits for one of the cycle is a victim."""
    known = ticking(
        [task("a", "one", wait=joins("b")), task("b", "two", wait=joins("a")), task("c", "w", wait=joins("a"))]
    )
    finding = classify(known).findings[0]
    assert (finding.pattern, finding.confidence) == ("async-deadlock", "proven")
    assert [victim.task for victim in finding.victims] == ["c"]


def test_one_that_can_move_is_enough_for_a_wait_for_any() -> None:
    """asyncio.wait(FIRST_COMPLETED) over a task in the circle and one that sleeps."""
    known = ticking([task("a", "one", wait=joins("b", "tick", any_=True)), task("b", "two", wait=joins("a"))])
    assert silent(known, "async-deadlock")


def conversation(*, closed: Optional[bool] = None) -> Tuple[List[Task], List[Resource]]:
    """Two sides that both listen first, through one helper."""
    sides = [task(n, "asyncio.queues.get", "helper", f"side_{n}", wait=awaits(f"queue-{n}")) for n in ("a", "b")]
    sides = [changed_line(side, line) for side, line in zip(sides, (40, 50))]
    return sides, [queue("queue-a", "b", "a", closed=closed), queue("queue-b", "a", "b", closed=closed)]


def changed_line(one: Task, line: int) -> Task:
    frames = (*one.stack[:2], frame(one.stack[2].function, line))
    return Task(one.id, one.name, one.state, one.loop, frames, one.awaiting, wait=one.wait, ready=False)


def test_nobody_speaks_first() -> None:
    """With everything at rest nobody is left to fill their queues. The helper that both go through is not blamed."""
    known = resting(*conversation())
    assert found(known) == {"async-deadlock": "proven"} and lines(known) == [40, 50]


@pytest.mark.parametrize(
    ("grade", "expected"), [("refers", "future-never-resolved"), (None, "async-deadlock"), ("names", "async-deadlock")]
)
def test_who_only_refers_to_an_event_is_not_to_set_it(grade: Any, expected: str) -> None:
    """The workers wait for an item of the main task, and none of their code sets what that waits for: they are its victims."""
    started = Resource(
        "e", "async-event", "Event Pool.ready", waiting_tasks=("main",), closed=True,
        wakers=(Waker("reach", "memory", task="w", grade=grade),),
    )  # fmt: skip
    worker, main = task("w", "worker", wait=awaits("q")), task("main", "main", wait=awaits("e", "event"))
    known = resting([worker, main], [queue("q", "main", closed=True), started])
    assert classify(known).verdict == expected


def test_a_timer_may_be_the_one_who_speaks() -> None:
    """As long as other code runs and nothing says that it cannot reach the queues, it might fill them."""
    assert "async-deadlock" not in found(ticking(*conversation()))


def test_who_cannot_reach_a_queue_cannot_fill_it() -> None:
    """Both queues are known to be reached by the two tasks alone, and a third waits for both of them."""
    tasks, queues = conversation(closed=True)
    known = ticking([*tasks, task("main", "gather", wait=joins("a", "b"))], queues)
    assert found(known)["async-deadlock"] == "proven"


def test_tasks_of_a_library_that_only_their_caller_could_wake() -> None:
    """They have no line of the program; that of the task which waits for them, and alone could set their events, is shown."""
    events = [
        Resource(f"event-{n}", "async-event", f"Event {n}", closed=True, waiting_tasks=(n,), wakers=(BY_MAIN,))
        for n in ("a", "b")
    ]
    inner = [task(n, "asyncio.locks.wait", wait=awaits(f"event-{n}", "event")) for n in ("a", "b")]
    known = ticking([*inner, task("main", "ask", wait=joins("a", "b", any_=True))], events)
    told = next(f for f in classify(known).findings if f.pattern == "async-deadlock")
    assert [c.function for c in told.culprits] == ["ask"]


BY_MAIN = Waker("reach", "memory", task="main")


def test_signal_handlers_that_are_unknown_leave_another_reading() -> None:
    """A Python signal handler may set or put anything."""
    assert found(resting(*conversation(), signal_handlers=None)) == {"async-deadlock": "possible"}


@pytest.mark.parametrize(
    "named, functions, verdict",
    [
        (True, ("call", "main"), "proven"),
        (True, ("main",), "possible"),
        (False, ("main",), None),
        (False, ("call", "main"), None),
        (None, ("call", "main"), "proven"),
    ],
)
def test_a_main_task_that_is_parked_beside_others(
    named: Optional[bool], functions: Sequence[str], verdict: Optional[str]
) -> None:
    """`await asyncio.Future()` in main() is how programs run for ever; a future with a name was meant to be set."""
    wait = TaskWait("future", "future-1", endless=True)
    known = ticking([task("main", *functions, wait=wait)], [future(named=named)])
    assert found(known).get("future-never-resolved") == verdict


def test_a_server_may_wait_for_ever() -> None:
    """Whatever its main task awaits, while it listens."""
    listens = Resource("socket-1", "socket", "socket", listening=True)
    known = resting(
        [task("main", "call", "main", wait=TaskWait("future", "future-1", endless=True))],
        [future(), listens],
        watched=1,
        sockets=("socket-1",),
    )
    assert found(known) == {}


@pytest.mark.parametrize(("function", "expected"), [("call_tool", "likely"), ("wait_for_shutdown", None)])
def test_a_server_whose_main_task_wants_an_answer(function: str, expected: Optional[str]) -> None:
    """A library's call that is to return is no way to keep a server alive; one that serves, by its name, is."""
    listens = Resource("socket-1", "socket", "socket", listening=True)
    client = frame(function, 50, file="/venv/lib/python3.12/site-packages/mcp/session.py")
    wait = TaskWait("future", "future-1", endless=True)
    main = replace(task("main", "collect", wait=wait), stack=(client, *stack("collect", "main")))
    known = resting([main], [future(), listens], watched=1, sockets=("socket-1",))
    assert found(known).get("future-never-resolved") == expected


@pytest.mark.parametrize(("function", "expected"), [("join", "likely"), ("get", None)])
def test_a_request_that_waits_until_a_queue_is_empty(function: str, expected: Optional[str]) -> None:
    """The task that emptied it has died, and the server goes on. One that waits for the next item may be there to push it."""
    handles = task("r", f"asyncio.queues.{function}", "handle", wait=awaits("q", "queue"))
    serves = task("main", "site-packages.uvicorn.server.main_loop", wait=TaskWait("sleep", endless=False))
    filled = Resource("q", "async-queue", "asyncio.Queue q (2 items, 2 not done)", waiting_tasks=("r",), closed=True)
    known = resting([serves, handles], [filled], TICKS, 1, watched=1)
    assert found(known).get("future-never-resolved") == expected


def test_a_future_that_others_wait_behind() -> None:
    """The result of a task that is stuck is wanted: that is no background task."""
    wait = TaskWait("future", "future-1", endless=True)
    inner = task("inner", "call", wait=wait)
    assert found(ticking([inner], [future()]))["future-never-resolved"] == "possible"
    known = ticking([inner, task("main", "main", wait=joins("inner"))], [future()])
    finding = classify(known).findings[0]
    assert (finding.pattern, finding.confidence) == ("future-never-resolved", "proven")
    assert "nobody refers to it" in finding.evidence and [v.task for v in finding.victims] == ["main"]


def test_a_future_that_somebody_may_know() -> None:
    """Without a proof that nobody else can reach it, code that runs might set it."""
    known = ticking(
        [task("main", "call", "main", wait=TaskWait("future", "future-1", endless=True))], [future(closed=None)]
    )
    assert silent(known, "future-never-resolved")


@pytest.mark.parametrize("closed, confidence", [(None, "likely"), (True, "proven")])
def test_an_asyncio_lock_that_was_never_given_back(closed: Optional[bool], confidence: str) -> None:
    """No task is left that holds it: a proof when nobody else can get at it, else likely. To change: where it is taken."""
    lock = Resource(
        "lock-1",
        "async-lock",
        "asyncio.Lock Store._lock",
        locked=True,
        because=("all tasks were read",),
        closed=closed,
        taken_at=(frame("bump", 70),),
        waiting_tasks=("main",),
    )
    known = ticking([task("main", "asyncio.locks.acquire", "bump", "main", wait=awaits("lock-1", "lock"))], [lock])
    assert classify(known).verdict == "orphaned-lock" and found(known)["orphaned-lock"] == confidence
    assert lines(known) == [70]


def blocked(wakers: Tuple[Waker, ...], loops: Sequence[Loop], **known: Any) -> Process:
    """The loop's thread in Future.result(), called from a callback."""
    wait = Wait("condition", "futex", resource="future-1", endless=True)
    main = thread(
        1, stack("threading.wait", "concurrent.futures._base.result", "fetch"), wait=wait, counters=counters()
    )
    resource = Resource("future-1", "future", "Future of coroutine work", None, None, (1,), wakers=wakers, closed=True)
    others: Tuple[Thread, ...] = known.pop("others", ())
    return process([main, *others], loops=tuple(loops), resources=(resource,), signal_handlers=(), cancels=(), **known)


def running(ident: str, tid: int, ready: int = 0) -> Loop:
    return Loop(ident, tid, ready=ready, scheduled=0, readers=1, watched=0, signals=(), state="running")


def test_a_loop_that_waits_for_its_own_task() -> None:
    """The task that would set the future needs its turn on the very thread that waits for it."""
    work = Task("work", "work", "pending", "loop-1", stack("work"), ready=True)
    known = evidence(blocked((Waker("runner", "memory", task="work"),), [running("loop-1", 1)], tasks=(work,)))
    assert classify(known).verdict == "loop-self-wait" and found(known)["loop-self-wait"] == "proven"
    assert lines(known) == [3]


def test_a_coroutine_that_has_not_begun() -> None:
    """It stands in the ready queue of the loop whose thread waits."""
    known = evidence(blocked((Waker("runner", "memory", tid=1),), [running("loop-1", 1, ready=1)]))
    assert found(known)["loop-self-wait"] == "proven"


def test_another_threads_loop_may_do_the_work() -> None:
    """The task runs on a loop of a thread of its own, which is free."""
    work = Task("work", "work", "pending", "loop-2", stack("work"), ready=True)
    other = thread(2, stack("selectors.select"), wait=TICKS, counters=counters())
    loops = [running("loop-1", 1), running("loop-2", 2, ready=1)]
    known = evidence(blocked((Waker("runner", "memory", task="work"),), loops, tasks=(work,), others=(other,)))
    assert "loop-self-wait" not in found(known)


def test_a_loop_that_waits_for_another_one_that_waits_for_itself() -> None:
    """Only the latter is to blame."""
    waits = Wait("condition", "futex", resource="future-2", endless=True)
    other = thread(
        2, stack("threading.wait", "concurrent.futures._base.result", "answer"), wait=waits, counters=counters()
    )
    work = Task("work", "work", "running", "loop-2", stack("work"))
    own = Resource(
        "future-2",
        "future",
        "Future of a coroutine",
        None,
        None,
        (2,),
        wakers=(Waker("runner", "memory", tid=2),),
        closed=True,
    )
    loops = [running("loop-1", 1, ready=1), running("loop-2", 2, ready=1)]
    first = blocked((Waker("runner", "memory", task="work"),), loops, tasks=(work,), others=(other,))
    known = evidence(replace(first, resources=(*first.resources, own)))
    blamed = [f.culprits[0].tid for f in classify(known).findings if f.pattern == "loop-self-wait"]
    assert blamed == [2]


def test_a_lock_that_records_a_task_that_has_ended() -> None:
    """anyio's Lock says who holds it: nobody who is there, so it is lost, and no circle of those who queue for it."""
    lost = Resource(
        "lock-1",
        "async-lock",
        "anyio.Lock Pump.lock",
        owner_gone=True,
        owner_basis="recorded",
        locked=True,
        waiting_tasks=("a", "b"),
        because=("it records a task that has ended",),
    )
    known = resting([task(n, "anyio.acquire", "water", wait=awaits("lock-1", "lock")) for n in ("a", "b")], [lost])
    assert classify(known).verdict == "orphaned-lock" and found(known)["orphaned-lock"] == "proven"
    assert "async-deadlock" not in found(known) and lines(known) == [2]


def test_tasks_that_queue_at_one_line_do_not_wait_for_each_other() -> None:
    """Each for an event of its own, inside a lock of some library, say: who should set them is not known."""
    events = [Resource(f"event-{n}", "async-event", f"asyncio.Event {n}") for n in ("a", "b")]
    known = resting([task(n, "locks.wait", "acquire", wait=awaits(f"event-{n}", "event")) for n in ("a", "b")], events)
    assert set(found(known)) == {"future-never-resolved"}


def shared(*asks: Tuple[str, str], unnamed: Optional[bool] = None, **known: Any) -> Evidence:
    """Tasks that each await the future that a callback of another one is to set: (task, that other one)."""
    tasks = [task(n, "cached", f"load_{n}", wait=awaits(f"future-{n}", "future")) for n, _of in asks]
    resources = [
        Resource(
            f"future-{n}",
            "async-future",
            f"Future {n}",
            waiting_tasks=(n,),
            wakers=(
                Waker("callback", "memory", task=of or None),
                Waker("reach", "memory", name="global CACHE", grade="refers" if unnamed else None),
            ),
            unnamed=unnamed,
        )
        for n, of in asks
    ]
    return resting(tasks, resources, **known)


def test_results_that_wait_for_each_other() -> None:
    """A cache that awaits its own pending entry over two others: the circle leads, and who waits behind it is no part."""
    known = shared(("a", "b"), ("b", "c"), ("c", "b"))
    finding = classify(known).findings[0]
    assert (finding.pattern, finding.confidence) == ("async-deadlock", "proven")
    assert "task b → task c → back" in finding.summary and "future-never-resolved" not in found(known)


def test_results_that_wait_for_each_other_beside_a_signal_handler() -> None:
    """A task that serves until a handler stops it is parked on purpose; one in a cycle of results is not."""
    stop = SignalHandler(15, frame("stop", 7), quiet=False)
    known = shared(("b", "c"), ("c", "b"), unnamed=True, signal_handlers=(stop,))
    assert [(f.pattern, f.confidence) for f in classify(known).findings] == [("async-deadlock", "likely")]


def test_a_row_of_shared_results_is_no_circle() -> None:
    """Its last one waits for what nobody sets."""
    assert set(found(shared(("a", "b"), ("b", "")))) == {"future-never-resolved"}


def asking(
    *sockets: Resource,
    endless: bool = True,
    watches: Tuple[str, ...] = ("socket-1",),
    peer_in_tree: Optional[bool] = None,
) -> Evidence:
    """The thread of a loop in recv, and what that loop watches."""
    answer = Resource(
        "socket-9",
        "socket",
        "socket 127.0.0.1:5000 → 127.0.0.1:80",
        waiters=(1,),
        local="127.0.0.1:5000",
        remote="127.0.0.1:80",
        peer_in_tree=peer_in_tree,
    )
    wait = Wait("socket", "recvfrom", "socket-9", endless=endless, timeout_s=None if endless else 5.0)
    called = (
        *stack("socket.readinto"),
        frame("owner", 28),
        *stack("asyncio.events._run", "asyncio.base_events._run_once"),
    )
    main = thread(1, called, wait=wait, counters=counters())
    loop = replace(running("loop-1", 1), sockets=watches, watched=len(watches))
    return evidence(process([main], loops=(loop,), resources=(answer, *sockets), signal_handlers=(), cancels=()))


def listens(local: str = "127.0.0.1:80", *pids: int) -> Resource:
    ends = tuple(End(pid, 6, "rw") for pid in (pids or (1,)))
    return Resource("socket-1", "socket", f"socket {local}", local=local, listening=True, ends=ends, received=1)


@pytest.mark.parametrize("local", ["127.0.0.1:80", "0.0.0.0:80"])
def test_a_server_that_asks_itself(local: str) -> None:
    """Its loop would have to accept the connection over which its thread waits for an answer."""
    known = asking(listens(local))
    assert classify(known).verdict == "loop-self-wait" and lines(known) == [28]
    assert found(known)["loop-self-wait"] == "likely"


def test_nobody_else_can_accept_the_connection() -> None:
    """It is proven if the connection waits in the queue of a listener that this loop alone has."""
    queued = asking(listens(), peer_in_tree=False)
    assert found(queued)["loop-self-wait"] == "proven"
    (own,) = queued.processes
    for less in (
        replace(own, signal_handlers=(SignalHandler(10),)),
        replace(own, loops=(*own.loops, replace(own.loops[0], id="loop-2", tid=2))),
        replace(own, resources=tuple(replace(r, waiters=(2,)) if r.listening else r for r in own.resources)),
        replace(own, resources=tuple(replace(r, received=0) if r.listening else r for r in own.resources)),
    ):
        assert found(replace(queued, processes=(less,)))["loop-self-wait"] == "likely"


def test_a_connection_that_the_loop_has_accepted() -> None:
    """It watches the other end of it."""
    other = Resource("socket-1", "socket", "socket 80 → 5000", local="127.0.0.1:80", remote="127.0.0.1:5000")
    assert found(asking(other))["loop-self-wait"] == "likely"


@pytest.mark.parametrize("listener", [listens("127.0.0.1:81"), listens("10.0.0.7:80"), listens("127.0.0.1:80", 1, 200)])
def test_another_server_may_answer(listener: Resource) -> None:
    """At another port or address, or in another process that has the same socket."""
    assert "loop-self-wait" not in found(asking(listener))
    assert "loop-self-wait" not in found(asking(listens(), endless=False))
    assert "loop-self-wait" not in found(asking(listens(), watches=()))


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("async-event", "asyncio.Event", ("future-never-resolved", "possible")),
        ("async-condition", "asyncio.Condition", ("missed-wakeup", "proven")),
    ],
)
def test_a_gathered_task_may_serve_until_an_event(kind: ResourceKind, name: str, expected: Tuple[str, str]) -> None:
    """An event may be what the task runs until; a condition is waited for in order to go on."""
    one = Resource("r", kind, name, wakers=(Waker("reach", "memory", task="a"),), closed=True)
    waits = task("a", "a", wait=TaskWait("event" if kind == "async-event" else "condition", "r", endless=True))
    others = task("b", "asyncio.tasks.sleep", "b", wait=TaskWait("sleep", endless=False))
    main = task("main", "main", wait=joins("a", "b"))
    leading = classify(ticking([main, waits, others], [one])).findings[0]
    assert (leading.pattern, leading.confidence) == expected


@pytest.mark.parametrize(("queued", "verdict"), [("threads.py", "loop-self-wait"), ("other.py", None)])
def test_a_call_from_a_thread_that_is_made_on_the_loops_own(queued: str, verdict: Optional[str]) -> None:
    """The library's function that waits has queued its other half on the loop whose thread it blocks."""
    site = "/venv/lib/python3.12/site-packages/twisted/internet/"
    waits = frame("blockingCallFromThread", 120, file=site + "threads.py")
    half = frame("_callFromThread", 113, file=site + queued)
    thread_ = thread(
        1, (*stack("queue.get"), waits, frame("read", 7)), wait=Wait("condition", "futex", "q", endless=True)
    )
    loop = Loop("loop-1", 1, "twisted", ready=1, ready_callbacks=(half,))
    box = Resource("q", "queue", "Queue queue (empty)", waiters=(1,), wakers=(Waker("reach", "memory", tid=2),))
    works = thread(2, [frame("beat", 3)], counters=counters(0.5))
    known = evidence(process([thread_, works], loops=(loop,), resources=(box,)))
    assert found(known).get("loop-self-wait") == ("likely" if verdict else None)
    assert verdict is None or lines(known) == [7]


@pytest.mark.parametrize(("function", "expected"), [("run_until_future", "likely"), ("other", None)])
def test_a_loop_that_joins_a_thread_which_waits_for_a_coroutine(function: str, expected: Optional[str]) -> None:
    """asgiref's: the loop's callback joins a worker that has handed a coroutine to it. A signal handler is no excuse."""
    bridge = frame(function, 59, file="/venv/lib/python3.12/site-packages/asgiref/current_thread_executor.py")
    step = stack("asyncio.events._run", "asyncio.base_events._run_once")
    joins = thread(
        1,
        (*stack("threading.join"), frame("leave", 40), *step),
        wait=Wait("lock", "futex", "t", endless=True),
        joins=2,
    )
    works = thread(
        2, (*stack("queue.get"), bridge, frame("get", 30)), wait=Wait("condition", "futex", "q", endless=True)
    )
    joined = Resource("t", "thread", "thread pool-0", waiters=(1,), owner_tid=2, owner_basis="recorded")
    box = Resource("q", "queue", "Queue _work_queue (empty)", waiters=(2,))
    loop = Loop("loop-1", 1, ready=2, scheduled=0, watched=0)
    stop = SignalHandler(15, frame("stop", 7), quiet=False)
    known = evidence(process([joins, works], loops=(loop,), resources=(joined, box), signal_handlers=(stop,)))
    assert found(known).get("loop-self-wait") == expected


def test_a_server_in_another_thread_excuses_no_main_task() -> None:
    """The loop itself watches no listening socket; its main task waits inside a library's call for what nothing sets."""
    client = frame("flush", 50, file="/venv/lib/python3.12/site-packages/nats/client.py")
    listens = Resource("socket-9", "socket", "socket", listening=True)
    wait = TaskWait("future", "future-1", endless=True)
    main = replace(task("main", "stop", "main", wait=wait), stack=(client, *stack("stop", "main")))
    known = resting([main], [future(named=False), listens], watched=0, listening=("socket",))
    assert found(known)["future-never-resolved"] == "proven"


@pytest.mark.parametrize(
    ("released", "expected"), [(False, ("pool-exhausted", "proven")), (True, ("future-never-resolved", "likely"))]
)
def test_a_semaphore_of_permits_that_tasks_have_lost(released: bool, expected: Tuple[str, str]) -> None:
    """Unless another function releases it without having acquired it: then it is a signal."""
    taken = (frame("fetch", 6),)
    gate = Resource(
        "s", "async-semaphore", "asyncio.Semaphore", value=0, closed=True, taken_at=taken, waiting_tasks=("a",)
    )
    gate = replace(gate, released_at=taken) if released else gate
    waits = task("a", "fetch", wait=TaskWait("semaphore", "s", endless=True))
    known = ticking([task("main", "main", wait=joins("a")), waits], [gate])
    leading = classify(known).findings[0]
    assert (leading.pattern, leading.confidence) == expected


def test_a_task_that_waits_for_the_systems_signals_hangs_on_nothing() -> None:
    """trio's open_signal_receiver: who ends that wait is outside of the program."""
    event = Resource("e", "async-event", "trio.ParkingLot SignalReceiver._lot", waiting_tasks=("main",), closed=True)
    stops = task("main", "trio._core._parking_lot.park", "trio._signals.__anext__", "main", wait=awaits("e", "event"))
    tick = task("tick", "trio._timeouts.sleep", "tick", wait=TaskWait("sleep", endless=False))
    known = resting([stops, tick], [event], TICKS, 1)
    assert found(known).get("future-never-resolved") in (None, "possible")


@pytest.mark.parametrize(("grade", "expected"), [("names", "proven"), ("refers", None)])
def test_a_loop_that_joins_a_thread_whose_item_only_its_own_task_would_put(
    grade: WakerGrade, expected: Optional[str]
) -> None:
    """The task sleeps, and needs its turn afterwards; it is no missed signal. A task that only knows the queue puts nothing."""
    joins = Wait("lock", "futex", resource="thread-2", endless=True, detail="for a thread to end")
    main = thread(1, stack("threading.join", "handle"), wait=joins, counters=counters())
    gets = Wait("condition", "futex", resource="queue-1", endless=True)
    worker = thread(2, stack("queue.get", "call"), wait=gets, counters=counters())
    ended = Resource("thread-2", "thread", "thread worker", 2, "recorded", waiters=(1,))
    queue = Resource(
        "queue-1",
        "queue",
        "Queue",
        waiters=(2,),
        closed=True,
        wakers=(Waker("reach", "memory", task="shelf", grade=grade),),
    )
    naps = Task(
        "shelf", "shelf", "pending", "loop-1", stack("shelf"), wait=TaskWait("sleep", endless=False), ready=False
    )
    handles = Task("handle", "handle", "running", "loop-1", stack("handle"))
    known = evidence(
        process([main, worker], loops=(running("loop-1", 1),), resources=(ended, queue), tasks=(naps, handles),
                signal_handlers=(), cancels=())
    )  # fmt: skip
    assert found(known).get("loop-self-wait") == expected
    assert not expected or classify(known).verdict == "loop-self-wait"
