"""Waits that only an agent in a long sleep could end: a signal was missed, or its sender rests on purpose.

Memory shows which agents refer to the object. If these are only its waiters, agents that wait for them, and agents that
sleep for ten minutes or more, nothing will happen before. Whether something should have cannot be determined, so the
confidence is at most *possible*. If nobody refers to it any more, and others wait for the waiter, something should have.
"""

from __future__ import annotations

from typing import Iterator, List, Tuple

from ....findings import Template, Text
from ....waitgraph import Agent, Edge
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Match
from ...roots.walk import telling

#: Seconds: no test, request or retry is meant to last so long.
LONG_S = 600.0

_SUMMARY = Template(
    "{agent} {verb} {what}{at}{others}; everything that could signal it sleeps for long, or waits itself"
)
_FAR = Template("{agent} {verb} {what}{at}, and nothing is left that could end the wait before its time limit")
_GIVES_UP = Template("{agent} gives up only in {seconds:,.0f} s")
_OTHERS = Template(" (and so {count:v does|do} {count:n other})")
_UNREADABLE = Template("memory does not show whether one of them should have signalled before")
_REFERS = Template("{waker} refers to it, and {doing}")
_SLEEPS = Template("sleeps for {seconds:g} s")
_WAITS = Template("waits itself{how}")
_IN_BRACKETS = Template(" ({phrase})")


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


def unsignalled(view: View) -> Iterator[Match]:
    """Yield a match for each awaited thread in a wait that only its far time limit will end: nobody has what it waits for."""
    for process in view.pythons:
        for thread in process.threads:
            wait, agent = thread.wait, Agent(process.pid, thread.tid)
            if wait is None or wait.endless is not False or (wait.remaining_s or 0.0) < LONG_S or view.moves(thread):
                continue
            edge = telling(view, agent)
            resource = view.graph.places.resource(process.pid, wait.resource)
            if edge is None or not edge.signals or resource is None or resource.closed is not True or resource.wakers:
                continue
            waiting = [one for one in view.graph.behind(frozenset((agent,))) if one != agent]
            if not waiting:
                continue  # it may rest on purpose
            frames = {one: own_frame(view.graph.places.stack(one)) for one in (agent, *waiting)}
            yield Match(
                confidence="likely",
                summary=_FAR(agent=agent, verb=edge.verb, what=edge.what, at=clauses.at(frames[agent])),
                evidence=(_GIVES_UP(agent=agent, seconds=wait.remaining_s), *resource.because),
                culprits=tuple(view.culprit_of(a, f) for a, f in frames.items() if f is not None),
                victims=tuple(view.victim_of(one) for one in waiting if not one.is_process),
                pid=process.pid,
            )


def _match(view: View, several: List[Tuple[Agent, Edge]]) -> Match:
    graph = view.graph
    agent, edge = several[0]
    frame = own_frame(graph.places.stack(agent))
    others = _OTHERS(count=len(several) - 1) if len(several) > 1 else None
    places = [(a, f) for a, _e in several for f in [own_frame(graph.places.stack(a))] if f is not None]
    return Match(
        confidence="possible",
        summary=_SUMMARY(agent=agent, verb=edge.verb, what=edge.what, at=clauses.at(frame), others=others),
        evidence=(
            *(_waker(view, waker) for waker in edge.wakers[:8]),
            *edge.because[:4],
            _UNREADABLE(),
        ),
        culprits=tuple(dict.fromkeys(view.culprit_of(a, f) for a, f in places)),
        victims=tuple(view.victim_of(a) for a in graph.behind(frozenset(a for a, _e in several))),
        pid=agent.pid,
    )


def _waker(view: View, waker: Agent) -> Text:
    """Return the text on what a waker does instead of signalling."""
    task, thread = view.graph.places.task(waker), view.graph.places.thread(waker)
    wait = task.wait if task is not None else thread.wait if thread is not None else None
    if wait is not None and wait.kind == "sleep" and wait.timeout_s is not None:
        return _REFERS(waker=waker, doing=_SLEEPS(seconds=wait.timeout_s))
    how = _IN_BRACKETS(phrase=wait.phrase) if wait is not None and wait.phrase else None
    return _REFERS(waker=waker, doing=_WAITS(how=how))
