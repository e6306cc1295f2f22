"""Circles of agents each of whom cannot go on without the next one."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

from .agents import Agent
from .edges import Edge

Necessary = Dict[Agent, List[Tuple[Agent, Edge]]]


class Cycle(NamedTuple):
    """``edges[i].waiter`` needs ``edges[i + 1].waiter``, the last one the first."""

    edges: Tuple[Edge, ...]

    @property
    def agents(self) -> Tuple[Agent, ...]:
        return tuple(edge.waiter for edge in self.edges)

    @property
    def sure(self) -> bool:
        return all(edge.sure for edge in self.edges)


def find_cycles(edges: Mapping[Agent, Sequence[Edge]]) -> Tuple[Cycle, ...]:
    """One shortest cycle of each group of agents that all need each other, by the least agent first."""
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
    """The shortest way from an agent back to itself, by breadth."""
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
    edges = [last]
    while edges[-1].waiter != start:
        edges.append(came[edges[-1].waiter])
    edges.reverse()
    return edges


def _groups(needs: Necessary) -> List[Set[Agent]]:
    """Strongly connected components with a cycle (Tarjan's algorithm, without recursion)."""
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
