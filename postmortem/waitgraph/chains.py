"""The path from a waiting agent to the end of its wait, along the wakers that it depends on."""

from __future__ import annotations

from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .agents import Agent
from .edges import Edge

MAX_LINKS = 50


class Chain(NamedTuple):
    """A path of edges, from the first waiter on, with the reason for its end.

    ``last`` is the agent after the last edge; it has no known wait, or is on the path already.

    ``end`` is one of

    - "circle": ``last`` is on the path already;
    - "runs": ``last`` waits for nothing known;
    - "gone": the holder has ended;
    - "nobody": no agent can end the last wait;
    - "anyone": any agent of the process may end it, as far as known;
    - "outside": a timeout, a peer, … may end it;
    - "cut": the path is longer than ``MAX_LINKS``.
    """

    edges: Tuple[Edge, ...]
    last: Optional[Agent]
    end: str


def follow(start: Agent, edges: Mapping[Agent, Sequence[Edge]], moves: Callable[[Agent], bool]) -> Chain:
    """Follow the wait of an agent; of several possible wakers, prefer one that cannot move."""
    way: List[Edge] = []
    seen: List[Agent] = []
    agent = start
    while True:
        if agent in seen:
            return Chain(tuple(way), agent, "circle")
        edge = _telling(edges.get(agent, ()), moves)
        if edge is None:
            return Chain(tuple(way), agent, "runs")
        if len(way) >= MAX_LINKS:
            return Chain(tuple(way), agent, "cut")
        seen.append(agent)
        way.append(edge)
        if not edge.wakers:
            return Chain(tuple(way), None, _end(edge))
        agent = _next(edge, moves, seen)


def _end(edge: Edge) -> str:
    """Return the kind of end of a path whose last edge has no wakers."""
    if edge.gone:
        return "gone"
    if edge.outside:
        return "outside"
    return "anyone" if edge.everyone else "nobody"


def _telling(several: Sequence[Edge], moves: Callable[[Agent], bool]) -> Optional[Edge]:
    """Return the edge to follow: one that nothing can end, if any; a task's turn on its loop (no resource) comes last."""
    order = sorted(several, key=lambda e: (any(map(moves, e.wakers)) or bool(e.outside), e.resource is None))
    return order[0] if order else None


def _next(edge: Edge, moves: Callable[[Agent], bool], seen: Sequence[Agent]) -> Agent:
    """Return the waker to follow: one that cannot move and is not on the path yet, if any."""
    fresh = next((w for w in edge.wakers if not moves(w) and w not in seen), None)
    return fresh or next((w for w in edge.wakers if not moves(w)), edge.wakers[0])
