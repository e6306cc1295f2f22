"""Tasks of an event loop wait for each other, or for something that only another of them could do.

**What it looks like.** The loop is idle, at 0 % CPU. Task A awaits B, or a lock that B holds, and the chain leads back to A; or
several tasks wait on queues, events or conditions that only they could fill, set or notify.

**Easily mistaken for** `future-never-resolved`, where a single object is left that no code sets; an idle server, whose tasks
wait for peers; `loop-self-wait`, where the loop's thread itself is blocked.

**Why it hangs.** A task lets others run only where it awaits, and each of these awaits something that another one would do
only after its own wait is over.

**Remedy.** Acquire asyncio's locks in one order everywhere, and do not await a task while holding a lock that it wants. Where
two tasks exchange messages, decide which one sends first; close queues with a sentinel.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import HeldLock, Process, PythonFrame
from ....findings import Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent, Cycle, Edge
from ...facts import clauses
from ...facts.alike import least
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, Pattern
from .sharedresults import AWAITS_REMEDY, circle_of, circles
from .stucktasks import StuckTask, alike, apart, for_notifications, mutual, stuck_tasks, unsignalled

PATTERN = Pattern(
    id="async-deadlock",
    tier="group",
    title="tasks wait for each other: locks, awaits, queues",
    explanation=(
        "Each of these tasks waits for something that only another one of them could do, and that one waits, too. The event "
        "loop itself is free, but has nothing to run for them."
    ),
    remedy=(
        "Acquire locks in the same order everywhere, await nothing that needs a lock while holding it, and decide which side of "
        "a conversation sends first."
    ),
    needs=("python",),
    references=("https://docs.python.org/3/library/asyncio-sync.html",),
)


_MOST = 50

_CIRCLE = Template("{who} ({agents: → } → back): {things: and }")
_ITSELF = Template("a task waits for itself")
_TASKS = Template("{tasks:n task}{threads} wait for each other in a cycle")
_THREADS = Template(" and {count:n thread}")
_BEHIND = Template("{count:n other} {count:v wait} behind them")
_HELD = Template("{waiter}{at} {verb} {what}, held by {owner}{since} ({basis:known}){facts}")
_AWAITED = Template("{waiter}{at} {verb} {what}{only}{facts}")
_SINCE = Template(", acquired at {frame}")
_ONLY = Template("; only {owner} could end that wait")
_FACTS = Template(": {facts:; }")
_EACH_OTHER = Template(
    "{count:n task} {count:v wait} for something that only another of them could do: {first}{at} {verb} {what}, and so on"
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each cycle of tasks, and for tasks that only wait for signals of each other."""
    cycles = [cycle for cycle in view.graph.cycles if _is_of_tasks(cycle)]
    for cycle in cycles:
        yield _circle(view, cycle)
    inside = {agent for cycle in cycles for agent in cycle.agents}
    for process in view.pythons:
        for circle in circles(view, process):
            yield circle_of(view, process, circle)
        waiting = [t for t in stuck_tasks(view, process) if not t.parked and t.agent not in inside]
        waiting = mutual(waiting) or ([] if unsignalled(waiting) else waiting)
        several = len({t.edge.resource for t in waiting}) > 1 and all(t.edge.kind != "async-future" for t in waiting)
        if several and not cycles and not alike(waiting, view) and not for_notifications(waiting):
            yield _each_other(view, process, apart(view, waiting[:_MOST]))


def _is_of_tasks(cycle: Cycle) -> bool:
    """Return whether a cycle includes a task and no wait for a turn on a blocked loop, which is `loop-self-wait`."""
    return any(agent.task is not None for agent in cycle.agents) and all(edge.kind != "turn" for edge in cycle.edges)


def _circle(view: View, cycle: Cycle) -> Match:
    """Return the match of a wait-for cycle."""
    facts: List[Said] = []
    culprits: List[Culprit] = []
    cited = view.cited(cycle)
    for edge, after in cited:
        fact, places = _link(view, edge, after)
        facts.append(fact)
        culprits += places
    facts += view.limits(cycle, len(cited))
    behind = view.graph.behind(frozenset(cycle.agents))
    if behind:
        facts.append(_BEHIND(count=len(behind)))
    things = tuple(dict.fromkeys(edge.what for edge in cycle.edges[:3]))
    return Match(
        confidence=view.certainty(cycle),
        remedy=AWAITS_REMEDY() if all(edge.kind == "task" for edge in cycle.edges) else None,
        summary=_CIRCLE(who=_these(cycle), agents=cycle.agents[:6], things=things),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim_of(agent) for agent in behind),
        pid=cycle.edges[0].waiter.pid,
    )


def _these(cycle: Cycle) -> Text:
    if len(cycle.edges) == 1:
        return _ITSELF()
    tasks = sum(agent.task is not None for agent in cycle.agents)
    threads = len(cycle.agents) - tasks
    return _TASKS(tasks=tasks, threads=_THREADS(count=threads) if threads else None)


def _link(view: View, edge: Edge, after: Edge) -> Tuple[Text, List[Culprit]]:
    """Return the text for one edge, and its lines: where it waits, and where the holder acquired the lock."""
    places = view.graph.places
    frame = own_frame(places.stack(edge.waiter))
    owner = places.task(after.waiter) or places.thread(after.waiter)
    held = next((h for h in owner.holds if h.resource == edge.resource), None) if owner and edge.resource else None
    lines: List[Tuple[Agent, PythonFrame]] = [(edge.waiter, frame)] if frame else []
    if held:
        lines.append((after.waiter, held.frame))
    return _linked(edge, after.waiter, frame, held), [view.culprit_of(agent, f) for agent, f in lines]


def _linked(edge: Edge, owner: Agent, frame: Optional[PythonFrame], held: Optional[HeldLock]) -> Text:
    """Return the text for one edge: who waits for what, and who could end that."""
    at, facts = clauses.at(frame), _FACTS(facts=edge.because) if edge.because else None
    if edge.verb == "wants":
        since = _SINCE(frame=held.frame) if held else None
        return _HELD(
            waiter=edge.waiter,
            at=at,
            verb=edge.verb,
            what=edge.what,
            owner=owner,
            since=since,
            basis=edge.basis,
            facts=facts,
        )
    only = _ONLY(owner=owner) if edge.resource else None
    return _AWAITED(waiter=edge.waiter, at=at, verb=edge.verb, what=edge.what, only=only, facts=facts)


def _each_other(view: View, process: Process, waiting: List[StuckTask]) -> Match:
    """Return the match of tasks that wait for different objects, none of which any other code can signal."""
    agents = [t.agent for t in waiting]
    behind = view.graph.behind(frozenset(agents))
    first = waiting[0]
    return Match(
        confidence=least(t.confidence for t in waiting),
        summary=_EACH_OTHER(
            count=len(waiting),
            first=first.agent,
            at=clauses.at(first.frame),
            verb=first.edge.verb,
            what=first.edge.what,
        ),
        evidence=view.graph.reasons(*agents),
        culprits=tuple(dict.fromkeys(view.culprit_of(agent, frame) for agent, frame in _places(view, waiting))),
        victims=tuple(view.victim_of(agent) for agent in behind),
        pid=process.pid,
    )


def _places(view: View, waiting: List[StuckTask]) -> List[Tuple[Agent, PythonFrame]]:
    """Return the program's lines of tasks that wait; if libraries made all of these, of those that could end their waits."""
    own = [(t.agent, t.frame) for t in waiting if t.frame is not None]
    if own:
        return own
    able = dict.fromkeys(agent for t in waiting for agent in t.edge.wakers)
    return [(agent, f) for agent in able for f in [own_frame(view.graph.places.stack(agent))] if f is not None]
