"""Pipes, locks on files and standard input between processes: who is kept waiting by whom."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from postmortem.classify.engine import classify
from postmortem.evidence import (
    End,
    Evidence,
    Loop,
    Process,
    Resource,
    SignalHandler,
    Task,
    TaskWait,
    Thread,
    Wait,
    Waker,
)

from .make import counters, evidence, found, frame, process, stack, thread, verdict

PARENT, CHILD, OTHER = 1, 20, 30
FULL, OUTPUT = "pipe:[7]", "pipe:[8]"


def pipe(
    key: str, pid: int, ends: Tuple[Tuple[int, int, str], ...], closed: Optional[bool] = True, **more: Any
) -> Resource:
    """As ``pid`` sees it, which has the first of ``ends``."""
    mine = ends[0][2]
    wakers = [Waker("end", "kernel", pid=p, name=f"descriptor {fd}") for p, fd, mode in ends if mode != mine]
    return Resource(
        f"{key}-{mine}", "pipe", f"pipe {key}", wakers=tuple(dict.fromkeys(wakers)), closed=closed, key=key, value=65536,
        limit=65536, ends=tuple(End(p, fd, mode, p < 900) for p, fd, mode in ends), waiters=(pid,), **more,
    )  # fmt: skip


def child(pid: int) -> Resource:
    return Resource(
        f"child-{pid}", "process", f"child {pid}", wakers=(Waker("runner", "kernel", pid=pid),), closed=True
    )


def waits(resource: Resource, syscall: str, tid: int, *functions: str, **more: Any) -> Thread:
    kind = {"process": "process", "file-lock": "file", "terminal": "file"}.get(resource.kind, resource.kind)
    fd = more.pop("fd", 5)
    wait = Wait(kind, syscall, resource=resource.id, endless=True, fd=fd)
    return thread(tid, stack(*functions), wait=wait, counters=counters(), is_main=more.pop("is_main", True), **more)


def of(pid: int, threads: Tuple[Thread, ...], resources: Tuple[Resource, ...], **more: Any) -> Process:
    return process(threads, pid=pid, resources=resources, ppid=more.pop("ppid", PARENT if pid != PARENT else 0), **more)


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


def test_a_full_pipe_is_no_proof_when_others_may_hold_its_end() -> None:
    """Or when another thread of the parent, which sleeps now, may read it."""
    assert found(evidence(waiting_parent(), writer(closed=None)))["pipe-deadlock"] == "likely"
    asleep = thread(
        2, stack("tick"), wait=Wait("sleep", "clock_nanosleep", timeout_s=5.0, endless=False), counters=counters()
    )
    assert found(evidence(waiting_parent(asleep), writer()))["pipe-deadlock"] == "likely"


def test_a_parent_that_reads_comes_back() -> None:
    """A thread that reads the pipe, one that passes on what it has read, a parent that waits for nobody: no deadlock."""
    end = pipe(FULL, PARENT, ((PARENT, 5, "r"), (CHILD, 1, "w")))
    reads = waits(end, "read", 2, "drain", is_main=False)
    awaited = child(CHILD)
    main = waits(awaited, "wait4", PARENT, "subprocess.wait", "fetch")
    assert "pipe-deadlock" not in found(evidence(of(PARENT, (main, reads), (awaited, end)), writer()))
    passes_on = thread(
        2, stack("queue.put", "drain"), wait=Wait("condition", "futex", endless=True), counters=counters()
    )
    assert "pipe-deadlock" not in found(evidence(of(PARENT, (main, passes_on), (awaited,)), writer()))
    rests = thread(PARENT, stack("nap"), wait=Wait("sleep", "clock_nanosleep", 9.0, endless=False), is_main=True)
    assert "pipe-deadlock" not in found(evidence(of(PARENT, (rests,), ()), writer()))


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
    idle = thread(PARENT, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters(),
                  is_main=True)  # fmt: skip

    def told(*watched: str) -> Evidence:
        loop = Loop("loop-1", PARENT, ready=0, scheduled=0, descriptors=watched)
        return evidence(of(PARENT, (idle,), (end,), tasks=(task,), loops=(loop,)), writer())

    first = next(f for f in classify(told()).findings if f.pattern == "pipe-deadlock")
    assert (first.confidence, [(c.task, c.line) for c in first.culprits]) == ("likely", [("convert", 7)])
    assert "pipe-deadlock" not in found(told(end.id))


def reader(
    pid: int, ends: Tuple[Tuple[int, int, str], ...], *others: Thread, closed: Optional[bool] = True, **more: Any
) -> Process:
    end = pipe(OUTPUT, pid, ((pid, 5, "r"), *ends), closed)
    return of(pid, (waits(end, "read", pid, "collect"), *others), (end,), **more)


def test_a_reader_that_keeps_its_pipe_open_itself() -> None:
    """Proven when nobody else has it; with another thread it may be a wake-up pipe."""
    own = ((PARENT, 6, "w"),)
    diagnosis = classify(evidence(reader(PARENT, own, signal_handlers=())))
    assert (diagnosis.verdict, diagnosis.findings[0].confidence) == ("pipe-never-closed", "proven")
    assert "itself, as descriptor 6" in diagnosis.findings[0].summary
    assert found(evidence(reader(PARENT, own, closed=None, signal_handlers=())))["pipe-never-closed"] == "likely"
    assert found(evidence(reader(PARENT, own)))["pipe-never-closed"] == "likely"  # whether a handler writes is unknown
    assert found(evidence(reader(PARENT, own, signal_handlers=(SignalHandler(15),))))["pipe-never-closed"] == "possible"
    other = thread(2, stack("serve"), wait=Wait("socket", "accept", endless=True), counters=counters())
    assert found(evidence(reader(PARENT, own, other)))["pipe-never-closed"] == "possible"


def test_one_side_of_a_pair_of_sockets_that_its_reader_has_inherited() -> None:
    """As with a pipe: nobody else has the other side, so its end never comes. A named socket is no such pair."""

    def told(**names: Any) -> Evidence:
        ends = (End(CHILD, 4, "rw"), End(CHILD, 3, "rw"))
        pair = Resource("socket-1", "socket", "socket", wakers=(Waker("end", "kernel", pid=CHILD, name="descriptor 3"),),
                        closed=True, ends=ends, peer_in_tree=True, **names)  # fmt: skip
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
    assert "pipe-never-closed" not in found(evidence(of(PARENT, (waits(end, "read", PARENT, "collect"),), (end,))))


def test_an_idle_worker_is_fed_by_its_parent() -> None:
    """Also one that has inherited the write end of its own orders; and so is who reads from a child that lives."""
    parent = of(
        PARENT, (thread(PARENT, stack("serve"), wait=Wait("socket", "accept", endless=True), is_main=True),), ()
    )
    worker = reader(CHILD, ((PARENT, 9, "w"), (CHILD, 10, "w")))
    assert "pipe-never-closed" not in found(evidence(parent, worker))
    listens = reader(PARENT, ((CHILD, 1, "w"),))
    rests = of(CHILD, (thread(CHILD, stack("watch"), wait=Wait("other", "poll", endless=True), is_main=True),), ())
    assert "pipe-never-closed" not in found(evidence(listens, rests))


def daemon(ppid: int, switches: int = 0) -> Process:
    asleep = thread(OTHER, stack("nap"), wait=Wait("sleep", "clock_nanosleep", 600.0, endless=False),
                    counters=counters(switches=switches), is_main=True)  # fmt: skip
    return of(OTHER, (asleep,), (), ppid=ppid)


def test_a_daemon_that_has_the_output_of_who_started_it() -> None:
    """The child has ended, what it left behind holds the pipe: likely, and named with its descriptor."""
    diagnosis = classify(evidence(reader(PARENT, ((OTHER, 1, "w"),)), daemon(4711)))
    first = diagnosis.findings[0]
    assert (first.pattern, first.confidence) == ("pipe-never-closed", "likely")
    assert first.summary.endswith("service.py (PID 30), as descriptor 1")
    assert "pipe-never-closed" not in found(evidence(reader(PARENT, ((OTHER, 1, "w"),)), daemon(4711, switches=50)))


def test_a_neighbour_of_a_pipeline_and_one_that_inherited() -> None:
    """A sister's stdout is a pipeline; the same pipe as some high descriptor of another program was inherited."""
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "run"),), (child(CHILD),))
    sister = daemon(PARENT)
    assert "pipe-never-closed" not in found(evidence(parent, reader(CHILD, ((OTHER, 1, "w"),)), sister))
    other_program = of(OTHER, sister.threads, (), argv=("sleepd",))
    told = found(evidence(parent, reader(CHILD, ((OTHER, 7, "w"),)), other_program))
    assert told["pipe-never-closed"] == "likely"


def test_a_ring_of_forked_readers() -> None:
    """Each keeps the next one's pipe open, and the parent has closed its ends: proven."""
    parent = of(PARENT, (waits(child(CHILD), "wait4", PARENT, "finish"),), (child(CHILD),))
    one = reader(CHILD, ((OTHER, 7, "w"),))
    end = pipe("pipe:[9]", OTHER, ((OTHER, 5, "r"), (OTHER, 6, "w")))
    two = of(OTHER, (waits(end, "read", OTHER, "collect"),), (end,), signal_handlers=())
    assert found(evidence(parent, one, two))["pipe-never-closed"] == "proven"


def talks(pid: int, key: str, ends: Tuple[Tuple[int, int, str], ...], **more: Any) -> Process:
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
    assert "who sends first" in told[0].remedy
    handled = talks(OTHER, "pipe:[9]", ((CHILD, 7, "w"),), signal_handlers=(SignalHandler(14),), catches=(14,))
    assert "likely" not in found(evidence(parent, one, handled)).values()


def test_filters_wait_for_the_end_of_their_input() -> None:
    """Of standard input, or of a pipe that others have inherited whole: the end is what does not come."""
    parent = talks(PARENT, "pipe:[8]", ((CHILD, 1, "w"),))
    orders = pipe("pipe:[9]", CHILD, ((CHILD, 0, "r"), (PARENT, 6, "w")))
    filters = of(CHILD, (waits(orders, "read", CHILD, "filter", fd=0),), (orders,), signal_handlers=(), catches=())
    assert "pipe-deadlock" not in found(evidence(parent, filters))


def lock_wait(owner: Optional[int], holder: Optional[Process] = None, **more: Any) -> Evidence:
    lock = Resource("file-lock-1", "file-lock", "lock on /tmp/a.lock", owner_pid=owner, owner_basis="recorded",
                    because=("the kernel's table of locks",), **more)  # fmt: skip
    waiter = of(PARENT, (waits(lock, "flock", PARENT, "take"),), (lock,))
    return evidence(waiter, *([holder] if holder else []))


def test_a_lock_on_a_file() -> None:
    """Its holder is named, in the tree or beyond; proven when that is the process itself."""
    first = classify(lock_wait(900, wakers=(Waker("holder", "kernel", pid=900, name="vim"),))).findings[0]
    assert (first.pattern, first.confidence) == ("file-lock-wait", "likely")
    assert first.summary.endswith("the lock on /tmp/a.lock, which vim (PID 900) holds")
    assert [c.function for c in first.culprits] == ["take"]
    assert verdict(lock_wait(OTHER, daemon(PARENT))) == "file-lock-wait"
    assert found(lock_wait(PARENT))["file-lock-wait"] == "proven"


def test_workers_that_take_turns_to_accept() -> None:
    """A sister that has the lock and waits for connections is a server at rest."""
    lock = Resource("file-lock-1", "file-lock", "lock", owner_pid=OTHER, owner_basis="recorded")
    waiter = of(CHILD, (waits(lock, "flock", CHILD, "take"),), (lock,))
    accepts = of(
        OTHER, (thread(OTHER, stack("serve"), wait=Wait("socket", "accept4", endless=True), is_main=True),), ()
    )
    assert "file-lock-wait" not in found(evidence(waiter, accepts))


def test_a_lock_that_no_table_shows() -> None:
    """A core alone cannot tell who has it: abstained."""
    waiting = thread(PARENT, stack("take"), wait=Wait("file", "flock", endless=True, fd=3), is_main=True)
    diagnosis = classify(evidence(of(PARENT, (waiting,), ())))
    assert "file-lock-wait" in [a.pattern for a in diagnosis.abstained]


def stdin(resource: Resource, source: str = "text = read()", **more: Any) -> Evidence:
    main = waits(resource, "read", PARENT, "ask", fd=0)
    known = evidence(of(PARENT, (main,), (resource,), **more))
    return type(known)(known.trigger, known.processes, window_s=1.0, sources={main.python[0].file: {1: source}})


def test_a_terminal_where_nobody_types() -> None:
    """Likely, whatever it asks."""
    assert found(
        stdin(Resource("terminal-1", "terminal", "stdin, the terminal /dev/pts/0", ends=(End(PARENT, 0, "rw"),)))
    ) == {"stdin-wait": "likely"}


def test_a_task_that_reads_the_terminal() -> None:
    """Through its loop: the same wait, at the task's line; no peer on the network."""
    terminal = Resource("terminal-1", "terminal", "stdin, the terminal /dev/pts/0", ends=(End(PARENT, 0, "rw"),))
    frames = (*stack("asyncio.streams._wait_for_data", "asyncio.streams.readline"), frame("talk", 7))
    task = Task("task-1", "talk", "pending", "loop-1", frames, "Future", "terminal-1",
                TaskWait("descriptor", "terminal-1", endless=True))  # fmt: skip
    idle = thread(PARENT, stack("selectors.select"), wait=Wait("event-loop", "epoll_wait", endless=True), counters=counters(),
                  is_main=True)  # fmt: skip
    loop = Loop("loop-1", PARENT, ready=0, scheduled=0, watched=1, descriptors=("terminal-1",))
    diagnosis = classify(evidence(of(PARENT, (idle,), (terminal,), tasks=(task,), loops=(loop,))))
    assert [(f.pattern, [c.line for c in f.culprits]) for f in diagnosis.findings] == [("stdin-wait", [7])]


def test_a_pipe_as_standard_input() -> None:
    """Of a program that rests: possible; with a question in the line, or a writer that waits for a person itself: likely."""
    ends = ((PARENT, 0, "r"), (900, 1, "w"))
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
    assert not {"stdin-wait", "pipe-never-closed"} & found(evidence(parent, worker)).keys()


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
