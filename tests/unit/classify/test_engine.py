"""What holds for every pattern, and for the engine: documentation, silence, JSON, signatures."""

from __future__ import annotations

from postmortem.classify.engine import all_patterns
from postmortem.classify.pattern import TIERS
from postmortem.evidence import HeldLock, Pool, Resource, Wait, Waker, decode, encode, replace
from postmortem.evidence.vocabulary import PoolKind

from ...support.diagnosed import classify
from ...support.make import APP, evidence, found, frame, polling, process, thread, two_locks


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
        assert pattern.tier in TIERS


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
    known = evidence(two_locks(), replace(polling(5, 9000, 9000, 1.0), pid=2))
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


def test_lines_of_libraries_are_followed_by_the_programs_own() -> None:
    """A lock lost on a library's line: the line of the program that waits for it is a place to change, too."""
    lost = frame("connect", 417, file="/venv/lib/python3.12/site-packages/aiosmtplib/smtp.py")
    lock = Resource("l", "lock", "Lock client.lock", waiters=(1,), locked=True, owner_gone=True, taken_at=(lost,))
    waits = Wait("lock", "futex", "l", endless=True)
    known = evidence(process([thread(1, [lost, frame("deliver", 72)], wait=waits)], resources=(lock,)))
    leading = classify(known).findings[0]
    assert (leading.pattern, [c.line for c in leading.culprits]) == ("orphaned-lock", [417, 72])


def test_lines_of_libraries_are_followed_by_where_the_main_thread_waits() -> None:
    """A library's own thread waits for a lock that is lost: what the program waits for meanwhile is the call to look at."""
    taken = frame("connect", 417, file="/venv/lib/python3.12/site-packages/taskgraph/Task.py")
    lock = Resource("l", "lock", "Lock client.lock", waiters=(2,), locked=True, owner_gone=True, taken_at=(taken,))
    helper = thread(2, [taken], wait=Wait("lock", "futex", "l", endless=True))
    event = Resource("e", "event", "Event done", waiters=(1,))
    main = thread(1, [frame("build", 93)], wait=Wait("event", "futex", "e", endless=True), is_main=True)
    leading = classify(evidence(process([main, helper], resources=(lock, event)))).findings[0]
    assert (leading.pattern, [c.line for c in leading.culprits]) == ("orphaned-lock", [417, 93])


def test_what_is_ruled_out_again_and_again_is_said_a_few_times() -> None:
    """Forty pools that can go on take four lines of a report, not forty."""
    name: PoolKind = "ThreadPoolExecutor"
    pools = tuple(Pool(f"p{n}", name, f"{name} of wing {n}", threads=(100 + n,)) for n in range(40))
    known = evidence(process([thread(100 + n, [frame("run", n + 1)]) for n in range(40)], pools=pools))
    ruled = [r.because for r in classify(known).ruled_out if r.pattern == "executor-self-deadlock"]
    assert len(ruled) == 4 and len(set(ruled)) == 4
    assert ruled[-1] == "37 more like these"


def test_the_line_that_waits_for_a_child_is_named_beside_the_childs() -> None:
    """The child asks a person, in code that is not the program's: how it was started is for its parent to change."""
    asks = thread(2, [frame("main", 9)], wait=Wait("file", "read", "t", fd=0, endless=True), is_main=True)
    child = process([asks], pid=2, ppid=1, resources=(Resource("t", "terminal", "the terminal"),))
    wait = Wait("process", "wait4", "p", endless=True, pid=2)
    awaited = Resource("p", "process", "child", wakers=(Waker("runner", "kernel", 2),))
    parent = process([thread(1, [frame("run", 40)], wait=wait, is_main=True)], resources=(awaited,))
    leading = classify(evidence(parent, child)).findings[0]
    assert (leading.pattern, [(c.pid, c.line) for c in leading.culprits]) == ("stdin-wait", [(2, 9), (1, 40)])
    circle = classify(evidence(replace(parent, ppid=2), child))  # as evidence that was tampered with may say
    assert circle.findings[0].pattern == "stdin-wait"


def test_lines_that_were_named_come_after_new_ones() -> None:
    """Three entries are to show three lines, not one line of three threads."""
    threads, locks = [], []
    for tid, wanted, line in ((2, 3, 7), (3, 4, 7), (4, 2, 9)):
        holds = (HeldLock(f"l-{tid}", frame("take", 6), 0, "with-slot"),)
        wait = Wait("lock", "futex", f"l-{wanted}", endless=True)
        threads.append(thread(tid, [frame("take", line)], wait=wait, holds=holds))
        locks.append(Resource(f"l-{wanted}", "lock", f"Lock {wanted}", wanted, "with-slot", (tid,)))
    first = classify(evidence(process(threads, resources=tuple(locks)))).findings[0]
    found_lines = [c.line or 0 for c in first.culprits]
    assert (first.pattern, found_lines[:3], sorted(found_lines)) == (
        "lock-order-deadlock",
        [7, 6, 9],
        [6, 6, 6, 7, 7, 9],
    )
