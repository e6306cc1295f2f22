"""Liveness: the least set of agents that run, or that an agent of the set could wake.

All other agents can never move again: each waits without a deadline, and every agent that could end its wait is among
them. Leak detectors use this fixpoint to distinguish leaked goroutines from blocked ones.

An agent moves once each of its edges can be ended. An edge is ended by any waker that can move (by all of them, if
all are needed), by any agent of the process if the wakers are not fully known, and by an event outside the graph.
A quiet agent, which only sleeps and counts, can move, but is not any agent: it ends no wait of which it is no waker.
"""

from __future__ import annotations

from collections import deque
from typing import Callable, Container, Deque, Dict, Iterable, List, Mapping, Sequence, Set, Tuple, TypeVar

from .agents import Agent
from .edges import Edge

T = TypeVar("T")
EdgesOf = Mapping[Agent, Sequence[Edge]]


def movers(
    agents: Iterable[Agent], edges: EdgesOf, open_by_itself: Callable[[Edge], bool], quiet: Container[Agent] = ()
) -> Set[Agent]:
    """Return the agents that can move.

    - ``open_by_itself``: whether something other than an agent may end an edge
    - ``quiet``: agents that only sleep and count
    """
    search = _Search(edges, open_by_itself, quiet)
    for agent in agents:
        search.note(agent)
    return search.run()


class Unmet:
    """The edges that no agent can end, given the agents that can move; the answer is cached per tuple of wakers."""

    def __init__(self, moving: Set[Agent]) -> None:
        self._moving = moving
        self._known: Dict[Tuple[int, bool], bool] = {}  # by id of the wakers, which the edges keep alive

    def holds(self, edge: Edge) -> bool:
        """Return whether an edge will never end: one of all needed wakers cannot move, or none of the alternatives."""
        if edge.outside or edge.endless is False:
            return False
        key = id(edge.wakers), edge.all_needed
        known = self._known.get(key)
        if known is None:
            moves = (waker in self._moving for waker in edge.wakers)
            known = self._known[key] = not all(moves) if edge.all_needed else not any(moves)
        return known


class _Search:
    """The state of the fixpoint search: live agents, open edges, and the links from wakers to edges."""

    def __init__(self, edges: EdgesOf, open_by_itself: Callable[[Edge], bool], quiet: Container[Agent]) -> None:
        self._edges = edges
        self._quiet = quiet
        self._open = open_by_itself
        self._closed_edges: Dict[Agent, int] = {}  # agent → number of its edges that have not been ended
        self._needed: List[int] = []  # edge → number of wakers still missing
        self._waits_of: Dict[
            Agent, List[Tuple[int, Agent]]
        ] = {}  # waker → (edge, waiter), for edges that need all their wakers
        self._groups: Dict[int, List[Tuple[int, Agent]]] = {}  # id of a tuple of alternative wakers → (edge, waiter)
        self._groups_of: Dict[Agent, List[List[Tuple[int, Agent]]]] = {}  # waker → the groups that it ends
        self._waits_in: Dict[int, List[Tuple[int, Agent]]] = {}  # pid → edges that any agent of the process may end
        self._live: Set[Agent] = set()
        self._new: Deque[Agent] = deque()

    def note(self, agent: Agent) -> None:
        """Add an agent and its edges."""
        closed = 0
        for edge in self._edges.get(agent, ()):
            if self._open(edge):
                continue
            closed += 1
            number = len(self._needed)
            self._needed.append(len(edge.wakers) if edge.all_needed else 1)
            if edge.all_needed:
                for waker in edge.wakers:
                    self._link(waker, self._waits_of).append((number, agent))
            elif edge.wakers:
                self._alike(edge.wakers).append((number, agent))
            if edge.everyone:
                self._waits_in.setdefault(agent.pid, []).append((number, agent))
        self._closed_edges[agent] = closed
        if not closed:
            self._revive(agent)

    def _alike(self, wakers: Tuple[Agent, ...]) -> List[Tuple[int, Agent]]:
        """Return the group of edges that any of these wakers ends: waiters of one resource share one tuple of wakers."""
        group = self._groups.get(id(wakers))
        if group is None:
            group = self._groups[id(wakers)] = []
            for waker in wakers:
                self._link(waker, self._groups_of).append(group)
        return group

    def _link(self, waker: Agent, links: Dict[Agent, List[T]]) -> List[T]:
        """Return the waker's entry in ``links``; a waker without edges is live."""
        if waker not in self._edges:
            self._revive(waker)  # no wait is known of it
        return links.setdefault(waker, [])

    def run(self) -> Set[Agent]:
        """Propagate liveness until nothing changes; return the live agents."""
        while self._new:
            agent = self._new.popleft()
            for number, waiter in self._waits_of.pop(agent, ()):
                self._end(number, waiter)
            for group in self._groups_of.pop(agent, ()):
                for number, waiter in group:
                    self._end(number, waiter)
                group.clear()  # one live waker is enough
            if not agent.is_process and agent not in self._quiet:
                for number, waiter in self._waits_in.pop(agent.pid, ()):
                    self._end(number, waiter)
        return self._live

    def _end(self, number: int, waiter: Agent) -> None:
        """Count one waker of an edge as live; the waiter is live once all its edges are ended."""
        self._needed[number] -= 1
        if self._needed[number] == 0:
            self._closed_edges[waiter] -= 1
            if not self._closed_edges[waiter]:
                self._revive(waiter)

    def _revive(self, agent: Agent) -> None:
        if agent not in self._live:
            self._live.add(agent)
            self._new.append(agent)
