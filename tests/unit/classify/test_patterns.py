"""Each pattern on small evidence: what it claims, how sure it is, and the neighbour that it must not be mistaken for."""

from __future__ import annotations

from typing import Dict, List, Tuple

import pytest

from postmortem.classify.engine import all_patterns, classify
from postmortem.evidence import Evidence, Gil, Process, PythonFrame, Resource, Task, Wait, decode, encode
from postmortem.evidence import replace as changed

from .make import (
    APP,
    counters,
    evidence,
    frame,
    held,
    lock,
    locked,
    loop,
    poller,
    process,
    samples,
    stack,
    thread,
)


def found(known: Evidence) -> Dict[str, str]:
    return {f.pattern: f.confidence for f in classify(known).findings}


def verdict(known: Evidence) -> object:
    return classify(known).verdict


def lines(known: Evidence) -> List[object]:
    return [c.line for c in classify(known).findings[0].culprits]


# ---------------------------------------------------------------------- locks


def two_locks(basis: str = "with-slot", endless: bool = True) -> Process:
    one = thread(2, [frame("one", 11)], wait=locked("lock-1", endless), holds=(held("lock-2", line=10),))
    two = thread(3, [frame("two", 21)], wait=locked("lock-2", endless), holds=(held("lock-1", line=20),))
    late = thread(4, [frame("late", 31)], wait=locked("lock-1"))
    return process(
        [thread(1, [frame("main")]), one, two, late],
        resources=(lock("lock-1", 3, (2, 4), basis), lock("lock-2", 2, (3,), basis)),
    )


def test_a_cycle_of_recorded_owners_is_proven() -> None:
    """Both wanted and both held lines are named, the one that only queues is a victim, not a culprit."""
    report = classify(evidence(two_locks())).findings[0]
    assert (report.pattern, report.confidence) == ("lock-order-deadlock", "proven")
    assert {c.line for c in report.culprits} == {10, 11, 20, 21}
    assert [v.tid for v in report.victims] == [4]


@pytest.mark.parametrize(("basis", "endless"), [("inferred", True), ("with-slot", False)])
def test_a_cycle_with_a_doubt_is_not_proven(basis: str, endless: bool) -> None:
    """An owner that was guessed, or a wait that ends by itself, leaves another reading."""
    assert found(evidence(two_locks(basis, endless)))["lock-order-deadlock"] == "likely"


def test_a_chain_is_no_cycle() -> None:
    """One thread holds, the others queue: no lock cycle, and that is said."""
    queue = [thread(n, [frame("queue")], wait=locked("lock-1")) for n in (3, 4)]
    holder = thread(2, [frame("work")], holds=(held("lock-1"),))
    diagnosis = classify(evidence(process([thread(1), holder, *queue], resources=(lock("lock-1", 2, (3, 4)),))))
    assert "lock-order-deadlock" not in {f.pattern for f in diagnosis.findings}
    assert any(r.pattern == "lock-order-deadlock" and "no cycle" in r.because for r in diagnosis.ruled_out)


def test_a_cycle_through_a_join() -> None:
    """A joins B while it holds what B wants."""
    joiner = thread(
        1,
        stack("threading.join", "main"),
        joins=2,
        wait=Wait("lock", "futex", endless=True),
        holds=(held("lock-1", 1),),
    )
    wants = thread(2, [frame("worker", 12)], wait=locked("lock-1"))
    assert (
        found(evidence(process([joiner, wants], resources=(lock("lock-1", 1, (2,)),))))["lock-order-deadlock"]
        == "proven"
    )


def own_lock(kind: str = "lock", *above: PythonFrame) -> Process:
    frames = [frame("get", 50), *above, frame("notify", 40), frame("set", 30)]
    editor = thread(2, frames, wait=locked("lock-1"), holds=(held("lock-1", depth=len(frames) - 1, line=30),))
    return process([thread(1, [frame("main")]), editor], resources=(lock("lock-1", 2, (2,), kind=kind),))


def test_a_lock_taken_twice_is_proven() -> None:
    """The same plain lock held further down the same stack."""
    assert found(evidence(own_lock())) == {"self-deadlock": "proven"}
    assert set(lines(evidence(own_lock()))) >= {50, 30}


def test_a_finalizer_between_makes_it_a_finalizer_deadlock() -> None:
    """Nobody called __del__ by name: another cause, another remedy."""
    assert found(evidence(own_lock("lock", frame("__del__", 45)))) == {"finalizer-deadlock": "proven"}


def test_an_rlock_may_be_taken_twice() -> None:
    """Re-entrant locks wait for somebody else, whatever the stack says."""
    assert "self-deadlock" not in found(evidence(own_lock("rlock")))


# ---------------------------------------------------------------------- the GIL


def polling(count: int, handoffs: float, switches: int, cpu: float, delay: float = 0.0, waiting: int = 3) -> Process:
    loops = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
    threads = [
        thread(n + 2, loops, counters=counters(cpu / count, switches // count, delay / count),
               gil="waits" if n < waiting else "detached", samples=samples((50, loops)))
        for n in range(count)
    ]  # fmt: skip
    main = thread(1, [frame("call", 5), frame("main", 6)], gil="waits", counters=counters(0.01, 100))
    return process(
        [main, *threads], gil=Gil(True, 2, 0.005, int(handoffs), handoffs),
        loops=tuple(loop(f"loop-{n}", n + 2) for n in range(count)),
        tasks=tuple(poller(f"task-{n}", f"loop-{n}") for n in range(count)),
    )  # fmt: skip


def test_thrash_is_rooted_in_the_polling_line() -> None:
    """Thousands of hand-overs, pollers: gil-thrash leads, its culprit is the line that awaits the turn, because of
    the spinning loops; the main thread is its victim."""
    report = classify(evidence(polling(20, 9000, 12000, 1.0))).findings[0]
    assert (report.pattern, report.confidence, report.because_of) == ("gil-thrash", "likely", ("busy-event-loop",))
    assert [(c.function, c.line) for c in report.culprits] == [("poll", 40)]
    assert report.victims[0].tid == 1 and "9,000" in report.summary


def test_wakes_in_vain_are_thrash_too() -> None:
    """The giver wins the lock back every time: hardly a hand-over, but far more wake-ups than the timer explains."""
    assert verdict(evidence(polling(20, 300, 16000, 0.9))) == "gil-thrash"


def test_thrash_on_a_loaded_machine() -> None:
    """With half a core to be had everything happens half as often, and is the same."""
    assert verdict(evidence(polling(12, 140, 4000, 0.45, delay=2.7))) == "gil-thrash"


def test_two_idle_loops_are_no_thrash() -> None:
    """Pollers that use no CPU harm nobody."""
    assert verdict(evidence(polling(2, 10, 20, 0.05))) is None


def test_hand_overs_without_a_poller_are_only_possible() -> None:
    """A busy threaded server hands over often too: without a root nothing above possible is said."""
    busy = changed(polling(8, 6000, 9000, 0.9), tasks=(), loops=())
    assert set(found(evidence(busy)).values()) <= {"possible"}


def test_threads_that_sleep_for_nothing_poll_too() -> None:
    """`while not ready: sleep(0)` in threads is a root like a polling task; the loop around the line is named."""
    spin = [frame("feed", 26), frame("run", 3)]
    threads = [thread(n + 2, spin, counters=counters(0.12, 900), samples=samples((50, spin))) for n in range(8)]
    main = thread(1, [frame("export", 9)], counters=counters(0.3, 50_000))
    known = evidence(process([main, *threads], gil=Gil(True, 2, 0.005, 60_000, 60_000.0)))
    assert found(known)["gil-thrash"] == "possible"
    known = changed(known, sources={APP: {26: "        time.sleep(0)"}}, loops={APP: {26: (25,)}})
    assert (found(known)["gil-thrash"], lines(known)) == ("likely", [26, 25])


def computing(count: int, handoffs: float) -> Process:
    work = [frame("crunch", 7), frame("worker", 3)]
    threads = [
        thread(
            n + 2,
            work,
            counters=counters(1.0 / count, 190),
            gil="holds" if n == 0 else "waits",
            samples=samples((50, work)),
        )
        for n in range(count)
    ]
    return process([thread(1, stack("threading.join", "main"), counters=counters()), *threads],
                   gil=Gil(True, 2, 0.005, int(handoffs), handoffs))  # fmt: skip


def test_contention_keeps_the_pace_of_the_timer() -> None:
    """Computing threads share one core at up to 200 forced switches a second: contention, not thrash."""
    assert found(evidence(computing(3, 150))) == {"gil-contention": "likely"}
    assert lines(evidence(computing(3, 150)))[0] == 7


def test_native_work_outside_the_gil_is_no_contention() -> None:
    """Threads that use several cores do not share one."""
    wide = computing(3, 20)
    wide = changed(wide, threads=tuple(changed(t, counters=counters(0.9, 5)) if t.tid > 1 else t for t in wide.threads))
    assert "gil-contention" not in found(evidence(wide))


# ---------------------------------------------------------------------- loops


def one_loop(frames: Tuple[PythonFrame, ...], cpu: float, *tasks: Task, ready: int = 1) -> Process:
    main = thread(1, frames, counters=counters(cpu), samples=samples((50, frames)))
    return process([main], loops=(loop("loop-1", 1, ready),), tasks=tasks)


TURNING = stack("selectors.select", "asyncio.base_events._run_once", "asyncio.base_events.run_forever")
COMPUTING = (frame("crunch", 8), frame("batch", 9), *stack("asyncio.events._run", "asyncio.base_events._run_once",
                                                         "asyncio.base_events.run_forever"))  # fmt: skip


def test_a_lone_polling_loop_is_busy() -> None:
    """One task in sleep(0), full CPU, samples in the machinery."""
    assert found(evidence(one_loop(TURNING, 0.99, poller("t")))) == {"busy-event-loop": "likely"}
    assert lines(evidence(one_loop(TURNING, 0.99, poller("t")))) == [40]


def test_a_computation_that_yields_is_not() -> None:
    """The same sleep(0), but the samples lie in work: no spin, and said so."""
    diagnosis = classify(evidence(one_loop(COMPUTING, 0.99, poller("t"))))
    assert all(f.confidence == "possible" for f in diagnosis.findings)
    assert "busy-event-loop" in {r.pattern for r in diagnosis.ruled_out}


def test_from_one_core_a_poller_is_only_possible() -> None:
    """One moment cannot tell a spin from a turn."""
    known = changed(one_loop(TURNING, 0.99, poller("t")), threads=(thread(1, TURNING),))
    assert found(evidence(known, window=None, kind="core")) == {"busy-event-loop": "possible"}


def test_a_descriptor_that_is_always_ready() -> None:
    """No task polls; one callback is called at every turn."""
    called = (
        frame("on_data", 33),
        *stack("asyncio.events._run", "asyncio.base_events._run_once", "asyncio.base_events.run_forever"),
    )
    main = thread(1, TURNING, counters=counters(0.98), samples=samples((35, TURNING), (15, called)))
    known = process([main], loops=(loop("loop-1", 1),))
    assert (verdict(evidence(known)), lines(evidence(known))) == ("busy-event-loop", [33])


# ---------------------------------------------------------------------- waits


def resting(wait: Wait, *functions: str, **known: object) -> Process:
    return process([thread(1, stack(*functions), wait=wait, counters=counters())], **known)


SOCKET = Wait("socket", "recvfrom", resource="socket-1", fd=3, endless=True)


def socket(**known: object) -> Resource:
    return Resource("socket-1", "socket", "socket a → b", local="a:1", remote="b:80", **known)  # type: ignore[arg-type]


def test_a_client_without_a_timeout() -> None:
    """The main thread in recv on a connection that it made."""
    known = resting(SOCKET, "socket.readinto", "fetch", "main", resources=(socket(accepted=False),))
    assert (found(evidence(known)), lines(evidence(known))) == ({"network-wait": "likely"}, [2])


@pytest.mark.parametrize("what", [{"accepted": True}, {"listening": True}])
def test_a_server_waits_by_design(what: Dict[str, bool]) -> None:
    """A listening socket and an accepted connection are how an idle server looks."""
    assert found(evidence(resting(SOCKET, "socket.readinto", "serve", resources=(socket(**what),)))) == {}


def test_a_socket_with_a_timeout_ends_by_itself() -> None:
    """poll with an end is no endless wait."""
    wait = Wait("socket", "poll", resource="socket-1", timeout_s=5.0, endless=False)
    assert found(evidence(resting(wait, "fetch", resources=(socket(accepted=False),)))) == {}


def test_a_worker_that_nobody_waits_for_is_only_possible() -> None:
    """A background reader may be idle by design."""
    worker = thread(2, stack("socket.readinto", "listen"), wait=SOCKET)
    known = process([thread(1, [frame("main")]), worker], resources=(socket(accepted=False),))
    assert found(evidence(known)) == {"network-wait": "possible"}


def test_a_worker_whose_work_is_collected_matters() -> None:
    """The main thread waits in Queue.join for whatever the workers do: their wait is its wait."""
    worker = thread(2, stack("socket.readinto", "fetch"), wait=SOCKET)
    main = thread(1, stack("threading.wait", "queue.join", "run"), wait=Wait("condition", "futex", endless=True))
    assert found(evidence(process([main, worker], resources=(socket(accepted=False),)))) == {"network-wait": "likely"}


@pytest.mark.parametrize(("length", "expected"), [(3600.0, "likely"), (1.5, "possible"), (None, "possible")])
def test_sleeping_is_judged_by_its_length(length: float, expected: str) -> None:
    """An hour against two seconds allowed is the reason; a second between two rounds is a rhythm."""
    known = resting(Wait("sleep", "clock_nanosleep", timeout_s=length), "pause", "main")
    assert found(evidence(known)) == {"sleeping": expected}


def test_a_program_without_python_sleeps() -> None:
    """Its command and the system call are named, no line is."""
    known = process(
        [thread(1, wait=Wait("sleep", "clock_nanosleep", timeout_s=60.0))], python=None, argv=("sleep", "60")
    )
    report = classify(evidence(known, seconds=1.0)).findings[0]
    assert report.pattern == "sleeping" and not report.culprits
    assert "not a Python program" in report.summary and "clock_nanosleep" in report.summary


def test_sleeping_is_not_all_when_others_work() -> None:
    """The main thread sleeps while a worker computes: no finding about sleep."""
    worker = thread(2, [frame("work")], counters=counters(0.9), gil="holds")
    main = thread(1, [frame("main")], wait=Wait("sleep", timeout_s=3600.0), counters=counters())
    assert "sleeping" not in found(evidence(process([main, worker])))


def parent_and_child(child: Process) -> Evidence:
    parent = process(
        [thread(1, stack("subprocess._wait", "build", "main"), wait=Wait("process", "wait4", pid=2, endless=True))]
    )
    return evidence(parent, changed(child, pid=2, ppid=1))


def test_a_child_that_is_no_python_leaves_the_lead_to_its_parent() -> None:
    """The only line to change is the parent's."""
    child = process(
        [thread(2, wait=Wait("sleep", "clock_nanosleep", timeout_s=900.0), is_main=True)],
        python=None,
        argv=("sleep", "900"),
    )
    report = classify(parent_and_child(child)).findings
    assert [f.pattern for f in report] == ["child-wait", "sleeping"]
    assert report[0].because_of == ("sleeping",) and report[0].culprits[0].line == 2


def test_the_childs_own_diagnosis_leads() -> None:
    """A Python child with a proven cause: its line is the answer, the parent's wait stands behind."""
    child = two_locks()
    child = changed(child, threads=tuple(changed(t, is_main=t.tid == 1) for t in child.threads))
    report = classify(parent_and_child(child)).findings
    assert [f.pattern for f in report] == ["lock-order-deadlock", "child-wait"]
    assert report[1].because_of == ("lock-order-deadlock",)


def test_a_child_that_cannot_write_is_no_child_wait() -> None:
    """A full pipe is another cause than a child that takes long."""
    child = process([thread(2, [frame("emit")], wait=Wait("pipe", "write", endless=True), is_main=True)])
    assert "child-wait" not in found(parent_and_child(child))


def shutting_down(worker_wait: Wait, **known: object) -> Process:
    main = thread(1, stack("threading._shutdown"), wait=Wait("lock", "futex", endless=True), joins=2)
    worker = thread(2, stack("threading.wait", "queue.get", "run_worker"), wait=worker_wait, daemon=False, **known)
    return process([main, worker])


def test_the_thread_that_keeps_the_interpreter_is_the_culprit() -> None:
    """The main thread is at its end; the joined thread's own line is named."""
    known = evidence(shutting_down(Wait("condition", "futex", endless=True)))
    assert (found(known), lines(known)) == ({"shutdown-join": "likely"}, [3])


def test_a_last_worker_at_work_is_only_possible() -> None:
    """Waiting for a thread that computes is what exit is for."""
    known = evidence(shutting_down(Wait("condition", "futex", endless=True), counters=counters(0.9)))
    assert found(known)["shutdown-join"] == "possible"


def spinning(*stacks: Tuple[int, List[PythonFrame]]) -> Process:
    return process([thread(1, stacks[0][1], counters=counters(0.99), gil="holds", samples=samples(*stacks))])


def test_a_busy_loop_names_the_function_it_never_leaves() -> None:
    """What is on every sample is named; with nobody waiting it is possible, behind a lock that it holds likely."""
    base = [frame("main", 1)]
    known = spinning((30, [frame("next_day", 9), frame("search", 21), *base]), (20, [frame("search", 22), *base]))
    assert found(evidence(known)) == {"python-busy-loop": "possible"}
    assert set(lines(evidence(known))) == {21, 22}
    waiter = thread(2, [frame("runner")], wait=locked("lock-1"), counters=counters())
    holder = changed(known.threads[0], holds=(held("lock-1", 2),))
    both = changed(known, threads=(holder, waiter), resources=(lock("lock-1", 1, (2,)),))
    assert found(evidence(both)) == {"python-busy-loop": "likely"}


def test_a_batch_that_moves_on_is_no_busy_loop() -> None:
    """Nothing of the program but its outermost frames stays: that is progress as far as one can see."""
    known = spinning(
        (20, [frame("load"), frame("main")]), (20, [frame("clean"), frame("main")]), (10, [frame("fit"), frame("main")])
    )
    assert set(found(evidence(known)).values()) <= {"possible"}


# ---------------------------------------------------------------------- all of them


def test_every_pattern_is_documented() -> None:
    """A title, an explanation, a remedy, and a page that says what it looks like and what it is mistaken for."""
    for rule in all_patterns():
        pattern = rule.pattern
        assert pattern.title and pattern.explanation and pattern.remedy
        assert (
            "**What it looks like.**" in rule.doc
            and "**Easily mistaken for**" in rule.doc
            and "**Remedy.**" in rule.doc
        )
        assert set(pattern.outranks) <= {r.id for r in all_patterns()} - {pattern.id}


def test_nothing_known_gives_no_finding() -> None:
    """Evidence without stacks, counters or waits yields silence, whatever else is in it."""
    for known in (
        evidence(),
        evidence(process([])),
        evidence(process([thread(1)]), window=None),
        evidence(process([thread(1)], gil=None)),
    ):
        assert found(known) == {}


def test_evidence_survives_json() -> None:
    """What is written is what is read back, and gives the same diagnosis."""
    known = evidence(two_locks(), polling(5, 9000, 9000, 1.0))
    assert decode(encode(known)) == known and classify(decode(encode(known))) == classify(known)


def test_the_signature_outlives_ids_lines_and_folders() -> None:
    """Other thread ids, shifted lines, another checkout: the same; another function to change: another one."""
    first = evidence(two_locks())
    text = encode(first).decode().replace(APP, "/elsewhere/service.py").replace('"line": 11', '"line": 111')
    assert classify(decode(text.encode())).signature == classify(first).signature
    assert (
        classify(decode(text.replace('"function": "one"', '"function": "uno"').encode())).signature
        != classify(first).signature
    )
