"""Patterns of native code and the GIL: kept by an extension, or one of two locks that are taken in two orders."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from postmortem.classify.facts import native
from postmortem.evidence import Frame, Gil, NativeFrame, Process, Resource, Thread, Wait
from postmortem.evidence import replace as changed
from postmortem.evidence.vocabulary import OwnerBasis

from ....support.diagnosed import classify
from ....support.make import counters, evidence, frame, lock, locked, process, samples, stack, thread, verdict

LIBC, UNITS, PYTHON = "/lib/x86_64-linux-gnu/libc.so.6", "/app/_units.so", "/usr/bin/python3.12"
LOOP = NativeFrame("_PyEval_EvalFrameDefault", PYTHON, 1)
FFI = NativeFrame("ffi_call", "/lib/x86_64-linux-gnu/libffi.so.8", 2)


def inside(function: str, line: Optional[int] = None) -> NativeFrame:
    return NativeFrame(function, UNITS, 3, "/src/_units.cpp" if line else None, line)


TAKES_GIL: Tuple[Frame, ...] = (NativeFrame("take_gil", PYTHON, 4), LOOP)
WANTS = Wait("gil", "futex", "gil-0", endless=True)


def gil(holder: Optional[int], *waiters: int) -> Resource:
    return Resource("gil-0", "gil", "the GIL", holder, "recorded" if holder else None, waiters, True)


def mutex(owner: Optional[int], *waiters: int, basis: OwnerBasis = "recorded") -> Resource:
    return Resource("native-mutex-1", "mutex", "mutex `rows` of _units.so", owner, basis, waiters, True)


def inversion(basis: OwnerBasis = "recorded") -> Process:
    """2 has the mutex and wants the GIL, 3 has the GIL and wants the mutex, 1 just wants the GIL."""
    loader = (*TAKES_GIL, frame("read", 5), LOOP, inside("tables", 13), inside("convert", 30), LOOP, frame("job", 7))
    wanting = (
        NativeFrame("__lll_lock_wait", LIBC, 1),
        inside("tables", 20),
        inside("convert", 30),
        LOOP,
        frame("job", 7),
    )
    return process(
        [
            thread(1, (*TAKES_GIL, *stack("main")), gil="waits", wait=WANTS),
            thread(2, loader, gil="waits", wait=WANTS),
            thread(3, wanting, gil="holds", wait=Wait("mutex", "futex", "native-mutex-1", endless=True)),
        ],
        gil=Gil(True, 3, 0.005, 0, 0.0),
        resources=(gil(3, 1, 2), mutex(2, 3, basis=basis)),
    )


def test_a_mutex_and_the_gil_in_two_orders() -> None:
    """Both owners are recorded: a proof. The line that called into the library with the GIL held comes first, then the
    place in the library, then the other side's, a line that was named at last; it comes before that the GIL is kept by native
    code."""
    findings = classify(evidence(inversion())).findings
    first = findings[0]
    assert (first.pattern, first.confidence) == ("native-lock-gil-inversion", "proven")
    assert [(c.tid, c.file.rsplit("/", 1)[-1], c.line) for c in first.culprits] == [
        (3, "service.py", 7),
        (3, "_units.cpp", 20),
        (2, "_units.cpp", 13),
        (2, "service.py", 7),
    ]
    assert [v.tid for v in first.victims] == [1]
    assert "gil-held-by-native" in [f.pattern for f in findings[1:]]


def test_an_inferred_holder_proves_nothing() -> None:
    """The guard of a static does not say who initialises it."""
    assert verdict(evidence(inversion("inferred"))) == "native-lock-gil-inversion"
    assert classify(evidence(inversion("inferred"))).findings[0].confidence == "likely"


def test_a_join_in_c_with_the_gil_held() -> None:
    """The joined thread wants the GIL to end: the same circle, over a thread's end."""
    main, loader, waiting = inversion().threads
    joining = changed(waiting, joins=2, wait=Wait("lock", "futex", endless=True))
    one = changed(inversion(), threads=(main, loader, joining), resources=(gil(3, 1, 2),))
    found = classify(evidence(one)).findings[0]
    assert (found.pattern, found.confidence) == ("native-lock-gil-inversion", "proven")
    assert "waits for the end of T-2" in found.summary


def test_a_circle_with_a_lock_of_python_goes_by_its_own_name() -> None:
    """A mutex and a Lock: no GIL is in it."""
    threads = [
        thread(1, stack("main"), wait=locked("book")),
        thread(2, stack("job"), wait=Wait("mutex", "futex", "native-mutex-1", endless=True)),
    ]
    found = classify(evidence(process(threads, resources=(lock("book", 2, (1,)), mutex(1, 2))))).findings[0]
    assert (found.pattern, found.confidence) == ("lock-order-deadlock", "proven")


def test_two_mutexes_of_native_code_make_a_circle_too() -> None:
    """Neither Python nor the GIL has a part in it."""
    other = changed(mutex(1, 2), id="native-mutex-2", description="mutex `cols` of _units.so")
    threads = [
        thread(1, stack("main"), wait=Wait("mutex", "futex", "native-mutex-1", endless=True)),
        thread(2, stack("job"), wait=Wait("mutex", "futex", "native-mutex-2", endless=True)),
    ]
    assert verdict(evidence(process(threads, resources=(mutex(2, 1), other)))) == "lock-order-deadlock"


def keeping(
    *native_frames: NativeFrame,
    handoffs: Optional[int] = 0,
    cpu: float = 1.0,
    waiting: int = 2,
    wait: Optional[Wait] = None,
    sampled: int = 7,
) -> Process:
    """Thread 2 holds the GIL, at line 7 of job; the others want it."""
    holder = thread(
        2,
        (*native_frames, LOOP, frame("job", 7)),
        gil="holds",
        wait=wait,
        counters=counters(cpu),
        samples=samples((30, (frame("job", sampled),))),
    )
    others = [
        thread(n, (*TAKES_GIL, *stack("beat")), gil="waits", wait=WANTS, counters=counters(0.0, 200))
        for n in range(3, 3 + waiting)
    ]
    rate = None if handoffs is None else float(handoffs)
    return process(
        [thread(1, stack("threading.join"), counters=counters()), holder, *others],
        gil=Gil(True, 2, 0.005, handoffs, rate),
        resources=(gil(2, *range(3, 3 + waiting)),) if waiting else (),
    )


def strength(one: Process) -> Optional[str]:
    """Return the confidence of gil-held-by-native; None without that finding."""
    return next((f.confidence for f in classify(evidence(one)).findings if f.pattern == "gil-held-by-native"), None)


def test_an_extension_that_computes_with_the_gil() -> None:
    """No hand-over in the window, one line of Python in all samples, others wake every 5 ms: likely, and it leads."""
    report = classify(evidence(keeping(inside("median"), inside("smooth", 33)))).findings[0]
    assert (report.pattern, report.confidence) == ("gil-held-by-native", "likely")
    assert [(c.function, c.line) for c in report.culprits] == [("job", 7), ("smooth", 33)]
    assert [v.tid for v in report.victims] == [3, 4]


@pytest.mark.parametrize(("share", "expected"), [(30, "likely"), (3, None)])
def test_threads_that_take_turns_in_one_native_call(share: int, expected: Optional[str]) -> None:
    """Each keeps the GIL for one call, and the next one has it: most samples of all of them are at that line."""
    turns = samples((share, (frame("job", 7),)), (30, (frame("pick", 3),)))
    holder = thread(2, (inside("derive"), LOOP, frame("job", 7)), gil="holds", counters=counters(0.5), samples=turns)
    asks = [
        thread(
            n,
            (*TAKES_GIL, frame("job", 7)),
            gil="waits",
            wait=WANTS,
            counters=counters(0.3, 200),
            samples=samples((60, (frame("job" if expected else "pick", 7),))),
        )
        for n in (3, 4)
    ]
    known = process([holder, *asks], gil=Gil(True, 2, 0.005, 3, 3.0), resources=(gil(2, 3, 4),))
    assert strength(known) == expected


def test_an_extension_that_waits_with_the_gil() -> None:
    """Asleep in a system call for ever: likely even from a lone core; with a time limit only possible there."""
    forever, soon = Wait("signal", "pause", endless=True), Wait("sleep", "nanosleep", timeout_s=1.0, endless=False)
    assert strength(keeping(inside("nap"), FFI, handoffs=None, cpu=0.0, wait=forever)) == "likely"
    assert strength(keeping(inside("nap"), FFI, handoffs=None, cpu=0.0, wait=soon)) == "possible"


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (keeping(inside("dot"), handoffs=40), None),  # others had it meanwhile
        (
            keeping(inside("dot"), handoffs=8),
            "likely",
        ),  # one call after the other: seldom, though they ask all the time
        (keeping(inside("dot"), handoffs=8, waiting=1), "possible"),  # who may have come just now
        (keeping(inside("dot"), handoffs=8, waiting=0), None),
        (keeping(inside("dot"), waiting=0), "possible"),  # nobody wants it: maybe just a long calculation
        (keeping(inside("dot"), handoffs=None), "possible"),  # a lone core: one moment
        (keeping(inside("dot"), handoffs=None, waiting=0), None),
        (keeping(inside("dot"), sampled=8), None),  # it came back to Python in between
        (keeping(inside("dot"), cpu=0.3), None),
        (keeping(NativeFrame("sre_ucs1_match", PYTHON, 9)), None),  # see regex-backtracking
        (keeping(NativeFrame("unsafe_latin_compare", PYTHON, 9), NativeFrame("list_sort", PYTHON, 9)), "likely"),
        (keeping(NativeFrame("list_sort", PYTHON, 9), handoffs=40), None),
        (
            keeping(NativeFrame("list_sort", PYTHON, 9), handoffs=None),
            None,
        ),  # one moment: any thread is in some builtin
        (keeping(NativeFrame("memcpy", LIBC, 9)), "likely"),
        (keeping(), None),
    ],
)
def test_what_is_less_sure_or_something_else(one: Process, expected: Optional[str]) -> None:
    """Hand-overs, samples, lone cores and whose code it is decide."""
    assert strength(one) == expected


CTYPES = NativeFrame("_ctypes_callproc", "/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so", 5)
NAP = NativeFrame("nanosleep", LIBC, 6)
LATE, SOON = (Wait("sleep", "clock_nanosleep", timeout_s=seconds, endless=False) for seconds in (590.0, 1.0))


def test_the_c_library_called_without_giving_up_the_gil() -> None:
    """ctypes.PyDLL: nothing but libc and what carries the call is on the stack, and the line of Python is to blame. It is
    no plain sleep."""
    one = keeping(NAP, NativeFrame("sleep", LIBC, 7), FFI, CTYPES, cpu=0.0, wait=LATE)
    for known in (evidence(one), evidence(changed(one, interpreters=keeping(handoffs=None).interpreters), window=None)):
        report = classify(known).findings[0]
        assert (report.pattern, report.confidence) == ("gil-held-by-native", "likely")
        assert [(c.function, c.line) for c in report.culprits] == [("job", 7)]
        assert "sleep of libc.so.6, called at service.py:7 in job" in report.summary


@pytest.mark.parametrize(
    ("frames", "wait", "expected"),
    [
        ((NAP,), LATE, "likely"),  # whatever made the call, the interpreter's sleep would have given the GIL up
        ((), LATE, "likely"),  # and without native stacks
        ((NAP, FFI, CTYPES), SOON, "possible"),
        ((NAP,), SOON, "possible"),
        ((NAP, LOOP), Wait("socket", "recvfrom", endless=True), "likely"),
        ((NAP, LOOP), Wait("pipe", "read", endless=True), "likely"),
        ((NAP, FFI, CTYPES), Wait("futex", "futex", endless=True), "likely"),
        ((NAP,), Wait("futex", "futex", endless=True), None),  # drop_gil waits until another thread has it
        ((NAP,), Wait("pipe", "write", endless=True), None),  # faulthandler writes
        ((NAP,), Wait("file", "read", endless=True), None),  # a source file, a slow disk
        ((NAP,), Wait("other", "read", endless=True), None),
        ((NAP,), Wait("other", "mmap"), None),
        ((NativeFrame("PyErr_CheckSignals", PYTHON, 8), FFI, CTYPES), None, None),  # ctypes.pythonapi
        ((FFI, CTYPES), None, None),  # ctypes itself
    ],
)
def test_a_holder_in_a_system_call_of_a_lone_core(
    frames: Tuple[NativeFrame, ...], wait: Optional[Wait], expected: Optional[str]
) -> None:
    """Which calls the interpreter makes with the GIL, and which only others do."""
    assert strength(keeping(*frames, handoffs=None, cpu=0.0, wait=wait)) == expected


@pytest.mark.parametrize(
    ("handoffs", "wait", "expected"),
    [(None, "munmap", "possible"), (None, "ioctl", "possible"), (0, "ioctl", "likely")],
)
def test_a_call_that_may_take_a_moment(handoffs: Optional[int], wait: str, expected: str) -> None:
    """A window tells whether it stays in a call of which nothing is known."""
    one = keeping(inside("scan"), handoffs=handoffs, cpu=0.0, wait=Wait("other", wait))
    if handoffs is None:  # a lone core has no counters, either
        one = changed(one, threads=tuple(changed(t, counters=None, samples=()) for t in one.threads))
    assert strength(one) == expected


def test_a_sleep_that_hinders_nobody_is_a_plain_one() -> None:
    """Nobody else wants the GIL."""
    one = keeping(NAP, FFI, CTYPES, cpu=0.0, wait=LATE, waiting=0)
    _main, holder = one.threads
    alone = changed(one, threads=(changed(holder, is_main=True),))
    assert [f.pattern for f in classify(evidence(alone)).findings] == ["sleeping", "gil-held-by-native"]


def test_native_code_below_python_is_not_what_runs() -> None:
    """A callback from an extension into Python: Python code runs, and gives the GIL up when asked."""
    back = Thread(2, stack=(LOOP, frame("callback"), LOOP, inside("apply"), LOOP, frame("job")))
    assert native.called(back) == ()
    assert native.entered_at(back, UNITS) == frame("job")
    assert native.entered_at(back, None) == frame("callback")


def bare_futex(*others: Thread) -> Process:
    """3 has the GIL and sleeps in the library; 2, inside of it, runs Python code that wants the GIL."""
    known = inversion()
    holder = changed(known.threads[2], wait=Wait("futex", "futex", endless=True))
    return changed(known, threads=(known.threads[0], known.threads[1], holder, *others), resources=(gil(3, 1, 2),))


def test_a_lock_that_records_no_owner_is_held_by_who_is_inside() -> None:
    """A once-cell, the guard of a C++ static: likely, with the lines of both."""
    first = classify(evidence(bare_futex())).findings[0]
    assert (first.pattern, first.confidence) == ("native-lock-gil-inversion", "likely")
    assert {culprit.tid for culprit in first.culprits} == {2, 3}


def test_of_two_that_are_inside_none_is_known_to_hold_it() -> None:
    """And with a time limit, the holder of the GIL goes on by itself."""
    known = bare_futex()
    second = changed(known.threads[1], tid=4)
    assert verdict(evidence(bare_futex(second))) != "native-lock-gil-inversion"
    limited = changed(known.threads[2], wait=Wait("futex", "futex", endless=False))
    assert verdict(evidence(changed(known, threads=(*known.threads[:2], limited)))) != "native-lock-gil-inversion"


def native_pool(*workers: str) -> Process:
    """The main thread waits for a result of a library, its workers in the named functions."""
    asleep = Wait("condition", "futex", endless=True)
    main = thread(1, (inside("wait_result"), inside("scan"), LOOP, frame("job", 7)), wait=asleep)
    pool = [
        thread(n + 2, (inside(name), *(() if name == "loop" else (inside("job"),)), inside("loop")), wait=asleep)
        for n, name in enumerate(workers)
    ]
    return process([main, *pool])


@pytest.mark.parametrize(
    ("workers", "said"), [(("wait_result",) * 2, "likely"), (("wait_result", "loop"), "possible"), (("loop",), None)]
)
def test_a_native_pool_whose_workers_all_wait_for_results(workers: Tuple[str, ...], said: Optional[str]) -> None:
    """In the function in which the caller waits; one in the loop is free, and may be of another pool."""
    found = {f.pattern: f for f in classify(evidence(native_pool(*workers))).findings}
    told = found.get("executor-self-deadlock")
    assert (told.confidence if told is not None else None) == said
    assert not said or [c.line for c in found["executor-self-deadlock"].culprits] == [7]
