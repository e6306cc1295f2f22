"""Wait-for cycles: agents each of which cannot go on without the next."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

from .agents import Agent
from .edges import Edge

Necessary = Dict[Agent, List[Tuple[Agent, Edge]]]


class Cycle(NamedTuple):
    """A wait-for cycle: ``edges[i].waiter`` needs ``edges[i + 1].waiter``, the last one the first."""

    edges: Tuple[Edge, ...]

    @property
    def agents(self) -> Tuple[Agent, ...]:
        """Return the waiters, in the order of the cycle."""
        return tuple(edge.waiter for edge in self.edges)

    @property
    def sure(self) -> bool:
        """Return whether every edge was read rather than inferred."""
        return all(edge.sure for edge in self.edges)


def find_cycles(edges: Mapping[Agent, Sequence[Edge]]) -> Tuple[Cycle, ...]:
    """Return one shortest cycle of each strongly connected group of agents, ordered by their least agent.

    Processes as a whole are left out.
    """
    needs: Necessary = {}
    for agent, several in edges.items():
        for edge in several:
            for needed in edge.necessary:
                if not needed.is_process and not agent.is_process:
                    needs.setdefault(agent, []).append((needed, edge))
    found = []
    for group in _groups(needs):
        start = min(group, key=_order)
        found.append(_around(needs, start, group))
    return tuple(sorted(found, key=lambda cycle: _order(cycle.edges[0].waiter)))


def _order(agent: Agent) -> Tuple[int, bool, int, str]:
    return agent.pid, agent.task is not None, agent.tid or 0, agent.task or ""


def _around(needs: Necessary, start: Agent, group: Set[Agent]) -> Cycle:
    """Return the shortest cycle through an agent, by breadth-first search within its group."""
    came: Dict[Agent, Edge] = {}
    wave = [start]
    while wave:
        following: List[Agent] = []
        for agent in wave:
            for needed, edge in needs.get(agent, ()):
                if needed == start:
                    return Cycle(tuple(_way(came, start, edge)))
                if needed in group and needed not in came:
                    came[needed] = edge
                    following.append(needed)
        wave = following
    raise AssertionError("a group without a way back")  # pragma: no cover - contradicts what a group is


def _way(came: Mapping[Agent, Edge], start: Agent, last: Edge) -> List[Edge]:
    """Return the edges from ``start`` to the waiter of ``last``, and ``last``."""
    edges = [last]
    while edges[-1].waiter != start:
        edges.append(came[edges[-1].waiter])
    edges.reverse()
    return edges


def _groups(needs: Necessary) -> List[Set[Agent]]:
    """Return the strongly connected components that contain a cycle (Tarjan's algorithm, iterative)."""
    index: Dict[Agent, int] = {}
    low: Dict[Agent, int] = {}
    stack: List[Agent] = []
    on_stack: Set[Agent] = set()
    found: List[Set[Agent]] = []
    for root in needs:
        if root in index:
            continue
        work = [(root, 0)]
        while work:
            agent, position = work.pop()
            if position == 0:
                index[agent] = low[agent] = len(index)
                stack.append(agent)
                on_stack.add(agent)
            after = needs.get(agent, [])
            if position < len(after):
                work.append((agent, position + 1))
                needed = after[position][0]
                if needed not in index:
                    work.append((needed, 0))
                elif needed in on_stack:
                    low[agent] = min(low[agent], index[needed])
                continue
            if low[agent] == index[agent]:
                group: Set[Agent] = set()
                while agent not in group:
                    group.add(stack.pop())
                on_stack -= group
                if len(group) > 1 or any(needed == agent for needed, _edge in after):
                    found.append(group)
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[agent])
    return found
