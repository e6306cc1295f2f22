"""Whether a process is idle, makes progress or waits, and which of its roots counts."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

import pytest

from postmortem.classify.facts.view import View
from postmortem.classify.roots.roots import Root, roots, waiting
from postmortem.classify.roots.told import root_told
from postmortem.evidence import (
    Calling,
    End,
    Loop,
    NativeFrame,
    Process,
    Resource,
    SignalHandler,
    Task,
    TaskWait,
    Thread,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed
from postmortem.findings import told

from ....support.diagnosed import classify
from ....support.make import RESTING, counters, evidence, frame, lock, locked, process, samples, stack, thread

SLEEPS = Wait("sleep", "clock_nanosleep", timeout_s=3600.0)
PARKS = Wait("event", "futex", "e", endless=True)
EVENT = Resource("e", "event", "Event stop")
ACCEPTS = Wait("socket", "accept4", endless=True)
WORKER = stack("threading.wait", "queue.get", "concurrent.futures.thread._worker")


def whole(threads: Sequence[Thread], *resources: Resource, **known: Any) -> Process:
    return process(threads, resources=resources, **{"signal_handlers": (), "cancels": (), **known})


def root(*processes: Process, window: Optional[float] = 1.0) -> Root:
    """The root of the whole program."""
    return roots(View(evidence(*processes, window=window)))[0]


def state(*threads: Thread, **known: Any) -> Tuple[str, str]:
    one = root(whole(threads, EVENT, *known.pop("resources", ()), **known))
    return one.state, one.kind


def main(wait: Optional[Wait] = None, *functions: str, **known: Any) -> Thread:
    return thread(1, (*stack(*functions), frame("main", 9)), wait=wait, **known)


IDLE_WORKER = thread(2, WORKER, wait=Wait("condition", "futex", endless=True))
SERVER = thread(2, [frame("serve", 3)], wait=ACCEPTS)
DISPATCHER = thread(
    2,
    stack("selectors.select", "socketserver.serve_forever", "threading.run"),
    wait=Wait("other", "poll", endless=False),
)


@pytest.mark.parametrize(
    "thread_",
    [
        main(ACCEPTS),
        main(Wait("signal", "rt_sigwait", endless=True)),
        main(Wait("event-loop", "epoll_wait", endless=True)),
        main(Wait("other", "poll", "t", endless=True)),
        main(Wait("socket", "recvfrom", "s", endless=True)),
        main(Wait("socket", "poll", "l", endless=True)),
        main(Wait("file", "read", "i", endless=True)),
        main(Wait("other", "poll", endless=False), "selectors.select", "socketserver.serve_forever"),
        main(Wait("condition", "futex", endless=True), "tkinter.__init__.mainloop"),
    ],
)
def test_waits_by_design(thread_: Thread) -> None:
    """For connections, signals, events, a terminal, a notification, or a client that has sent nothing."""
    resources = (
        Resource("t", "terminal", "terminal"),
        Resource("s", "socket", "socket", accepted=True, received=0),
        Resource("l", "socket", "socket", listening=True),
        Resource("i", "inotify", "inotify"),
    )
    assert state(thread_, resources=resources)[0] == "idle"


def test_a_client_that_has_asked_is_not_waited_for_by_design() -> None:
    """Bytes of it lie in the socket's queue, or it is a peer that this program asked."""
    for socket in (
        Resource("s", "socket", "socket", accepted=True, received=12),
        Resource("s", "socket", "socket", accepted=False),
    ):
        assert state(main(Wait("socket", "recvfrom", "s", endless=True)), resources=(socket,)) == ("waiting", "socket")


@pytest.mark.parametrize("wait", [SLEEPS, PARKS])
@pytest.mark.parametrize(
    ("beside", "known", "expected"),
    [
        ((), {}, "waiting"),
        ((IDLE_WORKER,), {}, "idle"),
        ((SERVER,), {}, "idle"),
        ((DISPATCHER,), {}, "idle"),
        ((), {"listening": 1}, "idle"),
        ((thread(2, [frame("beat")], wait=Wait("sleep", timeout_s=1.0)),), {}, "waiting"),
    ],
)
def test_a_main_thread_that_keeps_others_alive(wait: Wait, beside: Sequence[Thread], known: Any, expected: str) -> None:
    """Beside servers, workers at rest or a handler that ends the program it is parked; beside a heartbeat it is not."""
    assert state(main(wait), *beside, **known)[0] == expected


def test_a_handler_excuses_who_waits_to_be_told_to_end() -> None:
    """In an event; not who sleeps, or waits for an item."""
    handlers = (SignalHandler(15),)
    assert state(main(PARKS), signal_handlers=handlers) == ("idle", "signal")
    assert state(main(SLEEPS), signal_handlers=handlers) == ("waiting", "sleep")
    item = main(Wait("condition", "futex", "q", endless=True))
    assert state(item, signal_handlers=handlers, resources=(Resource("q", "queue", "Queue q"),)) == ("waiting", "queue")


@pytest.mark.parametrize("call", ["queue.join", "multiprocessing.pool.wait", "multiprocessing.pool.next"])
def test_a_main_thread_that_collects_is_not_parked(call: str) -> None:
    """It waits for what its workers do, though they are at rest."""
    assert state(main(PARKS, "threading.wait", call), IDLE_WORKER)[0] == "waiting"


def test_a_main_thread_that_sleeps_while_another_computes() -> None:
    """The computing thread is the root of the program; an event that the computing thread does not set is still waited for."""
    works = thread(2, [frame("work", 5)], counters=counters(0.9))
    known = whole([main(SLEEPS, counters=counters()), works], EVENT)
    assert (root(known).state, root(known).agent.tid) == ("progressing", 2)
    assert state(main(PARKS, counters=counters()), works) == ("waiting", "signal")


@pytest.mark.parametrize(
    ("grade", "expected"), [("names", ("progressing", 2)), ("refers", ("waiting", 1)), (None, ("waiting", 1))]
)
def test_an_agent_that_computes_and_is_to_signal_later(grade: Any, expected: Tuple[str, int]) -> None:
    """A worker has an item to do, and its code says so afterwards: the main thread that joins the queue waits for it."""
    works = thread(2, [frame("work", 5)], counters=counters(0.9))
    item = Resource(
        "q", "queue", "Queue q (1 item not done)", waiters=(1,), wakers=(Waker("reach", "memory", tid=2, grade=grade),)
    )
    joins = main(Wait("condition", "futex", "q", endless=True), "threading.wait", "queue.join", counters=counters())
    found = root(whole([joins, works], item))
    assert (found.state, found.agent.tid) == expected


def test_a_sleep_inside_a_library_is_waited_for() -> None:
    """The program called it for a result: neither company nor short rounds make it rest, or progress."""
    inside = thread(1, (*stack("site-packages.retry.wait"), frame("fetch", 7)), wait=SLEEPS, counters=counters())
    assert state(inside, SERVER) == ("waiting", "sleep")
    rounds = Wait("sleep", "clock_nanosleep", timeout_s=0.05, endless=False)
    polls = thread(1, inside.python, wait=rounds, counters=counters(switches=19))
    assert state(polls) == ("waiting", "sleep")


def test_a_short_sleep_while_others_work_is_progress() -> None:
    """It paces the program's own loop; an hour's sleep is still waited for, whoever works."""
    works = thread(2, stack("queue.get"), wait=Wait("condition", "futex", endless=True), counters=counters(0.04))
    short = Wait("sleep", "clock_nanosleep", timeout_s=0.5, endless=False)
    assert state(main(short, counters=counters(switches=2)), works) == ("progressing", "sleep")


def test_an_idle_worker_that_parks_on_a_lock() -> None:
    """One that looks again after a time limit, or waits for a job, is at rest in its pool's own loop; else it wants the lock."""
    folder = "/venv/lib/python3.12/site-packages/gevent"
    pool = [frame("get", 7, f"{folder}/_threading.py"), frame("run", 9, f"{folder}/threadpool.py")]
    limited = Wait("lock", "futex", "l", endless=False)
    asks = main(ACCEPTS), thread(2, pool, wait=limited)
    assert waiting(View(evidence(whole(asks, lock("l", None)))), whole(asks, lock("l", None))) == []
    wants = main(ACCEPTS), thread(2, pool, wait=changed(limited, endless=True))
    assert len(waiting(View(evidence(whole(wants, lock("l", None)))), whole(wants, lock("l", None)))) == 1
    job = [frame("wait", 3, f"{folder}/_threading.py"), *pool]
    rests = main(ACCEPTS), thread(2, job, wait=changed(limited, endless=True))
    assert waiting(View(evidence(whole(rests, lock("l", None)))), whole(rests, lock("l", None))) == []


def test_a_callback_of_a_window_does_not_rest() -> None:
    """Its wait ends with the program: the loop is below it."""
    assert state(main(PARKS, "threading.wait", "pressed", "tkinter.__init__.mainloop"))[0] == "waiting"


def test_a_reloader_watches_over_its_server() -> None:
    """The library in which a thread sleeps serves on another thread, so the sleep is no retry for a result."""
    folder = "/venv/lib/python3.12/site-packages/django"
    naps = Wait("sleep", "clock_nanosleep", timeout_s=1.0, endless=False)
    watch = thread(1, [frame("tick", 3, f"{folder}/utils/autoreload.py"), frame("<module>", 7)], wait=naps)
    serves = [*DISPATCHER.python, frame("run", 5, f"{folder}/core/servers/basehttp.py")]
    server = thread(2, serves, wait=DISPATCHER.wait)
    assert state(watch, server) == ("idle", "sleep")
    assert state(watch, DISPATCHER) == ("waiting", "sleep")


def supervised(listening: Optional[int], *functions: str) -> Tuple[Process, Process]:
    """A parent that waits for a child, whose main thread sleeps for a second at a time."""
    waits = Wait("process", "wait4", "child", endless=True, pid=2)
    awaited = Resource("child", "process", "child 2", wakers=(Waker("runner", "kernel", pid=2),), closed=True)
    parent = whole([main(waits, "subprocess.wait", counters=counters())], awaited)
    naps = Wait("sleep", "clock_nanosleep", timeout_s=1.0, endless=False)
    child = thread(2, stack(*functions), wait=naps, is_main=True, counters=counters(switches=1))
    return parent, whole([child], pid=2, ppid=1, listening=listening)


def test_a_supervised_server_is_at_rest() -> None:
    """A reloader waits for the server that it started; a child that listens nowhere has to end."""
    server = supervised(1, "watch")
    assert [one.state for one in roots(View(evidence(*server)))] == ["idle", "idle"]
    assert classify(evidence(*server)).findings == ()
    assert roots(View(evidence(*supervised(None, "watch"))))[0].state == "waiting"


def test_a_servers_connection_between_two_requests_is_no_root() -> None:
    """A task without code of the program, in a process that listens; elsewhere a library's future is waited for."""
    wait = TaskWait("future", "f", endless=True)
    task = Task("t", "start", "pending", "l", stack("site-packages.web.start"), "Future", wait=wait, ready=False)
    polls = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=True))
    future = Resource("f", "async-future", "Future f")
    for port, expected in ((8080, "idle"), (None, "waiting")):
        listens = (port,) if port is not None else ()
        known = whole([polls], future, loops=(Loop("l", 1, ready=0, watched=1),), tasks=(task,), listening=listens)
        assert root(known).state == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, ("progressing", "python")),
        ({"counters": counters(1.0)}, ("progressing", "python")),
        ({"wait": locked("l"), "counters": counters(switches=40)}, ("progressing", "lock")),
        ({"wait": locked("l"), "counters": counters(switches=0)}, ("waiting", "lock")),
        ({"wait": locked("l")}, ("waiting", "lock")),
        ({"wait": locked("l"), "counters": counters(cpu=0.5)}, ("progressing", "lock")),
    ],
)
def test_progress(known: Any, expected: Tuple[str, str]) -> None:
    """Code that runs, or an agent that woke again and again over the window; without a window a wait is a wait."""
    frames = [frame("main", 9)]
    one = thread(1, frames, samples=samples((9, frames)), **known)
    assert state(one, resources=(lock("l", None),)) == expected


@pytest.mark.parametrize(
    ("inside", "expected"), [("httpcore/_async/connection_pool.py", "waiting"), ("trio/_sync.py", "idle")]
)
def test_a_task_inside_a_librarys_call_wants_its_answer(inside: str, expected: str) -> None:
    """A wait for a connection is no wait by design, whatever serves beside it; a wait in the program's own event may be."""
    called = frame("wait", 35, f"/venv/lib/python3.12/site-packages/{inside}")
    wait = TaskWait("event", "e", endless=True)
    task = Task("t", "worker", "pending", "l", (called, frame("fetch", 55)), "Event", wait=wait, ready=False)
    polls = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=True))
    event = Resource("e", "async-event", "Event")
    assert root(whole([polls], event, loops=(Loop("l", 1, ready=0, watched=1),), tasks=(task,))).state == expected


@pytest.mark.parametrize(("cpu", "expected"), [(0.01, "waiting"), (0.9, "progressing")])
def test_a_child_that_is_not_python_progresses_if_it_computes(cpu: float, expected: str) -> None:
    """A shell that polls with short sleeps wakes again and again, and each new one of its children was not observed yet."""
    parent = whole(
        [main(Wait("process", "wait4", "p", endless=True, pid=2))], Resource("p", "process", "child", owner_pid=2)
    )
    waits = Wait("process", "wait4", "q", endless=True, pid=3)
    foreign: Dict[str, Any] = {"python": None, "exe": "/bin/sh", "argv": ("sh",), "interpreters": ()}
    shell = process(
        [thread(2, is_main=True, wait=waits, counters=counters(0.01, switches=4))], pid=2, ppid=1, **foreign
    )
    naps = process([thread(3, is_main=True, counters=counters(cpu))], pid=3, ppid=2, **foreign)
    assert root(parent, shell, naps).state == expected


@pytest.mark.parametrize(
    ("cpu", "timed", "expected"), [(0.001, True, "waiting"), (0.05, True, "progressing"), (0.001, False, "progressing")]
)
def test_a_native_call_whose_short_waits_only_time_out_is_no_progress(cpu: float, timed: bool, expected: str) -> None:
    """It wakes a few times a second, at hardly any cost, as gRPC's calls do; an answer, and what it sets off, costs more."""
    below = [NativeFrame("wait", "/venv/lib/python3.12/site-packages/grpc/cygrpc.so", 3)]
    polls = Wait("futex", "futex", endless=False if timed else None)
    known = thread(1, [*below, frame("ask", 8)], wait=polls, counters=counters(cpu, switches=5))
    assert root(whole([known])).state == expected


def test_an_agent_on_the_way_that_moves_is_progress() -> None:
    """The holder of what main wants waits in turn, and gets it."""
    holder = thread(2, [frame("work", 5)], wait=PARKS, counters=counters(switches=30))
    known = whole([main(locked("l")), holder], lock("l", 2), EVENT)
    assert (root(known).state, root(known).agent.tid) == ("progressing", 2)


def test_the_timers_of_a_loop_are_no_progress() -> None:
    """Its thread wakes for them, whatever its main task waits for; a task that took a step is."""
    wait = TaskWait("future", "f", endless=True)

    def known(moved: Optional[bool]) -> Process:
        task = Task("t", "main", "pending", "l", (frame("ask", 8),), "Future", wait=wait, ready=False, moved=moved)
        ticks = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=False), counters=counters(switches=50))
        loops = (Loop("l", 1, ready=0, scheduled=1, watched=0, main_task="t"),)
        future = Resource("f", "async-future", "Future f", closed=True)
        return whole([ticks], future, loops=loops, tasks=(task,))

    assert (root(known(False)).state, root(known(None)).state) == ("waiting", "waiting")
    assert root(known(True)).state == "progressing"


def parked(named: Optional[bool] = None, wakers: Tuple[Waker, ...] = (), **known: Any) -> Process:
    """A loop whose main task awaits a future, beside another task that a timer wakes."""
    awaits = TaskWait("future", "f", endless=True)
    tasks = (
        Task("t", "main", "pending", "l", (frame("main", 8),), "Future", wait=awaits, ready=False),
        Task(
            "u",
            "tick",
            "pending",
            "l",
            (frame("tick", 9),),
            "sleep",
            wait=TaskWait("sleep", endless=False),
            ready=False,
        ),
    )
    future = Resource("f", "async-future", "Future f", closed=True, named=named, wakers=wakers)
    ticks = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=False))
    sockets = known.pop("sockets", ())
    known["loops"] = (
        Loop("l", 1, ready=0, scheduled=known.pop("scheduled", 1), watched=0, main_task="t", sockets=sockets),
    )
    return whole([ticks], future, Resource("s", "socket", "socket", listening=True), tasks=tasks, **known)


def test_a_main_task_that_keeps_its_loop_running() -> None:
    """It awaits a future without a name, or its loop has a socket that listens; a future with a name was meant to be set."""
    assert root(parked(named=False)).state == "idle"
    assert root(parked(sockets=("s",))).state == "idle"
    assert root(parked(named=True)).state == "waiting"
    assert root(parked()).state == "waiting"


def test_a_future_in_a_table_that_code_of_the_program_sets() -> None:
    """It has no name of its own, but it was meant to be set."""
    sets = Waker("reach", "memory", tid=1, grade="names", site=frame("data_received", 22))
    refers = Waker("reach", "memory", name="attribute _transports of the event loop")
    assert root(parked(named=False, wakers=(refers,))).state == "idle"
    assert root(parked(named=False, wakers=(refers, sets))).state == "waiting"


def test_a_thread_that_nobody_waits_for_may_rest() -> None:
    """Asleep, in a queue or an event; but not for a lock, nor in a job of a pool."""
    for wait in (SLEEPS, PARKS):
        background = thread(2, [frame("watch", 5)], wait=wait)
        assert state(main(ACCEPTS), background)[0] == "idle"
    wants = thread(2, [frame("watch", 5)], wait=locked("l"))
    assert state(main(ACCEPTS), wants, resources=(lock("l", None),)) == ("waiting", "lock")
    job = thread(2, (frame("work", 5), *stack("concurrent.futures.thread._worker")), wait=PARKS)
    assert state(main(ACCEPTS), job) == ("waiting", "signal")


def test_a_native_helper_is_no_candidate() -> None:
    """A thread without Python code, such as a library's."""
    helper = thread(2, wait=Wait("futex", "futex", endless=True))
    assert state(main(ACCEPTS), helper)[0] == "idle"


def test_the_main_threads_root_comes_before_others() -> None:
    """Then jobs and tasks, then other threads; those that end at one object are counted."""
    threads = [main(locked("l")), *(thread(n, [frame("work", n)], wait=locked("m")) for n in (2, 3, 4))]
    one = root(whole(threads, lock("l", None), lock("m", None)))
    assert (one.rank, one.agent.tid, one.others) == (3, 1, 0)
    alike = root(whole([main(locked("m")), *threads[1:]], lock("m", None)))
    assert (alike.agent.tid, alike.others) == (1, 3)


def test_the_process_that_waits_comes_before_those_that_do_not() -> None:
    """An idle parent, a child that waits: the child's root; of two that wait, the parent's."""
    child = process(
        [thread(2, [frame("work", 4)], wait=locked("l"), is_main=True)], pid=2, ppid=1, resources=(lock("l", None),)
    )
    assert root(whole([main(ACCEPTS)]), child).agent.pid == 2
    assert root(whole([main(locked("l"))], lock("l", None)), child).agent.pid == 1


def test_nothing_known_has_no_root() -> None:
    """No process, or one without threads."""
    assert roots(View(evidence())) == ()
    assert roots(View(evidence(process([])))) == ()
    assert classify(evidence()).root is None


def test_a_root_as_the_report_has_it() -> None:
    """The agent with its innermost line of the program; a task by its name; nothing where it has none."""
    view = View(evidence(whole([main(locked("l"))], lock("l", None))))
    assert root_told(view, roots(view)[0]) == told.Root("waiting", "lock", 1, 1, None, frame("x").file, 9, "main")
    view = View(evidence(parked()))
    one = root_told(view, roots(view)[0])
    assert (one.state, one.kind, one.tid, one.task, one.line) == ("waiting", "future", None, "main", 8)
    view = View(evidence(whole([thread(1)])))
    assert root_told(view, roots(view)[0]) == told.Root("progressing", "native", 1, 1)


@pytest.mark.parametrize(
    ("function", "expected"),
    [("recv_exit_status", "waiting"), ("get", "waiting"), ("wait_for_termination", "idle"), ("serve", "idle")],
)
def test_a_main_thread_that_calls_a_library_for_an_answer_does_not_rest(function: str, expected: str) -> None:
    """By the function's name; one that keeps a server alive rests."""
    library = frame(function, 7, "/usr/lib/python3/site-packages/shell/channel.py")
    calls = thread(1, (*stack("threading.wait"), library, frame("main", 9)), wait=PARKS)
    assert state(calls, SERVER)[0] == expected


@pytest.mark.parametrize(("listening", "state"), [(True, "idle"), (False, "waiting")])
def test_a_native_server_parks_its_threads(listening: bool, state: str) -> None:
    """What for could not be read; beside a listening socket that is how servers rest."""
    parks = thread(7, (), wait=Wait("futex", "futex", endless=True), is_main=True)
    socket = Resource("s", "socket", "socket", listening=listening)
    server = changed(
        process([parks], pid=7, resources=(socket,), python=None), exe="/usr/sbin/server", argv=("server",)
    )
    assert root(server).state == state


@pytest.mark.parametrize(("listening", "expected"), [((), ("waiting", "unknown")), ((80,), ("idle", "unknown"))])
def test_a_librarys_call_that_waits_for_its_own_descriptor(
    listening: Tuple[int, ...], expected: Tuple[str, str]
) -> None:
    """A message queue's thread signals an eventfd when an answer comes. A program that listens may be the server."""
    receives = frame("recv_json", 1075, "/venv/lib/python3.11/site-packages/zmq/sugar/socket.py")
    asks = thread(1, (receives, frame("main", 9)), wait=Wait("other", "poll", "fd", endless=True), counters=counters())
    signalled = Resource("fd", "eventfd", "eventfd", waiters=(1,))
    one = root(whole([asks], signalled, listening=listening))
    assert (one.state, one.kind) == expected


@pytest.mark.parametrize(("cpu", "expected"), [(1.0, "progressing"), (0.0, "waiting")])
def test_what_a_task_awaits_has_no_turn_while_the_thread_of_its_loop_computes(cpu: float, expected: str) -> None:
    """A request of the same process, or a helper thread's answer, comes with the loop's next turn."""
    crunches = thread(1, (frame("render", 6), frame("main", 9)), wait=None if cpu else SLEEPS, counters=counters(cpu))
    awaits = TaskWait("future", "f", endless=True)
    task = Task("t", "client", "pending", "l", (frame("client", 11),), "Future", wait=awaits, ready=False)
    wanted = Resource(
        "f", "async-future", "AsyncResult", waiting_tasks=("t",), wakers=(Waker("reach", "memory", task="t"),)
    )
    one = root(whole([crunches], wanted, tasks=(task,), loops=(Loop("l", 1, "gevent"),)))
    assert one.state == expected


@pytest.mark.parametrize(("ends", "first"), [((1, 1), 3), ((1, 9), 1)], ids=["itself", "another process"])
def test_a_client_of_its_own_process_waits_for_what_a_request_there_waits_for(
    ends: Tuple[int, int], first: int
) -> None:
    """A library's thread receives the answer, and is the one that would put it into the client's queue."""
    receives = frame("recv", 40, "/venv/lib/python3.11/site-packages/websockets/sync/connection.py")
    client = thread(
        1, (receives, frame("main", 17)), wait=Wait("condition", "futex", "q", endless=True), counters=counters()
    )
    receiver = thread(2, (receives,), wait=Wait("socket", "recvfrom", "s", endless=True), counters=counters())
    serves = frame("conn_handler", 600, "/venv/lib/python3.11/site-packages/websockets/sync/server.py")
    waits = Wait("event", "futex", "e", endless=True)
    handler = thread(3, (*stack("threading.wait"), frame("ask", 12), serves), wait=waits, counters=counters())
    known = whole(
        [client, receiver, handler],
        EVENT,
        Resource("q", "queue", "Queue", waiters=(1,), wakers=(Waker("reach", "memory", tid=2, grade="names"),)),
        Resource(
            "s",
            "socket",
            "socket",
            waiters=(2,),
            remote="127.0.0.1:5",
            ends=(End(ends[0], 7, "rw"), End(ends[1], 8, "rw")),
        ),
    )
    view = View(evidence(known, window=1.0))
    found = [one.way.start.tid for one in waiting(view, view.processes[0])]
    assert found[0] == first and set(found) == {1, 3}


@pytest.mark.parametrize(("function", "expected"), [("count_rows", True), ("serve_forever", False)])
def test_a_native_call_of_the_program_for_a_result_does_not_rest(function: str, expected: bool) -> None:
    """The main thread goes on; another one waits in an extension for its result."""
    inside = NativeFrame("lib::Future::Wait", "/venv/lib/libarrow.so", 0x10)
    asks = thread(
        2,
        (inside, frame("count", 117)),
        wait=Wait("condition", "futex", "c", endless=True),
        calling=Calling(f"pyarrow.Dataset.{function}"),
        counters=counters(),
    )
    works = thread(1, (frame("main", 9),), counters=counters(1.0))
    known = whole([works, asks], Resource("c", "condition", "a condition variable", waiters=(2,)))
    view = View(evidence(known, window=1.0))
    assert bool(waiting(view, view.processes[0])) is expected


@pytest.mark.parametrize(("code", "expected"), [(False, False), (True, True)])
def test_a_librarys_helper_rests_in_a_native_wait(code: bool, expected: bool) -> None:
    """Nothing is known of what it waits for; if code of the program is in it, that is held up."""
    serves = frame("_serve", 1218, "/venv/lib/python3.10/site-packages/grpc/_server.py")
    stacked = (frame("handle", 3), serves) if code else (serves,)
    helper = thread(2, stacked, wait=Wait("futex", "futex", endless=False), counters=counters())
    known = whole([thread(1, (frame("main", 9),), counters=counters(1.0)), helper])
    view = View(evidence(known, window=1.0))
    assert bool(waiting(view, view.processes[0])) is expected
