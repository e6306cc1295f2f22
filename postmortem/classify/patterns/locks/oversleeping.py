"""Waits that only an agent in a long sleep could end: a signal was missed, or its sender rests on purpose.

Memory shows which agents refer to the object. If these are only its waiters, agents that wait for them, and agents that
sleep for ten minutes or more, nothing will happen before. Whether something should have cannot be determined, so the
confidence is at most *possible*.
"""

from __future__ import annotations

from typing import Iterator, List, Tuple

from ....waitgraph import Agent, Edge
from ...facts.knowledge import own_frame, short
from ...facts.view import View, plural
from ...pattern import Match

#: Seconds: no test, request or retry is meant to last so long.
LONG_S = 600.0


def overslept(view: View) -> Iterator[Match]:
    """Yield one match for each awaited object."""
    waits: List[Tuple[Agent, Edge]] = [
        (agent, edge)
        for agent, edge in view.graph.late(LONG_S).items()
        if edge.signals and not edge.everyone and view.graph.is_awaited(agent)
    ]
    for pid, resource in dict.fromkeys((agent.pid, edge.resource) for agent, edge in waits):
        several = [(a, e) for a, e in waits if (a.pid, e.resource) == (pid, resource)]
        yield _match(view, several)


def _match(view: View, several: List[Tuple[Agent, Edge]]) -> Match:
    graph = view.graph
    agent, edge = several[0]
    frame = own_frame(graph.places.stack(agent))
    at = f" at {short(frame)}" if frame is not None else ""
    others = f" (like {plural(len(several) - 1, 'other')})" if len(several) > 1 else ""
    places = [(a, f) for a, _e in several for f in [own_frame(graph.places.stack(a))] if f is not None]
    return Match(
        confidence="possible",
        summary=f"{graph.label(agent)} {edge.verb} {edge.what}{at}{others}; whoever could signal it sleeps for long, or waits",
        evidence=(
            *(_waker(view, waker) for waker in edge.wakers[:8]),
            *edge.because[:4],
            "whether one of them should have signalled before, nobody can read",
        ),
        culprits=tuple(dict.fromkeys(view.culprit_of(a, f) for a, f in places)),
        victims=tuple(view.victim_of(a) for a in graph.behind(frozenset(a for a, _e in several))),
        pid=agent.pid,
    )


def _waker(view: View, waker: Agent) -> str:
    """Return a sentence on what a waker does instead of signalling."""
    task, thread = view.graph.places.task(waker), view.graph.places.thread(waker)
    wait = task.wait if task is not None else thread.wait if thread is not None else None
    doing = "waits itself"
    if wait is not None and wait.kind == "sleep" and wait.timeout_s is not None:
        doing = f"sleeps for {wait.timeout_s:g} s"
    elif wait is not None and wait.phrase:
        doing = f"waits itself ({wait.phrase})"
    return f"{view.graph.label(waker)} refers to it, and {doing}"
