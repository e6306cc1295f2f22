"""Locks on files, and input that nobody types: what processes wait for that others, or people, have."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem.evidence import (
    Calling,
    End,
    Evidence,
    Loop,
    Process,
    PythonFrame,
    Resource,
    Task,
    TaskWait,
    Trigger,
    Wait,
    Waker,
    fact,
)
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import Deed, EndMode

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, silent, stack, thread, verdict
from .....support.pipes import CHILD, FULL, OTHER, PARENT, child, daemon, of, pipe, waits


def lock_wait(owner: Optional[int], holder: Optional[Process] = None, **more: Any) -> Evidence:
    lock = Resource(
        "file-lock-1",
        "file-lock",
        "lock on /tmp/a.lock",
        owner_pid=owner,
        owner_basis="recorded",
        because=("the kernel's table of locks",),
        **more,
    )
    waiter = of(PARENT, (waits(lock, "flock", PARENT, "take"),), (lock,))
    return evidence(waiter, *([holder] if holder else []))


def test_a_lock_on_a_file() -> None:
    """Its holder is named, in the tree or beyond; proven when that is the process itself."""
    first = classify(lock_wait(900, wakers=(Waker("holder", "kernel", pid=900, name="vim"),))).findings[0]
    assert (first.pattern, first.confidence) == ("file-lock-wait", "likely")
    assert first.summary.endswith("the lock on /tmp/a.lock, held by vim (PID 900)")
    assert [c.function for c in first.culprits] == ["take"]
    assert verdict(lock_wait(OTHER, daemon(PARENT))) == "file-lock-wait"
    assert found(lock_wait(PARENT))["file-lock-wait"] == "proven"


@pytest.mark.parametrize(("inherits", "call", "expected"), [
    (True, "accept4", "likely"), (False, "accept4", "possible"), (True, "recvfrom", "possible"),
])  # fmt: skip
def test_a_lock_that_a_server_only_inherited(inherits: bool, call: str, expected: str) -> None:
    """The process that acquired it has ended. A server that goes on from client to client never comes to release it."""
    main = thread(OTHER, stack("serve"), wait=Wait("socket", call), counters=counters(0.01, switches=50), is_main=True)
    known = lock_wait(OTHER, of(OTHER, (main,), ()))
    (waiter, server) = known.processes
    because = (fact("taker-is-no-more", process="PID 44"),) if inherits else ()
    locks = tuple(changed(one, because=because) for one in waiter.resources)
    known = changed(known, processes=(changed(waiter, resources=locks), server))
    assert found(known)["file-lock-wait"] == expected


def test_a_lock_whose_holder_works() -> None:
    """It may give it back when it is done: only possible, be it one of several holders."""
    works = of(OTHER, (thread(OTHER, stack("count"), counters=counters(cpu=0.9), is_main=True),), ())
    assert found(lock_wait(OTHER, works))["file-lock-wait"] == "possible"
    both = tuple(Waker("holder", "kernel", pid=pid) for pid in (900, OTHER))
    assert found(lock_wait(None, works, wakers=both))["file-lock-wait"] == "possible"


def asks(holder: Process, endless: bool = False, **lock: Any) -> Evidence:
    """The child asks for a lock every 50 ms, and has only just been asleep again."""
    known = Resource("file-lock-1", "file-lock", "lock on /tmp/a.lock", owner_basis="recorded", closed=True, **lock)
    wait = Wait(
        "file", "nanosleep", "file-lock-1", endless=endless, polls_s=0.05, verb="asks", detail="every 0.05 s for a lock"
    )
    main = thread(CHILD, stack("take"), wait=wait, counters=counters(switches=20), is_main=True)
    return evidence(of(CHILD, (main,), (known,), signal_handlers=(), catches=()), holder)


def test_a_lock_that_is_asked_for_again_and_again() -> None:
    """Likely, for it may give up; that it wakes twenty times a second is no progress."""
    first = classify(asks(daemon(PARENT), owner_pid=OTHER)).findings[0]
    assert (first.pattern, first.confidence) == ("file-lock-wait", "likely")
    assert "asks every 0.05 s" in first.evidence[0]
    works = of(OTHER, (thread(OTHER, stack("count"), counters=counters(cpu=0.9), is_main=True),), ())
    assert found(asks(works, owner_pid=OTHER))["file-lock-wait"] == "possible"


def test_a_lock_whose_holder_waits_for_who_asks() -> None:
    """Whatever the holder's other threads do: its main thread does not go on. Proven when nobody else can, and it never
    gives up."""
    awaited = child(CHILD)
    main = waits(awaited, "wait4", PARENT, "prepare")
    beats = thread(7, stack("beat"), wait=Wait("condition", "futex", endless=False), counters=counters(switches=2))
    busy = of(PARENT, (main, beats), (awaited,), signal_handlers=(), catches=())
    first = classify(asks(busy, owner_pid=PARENT)).findings[0]
    assert (first.pattern, first.confidence, first.culprits[0].pid) == ("file-lock-wait", "likely", CHILD)
    alone = of(PARENT, (main,), (awaited,), signal_handlers=(), catches=())
    assert found(asks(alone, endless=True, owner_pid=PARENT))["file-lock-wait"] == "proven"


@pytest.mark.parametrize(
    ("deeds", "switches", "expected"),
    [
        (("releases",), 0, "possible"),
        (("reads",), 0, "likely"),
        ((), 0, "likely"),
        (("releases",), 2, "likely"),
        (None, 0, "likely"),
    ],
)
def test_a_lock_that_another_thread_of_the_holder_releases_later(
    deeds: Optional[Tuple[Deed, ...]], switches: int, expected: str
) -> None:
    """The holder's main thread waits for who asks; a thread that sleeps on will release it, one that woke meanwhile did not."""
    awaited = child(CHILD)
    sleeps = Wait("sleep", "clock_nanosleep", endless=False)
    writes = thread(7, stack("write"), wait=sleeps, counters=counters(switches=switches), deeds=deeds)
    busy = of(PARENT, (waits(awaited, "wait4", PARENT, "prepare"), writes), (awaited,), signal_handlers=(), catches=())
    known = changed(asks(busy, owner_pid=PARENT), window_s=1.0)
    assert found(known)["file-lock-wait"] == expected


@pytest.mark.parametrize(("switches", "expected"), [(0, "likely"), (9, "possible")])
def test_a_lock_whose_holder_waits_for_orders(switches: int, expected: str) -> None:
    """A command waits for the lock that a helper keeps, which reads a pipe of its own; one that goes on may release it."""
    lock = Resource("file-lock-1", "file-lock", "lock on /tmp/a.lock", owner_pid=OTHER, owner_basis="recorded")
    command = of(CHILD, (waits(lock, "flock", CHILD),), (lock,), python=None)
    orders = pipe(FULL, OTHER, ((OTHER, 5, "r"), (OTHER, 6, "w")), closed=None)
    reads = changed(waits(orders, "read", OTHER), counters=counters(switches=switches))
    helper = of(OTHER, (reads,), (orders,), python=None)
    main = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "run_step"),), (child(CHILD),))
    known = changed(evidence(main, command, helper), window_s=1.0)
    assert found(known)["file-lock-wait"] == expected
    assert expected != "likely" or verdict(known) == "file-lock-wait"


def test_workers_that_take_turns_to_accept() -> None:
    """A sister that has the lock and waits for connections is a server at rest."""
    lock = Resource("file-lock-1", "file-lock", "lock", owner_pid=OTHER, owner_basis="recorded")
    waiter = of(CHILD, (waits(lock, "flock", CHILD, "take"),), (lock,))
    accepts = of(
        OTHER, (thread(OTHER, stack("serve"), wait=Wait("socket", "accept4", endless=True), is_main=True),), ()
    )
    assert silent(evidence(waiter, accepts), "file-lock-wait")


def test_a_lock_that_no_table_shows() -> None:
    """A core alone cannot tell who has it: abstained."""
    waiting = thread(PARENT, stack("take"), wait=Wait("file", "flock", endless=True, fd=3), is_main=True)
    diagnosis = classify(evidence(of(PARENT, (waiting,), ())))
    assert "file-lock-wait" in [a.pattern for a in diagnosis.abstained]


def test_a_cell_that_asks_its_front_end() -> None:
    """A kernel polls for the answer of input(); with a deadline it hangs there, else a person may be typing."""
    kernel = "/v/site-packages/ipykernel/kernelbase.py"
    frames = (PythonFrame(kernel, 1552, "_input_request"), PythonFrame(kernel, 1515, "raw_input"), frame("<module>", 3))
    asks = thread(1, frames, wait=Wait("other", "poll", endless=False, timeout_s=0.01), counters=counters(switches=97))
    known = evidence(of(PARENT, (asks,), ()))
    assert found(known)["stdin-wait"] == "likely"
    assert found(changed(known, trigger=Trigger("pid")))["stdin-wait"] == "possible"


def stdin(resource: Resource, source: str = "text = read()", **more: Any) -> Evidence:
    main = waits(resource, "read", PARENT, "ask", fd=0)
    known = evidence(of(PARENT, (main,), (resource,), **more))
    return type(known)(known.trigger, known.processes, window_s=1.0, sources={main.python[0].file: {1: source}})


def test_a_terminal_where_nobody_types() -> None:
    """Likely, whatever it asks."""
    assert found(
        stdin(Resource("terminal-1", "terminal", "stdin, the terminal /dev/pts/0", ends=(End(PARENT, 0, "rw"),)))
    ) == {"stdin-wait": "likely"}


def test_a_question_of_a_child_that_came_as_text() -> None:
    """What `-c` names is the source of its line."""
    given = pipe("pipe:[5]", PARENT, ((PARENT, 0, "r"), (900, 1, "w")))
    asks = thread(
        PARENT,
        (frame("<module>", 1, file="<string>"),),
        is_main=True,
        counters=counters(),
        wait=Wait("pipe", "read", resource=given.id, endless=True, fd=0),
    )
    assert (
        found(evidence(of(PARENT, (asks,), (given,), argv=("python3", "-c", "input('go? ')"))))["stdin-wait"]
        == "likely"
    )
    assert found(evidence(of(PARENT, (asks,), (given,), argv=("python3", "-c", "work()"))))["stdin-wait"] == "possible"


def test_somebody_may_sit_at_the_terminal() -> None:
    """A program in the foreground that hit no deadline may be about to get its input: possible."""
    terminal = Resource("terminal-1", "terminal", "stdin", ends=(End(PARENT, 0, "rw"),), state="foreground")
    known = stdin(terminal)
    looked_at = type(known)(Trigger("pid"), known.processes, window_s=1.0, sources=known.sources)
    assert (found(known), found(looked_at)) == ({"stdin-wait": "likely"}, {"stdin-wait": "possible"})


def test_a_task_that_reads_the_terminal() -> None:
    """Through its loop: the same wait, at the task's line; no peer on the network."""
    terminal = Resource("terminal-1", "terminal", "stdin, the terminal /dev/pts/0", ends=(End(PARENT, 0, "rw"),))
    frames = (*stack("asyncio.streams._wait_for_data", "asyncio.streams.readline"), frame("talk", 7))
    task = Task(
        "task-1",
        "talk",
        "pending",
        "loop-1",
        frames,
        "Future",
        "terminal-1",
        TaskWait("descriptor", "terminal-1", endless=True),
    )
    idle = thread(
        PARENT,
        stack("selectors.select"),
        wait=Wait("event-loop", "epoll_wait", endless=True),
        counters=counters(),
        is_main=True,
    )
    loop = Loop("loop-1", PARENT, ready=0, scheduled=0, watched=1, descriptors=("terminal-1",))
    diagnosis = classify(evidence(of(PARENT, (idle,), (terminal,), tasks=(task,), loops=(loop,))))
    assert [(f.pattern, [c.line for c in f.culprits]) for f in diagnosis.findings] == [("stdin-wait", [7])]


def test_a_pipe_as_standard_input() -> None:
    """A program at rest: possible; with a question in the line, or a writer that waits for a person itself: likely."""
    ends: Tuple[Tuple[int, int, EndMode], ...] = ((PARENT, 0, "r"), (900, 1, "w"))
    given = pipe("pipe:[5]", PARENT, ends)
    assert found(stdin(given)) == {"stdin-wait": "possible"}
    assert found(stdin(given, "go = input('go on? ')")) == {"stdin-wait": "likely"}
    asked = pipe("pipe:[5]", PARENT, ends, state="writer reads a terminal")
    assert found(stdin(asked)) == {"stdin-wait": "likely"}


def test_orders_from_a_parent_of_the_tree() -> None:
    """A worker that reads its standard input, which its parent has the other end of, is healthy."""
    orders = pipe("pipe:[5]", CHILD, ((CHILD, 0, "r"), (PARENT, 4, "w")))
    worker = of(CHILD, (waits(orders, "read", CHILD, "work", fd=0),), (orders,))
    parent = of(
        PARENT, (thread(PARENT, stack("serve"), wait=Wait("socket", "accept", endless=True), is_main=True),), ()
    )
    assert silent(evidence(parent, worker), "stdin-wait", "pipe-never-closed")


def test_a_question_at_a_terminal_that_the_parent_only_logs() -> None:
    """The parent reads what the child prints, beside a thread that only sleeps and counts. Any other thread may answer."""
    terminal = Resource(
        "terminal-1",
        "terminal",
        "stdin, the terminal /dev/pts/0",
        ends=(End(CHILD, 0, "rw"), End(PARENT, 3, "rw")),
        wakers=(Waker("end", "kernel", pid=PARENT, name="descriptor 3"),),
    )
    child_reads = waits(terminal, "read", CHILD, "ask", fd=0)
    source = {child_reads.python[0].file: {1: "return input('overwrite? ')"}}
    reads = thread(
        PARENT, stack("lines"), is_main=True, counters=counters(), wait=Wait("file", "read", endless=True, fd=3)
    )
    for quiet, expected in ((True, "likely"), (None, None)):
        beats = thread(
            PARENT + 1, stack("beat"), wait=Wait("sleep", "clock_nanosleep", timeout_s=0.5, endless=False), quiet=quiet
        )
        known = evidence(of(PARENT, (reads, beats), ()), of(CHILD, (child_reads,), (terminal,)))
        told = found(type(known)(known.trigger, known.processes, window_s=1.0, sources=source))
        assert told.get("stdin-wait") == expected


def test_a_child_that_reads_the_commands_own_input() -> None:
    """Its parent gave it none, and waits for it: likely, at the parent's line; a child with a pipe of its own is a filter."""
    for parents_own, expected in ((True, "likely"), (False, None)):
        ends: Tuple[Tuple[int, int, EndMode], ...] = ((CHILD, 0, "r"), (900, 1, "w"))
        given = pipe("pipe:[5]", CHILD, (*ends, (PARENT, 0, "r")) if parents_own else ends)
        reads = thread(
            CHILD, (), is_main=True, counters=counters(), wait=Wait("pipe", "read", given.id, endless=True, fd=0)
        )
        converter = changed(of(CHILD, (reads,), (given,)), python=None, argv=("ffmpeg",))
        parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "export"),), (child(CHILD),))
        findings = {f.pattern: f for f in classify(evidence(parent, converter)).findings}
        assert (findings["stdin-wait"].confidence if "stdin-wait" in findings else None) == expected
        assert not parents_own or findings["stdin-wait"].culprits[0].pid == PARENT


def test_a_script_that_reads_the_commands_own_input() -> None:
    """An installed script has lines of its own: those of the parent, which gave it no input, come first."""
    ends: Tuple[Tuple[int, int, EndMode], ...] = ((CHILD, 0, "r"), (900, 1, "w"), (PARENT, 0, "r"))
    given = pipe("pipe:[5]", CHILD, ends)
    script = of(CHILD, (waits(given, "read", CHILD, "<module>", fd=0),), (given,))
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "subprocess.wait", "cut"),), (child(CHILD),))
    told = next(f for f in classify(evidence(parent, script)).findings if f.pattern == "stdin-wait")
    assert (told.confidence, [c.pid for c in told.culprits]) == ("likely", [PARENT, CHILD])


def test_a_question_to_a_parent_that_waits_for_the_child() -> None:
    """Only the parent could answer, and it does not before the child ends: proven. Without a question it is no input that
    somebody should type."""
    given = pipe("pipe:[5]", CHILD, ((CHILD, 0, "r"), (PARENT, 4, "w")))
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "fetch"),), (child(CHILD),))

    def told(calling: str) -> Any:
        call = Calling(calling)
        asks = of(
            CHILD, (waits(given, "read", CHILD, "agree", fd=0, calling=call),), (given,), signal_handlers=(), catches=()
        )
        return classify(evidence(parent, asks))

    first = told("input").findings[0]
    assert (first.pattern, first.confidence, first.culprits[0].pid) == ("stdin-wait", "proven", CHILD)
    assert "stdin-wait" not in [f.pattern for f in told("posix.read").findings]


def test_a_worker_that_waits_for_orders_over_a_socket() -> None:
    """From its parent, or from an object of a manager: it may rest, so what waits for a peer is only possible."""
    peer = {"local": "/run/x", "peer_in_tree": True}
    parent = of(
        PARENT, (thread(PARENT, stack("serve"), wait=Wait("socket", "accept", endless=True), is_main=True),), ()
    )
    for pid, functions in ((PARENT, ("work",)), (OTHER, ("multiprocessing.managers._callmethod", "work"))):
        wakers = (Waker("end", "kernel", pid=pid),)
        given = Resource("socket-1", "socket", "socket", wakers=wakers, **peer)  # type: ignore[arg-type]
        worker = of(CHILD, (waits(given, "read", CHILD, *functions),), (given,))
        assert found(evidence(parent, worker)).get("network-wait") == "possible"
        plain = of(CHILD, (waits(given, "read", CHILD, "work"),), (given,))
        assert pid == PARENT or found(evidence(parent, plain))["network-wait"] == "likely"


def test_what_a_core_alone_says_of_descriptors() -> None:
    """Descriptor 0 is the standard input, and a line may ask; of any other nobody knows the other end."""

    def told(source: str, syscall: str, fd: int) -> Evidence:
        waiting = thread(PARENT, stack("ask"), wait=Wait("other", syscall, endless=True, fd=fd), is_main=True)
        known = evidence(of(PARENT, (waiting,), ()), kind="core", window=None)
        return type(known)(known.trigger, known.processes, sources={waiting.python[0].file: {1: source}})

    assert found(told("go = input('go on? ')", "read", 0)) == {"stdin-wait": "likely"}
    assert found(told("data = read()", "read", 0)) == {"stdin-wait": "possible"}
    assert found(told("data = read()", "read", 3)) == {}
    writing = classify(told("put(data)", "write", 3))
    assert (writing.findings, "pipe-deadlock" in [a.pattern for a in writing.abstained]) == ((), True)
