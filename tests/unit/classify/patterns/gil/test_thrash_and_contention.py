"""Patterns of the interpreter lock: thrash, contention, and busy programs that are neither."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem.evidence import (
    Evidence,
    Gil,
    Interpreter,
    NativeFrame,
    Process,
    PythonInfo,
    Resource,
    Stretch,
    Wait,
    Waker,
)
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import (
    APP,
    counters,
    evidence,
    found,
    frame,
    lines,
    polling,
    process,
    samples,
    stack,
    thread,
    verdict,
)


def test_thrash_is_rooted_in_the_polling_line() -> None:
    """Thousands of hand-overs, pollers: gil-thrash leads, its culprit is the line that awaits the turn, because of
    the spinning loops; the main thread is its victim."""
    report = classify(evidence(polling(20, 9000, 12000, 1.0))).findings[0]
    assert (report.pattern, report.confidence, report.because_of) == ("gil-thrash", "likely", ("busy-event-loop",))
    assert [(c.function, c.line) for c in report.culprits] == [("poll", 40)]
    assert report.victims[0].tid == 1 and "9,000" in report.summary


def test_thrash_at_a_line_that_is_not_known() -> None:
    """The remedy names the file alone."""
    known = polling(20, 9000, 12000, 1.0)
    tasks = tuple(changed(t, stack=tuple(changed(f, line=None) for f in t.stack)) for t in known.tasks)
    remedy = classify(evidence(changed(known, tasks=tasks))).findings[0].remedy
    assert f"At {APP}, wait" in remedy and "None" not in remedy


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
    return process(
        [thread(1, stack("threading.join", "main"), counters=counters()), *threads],
        gil=Gil(True, 2, 0.005, int(handoffs), handoffs),
    )


def test_contention_keeps_the_pace_of_the_timer() -> None:
    """Computing threads share one core at up to 200 forced switches a second: contention, not thrash."""
    assert found(evidence(computing(3, 150))) == {"gil-contention": "likely"}
    assert lines(evidence(computing(3, 150)))[0] == 7


def test_native_work_outside_the_gil_is_no_contention() -> None:
    """Threads that use several cores do not share one."""
    wide = computing(3, 20)
    wide = changed(wide, threads=tuple(changed(t, counters=counters(0.9, 5)) if t.tid > 1 else t for t in wide.threads))
    assert "gil-contention" not in found(evidence(wide))


@pytest.mark.parametrize(("asleep", "expected"), [(7, "likely"), (1, None)])
def test_on_a_crowded_machine_contention_is_told_from_want_of_a_cpu(asleep: int, expected: Optional[str]) -> None:
    """Both get a third of a core each and wait most of the time: for the GIL asleep, for a CPU runnable. The latter is not
    called healthy either: it could not be decided."""
    crowded = computing(3, 150)
    starved = changed(counters(0.3, 190, delay=0.4), states={"R": 15 - asleep, "S": asleep}, syscalls={"futex": asleep})
    threads = tuple(changed(t, counters=starved) if t.tid > 1 else t for t in crowded.threads)
    report = classify(evidence(changed(crowded, threads=threads)))
    assert {f.pattern: f.confidence for f in report.findings}.get("gil-contention") == expected
    assert ("gil-contention" in {a.pattern for a in report.abstained}) == (expected is None)


@pytest.mark.parametrize("handoffs", [150.0, 9000.0])
def test_a_free_threaded_program_has_no_gil_to_fight_for(handoffs: float) -> None:
    """Busy threads that get one core together, in a build without the GIL: it is ruled out, not called unknown."""
    busy = changed(
        computing(4, handoffs), python=PythonInfo("3.13.5", free_threaded=True), interpreters=(Interpreter(0),)
    )
    report = classify(evidence(busy))
    assert not {"gil-contention", "gil-thrash"} & {f.pattern for f in report.findings}
    assert {"gil-contention", "gil-thrash"} <= {r.pattern for r in report.ruled_out}


def herd(count: int = 4, notify: str = "notify_all", switches: int = 30_000) -> Evidence:
    """Threads that wait on one Condition for their turns, and wake all others when they have had it."""
    waits = (*stack("threading.wait"), frame("pass_on", 16), frame("run", 30))
    wakes = (*stack("threading.notify", f"threading.{notify}"), frame("pass_on", 19), frame("run", 30))
    threads = [
        thread(
            n + 2,
            waits,
            counters=counters(0.9 / count, switches),
            samples=samples((40, waits), (2, wakes)),
            wait=Wait("condition", "futex", "c", endless=True),
        )
        for n in range(count)
    ]
    turns = Resource("c", "condition", "Condition Turns.changed", waiters=tuple(t.tid for t in threads))
    main = thread(1, [frame("main", 45)], wait=Wait("lock", "futex", endless=True), joins=2, counters=counters())
    return evidence(process([main, *threads], gil=Gil(False, None, 0.005, 100_000, 100_000.0), resources=(turns,)))


def test_one_condition_for_all_is_thrash() -> None:
    """Every notify_all wakes all of them: named are where they are woken and where they wait, not the condition's lock."""
    report = classify(herd()).findings[0]
    assert (report.pattern, report.confidence) == ("gil-thrash", "likely") and lines(herd()) == [19, 16]
    assert "notify_all" in (report.remedy or "") and "missed-wakeup" not in found(herd())


def test_two_that_take_turns_wake_nobody_in_vain() -> None:
    """Nor is a crowd known to be woken whole of which nobody was seen to do it, or that wakes at the timer's pace."""
    assert all(found(one).get("gil-thrash") != "likely" for one in (herd(2), herd(4, "notify"), herd(4, switches=150)))


def crowded(cpu: float, delay: float, asleep: int, **known: object) -> Process:
    """Two computing threads on a loaded machine."""
    made = computing(2, 90)
    looks = changed(counters(cpu, 90, delay=delay), states={"R": 15 - asleep, "S": asleep}, syscalls={"futex": asleep})
    return changed(made, threads=tuple(changed(t, counters=looks) if t.tid > 1 else t for t in made.threads), **known)


def test_where_there_is_little_cpu_contention_is_little_cpu_each() -> None:
    """8 % of a core, because there is no more to be had: housekeeping on an idle machine, computing here."""
    assert found(evidence(crowded(0.08, 0.6, 7)))["gil-contention"] == "possible"


def test_three_that_get_hardly_any_cpu_wait_for_a_core_rather_than_for_each_other() -> None:
    """On a machine that other processes keep busy: possible, where three with a core among them are likely."""
    made = computing(3, 40)
    looks = changed(counters(0.04, 90, delay=0.6), states={"R": 8, "S": 7}, syscalls={"futex": 7})
    poor = changed(made, threads=tuple(changed(t, counters=looks) if t.tid > 1 else t for t in made.threads))
    assert found(evidence(poor))["gil-contention"] == "possible"


def test_who_queues_for_the_gil_with_nothing_to_compute_tells_contention() -> None:
    """Runnable threads may want a CPU only; one that is found waiting for the GIL that one of them holds decides it, and is
    the victim."""
    made = crowded(0.2, 0.7, 1)
    serves = changed(
        thread(1, [frame("answer", 31)], gil="waits", counters=counters(0.007, 1100, delay=0.5)), is_main=True
    )
    report = classify(evidence(changed(made, threads=(serves, *made.threads[1:]))))
    assert report.verdict == "gil-contention" and [v.tid for v in report.findings[0].victims] == [1]
    assert "gil-contention" not in found(evidence(crowded(0.2, 0.7, 1)))


def test_who_never_sleeps_waits_for_no_gil() -> None:
    """Two threads compress outside of the GIL on a crowded machine, and a third is found waiting for it at one moment."""
    made = crowded(0.38, 0.61, 1)
    reads = changed(
        thread(1, [frame("read", 12)], gil="waits", counters=counters(0.02, 1300, delay=0.07)), is_main=True
    )
    report = classify(evidence(changed(made, threads=(reads, *made.threads[1:]))))
    assert "gil-contention" in {a.pattern for a in report.abstained}


def test_threads_behind_a_lock_do_not_fight_for_the_gil() -> None:
    """Each computes in turn, while it has the lock of the program."""
    made = computing(4, 150)
    behind = tuple(
        changed(t, wait=Wait("rlock", "futex", "rlock-1", endless=True)) if t.tid > 2 else t for t in made.threads
    )
    assert "gil-contention" not in found(evidence(changed(made, threads=behind)))


def test_where_the_results_of_a_pool_are_collected_is_named_too() -> None:
    """There the threads are chosen; and callers are those of the samples, not of the moment."""
    made = computing(2, 150)
    main = thread(
        1,
        (*stack("threading.wait", "concurrent.futures._base.result"), frame("build", 29)),
        wait=Wait("condition", "futex", "future-1", endless=True),
        counters=counters(),
    )
    runner = Waker("runner", "memory", tid=2)
    result = Resource("future-1", "future", "Future of crunch", waiters=(1,), wakers=(runner,), closed=True)
    elsewhere = tuple(changed(t, stack=(frame("offer", 11),)) for t in made.threads[1:])
    known = evidence(changed(made, threads=(main, *elsewhere), resources=(result,)))
    assert lines(known) == [7, 3, 29]


@pytest.mark.parametrize(
    ("rate", "lines_of", "confidence"), [(30_000.0, 1, "likely"), (9_000.0, 1, "possible"), (30_000.0, 4, "possible")]
)
def test_one_line_that_releases_the_gil_for_little_work(rate: float, lines_of: int, confidence: str) -> None:
    """Rows that are fetched one by one, say: several threads at one line, far beyond what a busy server hands over."""
    stacks = [[frame("export", 50 + n % lines_of), frame("run", 3)] for n in range(4)]
    threads = [
        thread(n + 2, one, gil="waits" if n else "holds", counters=counters(0.3, 8_000), samples=samples((50, one)))
        for n, one in enumerate(stacks)
    ]
    known = evidence(process([thread(1, [frame("main", 9)]), *threads], gil=Gil(True, 2, 0.005, int(rate), rate)))
    assert found(known)["gil-thrash"] == confidence


@pytest.mark.parametrize(("handoffs", "expected"), [(0, "likely"), (40, None)])
def test_a_function_compiled_at_run_time_keeps_the_gil(handoffs: int, expected: Optional[str]) -> None:
    """Its code lies in no file. Python code would hand the GIL over when another thread asks for it."""
    compiled = NativeFrame(None, None, 0x7F0010)
    line = frame("calibrate", 27)
    kernel = thread(
        1, (compiled, line), gil="holds", counters=counters(0.98), samples=samples((90, (line,))), is_main=True
    )
    beat = thread(
        2, (frame("beat", 9),), gil="waits", wait=Wait("gil", "futex", "gil-0"), counters=counters(switches=190)
    )
    gil = Gil(True, 1, 0.005, handoffs=handoffs, handoffs_per_s=float(handoffs))
    known = evidence(process([kernel, beat], gil=gil))
    assert found(known).get("gil-held-by-native") == expected
    assert expected is None or lines(known)[0] == 27


@pytest.mark.parametrize(("asleep", "expected"), [(12, "likely"), (1, None)])
def test_threads_that_want_one_core_together_and_do_not_wait_for_the_gil(asleep: int, expected: Optional[str]) -> None:
    """Native code works for each by turns, without the GIL: what they wait for is the end of a sleep."""
    both = computing(3, 150)
    paced = changed(
        counters(0.25, 190, delay=0.2), states={"R": 15, "S": 15}, syscalls={"futex": asleep, "nanosleep": 30 - asleep}
    )
    threads = tuple(changed(t, counters=paced) if t.tid > 1 else t for t in both.threads)
    assert found(evidence(changed(both, threads=threads))).get("gil-contention") == expected


@pytest.mark.parametrize(("share", "others", "expected"), [(0.8, 2, "likely"), (0.8, 1, "possible"), (0.1, 2, None)])
def test_threads_that_let_go_of_the_gil_at_each_call_queue_behind_one_that_computes(
    share: float, others: int, expected: Optional[str]
) -> None:
    """They use hardly any CPU; that they wait for the GIL most of the time shows it, not that they do at one moment."""
    work = [frame("simulate", 7), frame("run", 3)]
    hot = thread(2, work, counters=counters(0.95, 600), gil="holds", samples=samples((50, work)))
    line = (Stretch(0.0, share, "waits"), Stretch(share, 1.0, "blocked"))
    behind = [
        thread(3 + n, [frame("fetch", 20)], counters=counters(0.03, 500), gil="waits", timeline=line)
        for n in range(others)
    ]
    main = thread(1, stack("threading.join", "main"), counters=counters())
    known = evidence(process([main, hot, *behind], gil=Gil(True, 2, 0.005, 480, 480.0)))
    assert found(known).get("gil-contention") == expected
    assert expected is None or lines(known)[0] == 7


@pytest.mark.parametrize(("kept", "waited", "expected"), [(0.5, 0.4, "likely"), (0.05, 0.4, None), (0.5, 0.1, None)])
def test_long_native_calls_that_keep_the_gil_one_after_the_other(
    kept: float, waited: float, expected: Optional[str]
) -> None:
    """Each thread is elsewhere between two of its calls, and has half a core: the stretches without a hand-over show it."""
    stretches = tuple(Stretch(round(n * kept, 3), round((n + 1) * kept, 3), "holds") for n in range(int(0.5 / kept)))
    native = (NativeFrame("writePixels", "/site/OpenEXR.so", 0x10), frame("store", 52))
    beats = (Stretch(0.0, waited, "waits"), Stretch(waited, 1.0, "blocked"))
    last = thread(1, native, counters=counters(0.5, 20), gil="holds", timeline=stretches)
    other = thread(2, [frame("remove", 43)], counters=counters(0.5, 20), gil="waits", timeline=stretches)
    idle = [
        thread(3 + n, [frame("beat", 60)], counters=counters(0.0, 90), gil="waits", timeline=beats) for n in range(2)
    ]
    known = evidence(process([last, other, *idle], gil=Gil(True, 1, 0.005, 39, 39.0)))
    assert found(known).get("gil-held-by-native") == expected
    assert not expected or "gil-contention" not in found(known)
    often = evidence(process([last, other, *idle], gil=Gil(True, 1, 0.005, 480, 480.0)))
    assert "gil-held-by-native" not in found(often)
