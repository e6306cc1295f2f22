"""Liveness at two levels: counting every waker, and without those that only refer to the awaited object."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem.evidence import Evidence, Resource, Trigger, Waker
from postmortem.evidence.vocabulary import WakerGrade
from postmortem.waitgraph import Agent, Blocked, WaitGraph

from .make import PID, graph, lock, process, running, waiting

MAIN, OTHER = Agent(PID, PID), Agent(PID, 101)


def event(*wakers: Waker, closed: Optional[bool] = True) -> Resource:
    return Resource("e", "event", "Event ready", wakers=wakers, closed=closed)


def reach(grade: Optional[WakerGrade], tid: Optional[int] = 101, **known: Any) -> Waker:
    return Waker("reach", "memory", tid=tid, grade=grade, **known)


def main_waits(*wakers: Waker, closed: Optional[bool] = True) -> WaitGraph:
    """The main thread waits for an event, beside a thread that runs."""
    return graph(process([waiting(PID, "e", "event"), running(101)], [event(*wakers, closed=closed)]))


@pytest.mark.parametrize(
    ("wakers", "closed", "stuck"),
    [
        ((), True, "proven"),
        ((reach("refers"),), True, "likely"),
        ((reach("names"),), True, None),
        ((reach(None),), True, None),
        ((reach("refers"), reach("names")), True, None),
        ((reach("refers"), reach(None)), True, None),
        ((reach("refers", None, name="global READY"),), True, "likely"),
        ((reach("names", None, name="global READY"),), True, None),
        ((reach(None, None, name="global READY"),), True, None),
        ((reach("refers"), reach("refers", None, name="global READY")), True, "likely"),
        ((reach("refers"), reach(None, None, name="global READY")), True, None),
        ((reach("refers"),), None, None),
        ((), None, None),
    ],
)
def test_bystanders_disarm_no_proof_but_lower_it(
    wakers: Tuple[Waker, ...], closed: Optional[bool], stuck: Optional[str]
) -> None:
    """One who only refers makes it likely; one whose code names the operation, an unknown one, or an open list ends it."""
    assert main_waits(*wakers, closed=closed).stuck(MAIN) == stuck


def test_a_bystander_is_no_root_and_no_reason() -> None:
    """An agent that is stuck without it is in all answers; the explanation does not name it as able to end the wait."""
    made = main_waits(reach("refers"))
    edge = made.blocking(MAIN)
    assert edge is not None
    assert (edge.wakers, edge.everyone) == ((), False)
    assert made.roots() == (MAIN,)
    assert made.stuck_agents == {MAIN}
    steps = [one for one in made.reasons(MAIN) if isinstance(one, Blocked)]
    assert steps
    assert all(OTHER not in one.wakers.first for one in steps)
    assert made.stuck(OTHER) is None
    free = main_waits(reach("names"))
    assert free.blocking(MAIN) is None
    assert free.roots() == ()
    assert free.stuck_agents == frozenset()


def test_who_waits_behind_a_bystanders_event_is_likely_stuck() -> None:
    """The level of a wait is no better than that of the wait before it."""
    threads = [waiting(PID, "lock"), waiting(102, "e", "event"), running(101)]
    made = graph(process(threads, [event(reach("refers")), lock("lock", 102)]))
    assert (made.stuck(MAIN), made.stuck(Agent(PID, 102))) == ("likely", "likely")


@pytest.mark.parametrize(
    ("trigger", "remaining", "far"),
    [
        (Trigger("core"), 600.0, True),
        (Trigger("core"), 599.0, False),
        (Trigger("timeout", 100.0), 1000.0, True),
        (Trigger("timeout", 100.0), 999.0, False),
        (Trigger("timeout", 2.0), 599.0, False),
        (Trigger("timeout", 2.0), 600.0, True),
        (Trigger("core"), None, False),
        (Trigger("core"), -5.0, False),
    ],
)
def test_far_deadlines(trigger: Trigger, remaining: Optional[float], far: bool) -> None:
    """Ten minutes, and ten times the capture's own limit, is as good as never; what is unknown or overdue is not."""
    waits = waiting(PID, "e", "event", wait={"endless": False, "remaining_s": remaining})
    made = WaitGraph(Evidence(trigger, (process([waits, running(101)], [event()]),)))
    assert made.stuck(MAIN) is None  # a scheduler waits for its next job like this
    assert [made.is_limited(edge) for edge in made.edges[MAIN]] == [not far]


def test_a_far_deadline_proves_no_cycle() -> None:
    """A lock that is waited for with a limit of an hour: the cycle stands, and is no proof."""
    far = {"endless": False, "remaining_s": 3600.0}
    made = graph(process([waiting(PID, "a", wait=far), waiting(101, "b")], [lock("a", 101), lock("b", PID)]))
    assert not any(made.is_limited(edge) for edge in made.cycles[0].edges)
    assert not made.proves(made.cycles[0])


def test_a_holder_is_no_bystander() -> None:
    """A holder of the awaited object owes it, whatever its grade."""
    made = graph(process([waiting(PID, "a"), running(101)], [lock("a", 101, wakers=(reach("refers"),))]))
    assert made.stuck(MAIN) is None
