"""All connections, tokens or permits are taken, and each holder of one waits for another.

**What it looks like.** Threads wait for a semaphore with no permit left, or for an item in an empty queue that is used as a
pool. The threads that hold an item each wait for a second one, or for something that cannot happen.

**Easily mistaken for** an idle consumer, whose queue is empty because there is nothing to do; `network-wait`, where the holders
wait for a server; `executor-self-deadlock`, where the workers themselves ran out.

**Why it hangs.** A request takes one item from the pool and, while it holds it, asks for a second one. As many simultaneous
requests as the pool has items take them all, and none gets its second.

**Remedy.** Pass on the item instead of taking another; take all that are needed at once; return it before asking for another.
A larger pool only postpones the hang; a time limit on the second one turns it into an error.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Tuple

from ....evidence import Process, PythonFrame, Resource, Waker
from ....evidence.vocabulary import ResourceKind
from ....findings import Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import is_library, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="pool-exhausted",
    title="all connections, tokens or permits are in use, and their holders wait for more",
    explanation=(
        "Everything in the pool has been taken, by threads or tasks that wait for another item before they return theirs. "
        "None of them gets it."
    ),
    remedy=(
        "Pass on the connection (token, permit) that the caller already has, or return it before asking for another; put a "
        "time limit on the wait, so that a shortage raises an error."
    ),
    needs=("python",),
    outranks=(
        "lock-order-deadlock",
        "missed-wakeup",
        "async-deadlock",
        "future-never-resolved",
        "shutdown-join",
        "child-wait",
        "network-wait",
        "sleeping",
    ),
    references=(
        "https://docs.python.org/3/library/threading.html#semaphore-objects",
        "https://github.com/nsidnev/fastapi-realworld-example-app/issues/64",
        "https://github.com/brettwooldridge/HikariCP/wiki/About-Pool-Sizing",
    ),
)

Holder = Tuple[Agent, Waker]
_NAMED = 40  # most holders listed in a finding
_POOLS: FrozenSet[ResourceKind] = frozenset(("semaphore", "queue", "condition", "async-semaphore"))

_SUMMARY = Template(
    "{pool} is exhausted: {holders} that {count:v has|have} taken from it {count:v wait}{at} for more before "
    "{count:v it returns its own|they return theirs}"
)
_THREADS = Template("{count:n thread}")
_TASKS = Template("{count:n task}")
_GOES_ON = Template("{pool} is empty, but {holder}, which holds part of it, can go on")
_STUCK_OTHERWISE = Template("the holders of {pool} cannot go on for another reason")
_PARTS = Template("{pool}: {parts:n part} of it found in use, by {holders}")
_HAS_ONE = Template("{holder} holds one{since} ({basis:known}), and waits{at} for {what}")
_SINCE = Template(", taken at {frame}")
_ANOTHER = Template("another")
_WHO_WANT_ONE = Template("others that want one")
_ELSE = Template("something else")
_MORE = Template("{count} more {count:v does|do} the same")
_WAITING = Template("{count:n other} {count:v wait} for it: {agents}")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each empty pool: whether one of its holders can go on."""
    for process in view.pythons:
        for resource in process.resources:
            if resource.kind not in _POOLS or resource.value or not (resource.waiters or resource.waiting_tasks):
                continue
            holders = [(Agent(process.pid, w.tid, w.task), w) for w in resource.wakers if w.role == "holder"]
            if not holders:
                continue
            free = [a for a, _w in holders if not _starves(view, process, resource, a)]
            if free:
                yield No(_GOES_ON(pool=resource.description, holder=free[0]))
            elif not any(
                (view.graph.needs(a, resource.id) or _wants(view, a, resource)) for a, _w in holders
            ) or _in_other_circle(view, resource, holders):
                yield No(_STUCK_OTHERWISE(pool=resource.description))
            elif not resource.limit or len(holders) >= resource.limit:  # an unknown capacity counts as reached
                yield _match(view, process, resource, holders)


def _starves(view: View, process: Process, resource: Resource, agent: Agent) -> bool:
    """Return whether a holder waits without a time limit for another part, or can never move again."""
    thread = view.graph.places.thread(agent)
    wait = thread.wait if thread is not None else None
    more = wait is not None and wait.resource == resource.id and wait.endless is True
    return (more and thread is not None and not view.moves(thread)) or view.graph.stuck(agent) is not None


def _in_other_circle(view: View, resource: Resource, holders: List[Holder]) -> bool:
    """Return whether a holder is in a wait-for cycle of other resources, which is then the cause."""
    agents = {agent for agent, _waker in holders}
    return any(
        not agents.isdisjoint(cycle.agents) and resource.id not in {edge.resource for edge in cycle.edges}
        for cycle in view.graph.cycles
    )


def _match(view: View, process: Process, resource: Resource, holders: List[Holder]) -> Match:
    graph, who = view.graph, list(dict.fromkeys(a for a, _w in holders))
    pool, told = resource.description, (_TASKS if who[0].task is not None else _THREADS)(count=len(who))
    facts: List[Said] = [_PARTS(pool=pool, parts=len(holders), holders=told)]
    facts += [_has_one(view, agent, waker, resource) for agent, waker in holders[:_NAMED]]
    facts += [_MORE(count=len(holders) - _NAMED)] if len(holders) > _NAMED else []
    facts += resource.because
    behind = [Agent(process.pid, tid) for tid in resource.waiters] + [
        Agent(process.pid, task=t) for t in resource.waiting_tasks
    ]
    waiting = [agent for agent in behind if agent not in who]
    if waiting:
        facts.append(_WAITING(count=len(waiting), agents=tuple(waiting[:5])))
    at = clauses.at(own_frame(graph.places.stack(who[0])))
    return Match(
        confidence="proven" if resource.closed and {graph.stuck(a) for a in who} == {"proven"} else "likely",
        summary=_SUMMARY(pool=pool, holders=told, count=len(who), at=at),
        evidence=tuple(facts),
        culprits=tuple(_culprits(view, holders)),
        victims=tuple(view.victim_of(agent) for agent in waiting),
        pid=process.pid,
    )


def _has_one(view: View, agent: Agent, waker: Waker, resource: Resource) -> Text:
    """Return the text on one holder: since when it has its part, and what it waits for."""
    what = (
        _ANOTHER if _wants(view, agent, resource) else _WHO_WANT_ONE if view.graph.needs(agent, resource.id) else _ELSE
    )
    since = _SINCE(frame=waker.frame) if waker.frame is not None else None
    at = clauses.at(own_frame(view.graph.places.stack(agent)))
    return _HAS_ONE(holder=agent, since=since, basis=waker.basis, at=at, what=what())


def _culprits(view: View, holders: List[Holder]) -> Iterator[Culprit]:
    """Return the lines where holders ask for more, with a caller each, then where they took their part; each line once."""
    own = [[f for f in view.graph.places.stack(agent) if not is_library(f)][:2] for agent, _waker in holders]
    wanted = [(frame, agent) for frames, (agent, _waker) in zip(own, holders) for frame in frames]
    places: Dict[PythonFrame, Agent] = {}
    for frame, agent in (*wanted, *((waker.frame, agent) for agent, waker in holders)):
        if frame is not None:
            places.setdefault(frame, agent)
    return (view.culprit_of(agent, frame) for frame, agent in places.items())


def _wants(view: View, agent: Agent, resource: Resource) -> bool:
    """Return whether an agent waits for the resource itself."""
    places = view.graph.places
    thread, task = places.thread(agent), places.task(agent)
    wait = thread.wait if thread is not None else task.wait if task is not None else None
    return wait is not None and wait.resource == resource.id
