"""The kind of every root, the pattern that it belongs to, and how confident a verdict of the kind alone may be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, get_args

import pytest

from postmortem.classify.engine import all_patterns
from postmortem.classify.facts.view import View
from postmortem.classify.roots.floor import Verdict, floor, pattern_of
from postmortem.classify.roots.roots import Root, waiting
from postmortem.evidence import (
    SIGNALLED,
    Calling,
    Crash,
    End,
    Evidence,
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
    replace,
)
from postmortem.evidence.vocabulary import ResourceKind, TaskWaitKind, WaitKind
from postmortem.findings.told import RootKind

from ....support.diagnosed import classify
from ....support.make import RESTING, evidence, firm, frame, held, lock, locked, process, stack, thread
from ....support.pipes import CHILD, FULL, PARENT, child, of, pipe, waits

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "roots.md"


def whole(threads: Sequence[Thread], *resources: Resource, **known: Any) -> Process:
    return process(threads, resources=resources, **{"signal_handlers": (), "cancels": (), **known})


def first(*processes: Process) -> Tuple[View, Root]:
    """The first root at which the first process waits."""
    view = View(evidence(*processes))
    return view, waiting(view, view.processes[0])[0]


def verdicts(*processes: Process) -> List[Tuple[str, str]]:
    return [(one.pattern, one.match.confidence) for one in floor(View(evidence(*processes)))]


def main_waits(kind: WaitKind, resource: Optional[ResourceKind], syscall: str = "futex", **known: Any) -> Process:
    """The main thread waits, for a resource that nobody is known to have."""
    wait = Wait(kind, syscall, "r" if resource is not None else None, endless=True)
    one = thread(1, [frame("work", 7)], wait=wait, **known.pop("thread", {}))
    things = [Resource("r", resource, f"the {resource}", **known.pop("thing", {}))] if resource is not None else []
    return whole([one], *things, **known)


THREADS: Dict[str, Tuple[Process, RootKind, Optional[str]]] = {
    "lock": (main_waits("lock", "lock"), "lock", "orphaned-lock"),
    "rlock": (main_waits("rlock", "rlock"), "lock", "orphaned-lock"),
    "import lock": (main_waits("lock", "import-lock"), "lock", "orphaned-lock"),
    "lock of its own": (main_waits("lock", "lock", thing={"owner_tid": 1}), "lock", "self-deadlock"),
    "lock of a forked child": (main_waits("lock", "lock", forked=True), "lock", "fork-inherited-lock"),
    "lock that could not be read": (main_waits("lock", None), "lock", "orphaned-lock"),
    "condition": (main_waits("condition", "condition"), "signal", "missed-wakeup"),
    "event": (main_waits("event", "event"), "signal", "missed-wakeup"),
    "barrier": (main_waits("condition", "barrier"), "signal", "missed-wakeup"),
    "queue": (main_waits("condition", "queue"), "queue", "missed-wakeup"),
    "semaphore": (main_waits("semaphore", "semaphore"), "permits", "pool-exhausted"),
    "future": (main_waits("condition", "future"), "future", "missed-wakeup"),
    "result of a pool": (main_waits("condition", "pool-result"), "future", "missed-wakeup"),
    "mutex": (main_waits("mutex", "mutex"), "native-lock", "orphaned-lock"),
    "mutex of a forked child": (main_waits("mutex", "mutex", forked=True), "native-lock", "fork-inherited-lock"),
    "futex": (main_waits("futex", None), "native-lock", "orphaned-lock"),
    "shared semaphore": (main_waits("semaphore", "shared-semaphore"), "shared-lock", "semaphore-orphan"),
    "notification shared by processes": (
        main_waits("semaphore", "shared-semaphore", thing={"state": SIGNALLED}), "signal", "missed-wakeup",
    ),
    "lock on a file": (main_waits("file", "file-lock", "flock"), "file-lock", "file-lock-wait"),
    "socket": (main_waits("socket", "socket", "recvfrom"), "socket", "network-wait"),
    "socket that could not be read": (main_waits("socket", None, "recvfrom"), "socket", "network-wait"),
    "pipe": (main_waits("pipe", "pipe", "read"), "pipe", "pipe-never-closed"),
    "pipe written": (main_waits("pipe", "pipe", "write"), "pipe", "pipe-deadlock"),
    "child": (main_waits("process", None, "wait4"), "process", "child-wait"),
    "file": (main_waits("file", "file", "read"), "file", None),
    "resolver": (
        main_waits("socket", "socket", "poll", thread={"calling": Calling("_socket.getaddrinfo")}), "socket", "dns-wait",
    ),
    "GIL": (main_waits("gil", None), "gil", "gil-held-by-native"),
    "sleep": (main_waits("sleep", None, "clock_nanosleep"), "sleep", "sleeping"),
    "unknown": (main_waits("other", None, "ioctl"), "unknown", None),
}  # fmt: skip


def test_a_librarys_retries_for_a_lock_are_no_mere_sleep() -> None:
    """It sleeps between two attempts to get a lock that is kept elsewhere, as by a server."""
    inside = frame("acquire", 215, "/venv/lib/python3.12/site-packages/redis/lock.py")
    sleeps = thread(1, (inside, frame("book", 45)), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.1, endless=False))
    view, root = first(whole([sleeps]))
    assert (root.kind, pattern_of(view, root)) == ("sleep", "database-lock-wait")


@pytest.mark.parametrize(
    ("known", "root"), [(True, (2, "sleep", "pool-exhausted")), (False, (1, "queue", "missed-wakeup"))]
)
def test_retries_for_a_part_of_a_pool_hold_up_who_waits_for_them(known: bool, root: Any) -> None:
    """The main thread waits for what only a thread puts that asks a library's pool again and again."""
    inside = frame("connect", 116, "/venv/lib/python3.12/site-packages/playhouse/pool.py")
    asks = thread(2, (inside, frame("store", 54)), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.1, endless=False))
    wakers = (Waker("reach", "memory", tid=2, grade="names"),) if known else ()
    done = Resource("q", "queue", "Queue done (empty)", waiters=(1,), wakers=wakers)
    main = thread(1, (*stack("queue.get"), frame("main", 9)), wait=Wait("condition", "futex", "q", endless=True))
    view, found = first(whole([main, asks], done))
    assert (found.agent.tid, found.kind, pattern_of(view, found)) == root


def test_a_loop_that_joins_who_waits_for_it() -> None:
    """A reactor's thread joins a worker at its end, and that waits for an answer of the reactor's."""
    loop = frame("mainLoop", 1250, "/venv/lib/python3.12/site-packages/twisted/internet/base.py")
    main = thread(1, (*stack("threading.join"), loop, frame("main", 104)), wait=locked("t"), joins=2)
    worker = thread(2, (*stack("queue.get"), frame("render", 39)), wait=Wait("condition", "futex", "q", endless=True))
    answer = Resource("q", "queue", "Queue", wakers=(Waker("reach", "memory", tid=1),), waiters=(2,))
    ends = Resource("t", "thread", "thread worker", owner_tid=2, waiters=(1,))
    view, root = first(whole([main, worker], answer, ends))
    assert pattern_of(view, root) == "loop-self-wait"


@pytest.mark.parametrize("name", THREADS)
def test_the_wait_of_a_thread_by_its_kind(name: str) -> None:
    """Each has a kind, and most an id; the line to change is that of the wait."""
    known, kind, pattern = THREADS[name]
    view, root = first(known)
    assert (root.state, root.kind, pattern_of(view, root)) == ("waiting", kind, pattern)
    told = list(floor(view))
    assert [one.pattern for one in told] == ([pattern] if pattern is not None else [])
    assert all([c.line for c in one.match.culprits] == [7] for one in told)


def looping(wait: TaskWait, *resources: Resource, **known: Any) -> Process:
    task = Task("t", "fetch", "pending", "l", (frame("ask", 8),), "Future", wait=wait, ready=False)
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=True))
    loops = (Loop("l", 1, ready=0, scheduled=0, watched=0, main_task="t"),)
    return whole([main], *resources, loops=loops, tasks=(task,), **known)


@pytest.mark.parametrize(
    ("kind", "resource", "root", "pattern"),
    [
        ("lock", "async-lock", "lock", "orphaned-lock"),
        ("event", "async-event", "signal", "future-never-resolved"),
        ("condition", "async-condition", "signal", "missed-wakeup"),
        ("barrier", "async-barrier", "signal", "future-never-resolved"),
        ("queue", "async-queue", "queue", "future-never-resolved"),
        ("semaphore", "async-semaphore", "permits", "pool-exhausted"),
        ("future", "async-future", "future", "future-never-resolved"),
    ],
)
def test_the_wait_of_a_task_by_its_kind(kind: TaskWaitKind, resource: ResourceKind, root: str, pattern: str) -> None:
    """A task would be signalled by code of its loop: the future behind the wait is never resolved."""
    view, found = first(looping(TaskWait(kind, "r", endless=True), Resource("r", resource, "it")))
    assert (found.kind, found.agent.task, pattern_of(view, found)) == (root, "t", pattern)
    assert [[c.line for c in one.match.culprits] for one in floor(view)] == [[8]]


def test_a_blocked_loop_is_named_as_such() -> None:
    """A callback of a running task that waits for anything but events or the GIL."""
    running = Task("t", "fetch", "running", "l", (frame("ask", 8),))
    main = thread(1, [frame("recv", 9)], wait=Wait("socket", "recvfrom", endless=True))
    loops = (Loop("l", 1, ready=1, scheduled=0, watched=0, main_task="t"),)
    assert verdicts(whole([main], loops=loops, tasks=(running,))) == [("blocking-call-in-coroutine", "possible")]
    waits_only = whole([main], loops=loops)
    assert [pattern for pattern, _confidence in verdicts(waits_only)] == ["network-wait"]


def wants(tid: int, resource: str) -> Thread:
    return thread(tid, [frame("work", tid)], wait=locked(resource))


def test_cycles_by_what_they_go_through() -> None:
    """Locks; tasks; a pipe between processes. Every line of the cycle is named, and the verdict is told once."""
    locks = whole([wants(1, "a"), wants(2, "b")], lock("a", 2), lock("b", 1))
    assert verdicts(locks) == [("lock-order-deadlock", "likely")]
    (told,) = floor(View(evidence(locks)))
    assert [c.line for c in told.match.culprits] == [1, 2]
    imports = replace(lock("a", 2), kind="import-lock", module="rates")
    assert verdicts(whole([wants(1, "a"), wants(2, "b")], imports, lock("b", 1))) == [("import-deadlock", "likely")]
    both = [
        Task(
            one,
            one,
            "pending",
            "l",
            (frame(one),),
            "Task",
            wait=TaskWait("task", None, (other,), False, True),
            ready=False,
        )
        for one, other in (("t", "u"), ("u", "t"))
    ]
    main = thread(1, RESTING, wait=Wait("event-loop", "epoll_wait", endless=True))
    loops = (Loop("l", 1, ready=0, scheduled=0, watched=0, main_task="t"),)
    assert verdicts(whole([main], loops=loops, tasks=tuple(both))) == [("async-deadlock", "likely")]
    full = pipe(FULL, CHILD, ((CHILD, 1, "w"), (PARENT, 5, "r")))
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "fetch"),), (child(CHILD),))
    writer = of(CHILD, (waits(full, "write", CHILD, "emit", fd=1),), (full,))
    assert verdicts(parent, writer) == [("pipe-deadlock", "likely")]


@pytest.mark.parametrize(
    ("remotes", "expected"),
    [
        (("127.0.0.1:80", "127.0.0.1:4000"), "network-wait"),
        ((None, None), "pipe-deadlock"),
        (("127.0.0.1:80", None), "pipe-deadlock"),
    ],
)
def test_two_that_each_read_what_the_other_would_send(remotes: Tuple[Optional[str], ...], expected: str) -> None:
    """Over the network each waits for its peer; a socket pair is as good as two pipes."""
    pids = (PARENT, CHILD)
    ends = [End(pid, 5, "rw") for pid in pids]
    both = []
    for pid, other, mine, remote in zip(pids, pids[::-1], (ends, ends[::-1]), remotes):
        peer = (Waker("end", "kernel", pid=other),)
        socket = Resource("s", "socket", "socket", ends=tuple(mine), wakers=peer, waiters=(pid,), remote=remote)
        both.append(of(pid, (waits(socket, "recvfrom", pid, "ask"),), (socket,)))
    assert [pattern for pattern, _confidence in verdicts(*both)] == [expected]


@pytest.mark.parametrize(("kind", "expected"), [("future", "loop-self-wait"), ("lock", "lock-order-deadlock")])
def test_a_cycle_through_the_thread_of_a_loop(kind: ResourceKind, expected: str) -> None:
    """The loop's thread waits, inside a task, for a job that waits for the loop: no lock is held, unless one is wanted."""
    job = Resource("f", kind, "Future of price", owner_tid=2, locked=True, waiters=(1,), closed=True)
    answer = Resource("g", "future", "outcome of a call", owner_tid=1, waiters=(2,), closed=True)
    waiting = Wait("lock" if kind == "lock" else "condition", "futex", "f", endless=True)
    main = thread(1, [frame("quote", 25)], wait=waiting, is_main=True)
    worker = thread(2, [frame("price", 18)], wait=Wait("condition", "futex", "g", endless=True))
    known = whole([main, worker], job, answer, loops=(Loop("l", 1, "trio"),))
    view, root = first(known)
    assert pattern_of(view, root) == expected


@pytest.mark.parametrize(("other", "confidence"), [("refers", "likely"), ("names", "possible")])
def test_locks_that_only_the_others_code_releases(other: Any, confidence: str) -> None:
    """Acquired in a helper, so that no holder is known: of those who refer to each lock, one goes on to its release."""
    locks = [
        Resource(
            name,
            "lock",
            f"Lock {name}",
            locked=True,
            closed=True,
            waiters=(waiter,),
            wakers=(
                Waker("reach", "memory", tid=1, grade=other),
                Waker("reach", "memory", tid=holder, grade="names"),
            ),
        )
        for name, waiter, holder in (("a", 2, 3), ("b", 3, 2))
    ]
    main = thread(1, [frame("main", 51)], wait=locked("t"), joins=2, is_main=True)
    ends = Resource("t", "thread", "thread T-2", owner_tid=2, waiters=(1,))
    both = [wants(2, "a"), wants(3, "b")]
    (first_told, *_more) = verdicts(whole([main, *both], *locks, ends))
    assert first_told == ("lock-order-deadlock", confidence)


def test_a_cycle_that_another_may_open_is_possible() -> None:
    """A time limit; a second task whose end is enough; a thread of the parent that may come back to the pipe."""
    limited = thread(1, [frame("work", 1)], wait=locked("a", False))
    assert verdicts(whole([limited, wants(2, "b")], lock("a", 2), lock("b", 1))) == [
        ("lock-order-deadlock", "possible")
    ]
    full = pipe(FULL, CHILD, ((CHILD, 1, "w"), (PARENT, 5, "r")))
    writer = of(CHILD, (waits(full, "write", CHILD, "emit", fd=1),), (full,))
    end = pipe(FULL, PARENT, ((PARENT, 5, "r"), (CHILD, 1, "w")))
    reads = waits(end, "read", 2, "drain", is_main=False)
    both = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "fetch"), reads), (child(CHILD), end))
    assert ("pipe-deadlock", "likely") not in verdicts(both, writer)


@pytest.mark.parametrize(("accepted", "confidence"), [(True, "possible"), (False, "likely")])
def test_a_server_does_not_need_its_client(accepted: bool, confidence: str) -> None:
    """Its client is in the same program and waits for what the server has not been asked for."""
    named = Waker("reach", "memory", tid=2, grade="names")
    queue = Resource("q", "queue", "Queue jobs", wakers=(named,), closed=True)
    socket = Resource("s", "socket", "socket", accepted=accepted, wakers=(Waker("end", "memory", tid=1),), closed=True)
    asks = thread(1, [frame("main", 7)], wait=Wait("condition", "futex", "q", endless=True))
    serves = thread(2, [frame("intake", 3)], wait=Wait("socket", "recvfrom", "s", endless=True))
    assert verdicts(whole([asks, serves], queue, socket)) == [("pipe-deadlock", confidence)]


@pytest.mark.parametrize(
    ("handlers", "endless", "confidence"),
    [((SignalHandler(15),), None, "possible"), ((SignalHandler(15),), True, "likely"), ((), None, "likely")],
)
def test_a_handler_may_end_a_loop_that_looks_for_jobs(
    handlers: Tuple[SignalHandler, ...], endless: Optional[bool], confidence: str
) -> None:
    """Where the loop tests something else, too, which the handler may set."""
    wait = Wait("condition", "futex", "q", endless=endless, polls_s=1.0)
    queue = Resource("q", "queue", "Queue jobs", wakers=(Waker("reach", "memory", tid=2, grade="refers"),))
    known = whole([thread(1, [frame("main", 7)], wait=wait)], queue, signal_handlers=handlers)
    assert verdicts(known) == [("missed-wakeup", confidence)]


def closed(kind: ResourceKind, *wakers: Waker) -> Resource:
    return Resource("r", kind, "it", wakers=wakers, closed=True)


@pytest.mark.parametrize(("grade", "confidence"), [("refers", "likely"), ("names", "possible"), (None, "possible")])
def test_the_main_threads_wait_that_nothing_can_end_is_likely(grade: Any, confidence: str) -> None:
    """Those who merely refer set aside; one who may signal, or of whom nothing is known, leaves it possible."""
    waker = Waker("reach", "memory", tid=2, grade=grade)
    main = thread(1, [frame("main", 7)], wait=Wait("event", "futex", "r", endless=True))
    beats = thread(2, [frame("beat")], wait=Wait("sleep", "clock_nanosleep", timeout_s=1.0, endless=False))
    assert verdicts(whole([main, beats], closed("event", waker))) == [("missed-wakeup", confidence)]


@pytest.mark.parametrize(
    ("outer", "confidence"),
    [(("concurrent.futures.thread._worker",), "likely"), (("threading.run",), None)],
)
def test_a_job_counts_as_the_main_thread_does(outer: Tuple[str, ...], confidence: Optional[str]) -> None:
    """A job of a pool counts as wanted; a thread that nobody waits for may park in an event of its own."""
    job = thread(2, (frame("work", 8), *stack(*outer)), wait=Wait("event", "futex", "r", endless=True))
    found = verdicts(whole([thread(1, [frame("main")]), job], closed("event")))
    assert found == ([("missed-wakeup", confidence)] if confidence is not None else [])


@pytest.mark.parametrize("kind", ["shared-semaphore", "semaphore", "mutex"])
def test_what_records_no_holder_is_never_likely(kind: ResourceKind) -> None:
    """Without a known holder the cause is unknown, too."""
    wait: WaitKind = "mutex" if kind == "mutex" else "semaphore"
    main = thread(1, [frame("main", 7)], wait=Wait(wait, "futex", "r", endless=True))
    assert [confidence for _pattern, confidence in verdicts(whole([main], closed(kind)))] == ["possible"]


def test_a_child_that_has_ended_is_never_likely() -> None:
    """Its status will be collected in a moment."""
    parent = process([thread(1, [frame("main", 7)], wait=Wait("process", "wait4", pid=2, endless=True))])
    ended = process([], pid=2, ppid=1, state="Z", python=None)
    assert verdicts(parent, ended) == [("child-wait", "possible")]


def test_no_kind_alone_proves_anything() -> None:
    """Not even where nobody at all can end the wait."""
    for known, _kind, _pattern in THREADS.values():
        assert all(confidence != "proven" for _id, confidence in verdicts(known))
    assert "proven" not in {
        confidence for _id, confidence in verdicts(main_waits("event", "event", thing={"closed": True}))
    }


def test_the_evidence_says_what_would_decide_it() -> None:
    """It ends with that, after at most five waits of the path, the nearest to the root."""
    threads = [wants(n, f"l{n}") for n in range(1, 9)]
    locks = [*(lock(f"l{n}", n + 1) for n in range(1, 8)), lock("l8", None)]
    told = classify(evidence(whole(threads, *locks))).findings[0].evidence
    assert told[-1].startswith("what would decide it: who acquired the lock")
    assert len(told) == 6
    assert "Lock l8" in told[-2]


def test_who_waits_behind_the_root_is_named_and_affected() -> None:
    """The line at the root first, then those of the path; all but the root's agent are victims."""
    known = whole([wants(1, "a"), wants(2, "b")], lock("a", 2), lock("b", None))
    (told,) = floor(View(evidence(known)))
    assert [c.line for c in told.match.culprits] == [2, 1]
    assert [victim.tid for victim in told.match.victims] == [1]
    assert told.root.others == 1


def test_one_root_of_several_processes_is_told_once() -> None:
    """A parent that waits for its child ends where the child itself does; so do processes that want one shared lock."""
    sleeps = thread(CHILD, [frame("nap", 4)], is_main=True, wait=Wait("sleep", "clock_nanosleep", timeout_s=900.0))
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "fetch"),), (child(CHILD),))
    assert [pattern for pattern, _c in verdicts(parent, of(CHILD, (sleeps,), ()))] == ["sleeping"]
    both = [
        process(
            [thread(pid, [frame("add", pid)], is_main=True, wait=Wait("semaphore", "futex", "s", endless=True))],
            pid=pid,
            resources=(Resource("s", "shared-semaphore", "Lock", key="k"),),
        )
        for pid in (2, 3)
    ]
    assert [pattern for pattern, _c in verdicts(*both)] == ["semaphore-orphan"]


def test_a_crashed_process_has_no_root() -> None:
    """How it ended is what is to be said."""
    crashed = process([wants(1, "a")], resources=(lock("a", None),), crash=Crash(11))
    assert verdicts(crashed) == []
    assert classify(evidence(crashed)).root is None


def explained(known: Evidence) -> Dict[str, str]:
    """The findings of a diagnosis whose texts come from the kind of a root alone."""
    findings = classify(known).findings
    return {f.pattern: f.confidence for f in findings if any("what would decide it" in fact for fact in f.evidence)}


def test_what_a_pattern_explains_is_not_told_again() -> None:
    """It names the thread, one of the cycle, or the one that is to signal; or the process where there is no line at all."""
    held_twice = thread(1, [frame("work", 7), frame("holds", 9)], wait=locked("a"), holds=(held("a", 1),))
    assert explained(evidence(whole([held_twice], lock("a", 1)))) == {}
    threads = [wants(2, "a"), wants(3, "b"), thread(1, [frame("main")], wait=Wait("event", "futex", "e", endless=True))]
    event = Resource("e", "event", "Event", wakers=(Waker("reach", "memory", tid=2),), closed=True)
    known = evidence(whole(threads, lock("a", 3), lock("b", 2), event))
    assert explained(known) == {}
    assert firm(known) == {"lock-order-deadlock": "proven"}
    asleep = thread(2, wait=Wait("sleep", "clock_nanosleep", timeout_s=900.0), is_main=True)
    native = process([asleep], python=None, argv=("sleep", "900"), pid=2)
    assert explained(evidence(native)) == {}


def test_the_documentation_has_every_kind() -> None:
    """With the patterns that it leads to, which exist."""
    rows = re.findall(r"^\| (`[^|]*) \| [^|]* \| ([^|]*) \|$", DOCUMENT.read_text("utf-8"), re.M)
    kinds = {kind: patterns for names, patterns in rows for kind in re.findall(r"`([a-z-]+)`", names)}
    assert set(get_args(RootKind)) <= set(kinds)
    known = {rule.id for rule in all_patterns()}
    for process_, kind, pattern in THREADS.values():
        assert process_ is not None
        assert pattern is None or f"[`{pattern}`](patterns/{pattern}.md)" in kinds[kind] or pattern == "dns-wait"
    assert {name for patterns in kinds.values() for name in re.findall(r"\[`([a-z-]+)`\]", patterns)} <= known


def test_verdicts_are_typed() -> None:
    """Each has its pattern, its match and its root."""
    (one,) = floor(View(evidence(main_waits("lock", "lock"))))
    assert isinstance(one, Verdict)
    assert (one.pattern, one.match.pid, one.root.rank) == ("orphaned-lock", 1, 3)


@pytest.mark.parametrize(
    ("module", "wait", "expected"),
    [
        ("/opt/libline.so", Wait("sleep", "clock_nanosleep", timeout_s=11.0, endless=False), "possible"),
        ("/opt/libother.so", Wait("sleep", "clock_nanosleep", timeout_s=11.0, endless=False), "likely"),
        ("/opt/libline.so", Wait("condition", "futex", endless=True), "likely"),
    ],
)
def test_a_native_condition_and_the_threads_of_its_library(module: str, wait: Wait, expected: str) -> None:
    """One that sleeps goes on by itself and may signal it; one of another library, or one that waits itself, does not."""
    inside = (NativeFrame("line_wait", "/opt/libline.so", 0x10), frame("work", 7))
    main = thread(1, inside, wait=Wait("condition", "futex", "c", endless=True))
    cooled = Resource("c", "condition", "condition variable `cooled` of libline.so", waiters=(1,), native=True)
    helper = thread(2, (NativeFrame("heat", module, 0x10),), wait=wait, name=None)
    assert verdicts(whole([main, helper], cooled))[0] == ("missed-wakeup", expected)


@pytest.mark.parametrize(("called", "expected"), [("shutdown", [("missed-wakeup", "possible")]), ("get_message", [])])
def test_a_call_that_ends_something_is_no_place_to_park(called: str, expected: List[Tuple[str, str]]) -> None:
    """A thread beside others that go on may wait for its next job by design, but not for the end of what it shuts down."""
    waits = Wait("condition", "futex", "e", endless=True)
    inside = (*stack("threading.wait", f"socketserver.{called}"), frame("reload", 7), frame("run", 3))
    main = thread(1, [frame("serve", 9)], wait=Wait("sleep", "nanosleep", timeout_s=1.0, endless=False))
    stopped = Resource("e", "event", "Event stopped (not set)", waiters=(2,), value=0)
    found = verdicts(whole([main, thread(2, list(inside), wait=waits)], stopped))
    assert [one for one in found if one[0] == "missed-wakeup"] == expected


@pytest.mark.parametrize(
    ("file", "expected"), [("grpc/_channel.py", "network-wait"), ("other/native.py", "orphaned-lock")]
)
def test_a_client_that_waits_in_native_code_waits_for_its_peer(file: str, expected: str) -> None:
    """gRPC's blocking calls sleep on a lock of their own until the answer is there."""
    library = frame("_blocking", 1162, f"/usr/lib/python3/dist-packages/{file}")
    inside = (NativeFrame("syscall", "/lib/libc.so.6", 0x10), library, frame("ask", 4))
    main = thread(1, inside, wait=Wait("futex", "futex", endless=True))
    assert [pattern for pattern, _how in verdicts(whole([main]))] == [expected]


@pytest.mark.parametrize(("file", "expected"), [("site-packages/gunicorn/arbiter.py", []), ("", ["pipe-never-closed"])])
def test_a_look_now_and_then_at_the_own_pipe_is_rest(file: str, expected: List[str]) -> None:
    """A library's supervisor sleeps in select on a pipe into which its signal handlers write."""
    ends = (End(1, 3, "r"), End(1, 4, "w"))
    own = Resource(
        "p", "pipe", "pipe from this process", waiters=(1,), ends=ends, wakers=(Waker("end", "kernel", pid=1),)
    )
    looks = Wait("pipe", "pselect6", "p", timeout_s=1.0, endless=False)
    inner = [frame("sleep", 357, f"/venv/lib/python3.12/{file}")] if file else []
    main = thread(1, [*inner, frame("main", 9)], wait=looks)
    assert [pattern for pattern, _how in verdicts(whole([main], own))] == expected
