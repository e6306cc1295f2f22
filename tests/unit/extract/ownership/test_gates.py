"""Claims on a gate's parts, and the gate as evidence."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from postmortem.evidence import Resource, Task, TaskWait, Thread, Wait, Waker, fact
from postmortem.extract.ownership.gates import _Claim, _limit, _most
from postmortem.extract.ownership.reached import Agent
from postmortem.extract.process.gatebook import GateBook

FIRST, SECOND = Agent(tid=1), Agent(task="task-2")


def test_a_part_seen_in_several_ways_is_counted_once() -> None:
    """For each agent what shows most of its parts; a part seen twice in one way is one."""
    by_with = [_Claim(FIRST, "with-slot", None, 7)]
    by_reference = [
        _Claim(FIRST, "memory", None, 8),
        _Claim(FIRST, "memory", None, 9),
        _Claim(FIRST, "memory", None, 9),
        _Claim(SECOND, "memory", None, 10),
    ]
    found = _most([by_with, by_reference])
    assert [(claim.agent, claim.part) for claim in found] == [(FIRST, 8), (FIRST, 9), (SECOND, 10)]
    assert [claim.basis for claim in _most([by_with, by_reference[:1]])] == ["with-slot"]


@pytest.mark.parametrize(
    "limits, held, expected",
    [((2, 5), 2, 2), ((5,), 2, 5), ((5, 9), 2, None), ((), 2, None), ((1,), 2, None)],
)
def test_the_limit_among_several_numbers(limits: Tuple[int, ...], held: int, expected: Optional[int]) -> None:
    """The one that is reached, else the only one that is not exceeded."""
    assert _limit(limits, held) == expected


def test_waits_get_their_gate_beside_the_object_slept_on() -> None:
    """A task of another framework, of whose wait nothing else is known, gets a wait."""
    book = GateBook({FIRST: "pool-1", SECOND: "pool-1"}, {}, ())
    waits = book.thread(Thread(1, wait=Wait("condition", resource="condition-1"))).wait
    assert waits is not None and (waits.resource, waits.gate) == ("condition-1", "pool-1")
    awaits = book.task(Task("task-2", None, "pending", None)).wait
    assert awaits == TaskWait("other", gate="pool-1")
    other = Thread(9, wait=Wait("condition"))
    assert book.thread(other) is other


@pytest.mark.parametrize("closed, expected", [(True, True), (None, None)])
def test_a_gate_is_closed_if_the_objects_slept_on_are(closed: Optional[bool], expected: Optional[bool]) -> None:
    """Every agent that could signal them could let a waiter in: holders once, others as they are."""
    holder, reach = Waker("holder", "memory", tid=2), Waker("reach", "memory", tid=3)
    inner = Resource(
        "condition-1", "condition", "C", wakers=(Waker("reach", "memory", tid=2), reach), closed=closed,
        because=(fact("unreferred", object="C", times=1),),
    )  # fmt: skip
    gate = Resource("pool-1", "pool", "P", wakers=(holder,))
    waiter = Thread(1, wait=Wait("condition", resource="condition-1", gate="pool-1"))
    (settled,) = GateBook({}, {}, (gate,)).settled([inner], [waiter], [])
    assert settled.closed is expected
    assert settled.wakers == ((holder, reach) if expected else (holder,))
