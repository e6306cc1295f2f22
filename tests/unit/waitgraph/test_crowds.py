"""The graph of a crowd: what is looked at grows with the evidence, not with everybody times everybody."""

from __future__ import annotations

from typing import Dict, Iterator, Mapping, Sequence

from postmortem.evidence import Evidence, Process, PythonInfo, Resource, Thread, Trigger, Wait, Waker
from postmortem.waitgraph import Agent, Blocked, Edge, WaitGraph
from postmortem.waitgraph.graph import FEW_REASONS, MOST_REASONS
from postmortem.waitgraph.liveness import movers

from ...support.diagnosed import classify

COUNT = 400


def crowd(count: int, runs: bool = False) -> Evidence:
    """``count`` threads that wait for one queue, each of whom could fill it. ``runs``: one more that could, and moves."""
    wakers = tuple(Waker("runner", "memory", tid=tid) for tid in range(1, count + 1 + runs))
    queue = Resource("queue-1", "queue", "Queue", waiters=tuple(range(1, count + 1)), wakers=wakers, closed=True)
    waits = Wait("lock", resource="queue-1", endless=True)
    threads = [Thread(tid, state="S", wait=waits) for tid in range(1, count + 1)]
    threads += [Thread(count + 1, state="R")] * runs
    return Evidence(
        Trigger("timeout"),
        (
            Process(
                1,
                python=PythonInfo("3.12.1"),
                threads=tuple(threads),
                resources=(queue,),
                signal_handlers=(),
                catches=(),
            ),
        ),
    )


class Counted(Mapping[Agent, Sequence[Edge]]):
    """Edges that count how often somebody looks for an agent."""

    def __init__(self, edges: Dict[Agent, Sequence[Edge]]) -> None:
        self._edges, self.looks = edges, 0

    def __getitem__(self, agent: Agent) -> Sequence[Edge]:
        self.looks += 1
        return self._edges[agent]

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._edges)

    def __len__(self) -> int:
        return len(self._edges)


def test_those_who_wait_for_the_same_share_its_wakers() -> None:
    """One tuple of wakers, however many wait: links are as many as wakers and waiters, not their product."""
    graph = WaitGraph(crowd(COUNT))
    several = [edge for agent, edges in graph.edges.items() if not agent.is_process for edge in edges]
    assert len(several) == COUNT
    assert len({id(edge.wakers) for edge in several}) == 1
    counted = Counted(dict(graph.edges))
    assert movers(graph.agents, counted, lambda edge: False) == set()
    assert counted.looks <= 4 * COUNT


def test_a_crowd_without_anybody_who_moves_is_stuck() -> None:
    """The shared wakers say the same as each waiter's own would: none can wake itself, all wait for all."""
    graph = WaitGraph(crowd(COUNT))
    assert {graph.stuck(agent) for agent in graph.stuck_agents} == {"proven"}
    assert len(graph.stuck_agents) == COUNT


def test_one_who_moves_frees_the_crowd() -> None:
    """Any of the wakers will do."""
    assert WaitGraph(crowd(COUNT, runs=True)).stuck_agents == frozenset()
    small = WaitGraph(crowd(3, runs=True))
    assert small.stuck_agents == frozenset()


def test_a_waiter_is_no_waker_of_its_own() -> None:
    """Among a few each has the others alone: sentences name them."""
    graph = WaitGraph(crowd(3))
    for agent in graph.stuck_agents:
        (edge,) = graph.edges[agent]
        assert agent not in edge.wakers
        assert len(edge.wakers) == 2


def test_reasons_are_walked_over_so_often_and_no_more() -> None:
    """However many ask why they are stuck, all of them together look at a bounded number of agents."""
    graph = WaitGraph(crowd(COUNT))
    first = graph.reasons(graph.agents[0])
    for _ in range(400):
        last = graph.reasons(graph.agents[0])
    assert isinstance(first[0], Blocked) and isinstance(last[0], Blocked)
    assert last[0].agents.first == first[0].agents.first
    assert 400 * FEW_REASONS < graph.walked <= MOST_REASONS + 401 * FEW_REASONS


def locked(count: int) -> Evidence:
    """As many locks as threads; every thread stands in the list of every lock."""
    everybody = tuple(range(1, count + 1))
    waits = [Wait("lock", resource=f"lock-{tid}", endless=True) for tid in everybody]
    threads = tuple(Thread(tid, state="S", wait=wait) for tid, wait in zip(everybody, waits))
    locks = tuple(
        Resource(f"lock-{tid}", "file-lock", "Lock", owner_tid=tid % count + 1, waiters=everybody) for tid in everybody
    )
    return Evidence(Trigger("timeout"), (Process(1, python=PythonInfo("3.12.1"), threads=threads, resources=locks),))


def test_findings_name_a_bounded_number_of_victims() -> None:
    """Where everybody waits for everybody the first findings have all of theirs, the others the first few, and say so."""
    found = classify(locked(320)).findings
    assert len(found) >= 300
    cut = ["more are affected by it" in "\n".join(finding.evidence) for finding in found]
    assert not cut[0]
    assert any(cut)
    assert sum(len(finding.victims) for finding in found) <= 20_000 + 20 * len(found)
    assert len([finding for finding in found if finding.pattern == "file-lock-wait"]) == 300
