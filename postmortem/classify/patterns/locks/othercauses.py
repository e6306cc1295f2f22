"""Other faults that keep somebody from signalling: then nobody has missed a wake-up."""

from __future__ import annotations

from typing import FrozenSet, Tuple

from ....evidence import Process
from ....evidence.vocabulary import ResourceKind
from ....waitgraph import Agent, Edge, WaitGraph

#: What is signalled by others, and held by nobody.
SIGNALLED: FrozenSet[ResourceKind] = frozenset(("condition", "event", "semaphore", "barrier", "queue"))
#: Somebody who is stuck for one of these is kept from what he would do by another fault.
_OTHERS: FrozenSet[ResourceKind] = frozenset(
    ("pipe", "socket", "process", "shared-semaphore", "file-lock", "import-lock")
)


def other_cause(graph: WaitGraph, process: Process, roots: Tuple[Agent, ...]) -> bool:
    """Is somebody of the process stuck for another reason: in a circle, behind a lost lock, a pipe, a child?"""
    circles: FrozenSet[Agent] = frozenset(a for cycle in graph.cycles for a in cycle.agents)
    for agent in graph.stuck_agents:
        edge = graph.blocking(agent) if agent.pid == process.pid else None
        if edge is None:
            continue
        if agent in circles or edge.gone or edge.kind in _OTHERS:
            return True
        if _blocked_loop(graph, agent):
            return True
        if agent in roots and edge.kind not in SIGNALLED and edge.kind not in ("event-loop", "futex"):
            return True
    return False


def signals_itself(graph: WaitGraph, edge: Edge) -> bool:
    """Is it the thread of an event loop that waits for a callback of that loop? Then nobody has missed anything."""
    resource = graph.places.resource(edge.waiter.pid, edge.resource)
    return resource is not None and any(waker.tid == edge.waiter.tid for waker in resource.wakers)


def _blocked_loop(graph: WaitGraph, agent: Agent) -> bool:
    """Is it the thread of an event loop that blocks outside of its selector, while callbacks stand ready that it would run?
    One of these may be what signals."""
    place, thread = graph.places.by_pid.get(agent.pid), graph.places.thread(agent)
    loop = place.loop_of.get(agent.tid or 0) if place is not None else None
    blocked = thread is not None and thread.wait is not None and thread.wait.kind != "event-loop"
    return loop is not None and blocked and bool(loop.ready)
