"""Cycles of tasks that await each other's results through futures which callbacks set, as in caches of running calls."""

from __future__ import annotations

from typing import List, Optional, Set

from ....evidence import Process
from ....findings import Confidence, Template
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.alike import least
from ...facts.view import View
from ...pattern import Match
from .stucktasks import StuckTask, stuck_tasks

AWAITS_REMEDY = Template(
    "Break the cycle of awaits: give one of these tasks what it needs instead of letting it await the next one; where tasks "
    "stand for things that depend on each other, check for a cycle among them before awaiting any."
)
_CIRCLE = Template("{count:n task} {count:v wait} for each other's results in a cycle: {agents: → } → back")
_AWAITS = Template("{waiter}{at} awaits {what}, which was passed to a callback that runs when {after} ends")


def circles(view: View, process: Process) -> List[List[StuckTask]]:
    """Return cycles of stuck tasks, each of which awaits a future that a callback of the next would set."""
    stuck = {t.agent: t for t in stuck_tasks(view, process) if t.edge.kind == "async-future"}
    found: List[List[StuckTask]] = []
    done: Set[Agent] = set()
    for start in stuck:
        way: List[Agent] = []
        agent: Optional[Agent] = start
        while agent is not None and agent in stuck and agent not in way and agent not in done:
            way.append(agent)
            agent = _called_by(view, stuck[agent])
        if agent is not None and agent in way:
            found.append([stuck[a] for a in way[way.index(agent) :]])
        done.update(way)
    return found


def _called_by(view: View, waiter: StuckTask) -> Optional[Agent]:
    """Return the task whose end calls a function with the awaited future, if there is exactly one."""
    resource = view.graph.places.resource(waiter.agent.pid, waiter.edge.resource)
    tasks = {w.task for w in resource.wakers if w.role == "callback"} if resource is not None else set()
    return Agent(waiter.agent.pid, task=tasks.pop()) if len(tasks) == 1 else None


def _confidence(view: View, circle: List[StuckTask]) -> Confidence:
    """Return the lowest confidence of the tasks; *likely* at least if no other code names the futures.

    A task that is in such a cycle was not parked on purpose.
    """
    resources = [view.graph.places.resource(t.agent.pid, t.edge.resource) for t in circle]
    lowest = least(t.confidence for t in circle)
    accounted = all(r is not None and True in (r.closed, r.unnamed) for r in resources)
    return "likely" if lowest == "possible" and accounted else lowest


def circle_of(view: View, process: Process, circle: List[StuckTask]) -> Match:
    """Return the match of a cycle in which each task awaits a future that is set when the next one ends."""
    agents = [t.agent for t in circle]
    facts = [
        _AWAITS(waiter=t.agent, at=clauses.at(t.frame), what=t.edge.what, after=after)
        for t, after in zip(circle, [*agents[1:], agents[0]])
    ]
    return Match(
        confidence=_confidence(view, circle),
        remedy=AWAITS_REMEDY(),
        summary=_CIRCLE(count=len(circle), agents=tuple(agents[:6])),
        evidence=(*facts, *view.graph.reasons(*agents)),
        culprits=tuple(dict.fromkeys(view.culprit_of(t.agent, t.frame) for t in circle if t.frame is not None)),
        victims=tuple(view.victim_of(agent) for agent in view.graph.behind(frozenset(agents))),
        pid=process.pid,
    )
