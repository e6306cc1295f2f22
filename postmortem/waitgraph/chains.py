"""The way from a waiting agent to the end of its wait: who waits for whom, down to whoever could move first."""

from __future__ import annotations

from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .agents import Agent
from .edges import Edge

MAX_LINKS = 50


class Chain(NamedTuple):
    """``edges`` from the first waiter on; then ``last``, who waits for nothing known, or has stood there before.

    end: "circle" (``last`` stands in it already) | "runs" | "gone" (the holder is no more) | "nobody" (nobody can end the
    last wait) | "anyone" (of the process, for all that is known) | "outside" (a timeout, a peer, …) | "cut" (too long)
    """

    edges: Tuple[Edge, ...]
    last: Optional[Agent]
    end: str


def follow(start: Agent, edges: Mapping[Agent, Sequence[Edge]], moves: Callable[[Agent], bool]) -> Chain:
    """Where several could end a wait, the way goes on along one that cannot."""
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
    if edge.gone:
        return "gone"
    if edge.outside:
        return "outside"
    return "anyone" if edge.everyone else "nobody"


def _telling(several: Sequence[Edge], moves: Callable[[Agent], bool]) -> Optional[Edge]:
    """Of the things that an agent needs, one that will not come; a task's turn on its loop only when nothing else."""
    order = sorted(several, key=lambda e: (any(map(moves, e.wakers)) or bool(e.outside), e.resource is None))
    return order[0] if order else None


def _next(edge: Edge, moves: Callable[[Agent], bool], seen: Sequence[Agent]) -> Agent:
    fresh = next((w for w in edge.wakers if not moves(w) and w not in seen), None)
    return fresh or next((w for w in edge.wakers if not moves(w)), edge.wakers[0])
