"""The part of the wait-for graph that a page shows first.

It contains the informative chains and cycles, the agents named by findings, and the agents that wait for these. Similar
agents are folded; the page unfolds them, and adds neighbours, on request.
"""

from __future__ import annotations

from typing import Dict, Hashable, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...evidence import Evidence
from ...findings import Diagnosis
from ...waitgraph import Agent, Edge, WaitGraph
from ..phrases import chains

_SHOWN = 36  # most agents shown one by one
_FOLDS = 14
_CIRCLES = 6
_ALIKE = 3  # most similar agents shown one by one
#: A chain or cycle longer than this is shown with its beginning and end only.
_LONG, _BEGINNING, _END = 12, 6, 4
#: Most wakers or waiters of one agent that are compared with each other.
_COMPARED = 5000


class Shown(NamedTuple):
    """The initial selection: ``agents`` one by one, each of ``folds`` as one; ``circles`` in full."""

    agents: Tuple[Agent, ...]
    folds: Tuple[Tuple[Agent, ...], ...]
    circles: Tuple[Tuple[Agent, ...], ...]


def choose(graph: WaitGraph, evidence: Evidence, diagnosis: Diagnosis, cited: Iterable[Agent]) -> Shown:
    """Select the agents to show first, bounded for any number of agents."""
    chosen = _Choice(graph)
    lead = diagnosis.findings[0] if diagnosis.findings else None
    for chain in chains.telling(graph, evidence, lead):
        last = [chain.last] if chain.last is not None else []
        chosen.way([*(edge.waiter for edge in chain.edges), *last])
    circles = [cycle.agents for cycle in graph.cycles[:_CIRCLES]]
    for circle in circles:
        chosen.way(circle)
    cited = set(cited)
    chosen.alike([agent for agent in graph.agents if agent in cited])
    mains = [Agent(p.pid, t.tid) for p in evidence.processes for t in p.threads if t.is_main]
    chosen.alike(mains[:1])
    chosen.neighbours()
    if not chosen.busy:
        stuck = graph.stuck_agents
        chosen.alike([agent for agent in graph.agents if agent in stuck])
        chosen.alike(mains)
    if not chosen.busy:
        chosen.alike([agent for agent in graph.agents if not agent.is_process])
    return Shown(tuple(chosen.agents), tuple(chosen.folds), tuple(circles))


class _Choice:
    """A selection of agents under construction."""

    def __init__(self, graph: WaitGraph) -> None:
        self.agents: List[Agent] = []
        self.folds: List[Tuple[Agent, ...]] = []
        self._graph = graph
        self._taken: Set[Agent] = set()

    @property
    def busy(self) -> bool:
        """Return whether the selection has more than one agent."""
        return len(self._taken) > 1

    def way(self, agents: Sequence[Agent]) -> None:
        """Add the agents of a chain; the middle of a long one is folded."""
        agents = [a for a in dict.fromkeys(agents) if a not in self._taken]
        if len(agents) <= _LONG:
            self._show(agents)
            return
        self._show([*agents[:_BEGINNING], *agents[-_END:]])
        self._fold(agents[_BEGINNING:-_END])

    def alike(self, agents: Sequence[Agent]) -> None:
        """Add agents; those at the same place with the same waits are folded if there are many."""
        groups: Dict[Hashable, List[Agent]] = {}
        for agent in dict.fromkeys(agents):
            if agent not in self._taken:
                groups.setdefault(self._likeness(agent), []).append(agent)
        for members in groups.values():
            if len(members) <= _ALIKE:
                self._show(members)
            else:
                self._fold(members)

    def neighbours(self) -> None:
        """Add the wakers of the selected agents, and their waiters."""
        shown = list(self.agents)
        starts = [*shown, *(agent for fold in self.folds for agent in fold[:_COMPARED])]
        edges = [edge for agent in starts if not agent.is_process for edge in self._graph.edges.get(agent, ())]
        self.alike([waker for edge in edges for waker in edge.wakers[:_COMPARED]])
        waiters = [waiter for agent in shown for waiter in self._graph.waiters(agent)[:_COMPARED]]
        self.alike([waiter for waiter in waiters if not waiter.is_process])
        self.alike(self._wants_the_gil(self.agents))

    def _wants_the_gil(self, shown: Sequence[Agent]) -> List[Agent]:
        """Return the agents that wait for one of these to release the GIL; the graph does not count them as waiters."""
        holders = set(shown)
        found = []
        for edges in self._graph.edges.values():
            found += [e.waiter for e in edges if e.kind == "gil" and not holders.isdisjoint(e.wakers)]
        return found[:_COMPARED]

    def _likeness(self, agent: Agent) -> Hashable:
        """Return the key by which agents count as similar: place, waits and whether they are stuck."""
        edges = tuple(_gist(edge) for edge in self._graph.edges.get(agent, ())) if not agent.is_process else ()
        places = tuple((f.file, f.line, f.function) for f in self._graph.places.stack(agent))
        return (agent.pid, agent.tid is None, agent.is_process and agent, places, edges, self._graph.stuck(agent))

    def _show(self, agents: Sequence[Agent]) -> None:
        """Add agents one by one while there is room; fold the rest."""
        room = max(0, _SHOWN - len(self.agents))
        self.agents += agents[:room]
        self._taken.update(agents[:room])
        if agents[room:]:
            self._fold(agents[room:])

    def _fold(self, agents: Sequence[Agent]) -> None:
        """Add agents as one fold while there is room."""
        if len(agents) == 1:
            self._show(agents if len(self.agents) < _SHOWN else ())
        elif len(self.folds) < _FOLDS:
            self.folds.append(tuple(agents))
            self._taken.update(agents)


def _gist(edge: Edge) -> Tuple[str, Optional[str], Optional[Agent]]:
    """Return the key by which waits count as similar: the verb, the kind and, if there is only one, the waker."""
    single = edge.wakers[0] if len(edge.wakers) == 1 and edge.kind not in ("turn", "task") else None
    return edge.verb, edge.kind, single
