"""Other faults that prevent an agent from signalling, so that no wake-up was missed."""

from __future__ import annotations

from typing import FrozenSet, Tuple

from ....evidence import Process
from ....evidence.vocabulary import ResourceKind
from ....waitgraph import Agent, Edge, WaitGraph

#: Kinds of resources that are signalled by other code and have no holder.
SIGNALLED: FrozenSet[ResourceKind] = frozenset(("condition", "event", "semaphore", "barrier", "queue"))
#: An agent stuck on one of these is prevented from signalling by another fault.
_OTHERS: FrozenSet[ResourceKind] = frozenset(
    ("pipe", "socket", "process", "shared-semaphore", "file-lock", "import-lock")
)


def other_cause(graph: WaitGraph, process: Process, roots: Tuple[Agent, ...]) -> bool:
    """Return whether an agent of the process is stuck for another reason: a cycle, an orphaned lock, a pipe, a child."""
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
    """Return whether an event loop's thread waits for a callback of its own loop, so that no wake-up was missed."""
    resource = graph.places.resource(edge.waiter.pid, edge.resource)
    return resource is not None and any(waker.tid == edge.waiter.tid for waker in resource.wakers)


def _blocked_loop(graph: WaitGraph, agent: Agent) -> bool:
    """Return whether an event loop's thread is blocked outside its selector while callbacks are ready.

    One of these callbacks may be the one that signals.
    """
    place, thread = graph.places.by_pid.get(agent.pid), graph.places.thread(agent)
    loop = place.loop_of.get(agent.tid or 0) if place is not None else None
    blocked = thread is not None and thread.wait is not None and thread.wait.kind != "event-loop"
    return loop is not None and blocked and bool(loop.ready)
