"""Patterns of locks: cycles, locks taken twice, and what only looks like them."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem.evidence import (
    Evidence,
    HeldLock,
    NativeFrame,
    Process,
    PythonFrame,
    Resource,
    SignalHandler,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import Deed, OwnerBasis, ResourceKind

from .....support.diagnosed import classify
from .....support.make import (
    counters,
    evidence,
    found,
    frame,
    held,
    lines,
    lock,
    locked,
    process,
    stack,
    thread,
    two_locks,
    verdict,
)


def test_a_cycle_of_recorded_owners_is_proven() -> None:
    """Both wanted and both held lines are named, the one that only queues is a victim, not a culprit."""
    report = classify(evidence(two_locks())).findings[0]
    assert (report.pattern, report.confidence) == ("lock-order-deadlock", "proven")
    assert {c.line for c in report.culprits} == {10, 11, 20, 21}
    assert [v.tid for v in report.victims] == [4]


@pytest.mark.parametrize(
    ("basis", "deeds", "confidence"),
    [
        ("inferred", ("unlocks",), "possible"),
        ("inferred", ("releases",), "likely"),
        ("inferred", None, "likely"),
        ("with-slot", ("unlocks",), "proven"),
    ],
)
def test_a_cycle_that_a_third_thread_may_open(
    basis: OwnerBasis, deeds: Optional[Tuple[Deed, ...]], confidence: str
) -> None:
    """Any thread may release a plain lock: one that sleeps, and whose code releases one, when a lease is over, say. One that a
    `with` block has is that block's."""
    one = two_locks(basis)
    lease = thread(9, [frame("lapse", 41)], wait=Wait("sleep", timeout_s=26.0, endless=False), deeds=deeds)
    known = evidence(changed(one, threads=(*one.threads, lease)))
    assert found(known)["lock-order-deadlock"] == confidence


@pytest.mark.parametrize(
    ("basis", "endless", "confidence"), [("inferred", True, "likely"), ("with-slot", False, "possible")]
)
def test_a_cycle_with_a_doubt_is_not_proven(basis: OwnerBasis, endless: bool, confidence: str) -> None:
    """An owner that was guessed leaves another reading; one with a time limit opens by itself."""
    assert found(evidence(two_locks(basis, endless)))["lock-order-deadlock"] == confidence


def long_cycle(count: int, odd: int) -> Evidence:
    """Threads that each hold a lock and want the next one's; thread ``odd`` waits at a line of its own."""
    agents = [
        thread(
            n,
            [frame("take", 99 if n == odd else 11)],
            wait=locked(f"lock-{n % count + 1}"),
            holds=(held(f"lock-{n}", line=10),),
        )
        for n in range(1, count + 1)
    ]
    locks = tuple(lock(f"lock-{n}", n, ((n - 2) % count + 1,)) for n in range(1, count + 1))
    return evidence(process(agents, resources=locks))


def test_a_long_cycle_is_told_in_part() -> None:
    """The first waits are told, the number of the others, and every line at which one of them waits."""
    short, long = (classify(long_cycle(count, count - 1)).findings[0] for count in (64, 200))
    assert (short.confidence, long.confidence) == ("proven", "proven")
    assert (len(short.evidence), {c.line for c in short.culprits}) == (64, {10, 11, 99})
    assert (len(long.evidence), {c.line for c in long.culprits}) == (66, {10, 11, 99})
    assert long.evidence[-1] == "135 more waits of the cycle, at the same lines, are not told here"


def test_a_chain_is_no_cycle() -> None:
    """One thread holds, the others queue: no lock cycle, and that is said."""
    queue = [thread(n, [frame("queue")], wait=locked("lock-1")) for n in (3, 4)]
    holder = thread(2, [frame("work")], holds=(held("lock-1"),))
    diagnosis = classify(evidence(process([thread(1), holder, *queue], resources=(lock("lock-1", 2, (3, 4)),))))
    assert "lock-order-deadlock" not in {f.pattern for f in diagnosis.findings}
    assert any(r.pattern == "lock-order-deadlock" and "no cycle of locks" in r.because for r in diagnosis.ruled_out)


@pytest.mark.parametrize(
    ("begun", "basis", "moves", "expected"),
    [
        ("libarrow.so", "recorded", 0, "likely"),
        ("libother.so", "recorded", 0, None),
        ("libarrow.so", "inferred", 0, None),
        ("libarrow.so", "recorded", 9, None),
    ],
)
def test_a_library_whose_own_thread_wants_a_lock_of_its_caller(
    begun: str, basis: OwnerBasis, moves: int, expected: Optional[str]
) -> None:
    """The caller waits inside it, for what was not read: its thread is to do that, and waits for the caller's lock."""
    into = [NativeFrame("pthread_cond_wait", "/lib/libc.so.6", 1), NativeFrame("Future::Wait", "/venv/libarrow.so", 2)]
    back = [NativeFrame("LockContext", "/venv/_duck.so", 3), NativeFrame("Pool::Run", f"/venv/{begun}", 4)]
    waits, wants = Wait("condition", "futex", "c", endless=True), Wait("mutex", "futex", "m", endless=True)
    caller = thread(1, (*into, frame("copy", 39)), wait=waits, counters=counters())
    helper = thread(2, back, wait=wants, counters=counters(switches=moves))
    context = Resource("m", "mutex", "a mutex wanted in LockContext", 1, basis, (2,))
    known = evidence(
        process([caller, helper], resources=(context, Resource("c", "condition", "a condition", native=True)))
    )
    assert found(known).get("lock-order-deadlock") == expected


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


def own_lock(kind: ResourceKind = "lock", *above: PythonFrame) -> Process:
    frames = [frame("get", 50), *above, frame("notify", 40), frame("set", 30)]
    editor = thread(2, frames, wait=locked("lock-1"), holds=(held("lock-1", depth=len(frames) - 1, line=30),))
    return process([thread(1, [frame("main")]), editor], resources=(lock("lock-1", 2, (2,), kind=kind),))


def test_a_lock_taken_twice_is_proven() -> None:
    """The same plain lock held further down the same stack."""
    assert found(evidence(own_lock())) == {"self-deadlock": "proven"}
    assert set(lines(evidence(own_lock()))) >= {50, 30}


def test_a_lock_of_a_library_that_calls_the_program_back() -> None:
    """The line at which the program was called back while the library has the lock is named, before the library's own."""
    log = "/venv/lib/python3.11/site-packages/loguru/_handler.py"
    frames = [
        frame("emit", 160, log),
        frame("emit", 29),
        frame("debug", 7, log),
        frame("post", 42),
        frame("emit", 177, log),
        frame("main", 3),
    ]
    holds = (HeldLock("lock-1", frame("emit", 171, log), 4, "with-slot"),)
    one = thread(1, frames, wait=locked("lock-1"), holds=holds)
    known = evidence(process([one], resources=(lock("lock-1", 1, (1,)),)))
    assert verdict(known) == "self-deadlock"
    assert lines(known)[:3] == [29, 42, 171]


def test_a_finalizer_between_makes_it_a_finalizer_deadlock() -> None:
    """Nobody called __del__ by name: another cause, another remedy."""
    assert found(evidence(own_lock("lock", frame("__del__", 45)))) == {"finalizer-deadlock": "proven"}


def test_an_rlock_may_be_taken_twice() -> None:
    """Re-entrant locks wait for somebody else, whatever the stack says."""
    assert "self-deadlock" not in found(evidence(own_lock("rlock")))


@pytest.mark.parametrize(("others", "confidence"), [((), "proven"), (("on_timer",), "likely"), ((None,), "likely")])
def test_the_handler_that_waits_would_not_help_itself(others: Any, confidence: str) -> None:
    """Handlers run in the main thread whatever it waits for; another one than this might let the lock go."""
    handler = changed(frame("on_usr1", 45), role="signal-handler")
    known = own_lock("lock", handler)
    names = [(10, changed(handler, line=40)), *((12, frame(n, 60) if n else None) for n in others)]
    handlers = tuple(SignalHandler(number, function) for number, function in names)
    (waiting,) = [t for t in known.threads if t.wait is not None]
    threads = tuple(changed(t, is_main=t is waiting) for t in known.threads)
    told = evidence(changed(known, threads=threads, signal_handlers=handlers))
    assert found(told)["signal-handler-deadlock"] == confidence


@pytest.mark.parametrize(("interrupted", "expected"), [("wait", True), ("work", False)])
def test_an_event_between_processes_that_a_handler_sets(interrupted: str, expected: bool) -> None:
    """It waits for its waiters to wake, and the interrupted code is one of them; any other code may be elsewhere."""
    file = "/usr/lib/python3.12/multiprocessing/synchronize.py"
    handler = changed(frame("on_term", 25), role="signal-handler")
    below = frame("wait", 261, file) if interrupted == "wait" else frame("work", 52)
    frames = (frame("notify", 290, file), frame("set", 338, file), handler, below, frame("coordinate", 52))
    woken = Resource("s", "shared-semaphore", "Event closing (its count of the woken)", key="k", waiters=(1,), value=0)
    waiting = thread(1, frames, wait=Wait("semaphore", "futex", "s", endless=True))
    assert ("signal-handler-deadlock" in found(evidence(process([waiting], resources=(woken,))))) is expected


def test_weakref_callbacks_and_signal_handlers_are_told_apart() -> None:
    """By the name of what runs when an object goes away, by the role that the reader saw, or by CPython's own functions
    between the frames."""
    callback = frame("__call__", 45, "/usr/lib/python3.12/weakref.py")
    assert found(evidence(own_lock("lock", callback))) == {"finalizer-deadlock": "proven"}
    handler = changed(frame("on_hangup", 45), role="signal-handler")
    assert found(evidence(own_lock("lock", handler))) == {"signal-handler-deadlock": "proven"}
    known = own_lock()
    between = NativeFrame("_PyErr_CheckSignalsTstate", "/usr/lib/libpython3.12.so.1.0", 4096)
    editor = changed(known.threads[1], stack=(*known.threads[1].stack[:1], between, *known.threads[1].stack[1:]))
    assert found(evidence(changed(known, threads=(known.threads[0], editor)))) == {"signal-handler-deadlock": "proven"}


# ---------------------------------------------------------------------- finalizers that want another thread's lock


def collected(*native_frames: str, basis: OwnerBasis = "inferred", gc: bool = True, holds: Any = ()) -> Evidence:
    """A worker collects garbage, and a destructor wants a lock of who waits for the worker's result."""
    below = tuple(NativeFrame(f, "/usr/lib/libpython3.12.so", 1) for f in native_frames)
    worker = thread(2, (*below, frame("fetch", 20)), wait=locked("l-1"), gc=gc, holds=holds)
    waiting = Wait("condition", "futex", "f-1", endless=True)
    frames = (*stack("threading.wait"), frame("read", 11), frame("open_all", 12))
    main = thread(1, frames, wait=waiting, holds=(held("l-1", 2),))
    future = Resource(
        "f-1", "future", "Future", wakers=(Waker("runner", "memory", tid=2),), closed=True, state="running"
    )
    taken = Resource("l-1", "lock", "a lock wanted in acquire of _io.so", 1, basis, (2,), True)
    return evidence(process([main, worker], resources=(future, taken), signal_handlers=()))


def test_a_destructor_that_the_collector_runs_wants_a_lock_of_who_waits_for_it() -> None:
    """Likely where the holder is inferred; the waiting line and the one that collects are named."""
    known = collected("dealloc", "_Py_Dealloc", "gc_collect_main", "_PyObject_GC_Alloc")
    assert (verdict(known), found(known)["finalizer-deadlock"]) == ("finalizer-deadlock", "likely")
    assert lines(known)[:2] == [11, 20]
    assert found(collected("_Py_Dealloc", basis="recorded", gc=False))["finalizer-deadlock"] == "proven"
    assert found(collected())["finalizer-deadlock"] == "likely"  # no symbols, but the interpreter says who collects


@pytest.mark.parametrize(("others", "expected"), [((), True), ((3,), False)])
def test_a_destructor_whose_lock_is_held_by_who_waits_for_its_signal(others: Tuple[int, ...], expected: bool) -> None:
    """Only the thread that collects would set the event that the holder waits for; not if a third one would, too."""
    known = collected("dealloc", "_Py_Dealloc", "gc_collect_main").processes[0]
    wakers = tuple(Waker("reach", "memory", tid=tid) for tid in (2, *others))
    event = Resource("f-1", "event", "Event done (not set)", waiters=(1,), wakers=wakers, closed=True)
    third = thread(3, [frame("serve")], wait=Wait("socket", "accept", endless=True)) if others else None
    threads = (*known.threads, third) if third is not None else known.threads
    led = verdict(evidence(changed(known, threads=threads, resources=(event, known.resources[1]))))
    assert (led == "finalizer-deadlock") is expected


def test_a_lock_of_another_thread_outside_of_finalizers() -> None:
    """Two threads that wait for each other, and neither of them destroys anything; or a holder who can go on."""
    assert "finalizer-deadlock" not in found(collected(gc=False))
    known = collected("_Py_Dealloc").processes[0]
    free = changed(known, threads=(changed(known.threads[0], wait=None), known.threads[1]))
    assert "finalizer-deadlock" not in found(evidence(free))
