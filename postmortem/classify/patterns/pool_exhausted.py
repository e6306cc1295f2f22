"""All connections, tokens or permits are out, and whoever has one waits for another.

**What it looks like.** Threads wait for a semaphore with no permit left, or for an item in an empty queue that is used as a
pool. Those who have one each wait for a second one, or for something that cannot come.

**Easily mistaken for** an idle consumer, whose queue is empty because there is nothing to do; `network-wait`, where the holders
wait for a server; `executor-self-deadlock`, where the workers themselves ran out.

**Why it hangs.** A request takes one thing from the pool and, while it has it, asks for a second one. As many requests at once
as the pool has things take them all, and none gets its second.

**Remedy.** Pass on what was taken instead of taking another; take all that is needed at once; give back before asking again.
A larger pool only moves the day; a time limit on the second one turns the hang into an error.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from ...evidence import Process, PythonFrame, Resource, Thread, Waker
from ...findings import Culprit
from ...waitgraph import Agent
from ..knowledge import is_library, own_frame, short
from ..pattern import Answer, Match, No, Pattern
from ..view import View, label, plural

PATTERN = Pattern(
    id="pool-exhausted",
    title="all connections, tokens or permits are out, and their holders wait for more",
    explanation=(
        "Everything that the pool had has been taken, by threads that wait for another one of it before they give theirs "
        "back. None of them gets it."
    ),
    remedy=(
        "Pass on the connection (token, permit) that the caller has already, or give it back before asking for another; "
        "put a time limit on the wait so that a shortage becomes an error that tells of it."
    ),
    needs=("python",),
    outranks=("lock-order-deadlock", "missed-wakeup", "shutdown-join", "child-wait", "network-wait", "sleeping"),
    references=(
        "https://docs.python.org/3/library/threading.html#semaphore-objects",
        "https://github.com/nsidnev/fastapi-realworld-example-app/issues/64",
        "https://github.com/brettwooldridge/HikariCP/wiki/About-Pool-Sizing",
    ),
)

Holder = Tuple[Thread, Waker]


def match(view: View) -> Iterator[Answer]:
    for process in view.pythons:
        for resource in process.resources:
            if resource.kind not in ("semaphore", "queue") or resource.value or not resource.waiters:
                continue
            holders = _holders(view, process, resource)
            if not holders:
                continue
            free = [t for t, _w in holders if not _starves(view, process, resource, t)]
            if free:
                yield No(f"{resource.description} is empty, but {label(free[0])}, who has some of it, can go on")
            elif not any(_wants(t, resource) for t, _w in holders) or _in_other_circle(
                view, process, resource, holders
            ):
                yield No(f"those who have some of {resource.description} cannot go on for another reason")
            elif _all_known(resource, holders):
                yield _match(view, process, resource, holders)


def _holders(view: View, process: Process, resource: Resource) -> List[Holder]:
    """Who has a part of it, once for each part."""
    found = [(view.thread(process, w.tid), w) for w in resource.wakers if w.role == "holder"]
    return [(thread, waker) for thread, waker in found if thread is not None]


def _starves(view: View, process: Process, resource: Resource, thread: Thread) -> bool:
    """Does it wait, without a time limit, for a part more, or for what cannot come?"""
    wait = thread.wait
    more = wait is not None and wait.resource == resource.id and wait.endless is True and not view.moves(thread)
    return more or view.graph.stuck(Agent(process.pid, thread.tid)) is not None


def _in_other_circle(view: View, process: Process, resource: Resource, holders: List[Holder]) -> bool:
    """Is one of them kept by a circle of other things? Then the pool suffers from that one."""
    agents = {Agent(process.pid, thread.tid) for thread, _waker in holders}
    return any(
        not agents.isdisjoint(cycle.agents) and {edge.resource for edge in cycle.edges} != {resource.id}
        for cycle in view.graph.cycles
    )


def _all_known(resource: Resource, holders: List[Holder]) -> bool:
    """Are all parts accounted for? Where nobody knows how many there are, those that were found must do."""
    return not resource.limit or len(holders) >= resource.limit - (resource.value or 0)


def _match(view: View, process: Process, resource: Resource, holders: List[Holder]) -> Match:
    threads = list({t.tid: t for t, _w in holders}.values())
    stuck = {view.graph.stuck(Agent(process.pid, t.tid)) for t in threads}
    facts = [
        f"{resource.description}: {plural(len(holders), 'part')} of it found, with {plural(len(threads), 'thread')}"
    ]
    for thread, waker in holders:
        frame = own_frame(thread.python)
        facts.append(
            f"{label(thread)} has one{_at(' since', waker.frame)} (known: {waker.basis}) and waits"
            f"{_at('', frame)} for {'another' if _wants(thread, resource) else 'something else'}"
        )
    facts += resource.because
    waiting = [t for t in process.threads if t.tid in resource.waiters and t not in threads]
    if waiting:
        facts.append(f"{plural(len(waiting), 'other thread')} wait behind them: {', '.join(map(label, waiting[:5]))}")
    return Match(
        confidence="proven" if resource.closed and stuck == {"proven"} else "likely",
        summary=f"{resource.description} is exhausted: {plural(len(threads), 'thread')} that have taken from it wait"
        f"{_at('', own_frame(threads[0].python))} for more before they give theirs back",
        evidence=tuple(facts),
        culprits=tuple(_culprits(view, process, holders)),
        victims=tuple(view.victim(process, t) for t in waiting),
        pid=process.pid,
    )


def _culprits(view: View, process: Process, holders: List[Holder]) -> Iterator[Culprit]:
    """Where they ask for more, and who asks through that; then where they took what they have; each line once."""
    own = [[f for f in thread.python if not is_library(f)][:2] for thread, _waker in holders]
    wanted = [(frame, thread) for frames, (thread, _waker) in zip(own, holders) for frame in frames]
    places: Dict[PythonFrame, Thread] = {}
    for frame, thread in (*wanted, *((waker.frame, thread) for thread, waker in holders)):
        if frame is not None:
            places.setdefault(frame, thread)
    return (view.culprit(process, frame, thread) for frame, thread in places.items())


def _wants(thread: Thread, resource: Resource) -> bool:
    return thread.wait is not None and thread.wait.resource == resource.id


def _at(word: str, frame: Optional[PythonFrame]) -> str:
    return f"{word} at {short(frame)}" if frame is not None else ""
