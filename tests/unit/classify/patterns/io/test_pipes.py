"""Pipes, locks on files and standard input between processes: who is kept waiting by whom."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem.evidence import (
    End,
    Evidence,
    Loop,
    Pool,
    Process,
    Resource,
    SignalHandler,
    Task,
    Thread,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import Deed, EndMode, WaitKind

from .....support.diagnosed import classify
from .....support.make import counters, evidence, found, frame, lines, process, silent, stack, thread
from .....support.pipes import CHILD, FULL, OTHER, OUTPUT, PARENT, child, daemon, of, pipe, waits


def writer(pid: int = CHILD, closed: Optional[bool] = True, **more: Any) -> Process:
    full = pipe(FULL, pid, ((pid, 1, "w"), (PARENT, 5, "r")), closed)
    return of(pid, (waits(full, "write", pid, "emit", fd=1),), (full,), **more)


def waiting_parent(*others: Thread) -> Process:
    awaited = child(CHILD)
    return of(PARENT, (waits(awaited, "wait4", PARENT, "subprocess.wait", "fetch"), *others), (awaited,))


def test_the_reader_of_a_full_pipe_waits_for_the_writer() -> None:
    """Proven when both have nobody else; the parent's line is to change, the child is its victim."""
    diagnosis = classify(evidence(waiting_parent(), writer()))
    first = diagnosis.findings[0]
    assert (first.pattern, first.confidence) == ("pipe-deadlock", "proven")
    assert [(c.pid, c.function) for c in first.culprits] == [(PARENT, "fetch")]
    assert [v.pid for v in first.victims] == [CHILD]
    assert "child-wait" not in [f.pattern for f in diagnosis.findings]


def test_a_request_that_waits_for_the_writer() -> None:
    """A server's main thread waits for none of its requests, whose clients do."""
    awaited = child(CHILD)
    request = stack("subprocess.wait", "export", "socketserver.process_request_thread")
    waits_ = Wait("process", "wait4", resource=awaited.id, endless=True)
    main = thread(1, stack("serve"), wait=Wait("socket", "accept", endless=True), counters=counters())
    other = thread(2, request, wait=waits_, counters=counters())
    diagnosis = classify(evidence(of(PARENT, (main, other), (awaited,)), writer()))
    assert (diagnosis.verdict, diagnosis.findings[0].culprits[0].function) == ("pipe-deadlock", "export")


def test_a_terminal_that_its_emulator_does_not_read() -> None:
    """Likely: others might have its other end. What the parent has not got may be a question, too, but it is not read."""
    full = Resource(
        "terminal-1",
        "terminal",
        "stdout, the terminal",
        wakers=(Waker("end", "kernel", pid=PARENT),),
        ends=(End(CHILD, 1, "rw"), End(PARENT, 5, "rw")),
    )
    writes = of(CHILD, (waits(full, "write", CHILD, "report", fd=1),), (full,))
    diagnosis = classify(evidence(waiting_parent(), writes))
    first = diagnosis.findings[0]
    assert (first.pattern, first.confidence, first.culprits[0].function) == ("pipe-deadlock", "likely", "fetch")
    assert "output written to the terminal" in first.summary
    stranger = of(
        CHILD, (waits(changed(full, wakers=()), "write", CHILD, "report", fd=1),), (changed(full, wakers=()),)
    )
    assert "pipe-deadlock" not in found(evidence(waiting_parent(), stranger))


def test_a_question_on_a_terminal_that_the_parent_has() -> None:
    """A parent that waits for the child types nothing; one that goes on may."""
    asked = Resource(
        "terminal-1",
        "terminal",
        "stdin, the terminal",
        wakers=(Waker("end", "kernel", pid=PARENT),),
        ends=(End(CHILD, 0, "rw"), End(PARENT, 5, "rw")),
    )
    asks = of(CHILD, (waits(asked, "read", CHILD, "ask", fd=0),), (asked,))
    assert found(evidence(waiting_parent(), asks))["stdin-wait"] == "likely"
    expects = of(
        PARENT, (thread(PARENT, stack("expect"), wait=Wait("other", "poll", endless=False), is_main=True),), ()
    )
    assert "stdin-wait" not in found(evidence(expects, asks))


def test_a_full_pipe_is_no_proof_when_others_may_hold_its_end() -> None:
    """Or when another thread of the parent, which sleeps now, may read it."""
    assert found(evidence(waiting_parent(), writer(closed=None)))["pipe-deadlock"] == "likely"
    asleep = thread(
        2, stack("tick"), wait=Wait("sleep", "clock_nanosleep", timeout_s=5.0, endless=False), counters=counters()
    )
    assert found(evidence(waiting_parent(asleep), writer()))["pipe-deadlock"] == "likely"


@pytest.mark.parametrize(("woken", "expected"), [(0, "likely"), (1, "possible")])
def test_another_thread_that_went_on_and_did_not_read(woken: int, expected: str) -> None:
    """A heartbeat of the parent ticks through the window, in which the writer did not wake once: it reads something else. A
    writer that woke may have been read from."""
    ticks = thread(
        2,
        stack("tick"),
        wait=Wait("sleep", "clock_nanosleep", timeout_s=0.5, endless=False),
        counters=counters(switches=2),
    )
    blocked = writer()
    awake = changed(blocked, threads=(changed(blocked.threads[0], counters=counters(switches=woken)),))
    assert found(evidence(waiting_parent(ticks), awake))["pipe-deadlock"] == expected


@pytest.mark.parametrize(("deeds", "expected"), [(("reads",), "possible"), (("releases",), "likely"), ((), "likely")])
def test_another_thread_whose_code_reads_later(deeds: Tuple[Deed, ...], expected: str) -> None:
    """It sleeps on, and did not wake while the writer slept: what it does then, its code tells."""
    sleeps = Wait("sleep", "clock_nanosleep", endless=False, timeout_s=13.0)
    other = thread(9, stack("forward"), wait=sleeps, counters=counters(switches=0), deeds=deeds)
    known = changed(evidence(waiting_parent(other), writer()), window_s=1.0)
    assert found(known)["pipe-deadlock"] == expected


def test_a_parent_that_reads_comes_back() -> None:
    """A thread that reads the pipe, one that passes on what it has read, a parent that waits for nobody: no deadlock."""
    end = pipe(FULL, PARENT, ((PARENT, 5, "r"), (CHILD, 1, "w")))
    reads = waits(end, "read", 2, "drain", is_main=False)
    awaited = child(CHILD)
    main = waits(awaited, "wait4", PARENT, "subprocess.wait", "fetch")
    assert silent(evidence(of(PARENT, (main, reads), (awaited, end)), writer()), "pipe-deadlock")
    passes_on = thread(
        2, stack("queue.put", "drain"), wait=Wait("condition", "futex", endless=True), counters=counters()
    )
    assert silent(evidence(of(PARENT, (main, passes_on), (awaited,)), writer()), "pipe-deadlock")
    rests = thread(
        PARENT, stack("nap"), wait=Wait("sleep", "clock_nanosleep", timeout_s=9.0, endless=False), is_main=True
    )
    assert silent(evidence(of(PARENT, (rests,), ()), writer()), "pipe-deadlock")


def test_a_reader_that_was_not_captured() -> None:
    """Whether it waits for the writer is unknown: possible, at the line that writes."""
    full = pipe(FULL, CHILD, ((CHILD, 1, "w"), (900, 5, "r")))
    first = classify(evidence(of(CHILD, (waits(full, "write", CHILD, "emit", fd=1),), (full,)))).findings[0]
    assert (first.pattern, first.confidence, first.culprits[0].function) == ("pipe-deadlock", "possible", "emit")


def test_both_write_and_neither_reads() -> None:
    """Two full pipes: a circle, told once, with both lines."""
    orders = pipe("pipe:[9]", PARENT, ((PARENT, 4, "w"), (CHILD, 0, "r")))
    parent = of(PARENT, (waits(orders, "write", PARENT, "send_all", fd=4),), (orders,))
    findings = [f for f in classify(evidence(parent, writer())).findings if f.pattern == "pipe-deadlock"]
    assert [(f.confidence, [c.function for c in f.culprits]) for f in findings] == [("proven", ["send_all", "emit"])]


def test_a_shell_between_them() -> None:
    """The parent waits for a shell, the shell for the writer: the parent is still the one that could read."""
    awaited, inner = child(OTHER), child(CHILD)
    parent = of(PARENT, (waits(awaited, "wait4", PARENT, "subprocess.wait", "fetch"),), (awaited,))
    shell = of(OTHER, (waits(inner, "wait4", OTHER),), (inner,), python=None)
    first = classify(evidence(parent, shell, writer(ppid=OTHER))).findings[0]
    assert (first.pattern, first.confidence, first.culprits[0].pid) == ("pipe-deadlock", "proven", PARENT)


def test_a_task_that_waits_for_a_child_whose_output_nobody_takes() -> None:
    """Its loop has stopped watching the pipe; while it watches it, the child is only slow."""
    end = pipe(FULL, PARENT, ((PARENT, 5, "r"), (CHILD, 1, "w")))
    frames = (*stack("asyncio.base_subprocess._wait", "asyncio.subprocess.wait"), frame("convert", 7))
    task = Task("task-1", "convert", "pending", "loop-1", frames, "Future")
    idle = thread(
        PARENT,
        stack("selectors.select"),
        wait=Wait("event-loop", "epoll_wait", endless=True),
        counters=counters(),
        is_main=True,
    )

    def told(*watched: str) -> Evidence:
        loop = Loop("loop-1", PARENT, ready=0, scheduled=0, descriptors=watched)
        return evidence(of(PARENT, (idle,), (end,), tasks=(task,), loops=(loop,)), writer())

    first = next(f for f in classify(told()).findings if f.pattern == "pipe-deadlock")
    assert (first.confidence, [(c.task, c.line) for c in first.culprits]) == ("likely", [("convert", 7)])
    assert silent(told(end.id), "pipe-deadlock")


def reader(
    pid: int, ends: Tuple[Tuple[int, int, EndMode], ...], *others: Thread, closed: Optional[bool] = True, **more: Any
) -> Process:
    end = pipe(OUTPUT, pid, ((pid, 5, "r"), *ends), closed)
    return of(pid, (waits(end, "read", pid, "collect"), *others), (end,), **more)


def test_a_reader_that_keeps_its_pipe_open_itself() -> None:
    """Proven when nobody else has it; with another thread it may be a wake-up pipe."""
    own: Tuple[Tuple[int, int, EndMode], ...] = ((PARENT, 6, "w"),)
    diagnosis = classify(evidence(reader(PARENT, own, signal_handlers=())))
    assert (diagnosis.verdict, diagnosis.findings[0].confidence) == ("pipe-never-closed", "proven")
    assert "itself, as descriptor 6" in diagnosis.findings[0].summary
    assert found(evidence(reader(PARENT, own, closed=None, signal_handlers=())))["pipe-never-closed"] == "likely"
    assert found(evidence(reader(PARENT, own)))["pipe-never-closed"] == "likely"  # whether a handler writes is unknown
    assert found(evidence(reader(PARENT, own, signal_handlers=(SignalHandler(15),))))["pipe-never-closed"] == "possible"
    other = thread(2, stack("serve"), wait=Wait("socket", "accept", endless=True), counters=counters())
    assert found(evidence(reader(PARENT, own, other)))["pipe-never-closed"] == "possible"


@pytest.mark.parametrize(("listening", "expected"), [(True, None), (False, "possible")])
def test_a_pipe_that_a_server_polls_beside_its_socket(listening: bool, expected: Optional[str]) -> None:
    """It waits for clients; the pipe only tells it to end."""
    end = changed(pipe(OUTPUT, PARENT, ((PARENT, 4, "r"), (PARENT, 5, "w"))), part_of="d")
    socket = Resource("s", "socket", "socket 127.0.0.1:80", part_of="d", listening=listening, key="socket:[9]")
    several = Resource("d", "descriptors", "either", waiters=(PARENT,), wakers=end.wakers, ends=end.ends)
    polls = changed(waits(several, "poll", PARENT, "serve"), wait=Wait("other", "poll", "d", endless=True))
    known = evidence(of(PARENT, (polls,), (several, end, socket), signal_handlers=(SignalHandler(15),)))
    assert found(known).get("pipe-never-closed") == expected


def test_a_wake_up_pipe_of_a_library() -> None:
    """A native thread reads it, and only its own process writes: whatever holds the program up, that does not."""
    end = pipe(OUTPUT, PARENT, ((PARENT, 5, "r"), (PARENT, 6, "w")))
    helper = waits(end, "pselect6", 2, is_main=False)
    main = thread(1, stack("mainloop"), wait=Wait("condition", "futex", endless=True), counters=counters())
    known = evidence(of(PARENT, (main, helper), (end,), signal_handlers=()))
    assert "pipe-never-closed" not in found(known)


def test_one_side_of_a_pair_of_sockets_that_its_reader_has_inherited() -> None:
    """As with a pipe: nobody else has the other side, so its end never comes. A named socket is no such pair."""

    def told(**names: Any) -> Evidence:
        ends = (End(CHILD, 4, "rw"), End(CHILD, 3, "rw"))
        pair = Resource(
            "socket-1",
            "socket",
            "socket",
            wakers=(Waker("end", "kernel", pid=CHILD, name="descriptor 3"),),
            closed=True,
            ends=ends,
            peer_in_tree=True,
            **names,
        )
        return evidence(
            waiting_parent(), of(CHILD, (waits(pair, "read", CHILD, "collect", fd=4),), (pair,), signal_handlers=())
        )

    first = classify(told()).findings[0]
    assert (first.pattern, first.confidence, first.culprits[0].pid) == ("pipe-never-closed", "proven", CHILD)
    assert "pipe-never-closed" not in found(told(local="/run/server.sock"))


def test_a_reader_that_is_another_program() -> None:
    """It has no lines to change: those of the parent are, which waits for it."""
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "finish"),), (child(CHILD),))
    end = pipe(OUTPUT, CHILD, ((CHILD, 0, "r"), (OTHER, 7, "w")))
    filters = of(CHILD, (waits(end, "read", CHILD, fd=0),), (end,), argv=("sort",), python=None)
    holds = of(OTHER, daemon(PARENT).threads, (), argv=("sleepd",))
    first = next(f for f in classify(evidence(parent, filters, holds)).findings if f.pattern == "pipe-never-closed")
    assert (first.confidence, [(c.pid, c.function) for c in first.culprits]) == ("likely", [(PARENT, "finish")])


def test_a_child_of_a_server_that_forks_for_the_reader() -> None:
    """multiprocessing's forkserver: the process is a grandchild, lives, and may write or end."""
    listens = reader(PARENT, ((OTHER, 7, "w"),))
    server = of(
        CHILD, (thread(CHILD, stack("serve"), wait=Wait("event-loop", "poll", endless=True), is_main=True),), ()
    )
    assert "pipe-never-closed" not in found(evidence(listens, server, daemon(CHILD)))


def test_a_fifo_that_its_reader_keeps_open() -> None:
    """Daemons open their FIFO for both, so that it has no end between two senders: whoever knows its name may write."""
    end = pipe("fifo:/run/orders", PARENT, ((PARENT, 5, "r"), (PARENT, 6, "w")), closed=None)
    assert silent(evidence(of(PARENT, (waits(end, "read", PARENT, "collect"),), (end,))), "pipe-never-closed")


def test_an_idle_worker_is_fed_by_its_parent() -> None:
    """Also one that has inherited the write end of its own orders; and so is who reads from a child that lives."""
    parent = of(
        PARENT, (thread(PARENT, stack("serve"), wait=Wait("socket", "accept", endless=True), is_main=True),), ()
    )
    worker = reader(CHILD, ((PARENT, 9, "w"), (CHILD, 10, "w")))
    assert silent(evidence(parent, worker), "pipe-never-closed")
    listens = reader(PARENT, ((CHILD, 1, "w"),))
    rests = of(CHILD, (thread(CHILD, stack("watch"), wait=Wait("other", "poll", endless=True), is_main=True),), ())
    assert silent(evidence(listens, rests), "pipe-never-closed")


def test_a_daemon_that_has_the_output_of_who_started_it() -> None:
    """The child has ended, what it left behind holds the pipe: likely, and named with its descriptor."""
    diagnosis = classify(evidence(reader(PARENT, ((OTHER, 1, "w"),)), daemon(4711)))
    first = diagnosis.findings[0]
    assert (first.pattern, first.confidence) == ("pipe-never-closed", "likely")
    assert first.summary.endswith("service.py (PID 30), as descriptor 1")
    assert "pipe-never-closed" not in found(evidence(reader(PARENT, ((OTHER, 1, "w"),)), daemon(4711, switches=50)))
    assert (
        found(evidence(reader(PARENT, ((OTHER, 1, "w"),)), daemon(4711, switches=2)))["pipe-never-closed"] == "likely"
    )


def test_a_server_that_was_left_behind() -> None:
    """Its parent is gone, the pipe is its own output, and it looks at its listening socket now and then: it says nothing
    more. Who does so as the child of a living parent may yet."""
    end = pipe(OUTPUT, PARENT, ((PARENT, 5, "r"), (OTHER, 1, "w")))
    listens = Resource("socket-1", "socket", "socket", listening=True)
    polls = Wait("socket", "poll", "socket-1", timeout_s=0.5, endless=False)
    frames = tuple(frame("read", 3, file="/venv/lib/python3.12/site-packages/invoke/runners.py") for _ in range(1))
    reads = thread(7, frames, wait=Wait("pipe", "read", end.id, endless=True, fd=5), counters=counters())
    joins = thread(
        PARENT,
        stack("preview"),
        joins=7,
        is_main=True,
        counters=counters(),
        wait=Wait("lock", "futex", "thread-7", endless=True),
    )
    joined = Resource("thread-7", "thread", "thread T-7", owner_tid=7, owner_basis="recorded", waiters=(PARENT,))

    def told(ppid: int) -> Any:
        serves = thread(OTHER, stack("serve"), wait=polls, counters=counters(switches=2), is_main=True)
        server = of(OTHER, (serves,), (listens,), ppid=ppid)
        return classify(evidence(of(PARENT, (joins, reads), (end, joined)), server))

    first = told(900).findings[0]
    assert (first.pattern, first.confidence) == ("pipe-never-closed", "likely")
    assert [c.function for c in first.culprits] == ["preview", "read"]
    assert "pipe-never-closed" not in [f.pattern for f in told(PARENT).findings]


@pytest.mark.parametrize(("listening", "found_"), [(True, "likely"), (False, None)])
def test_a_helper_of_a_server_that_was_left_behind(listening: bool, found_: Optional[str]) -> None:
    """However often it wakes: as a part of a server it stays, and so does its copy of the pipe's end."""
    ends: Tuple[Tuple[int, int, EndMode], ...] = ((OTHER, 1, "w"), (31, 1, "w"))
    listens = Resource("socket-1", "socket", "socket", listening=listening)
    rests = thread(
        OTHER, (), wait=Wait("socket", "select", "socket-1", endless=True), counters=counters(), is_main=True
    )
    server = of(OTHER, (rests,), (listens,), ppid=4711)
    wakes = thread(
        31, (), wait=Wait("other", "epoll_wait", endless=False), counters=counters(switches=60), is_main=True
    )
    helper = of(31, (wakes,), (), ppid=OTHER)
    assert found(evidence(reader(PARENT, ends), server, helper)).get("pipe-never-closed") == found_


def test_a_neighbour_of_a_pipeline_and_one_that_inherited() -> None:
    """A sister's stdout is a pipeline; the same pipe as some high descriptor of another program was inherited."""
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "run"),), (child(CHILD),))
    sister = daemon(PARENT)
    assert "pipe-never-closed" not in found(evidence(parent, reader(CHILD, ((OTHER, 1, "w"),)), sister))
    other_program = of(OTHER, sister.threads, (), argv=("sleepd",))
    told = found(evidence(parent, reader(CHILD, ((OTHER, 7, "w"),)), other_program))
    assert told["pipe-never-closed"] == "likely"


@pytest.mark.parametrize(("workers", "expected"), [((OTHER,), "likely"), ((), None)])
def test_a_pools_worker_that_has_the_output_of_its_parent(workers: Tuple[int, ...], expected: Optional[str]) -> None:
    """The parent waits for the reader to end before it has work for it; a child that is no worker may write what it was
    started for."""
    output = pipe(FULL, CHILD, ((CHILD, 0, "r"), (OTHER, 1, "w")))
    tee = changed(of(CHILD, (waits(output, "read", CHILD, fd=0),), (output,)), python=None, argv=("tee",))
    pool = Pool("pool", "ProcessPoolExecutor", "ProcessPoolExecutor pool", processes=workers)
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "record"),), (child(CHILD),), pools=(pool,))
    assert found(evidence(parent, tee, daemon(PARENT))).get("pipe-never-closed") == expected


@pytest.mark.parametrize(("awaited", "expected"), [(CHILD, "likely"), (OTHER, None)])
def test_a_sibling_that_is_fed_after_the_reader_has_ended(awaited: int, expected: Optional[str]) -> None:
    """It was forked while the parent had the write end open, and reads its own pipe from the parent, which waits."""
    end = pipe("pipe:[9]", OTHER, ((OTHER, 5, "r"), (PARENT, 6, "w")))
    inherits = of(OTHER, (waits(end, "read", OTHER, "collect"),), (end,), ppid=PARENT)
    inherits = changed(inherits, threads=tuple(changed(t, is_main=True) for t in inherits.threads))
    beats = thread(2, (frame("beat", 3),), wait=Wait("sleep", endless=False), counters=counters(switches=2))
    parent = of(PARENT, (waits(child(awaited), "wait4", PARENT, "finish"), beats), (child(awaited),))
    known = evidence(parent, reader(CHILD, ((OTHER, 7, "w"),), ppid=PARENT), inherits)
    said = [f for f in classify(known).findings if f.pattern == "pipe-never-closed" and f.culprits[0].pid == CHILD]
    assert [f.confidence for f in said] == ([expected] if expected else [])


def test_a_ring_of_forked_readers() -> None:
    """Each keeps the next one's pipe open, and the parent has closed its ends: proven."""
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "finish"),), (child(CHILD),))
    one = reader(CHILD, ((OTHER, 7, "w"),))
    end = pipe("pipe:[9]", OTHER, ((OTHER, 5, "r"), (OTHER, 6, "w")))
    two = of(OTHER, (waits(end, "read", OTHER, "collect"),), (end,), signal_handlers=())
    assert found(evidence(parent, one, two))["pipe-never-closed"] == "proven"


def talks(pid: int, key: str, ends: Tuple[Tuple[int, int, EndMode], ...], **more: Any) -> Process:
    """Waits for a message that others with the write end could send."""
    end = pipe(key, pid, ((pid, 5, "r"), *ends))
    known = {"signal_handlers": (), "catches": (), **more}
    return of(pid, (waits(end, "read", pid, "ask"),), (end,), **known)


def test_peers_that_all_read_first() -> None:
    """One finding that names the circle, with every line, and the advice to agree who begins; no end is withheld here."""
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "finish"),), (child(CHILD),))
    one, two = talks(CHILD, "pipe:[8]", ((OTHER, 7, "w"),)), talks(OTHER, "pipe:[9]", ((CHILD, 7, "w"),))
    told = [f for f in classify(evidence(parent, one, two)).findings if f.pattern.startswith("pipe-")]
    assert [(f.pattern, f.confidence, {c.pid for c in f.culprits}) for f in told] == [
        ("pipe-deadlock", "proven", {CHILD, OTHER})
    ]
    assert "which side sends first" in told[0].remedy
    handled = talks(OTHER, "pipe:[9]", ((CHILD, 7, "w"),), signal_handlers=(SignalHandler(14),), catches=(14,))
    assert "likely" not in found(evidence(parent, one, handled)).values()


def test_receivers_of_processes_whose_main_thread_hangs() -> None:
    """A library's threads receive on both sides; one side's main thread, which sends, waits for an event of its own."""

    def side(pid: int, key: str, other: int, *mains: Thread) -> Process:
        end = pipe(key, pid, ((pid, 3, "r"), (other, 4, "w")))
        event = Resource("e", "event", "Event done")
        receives = waits(end, "read", pid + 1, "execnet.read", "execnet.receive", is_main=False)
        return of(pid, (*mains, receives), (end, event), signal_handlers=())

    parks = Wait("event", "futex", "e", endless=True)
    mains = [thread(pid, stack("threading.wait", "test"), wait=parks, is_main=True) for pid in (CHILD, OTHER)]
    known = evidence(side(CHILD, OUTPUT, OTHER, mains[0]), side(OTHER, FULL, CHILD, mains[1]))
    assert "pipe-deadlock" not in found(known)
    assert "missed-wakeup" in found(known)


def test_who_waits_for_one_of_those_that_all_read_first() -> None:
    """He reads what somebody of the circle would send: neither an end that is withheld nor a peer that is slow."""
    one = talks(CHILD, "pipe:[8]", ((OTHER, 7, "w"),))
    two = talks(OTHER, "pipe:[9]", ((CHILD, 7, "w"), (OTHER, 9, "w")))
    wakers = (Waker("end", "kernel", pid=CHILD, name="descriptor 8"),)
    pair = Resource("socket-1", "socket", "socket", wakers=wakers, closed=True, peer_in_tree=True)
    third = of(40, (waits(pair, "recvfrom", 40, "ask"),), (pair,), signal_handlers=(), catches=())
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "finish"),), (child(CHILD),))
    known = found(evidence(parent, one, two, third))
    assert known["pipe-deadlock"] == "proven"
    assert not {"pipe-never-closed", "network-wait"} & known.keys()


def test_filters_wait_for_the_end_of_their_input() -> None:
    """A reader of standard input, or of a pipe inherited whole, waits for its end: no deadlock."""
    parent = talks(PARENT, "pipe:[8]", ((CHILD, 1, "w"),))
    orders = pipe("pipe:[9]", CHILD, ((CHILD, 0, "r"), (PARENT, 6, "w")))
    filters = of(CHILD, (waits(orders, "read", CHILD, "filter", fd=0),), (orders,), signal_handlers=(), catches=())
    assert "pipe-deadlock" not in found(evidence(parent, filters))


# ---------------------------------------------------------------------- ends that others inherited, and the dead


def link(key: str, pid: int, ends: Tuple[Tuple[int, int], ...], mine: int) -> Resource:
    """Return a socket pair as ``pid`` sees it: (pid, descriptor) of all who have its other end."""
    wakers = tuple(Waker("end", "kernel", pid=p, name=f"descriptor {fd}") for p, fd in ends)
    every = tuple(End(p, fd, "rw") for p, fd in ((pid, mine), *ends))
    return Resource(key, "socket", f"socket {key}", wakers=wakers, closed=True, peer_in_tree=True, key=key, ends=every)


def asks(pid: int, resource: Resource, fd: int, **more: Any) -> Process:
    known = {"signal_handlers": (), "catches": (), **more}
    return of(pid, (waits(resource, "recvfrom", pid, "ask", fd=fd),), (resource,), **known)


def workers(*gone: Process) -> Evidence:
    """The parent reads from a worker whose end its two siblings inherited; these wait for orders."""
    parent = asks(PARENT, link("a", PARENT, ((OTHER, 6), (40, 6)), 5), 5)
    one = asks(OTHER, link("b", OTHER, ((PARENT, 7), (40, 7)), 8), 8)
    two = asks(40, link("c", 40, ((PARENT, 9),), 10), 10)
    return evidence(parent, one, two, *gone)


def test_the_end_of_a_worker_that_died_is_with_its_siblings() -> None:
    """Nobody sends first? The one who should have sent has ended, and the pair stays open: no proof of either."""
    dead = process([], pid=CHILD, ppid=PARENT, state="Z", exit_status=-9, python=None)
    known = workers(dead)
    told = {f.pattern: f for f in classify(known).findings}
    assert "pipe-deadlock" not in told
    assert told["pipe-never-closed"].confidence == "likely"
    assert "process 20 was ended by signal 9" in " ".join(told["pipe-never-closed"].evidence)


def test_ends_that_several_have_prove_no_circle() -> None:
    """Some of them have it by inheritance, and which of them would have written is not known."""
    assert found(workers()).get("pipe-deadlock") in (None, "possible")
    assert "proven" not in found(workers()).values()


def test_a_dead_sibling_does_not_explain_two_who_read_from_one_pair() -> None:
    """Both read from the two ends of the same socket pair: whoever has died, none of these sends first."""
    dead = process([], pid=77, ppid=PARENT, state="Z", python=None)
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "finish"),), (child(CHILD),))
    one, two = asks(CHILD, link("a", CHILD, ((OTHER, 6),), 5), 5), asks(OTHER, link("a", OTHER, ((CHILD, 5),), 6), 6)
    assert found(evidence(parent, one, two, dead))["pipe-deadlock"] == "proven"


def woken(reader: Thread, *more: Waker) -> Evidence:
    """The main thread writes to the pipe that wakes another thread, with a lock held; its children inherited both ends."""
    both: Tuple[Tuple[int, EndMode], ...] = ((3, "r"), (4, "w"))
    ends = tuple(End(pid, fd, mode) for pid in (PARENT, CHILD) for fd, mode in both)
    wakers = (Waker("end", "kernel", CHILD), Waker("end", "inferred", PARENT, reader.tid), *more)
    full = Resource("w", "pipe", "pipe", wakers=wakers, closed=True, key="pipe:[1]", ends=ends)
    guard = Resource("l", "lock", "Lock", PARENT, "with-slot", (reader.tid,), True)
    main = waits(full, "write", PARENT, "multiprocessing.connection._send", "submit_all", fd=4)
    idle = pipe("pipe:[2]", CHILD, ((CHILD, 5, "r"), (PARENT, 6, "w")))
    worker = of(CHILD, (waits(idle, "read", CHILD, "multiprocessing.queues.get"),), (idle,))
    ticks = thread(9, stack("report"), wait=Wait("sleep", "pselect6", timeout_s=0.5, endless=False))
    return evidence(of(PARENT, (main, reader, ticks), (full, guard), signal_handlers=()), worker)


def test_the_reader_of_a_wake_up_pipe_wants_the_writers_lock() -> None:
    """Both are threads of one process; that its children inherited the pipe changes nothing."""
    manager = thread(5, stack("collect"), wait=Wait("lock", "futex", "l", endless=True))
    first = next(f for f in classify(woken(manager)).findings if f.pattern == "pipe-deadlock")
    assert (first.confidence, [c.line for c in first.culprits]) == ("likely", [2])
    free = thread(5, stack("collect"), wait=Wait("sleep", "pselect6", timeout_s=0.1, endless=False))
    assert found(woken(free)).get("pipe-deadlock") in (None, "possible")
    elsewhere = woken(manager, Waker("end", "kernel", OTHER))
    assert found(elsewhere).get("pipe-deadlock") in (None, "possible")


@pytest.mark.parametrize(("ppid", "ended", "expected"), [(7, True, "likely"), (PARENT, True, None), (7, False, None)])
def test_what_an_ended_program_had_started_keeps_its_output_open(
    ppid: int, ended: bool, expected: Optional[str]
) -> None:
    """communicate() goes on to read until the end of file, and gets a line now and then; the program itself has ended."""
    output = pipe(OUTPUT, PARENT, ((PARENT, 5, "r"), (OTHER, 1, "w")))
    frames = stack("selectors.select", "subprocess._communicate", "subprocess.communicate", "run_probe")
    reads = thread(
        PARENT, frames, wait=Wait("pipe", "poll", output.id, endless=True, fd=5), counters=counters(switches=9)
    )
    parent = of(PARENT, (changed(reads, is_main=True),), (output,))
    tail = changed(of(OTHER, (thread(OTHER, wait=Wait("other", "read", endless=None)),), (output,)), ppid=ppid)
    gone = changed(of(CHILD, (), ()), ppid=PARENT, state="Z" if ended else "S")
    assert found(evidence(parent, gone, tail)).get("pipe-never-closed") in (
        (expected,) if expected else (None, "possible")
    )


@pytest.mark.parametrize(
    ("holders", "waits", "ports", "call", "expected"),
    [
        ((2, 3), "semaphore", (80,), "recvfrom", "likely"),
        ((2,), "semaphore", (80,), "recvfrom", None),  # a worker of a server has its client's connection alone
        ((2, 3), "socket", (80,), "recvfrom", None),
        ((2, 3), "semaphore", (81,), "recvfrom", None),
        ((1, 2, 3), "semaphore", (80,), "recvfrom", None),  # the server has it, too, and may write
        ((2, 3), "semaphore", (80,), "sendto", None),
    ],
)
def test_a_connection_that_forked_processes_have_inherited(
    holders: Tuple[int, ...], waits: WaitKind, ports: Tuple[int, ...], call: str, expected: Optional[str]
) -> None:
    """The server that forked them has closed it, and the client waits for its end: the line that forks comes first."""
    ends = tuple(Waker("end", "kernel", pid=pid) for pid in holders)
    socket = Resource("s", "socket", "socket", remote="127.0.0.1:80", accepted=False, closed=True, wakers=ends)
    reads = Wait("socket", call, "s", endless=True)
    client = process(
        [thread(1, [frame("ask", 96)], wait=reads, counters=counters())], resources=(socket,), listening=ports
    )
    begun = (*stack("multiprocessing.popen_fork._launch", "multiprocessing.process.start"), frame("begin", 48))
    heirs = [
        process(
            [
                thread(
                    pid, (frame("work", 25), *begun), wait=Wait(waits, endless=True), counters=counters(), is_main=True
                )
            ],
            pid=pid,
            ppid=1,
            forked=True,
        )
        for pid in (2, 3)
    ]
    known = evidence(client, *heirs)
    assert found(known).get("pipe-never-closed") == expected
    assert expected is None or lines(known) == [48, 96]
