"""A queue of multiprocessing whose writers have ended: mp-worker-died, and no wait for the end of a pipe."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem.evidence import End, Ended, Resource, Wait, Waker, replace

from .....support.diagnosed import classify
from .....support.make import counters, evidence, frame, process, stack, thread


@pytest.mark.parametrize(
    ("ended", "other", "beside", "expected"),
    [
        (True, 1, None, "likely"),
        (True, 2, None, None),  # a process that lives has the queue
        (False, 1, None, None),  # nobody is known to have ended
        (True, 1, Wait("pipe", "write", endless=True), None),  # an item is still on its way
        (True, 1, Wait("condition", "futex", endless=True), "likely"),  # a feeder without an item
    ],
)
def test_an_item_of_a_queue_that_no_process_is_left_to_put(
    ended: bool, other: int, beside: Optional[Wait], expected: Optional[str]
) -> None:
    """The workers have ended without handing over what they had; that a write end is open in the reader is by design."""
    ends = (End(1, 3, "r"), End(other, 4, "w"))
    wakers = (Waker("end", "kernel", pid=other),)
    pipe = Resource("pipe-1", "pipe", "pipe from this process", waiters=(1,), ends=ends, wakers=wakers, closed=True)
    frames = (*stack("multiprocessing.connection.recv_bytes", "multiprocessing.queues.get"), frame("main", 30))
    main = thread(1, frames, wait=Wait("pipe", "read", "pipe-1", endless=True, fd=3))
    more = [thread(2, stack("multiprocessing.queues._feed"), wait=beside)] if beside is not None else []
    gone = (Ended(7, "recorded", "ForkProcess-1", 0),) if ended else ()
    known = evidence(process([main, *more], resources=(pipe,), ended=gone, signal_handlers=(), children_made=1))
    firm = {f.pattern: f.confidence for f in classify(known).findings if f.confidence != "possible"}
    assert "pipe-never-closed" not in firm
    assert firm.get("mp-worker-died") == expected


@pytest.mark.parametrize(
    ("other", "gone", "expected"), [("get", False, "likely"), ("grade", False, None), ("get", True, None)]
)
def test_an_item_that_nobody_says_is_done(other: str, gone: bool, expected: Optional[str]) -> None:
    """All workers live and wait for the next item; one at work may still call task_done, the item of a dead one is lost."""
    joins = (*stack("multiprocessing.synchronize.wait", "multiprocessing.queues.join"), frame("finish", 62))
    main = thread(1, joins, wait=Wait("semaphore", "futex", "s", endless=True), counters=counters())
    gets = (*stack("multiprocessing.connection.recv_bytes", "multiprocessing.queues.get"), frame("worker", 31))
    second = gets if other == "get" else (frame("grade", 40), frame("worker", 33))
    workers = [
        process([thread(pid, frames, wait=Wait("pipe", "read", endless=True), is_main=True)], pid=pid, ppid=1)
        for pid, frames in ((2, gets), (3, second))
    ]
    ended = (Ended(7, "recorded", "Process-3", -9),) if gone else ()
    known = evidence(process([main], ended=ended), *workers)
    firm = {f.pattern: f.confidence for f in classify(known).findings if f.confidence != "possible"}
    assert firm.get("missed-wakeup") == expected


@pytest.mark.parametrize(
    ("status", "waits", "feeds", "expected"),
    [
        (3, True, False, "likely"),
        (0, True, False, None),  # it may have done all that it was to do
        (3, False, False, None),  # the other one is at work
        (3, True, True, None),  # the other one has an item to hand over
    ],
)
def test_an_item_that_only_an_ended_worker_had(status: int, waits: bool, feeds: bool, expected: Optional[str]) -> None:
    """All that are left wait for items themselves."""
    gets = (*stack("multiprocessing.connection.recv_bytes", "multiprocessing.queues.get"), frame("main", 14))

    def pipe(pid: int, other: int) -> Resource:
        ends = (End(pid, 3, "r"), End(pid, 4, "w"), End(other, 4, "w"))
        wakers = (Waker("end", "kernel", pid=pid), Waker("end", "kernel", pid=other))
        return Resource("pipe-1", "pipe", "pipe", waiters=(pid,), ends=ends, wakers=wakers, closed=True)

    asks = Wait("pipe", "read", "pipe-1", endless=True, fd=3)
    parent = process(
        [thread(1, gets, wait=asks, counters=counters())],
        resources=(pipe(1, 2),), ended=(Ended(7, "zombie", "Process-1", status),), signal_handlers=(),
    )  # fmt: skip
    main = (
        thread(2, gets, wait=asks, counters=counters())
        if waits
        else thread(2, (frame("crunch", 3),), counters=counters(0.9))
    )
    feeder = thread(
        3, stack("multiprocessing.queues._feed"), wait=Wait("pipe", "write", endless=True), counters=counters()
    )
    child = process(
        [replace(main, is_main=True), *([feeder] if feeds else [])],
        resources=(pipe(2, 1),), pid=2, ppid=1, signal_handlers=(),
    )  # fmt: skip
    firm = {f.pattern: f.confidence for f in classify(evidence(parent, child)).findings if f.confidence != "possible"}
    assert firm.get("mp-worker-died") == expected
