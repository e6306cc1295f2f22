"""A cycle of threads: each one holds a lock that the next one wants.

**What it looks like.** Two or more threads wait for locks without a timeout, at 0 % CPU, and the chain *waits for → is held
by* leads back to where it began. Others queue behind them.

**Easily mistaken for** `lock-contention`, where the lock moves; `orphaned-lock`, whose holder is gone.

**Why it hangs.** The locks are taken in different orders. Each thread waits for the other to let go, and neither can.

**Remedy.** Take the locks in one fixed order everywhere, take both at once, or let the inner call happen outside the lock.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional, Tuple

from ....evidence.vocabulary import ResourceKind
from ....findings import Culprit
from ....waitgraph import Cycle, Edge, known_from
from ...facts.knowledge import own_frame, short
from ...facts.view import View, do, plural
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="lock-order-deadlock",
    title="a cycle of threads, each holding what the next one wants",
    explanation=(
        "Each of these threads holds a lock and waits, without a timeout, for one that another thread of the cycle holds. "
        "None of them can go on, so none will ever let go."
    ),
    remedy=(
        "Take the locks in the same order everywhere (for objects of one kind: sort them by a key), or leave the outer "
        "`with` block before taking the second lock."
    ),
    needs=("python",),
    outranks=(
        "missed-wakeup",
        "future-never-resolved",
        "shutdown-join",
        "child-wait",
        "network-wait",
        "sleeping",
        "gil-contention",
        "python-busy-loop",
    ),
    references=("https://docs.python.org/3/library/threading.html#lock-objects",),
)

#: Kinds of resources in such a cycle; a cycle of only the GIL and native locks is `native-lock-gil-inversion`.
_LOCKS: FrozenSet[ResourceKind] = frozenset(
    ("lock", "rlock", "condition", "semaphore", "shared-semaphore", "file-lock", "mutex", "rwlock", "thread")
)
_PYTHON: FrozenSet[ResourceKind] = frozenset(
    ("lock", "rlock", "condition", "semaphore", "shared-semaphore", "file-lock")
)
_NAMED = 6
_LOOP_REMEDY = (
    "Let go of the lock before waiting for work of the event loop, and never block the loop's own thread on a lock that is held "
    "for longer than a moment: use asyncio.Lock there, or take the lock on another thread (asyncio.to_thread)."
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each wait-for cycle of threads through locks."""
    cycles = [cycle for cycle in view.graph.cycles if _is_of_locks(cycle)]
    for cycle in cycles:
        yield _match(view, cycle)
    for process in view.pythons if not view.graph.cycles else ():
        waits = sum(e.resource is not None and bool(e.named) for t in process.threads for e in view.edges(process, t))
        if waits:
            yield No(f"no circle of locks among {plural(len(process.threads), 'thread')} of process {process.pid}")


def _is_of_locks(cycle: Cycle) -> bool:
    """Return whether a cycle leads only through threads and through at least one lock of this pattern."""
    kinds = {edge.kind for edge in cycle.edges}
    threads = all(agent.tid is not None for agent in cycle.agents)
    return (
        len(cycle.edges) > 1
        and threads
        and bool(kinds & (_PYTHON if "gil" in kinds else _LOCKS))
        and "import-lock" not in kinds
    )


def _match(view: View, cycle: Cycle) -> Match:
    facts: List[str] = []
    culprits: List[Culprit] = []
    following = [*cycle.edges[1:], cycle.edges[0]]
    for edge, after in zip(cycle.edges, following):
        fact, places = _link(view, edge, after)
        facts.append(fact)
        culprits += places
    facts += view.limits(cycle)
    behind = [a for a in view.graph.behind(frozenset(cycle.agents)) if a.tid is not None]
    if behind:
        facts.append(f"{plural(len(behind), 'other thread')} {do(len(behind), 'wait')} behind them")
    return Match(
        confidence=view.certainty(cycle),
        summary=_summary(view, cycle),
        remedy=_remedy(view, cycle),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim_of(agent) for agent in behind),
        pid=cycle.edges[0].waiter.pid,
    )


def _link(view: View, edge: Edge, after: Edge) -> Tuple[str, List[Culprit]]:
    """Return the sentence for one edge, and its lines: where the lock is wanted, and where its holder acquired it."""
    graph = view.graph
    waiter, owner = graph.places.thread(edge.waiter), graph.places.thread(after.waiter)
    frame = own_frame(waiter.python) if waiter is not None else None
    at = f" at {short(frame)}" if frame else ""
    held = next((h for h in owner.holds if h.resource == edge.resource), None) if owner and edge.resource else None
    places = [(edge.waiter.pid, frame, waiter), (after.waiter.pid, held.frame if held else None, owner)]
    found = [view.culprit(view.by_pid[pid], f, t) for pid, f, t in places if f is not None and pid in view.by_pid]
    if edge.kind == "thread":
        return f"{graph.label(edge.waiter)}{at} waits for the end of {graph.label(after.waiter)}", found
    since = f", taken at {short(held.frame)}" if held else ""
    who = graph.label(after.waiter)
    wants = (
        f"{edge.verb} {edge.what}, held by {who}{since}"
        if edge.verb == "wants"
        else (f"{edge.verb} {edge.what}, which only {who} could end{since}")
    )
    return f"{graph.label(edge.waiter)}{at} {wants} ({known_from(edge.basis)})", found


def _remedy(view: View, cycle: Cycle) -> Optional[str]:
    """Return another remedy if the cycle includes an event loop's thread and a wait for work of that loop."""
    following = [*cycle.edges[1:], cycle.edges[0]]
    looping = (
        edge.kind == "future" and after.waiter.tid in view.graph.places.by_pid[after.waiter.pid].loop_of
        for edge, after in zip(cycle.edges, following)
    )
    return _LOOP_REMEDY if any(looping) else None


def _summary(view: View, cycle: Cycle) -> str:
    names = " → ".join(view.graph.label(agent) for agent in cycle.agents[:_NAMED])
    names += f" → … {len(cycle.agents) - _NAMED} more" if len(cycle.agents) > _NAMED else ""
    what = " and ".join(dict.fromkeys(edge.what for edge in cycle.edges[:3]))
    more = " …" if len(cycle.edges) > 3 else ""
    return f"{len(cycle.edges)} threads wait for each other in a circle ({names} → back): {what}{more}"
