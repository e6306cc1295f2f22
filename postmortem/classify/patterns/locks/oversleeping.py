"""Waits that only somebody could end who sleeps for long: a signal was missed, or its sender rests on purpose.

Memory shows who refers to the object. When these are its waiters, and others who wait for them or sleep for ten minutes and
more, nothing will happen before; whether something should have, nobody can read. So this is at most *possible*.
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
    """One match for each object that is waited for."""
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
    task, thread = view.graph.places.task(waker), view.graph.places.thread(waker)
    wait = task.wait if task is not None else thread.wait if thread is not None else None
    doing = "waits itself"
    if wait is not None and wait.kind == "sleep" and wait.timeout_s is not None:
        doing = f"sleeps for {wait.timeout_s:g} s"
    elif wait is not None and wait.phrase:
        doing = f"waits itself ({wait.phrase})"
    return f"{view.graph.label(waker)} refers to it, and {doing}"
