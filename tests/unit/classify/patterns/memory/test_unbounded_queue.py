"""Queues without a bound that grow: told from steady ones, from histories, and from somebody's own list of work."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from postmortem.evidence import Backlog, Evidence, Waker
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import LIB, counters, evidence, found, frame, lines, process, stack, thread

USERS = tuple(Waker("reach", "memory", tid=n, frame=frame("any", n)) for n in (1, 2))
QUEUE = Backlog(
    "q",
    "queue.Queue",
    "Intake.jobs",
    4000,
    0,
    1500,
    1.0,
    2500,
    USERS,
    (frame("__init__", 5),),
    (frame("put_in", 12),),
    (frame("take_out", 22),),
)
DEQUE = changed(QUEUE, kind="collections.deque", name="Relay.frames")


def filled(backlog: Backlog, *others: Backlog) -> Evidence:
    threads = [thread(1, [frame("put_in", 12)], counters=counters(0.1, 50)), thread(2, [frame("take_out", 22)])]
    return evidence(process(threads, backlogs=(backlog, *others)))


def test_a_queue_that_grows_is_named_with_who_fills_it() -> None:
    """Where it is filled, and where it is made, are to blame; the figures are there."""
    report = classify(filled(QUEUE)).findings[0]
    assert (report.pattern, report.confidence, lines(filled(QUEUE))) == ("unbounded-queue", "likely", [12, 5])
    assert "4,000 items, 1,500 more each second" in report.summary and "service.py:22" in " ".join(report.evidence)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"limit": 5000}, None),
        ({"limit": None}, "likely"),
        ({"items": 200, "growth": 20}, "likely"),
        ({"items": 199, "growth": 20}, None),
        ({"growth": 40}, "likely"),
        ({"growth": 39}, None),
        ({"growth": 40, "seconds": 2.1}, None),
        ({"growth": -500}, None),
    ],
)
def test_bounds_sizes_and_growth(known: Any, expected: Optional[str]) -> None:
    """A bound, a short queue, or one that gains less than a hundredth, or than twenty a second, are none."""
    assert found(filled(changed(QUEUE, **known))).get("unbounded-queue") == expected


def test_a_long_queue_that_is_steady_is_said_to_be() -> None:
    """It holds much, and does not grow."""
    ruled = {r.pattern: r.because for r in classify(filled(changed(QUEUE, growth=0))).ruled_out}
    assert "4000 items, and does not grow" in ruled["unbounded-queue"]


@pytest.mark.parametrize(("items", "expected"), [(5000, True), (4999, False)])
def test_without_a_window_a_very_long_one_is_a_question(items: int, expected: bool) -> None:
    """One moment cannot tell whether it grows: at most possible where it has both sides, else it abstains."""
    long = changed(QUEUE, items=items, growth=None, seconds=None)
    assert found(filled(long)).get("unbounded-queue") == ("possible" if expected else None)
    report = classify(filled(changed(long, emptied_at=())))
    assert ("unbounded-queue" in {a.pattern for a in report.abstained}) == expected
    assert "unbounded-queue" not in {f.pattern for f in report.findings}


def test_what_is_only_added_to_is_a_history() -> None:
    """A bare list or deque from which nothing is taken out is no queue."""
    assert found(filled(DEQUE))["unbounded-queue"] == "likely"
    assert "unbounded-queue" not in found(filled(changed(DEQUE, emptied_at=())))
    assert found(filled(changed(QUEUE, emptied_at=())))["unbounded-queue"] == "likely"


def test_ones_own_list_of_work_is_only_possible() -> None:
    """One thread alone both fills and empties a deque, as a search does with its frontier, or one function does, that keeps
    the newest of something: nobody is ahead of anybody. Workers that put back into their queue what they have found would
    block each other with a bound."""
    alone = changed(DEQUE, users=USERS[:1])
    trimmed = changed(DEQUE, filled_at=(frame("note", 12),), emptied_at=(frame("note", 14),))
    crawls = changed(QUEUE, filled_at=(frame("crawl", 12),), emptied_at=(frame("crawl", 10),))
    for backlog in (alone, trimmed, crawls):
        assert found(filled(backlog))["unbounded-queue"] == "possible"
    assert found(filled(changed(QUEUE, users=USERS[:1])))["unbounded-queue"] == "likely"


def test_the_fastest_leads_and_others_are_told() -> None:
    """One finding a process."""
    report = classify(filled(QUEUE, changed(QUEUE, id="r", name="Outbox.mails", growth=1600))).findings
    assert [f.pattern for f in report].count("unbounded-queue") == 1
    assert "Outbox.mails" in report[0].summary and "Intake.jobs grows as well" in " ".join(report[0].evidence)


def test_of_a_librarys_queue_the_slow_callback_is_named() -> None:
    """Only the library fills and empties it: what its thread has called of the program is to blame."""
    known = changed(QUEUE, made_at=(), emptied_at=(), filled_at=stack("watchdog.observers.queue_event"))
    loop = thread(2, [frame("on_change", 33), *stack("watchdog.observers.dispatch")], counters=counters())
    one = process([thread(1, stack("threading.join")), loop], backlogs=(known,))
    assert known.filled_at[0].file.startswith(LIB) and lines(evidence(one))[-1] == 33
