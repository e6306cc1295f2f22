"""Who can still move: the least set that contains everyone who runs, or whom somebody of the set could wake.

All others can never move again: each waits without end, and everyone who could end its wait is among them. This is the
fixpoint by which a leak detector tells blocked goroutines from leaked ones.

An agent moves when each of its edges can be ended; an edge is ended by any of its wakers that can move (all of them, where
all are needed), by anyone of the process where nobody knows better, and by whatever lies outside.
"""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, Dict, Iterable, List, Mapping, Sequence, Set, Tuple, TypeVar

from .agents import Agent
from .edges import Edge

T = TypeVar("T")
EdgesOf = Mapping[Agent, Sequence[Edge]]


def movers(agents: Iterable[Agent], edges: EdgesOf, open_by_itself: Callable[[Edge], bool]) -> Set[Agent]:
    """The agents that can move. ``open_by_itself``: may an edge be ended by what is no agent?"""
    search = _Search(edges, open_by_itself)
    for agent in agents:
        search.note(agent)
    return search.run()


class Unmet:
    """Which edges nobody can end, once it is known who can move; asked once for those that share their wakers."""

    def __init__(self, moving: Set[Agent]) -> None:
        self._moving = moving
        self._known: Dict[Tuple[int, bool], bool] = {}  # by the tuple of wakers, which the edges keep

    def holds(self, edge: Edge) -> bool:
        """Will an edge never end: is there a waker missing that it needs, or none left of whom any would do?"""
        if edge.outside or edge.endless is False:
            return False
        key = id(edge.wakers), edge.all_needed
        known = self._known.get(key)
        if known is None:
            moves = (waker in self._moving for waker in edge.wakers)
            known = self._known[key] = not all(moves) if edge.all_needed else not any(moves)
        return known


class _Search:
    def __init__(self, edges: EdgesOf, open_by_itself: Callable[[Edge], bool]) -> None:
        self._edges = edges
        self._open = open_by_itself
        self._closed_edges: Dict[Agent, int] = {}  # how many edges of an agent nobody has ended yet
        self._needed: List[int] = []  # of each edge: how many wakers are still missing
        self._waits_of: Dict[Agent, List[Tuple[int, Agent]]] = {}  # waker → (edge, waiter) where all are needed
        self._groups: Dict[int, List[Tuple[int, Agent]]] = {}  # a tuple of wakers, any of whom will do → (edge, waiter)
        self._groups_of: Dict[Agent, List[List[Tuple[int, Agent]]]] = {}  # waker → the groups that it ends
        self._waits_in: Dict[int, List[Tuple[int, Agent]]] = {}  # pid → edges that anyone of the process may end
        self._live: Set[Agent] = set()
        self._new: Deque[Agent] = deque()

    def note(self, agent: Agent) -> None:
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
        """The edges that any of these ends: those who wait for the same resource share one tuple of wakers."""
        group = self._groups.get(id(wakers))
        if group is None:
            group = self._groups[id(wakers)] = []
            for waker in wakers:
                self._link(waker, self._groups_of).append(group)
        return group

    def _link(self, waker: Agent, links: Dict[Agent, List[T]]) -> List[T]:
        if waker not in self._edges:
            self._revive(waker)  # of whom nothing is known but that it is there
        return links.setdefault(waker, [])

    def run(self) -> Set[Agent]:
        while self._new:
            agent = self._new.popleft()
            for number, waiter in self._waits_of.pop(agent, ()):
                self._end(number, waiter)
            for group in self._groups_of.pop(agent, ()):
                for number, waiter in group:
                    self._end(number, waiter)
                group.clear()  # the first of the wakers is enough
            if not agent.is_process:
                for number, waiter in self._waits_in.pop(agent.pid, ()):
                    self._end(number, waiter)
        return self._live

    def _end(self, number: int, waiter: Agent) -> None:
        self._needed[number] -= 1
        if self._needed[number] == 0:
            self._closed_edges[waiter] -= 1
            if not self._closed_edges[waiter]:
                self._revive(waiter)

    def _revive(self, agent: Agent) -> None:
        if agent not in self._live:
            self._live.add(agent)
            self._new.append(agent)
