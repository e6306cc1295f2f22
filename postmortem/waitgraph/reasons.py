"""Explanations of why agents can never move again: typed steps that can be checked against the evidence."""

from __future__ import annotations

from collections import deque
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..evidence import Because
from ..evidence.vocabulary import WakerBasis
from .agents import Agent, Places
from .edges import Edge, EdgeVerb, What
from .liveness import Unmet

_STEPS = 12
#: Number of agents that a step names; the others are counted.
NAMED = 4
#: Most agents visited in one call; the steps name far fewer, so that the limit never shortens them.
WALKED = 5_000


class Agents(NamedTuple):
    """The first few agents of a step, and the number of the others."""

    first: Tuple[Agent, ...]
    others: int = 0


class Blocked(NamedTuple):
    """Agents that wait alike and cannot move."""

    agents: Agents
    verb: EdgeVerb
    what: What
    endless: bool  # True: the report says that there is no time limit
    gone: bool = False  # True: the holder has ended
    wakers: Agents = Agents(())
    held: bool = False  # True: the wakers hold the resource; False: they are the only ones that could end the wait
    basis: Optional[WakerBasis] = None  # how the holder is known
    nobody: bool = False  # True: no agent can end the wait
    threads: int = 0  # for a process as a whole: the number of its threads, one of which has to move


class Others(NamedTuple):
    """How many more agents those in the steps before depend on; they are not listed."""

    number: int


class NoneRuns(NamedTuple):
    """A process in which no code can run, so that no agent can signal its waiters."""

    pid: int
    threads: int
    tasks: int
    no_handlers: bool  # True: the program has set no signal handler


Reason = Union[Blocked, Others, NoneRuns, Because]


class Told(NamedTuple):
    """Steps, and the number of agents visited for them (``walked``)."""

    reasons: Tuple[Reason, ...]
    walked: int


def reasons(
    start: Iterable[Agent], edges: Mapping[Agent, Sequence[Edge]], places: Places, live: Set[Agent], most: int
) -> Told:
    """Explain why agents cannot move: each of them and all that they depend on, nearest first.

    Agents with the same wait share one step. ``most``: number of agents to visit.
    """
    waiting = deque(start)
    seen: Set[Agent] = set(waiting)
    steps: Dict[Blocked, List[Agent]] = {}
    because: Dict[Blocked, Tuple[Because, ...]] = {}
    everywhere: Set[int] = set()
    unmet, walked = Unmet(live), 0
    followed: Set[int] = set()
    while waiting and walked < most:
        agent = waiting.popleft()
        walked += 1
        edge = next((e for e in edges.get(agent, ()) if unmet.holds(e)), None)
        if edge is None:
            continue
        step = _step(agent, edge)
        steps.setdefault(step, []).append(agent)
        because[step] = edge.because
        if edge.everyone:
            everywhere.add(agent.pid)
        following = [w for w in edge.wakers if w not in seen] if id(edge.wakers) not in followed else []
        followed.add(id(edge.wakers))
        seen.update(following)
        waiting.extend(following)
    told: Dict[Reason, None] = {}
    for step, agents in list(steps.items())[:_STEPS]:
        told[step._replace(agents=_few(agents))] = None
        told.update(dict.fromkeys(because[step]))
    more = sum(map(len, list(steps.values())[_STEPS:])) + len(waiting)
    found = (*told, *((Others(more),) if more else ()), *(_none_runs(pid, places) for pid in sorted(everywhere)))
    return Told(found, walked)


def _step(agent: Agent, edge: Edge) -> Blocked:
    """Return the step of one agent, without the agent: equal for several that wait alike."""
    if agent.is_process and len(edge.wakers) > 1:
        return Blocked(Agents(()), edge.verb, edge.what, False, threads=len(edge.wakers))
    if edge.gone:
        return Blocked(Agents(()), edge.verb, edge.what, False, gone=True)
    step = Blocked(
        Agents(()), edge.verb, edge.what, bool(edge.endless and agent.tid is not None and edge.verb != "runs")
    )
    if edge.wakers and edge.resource is not None:
        if edge.verb == "wants":
            return step._replace(wakers=_few(edge.wakers), held=True, basis=edge.basis)
        return step if edge.everyone else step._replace(wakers=_few(edge.wakers))
    return step._replace(nobody=not edge.wakers and not edge.everyone)


def _few(agents: Sequence[Agent]) -> Agents:
    return Agents(tuple(agents[:NAMED]), max(0, len(agents) - NAMED))


def _none_runs(pid: int, places: Places) -> NoneRuns:
    place = places.by_pid[pid]
    tasks = sum(task.state != "done" for task in place.process.tasks)
    return NoneRuns(pid, len(place.threads), tasks, place.process.signal_handlers == ())
