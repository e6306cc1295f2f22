"""A cycle of threads: each one holds a lock that the next one wants.

**What it looks like.** Two or more threads wait for locks without a timeout, at 0 % CPU, and the chain *waits for → is held
by* leads back to where it began. Others queue behind them.

**Easily mistaken for** `lock-contention`, where the lock changes hands; `orphaned-lock`, whose holder is gone.

**Why it hangs.** The locks are acquired in different orders. Each thread waits for another to release a lock, and none can.

**Remedy.** Acquire the locks in one fixed order everywhere, acquire both at once, or let the inner call happen outside the lock.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional, Tuple

from ....evidence import NativeFrame, Process, Resource, Thread
from ....evidence.vocabulary import ResourceKind, WaitKind
from ....findings import Culprit, Template, Text
from ....waitgraph import Agent, Cycle, Edge
from ...facts import clauses, native
from ...facts.deeds import later, who_comes_to
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="lock-order-deadlock",
    tier="group",
    title="a cycle of threads, each holding what the next one wants",
    explanation=(
        "Each of these threads holds a lock and waits, without a timeout, for one that another thread of the cycle holds. "
        "None of them can go on, so none will ever release its lock."
    ),
    remedy=(
        "Acquire the locks in the same order everywhere (for objects of one kind: sort them by a key), or leave the outer "
        "`with` block before acquiring the second lock."
    ),
    needs=("python",),
    references=("https://docs.python.org/3/library/threading.html#lock-objects",),
)

#: Kinds of resources in such a cycle; a cycle of only the GIL and native locks is `native-lock-gil-inversion`.
_LOCKS: FrozenSet[ResourceKind] = frozenset(
    ("lock", "rlock", "condition", "semaphore", "shared-semaphore", "file-lock", "mutex", "rwlock", "thread")
)
_PYTHON: FrozenSet[ResourceKind] = frozenset(
    ("lock", "rlock", "condition", "semaphore", "shared-semaphore", "file-lock")
)
#: Waits inside a library for a thread of its own, and of that thread for a native lock.
_SIGNALS: FrozenSet[WaitKind] = frozenset(("condition", "semaphore", "futex"))
_NATIVE: FrozenSet[WaitKind] = frozenset(("mutex", "lock"))
_NAMED = 6

_LOOP_REMEDY = Template(
    "Release the lock before waiting for work of the event loop, and never block the loop's own thread on a lock that is held "
    "for longer than a moment: use asyncio.Lock there, or acquire the lock on another thread (asyncio.to_thread)."
)

_LIBRARY = Template(
    "{holder} waits{at}, inside {where}, for a thread of that library, and that thread wants {lock}, which {holder} holds"
)
_LIBRARY_HOLDS = Template("{holder} holds {lock} (recorded in it), and waits{at}, inside {where}, without a time limit")
_LIBRARY_WANTS = Template("{helper}, a thread that this library has begun, wants {lock}")
_LIBRARY_REMEDY = Template(
    "Do not hand a library something that comes back to the object which is in use during the call: give it another connection "
    "(cursor, reader), or fetch the data as a whole before."
)
_SUMMARY = Template(
    "{count} threads wait for each other in a cycle ({agents: → }{more} → back): {things: and }{others}"
)
_MORE_AGENTS = Template(" → … {count} more")
_NO_CIRCLE = Template("no cycle of locks among {threads:n thread} of process {pid}")
_BEHIND = Template("{count:n other thread} {count:v wait} behind them")
_JOINS = Template("{waiter}{at} waits for {joined} to end", link=True)
_HELD = Template("{waiter}{at} {verb} {what}, held by {owner}{since} ({basis:known})", link=True)
_OWED = Template("{waiter}{at} {verb} {what}; only {owner} could end that wait{since} ({basis:known})", link=True)
_SINCE = Template(", acquired at {frame}")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each wait-for cycle of threads through locks."""
    cycles = [cycle for cycle in view.graph.cycles if _is_of_locks(cycle)]
    for cycle in cycles:
        yield _match(view, cycle)
    through = [match for process in view.pythons for match in _through_libraries(view, process)]
    yield from through
    for process in view.pythons if not view.graph.cycles and not through else ():
        waits = sum(e.resource is not None and bool(e.named) for t in process.threads for e in view.edges(process, t))
        if waits:
            yield No(_NO_CIRCLE(threads=len(process.threads), pid=process.pid))


def _through_libraries(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for each native lock whose holder waits inside a library of which an own thread wants that lock.

    What the holder waits for was not read, but a thread of that library is to do it.
    """
    for lock in process.resources:
        holder = view.thread(process, lock.owner_tid)
        inside = native.called(holder)[:1] if holder is not None and lock.owner_basis == "recorded" else ()
        if holder is None or not inside or not _waits_for_good(view, holder, _SIGNALS):
            continue
        for helper in view.threads(process, lock.waiters):
            own = [frame for frame in helper.native if native.is_program(frame)]
            begun = bool(own) and own[-1].module == inside[0].module and not helper.is_main and not helper.python
            if not begun or not _waits_for_good(view, helper, _NATIVE):
                continue
            yield _library(view, process, holder, helper, lock, inside[0])


def _waits_for_good(view: View, thread: Thread, kinds: FrozenSet[WaitKind]) -> bool:
    """Return whether a thread is in a wait of some kinds without a time limit, and did not go on."""
    wait = thread.wait
    return wait is not None and wait.kind in kinds and wait.endless is True and not view.moves(thread)


def _library(
    view: View, process: Process, holder: Thread, helper: Thread, lock: Resource, inside: NativeFrame
) -> Match:
    """Return the match of a thread that waits for a library whose own thread wants a lock of the waiting one."""
    frame, where = own_frame(holder.python), native.located(inside)
    at = clauses.at(frame)
    return Match(
        confidence="likely" if view.window is not None else "possible",
        summary=_LIBRARY(holder=clauses.named(holder), at=at, where=where, lock=lock.description),
        evidence=(
            _LIBRARY_HOLDS(holder=clauses.named(holder), lock=lock.description, at=at, where=where),
            _LIBRARY_WANTS(helper=clauses.named(helper), lock=lock.description),
        ),
        culprits=(view.culprit(process, frame, holder),) if frame is not None else (),
        victims=tuple(view.victim_of(a) for a in view.graph.behind(frozenset((Agent(process.pid, holder.tid),)))),
        pid=process.pid,
        remedy=_LIBRARY_REMEDY(),
    )


def _is_of_locks(cycle: Cycle) -> bool:
    """Return whether a cycle leads only through threads and through at least one lock of this pattern."""
    kinds = {edge.kind for edge in cycle.edges}
    threads = all(agent.tid is not None for agent in cycle.agents)
    return (
        len(cycle.edges) > 1
        and threads
        and not ("pool" in kinds and kinds <= {"pool", "thread"})  # no order helps: see pool-exhausted
        and bool(kinds & (_PYTHON if "gil" in kinds else _LOCKS))
        and "import-lock" not in kinds
    )


def _match(view: View, cycle: Cycle) -> Match:
    facts: List[Text] = []
    culprits: List[Culprit] = []
    cited = view.cited(cycle)
    for edge, after in cited:
        fact, places = _link(view, edge, after)
        facts.append(fact)
        culprits += places
    facts += view.limits(cycle, len(cited))
    behind = [a for a in view.graph.behind(frozenset(cycle.agents)) if a.tid is not None]
    if behind:
        facts.append(_BEHIND(count=len(behind)))
    unlocking = _unlocking(view, cycle)
    facts += later("unlocks", unlocking)
    return Match(
        confidence="possible" if unlocking else view.certainty(cycle),
        summary=_summary(cycle),
        remedy=_remedy(view, cycle),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim_of(agent) for agent in behind),
        pid=cycle.edges[0].waiter.pid,
    )


def _unlocking(view: View, cycle: Cycle) -> List[Thread]:
    """Return the threads outside of a cycle that may come to release one of its plain locks, which any thread may release.

    Nobody but its own block releases a lock that a `with` statement has.
    """
    locks = {
        edge: view.graph.places.resource(edge.waiter.pid, edge.resource) for edge in cycle.edges if edge.kind == "lock"
    }
    pids = {edge.waiter.pid for edge, lock in locks.items() if lock is not None and lock.owner_basis == "inferred"}
    members = [thread for agent in cycle.agents for thread in [view.graph.places.thread(agent)] if thread is not None]
    processes = [view.by_pid[pid] for pid in sorted(pids) if pid in view.by_pid]
    return [thread for process in processes for thread in who_comes_to(view, process, "unlocks", *members)]


def _link(view: View, edge: Edge, after: Edge) -> Tuple[Text, List[Culprit]]:
    """Return the text for one edge, and its lines: where the lock is wanted, and where its holder acquired it."""
    graph = view.graph
    waiter, owner = graph.places.thread(edge.waiter), graph.places.thread(after.waiter)
    frame = own_frame(waiter.python) if waiter is not None else None
    at = clauses.at(frame)
    held = next((h for h in owner.holds if h.resource == edge.resource), None) if owner and edge.resource else None
    places = [(edge.waiter.pid, frame, waiter), (after.waiter.pid, held.frame if held else None, owner)]
    found = [view.culprit(view.by_pid[pid], f, t) for pid, f, t in places if f is not None and pid in view.by_pid]
    if edge.kind == "thread":
        return _JOINS(waiter=edge.waiter, at=at, joined=after.waiter), found
    since = _SINCE(frame=held.frame) if held else None
    told = _HELD if edge.verb == "wants" else _OWED
    return (
        told(
            waiter=edge.waiter,
            at=at,
            verb=edge.verb,
            what=edge.what,
            owner=after.waiter,
            since=since,
            basis=edge.basis,
        ),
        found,
    )


def _remedy(view: View, cycle: Cycle) -> Optional[Text]:
    """Return another remedy if the cycle includes an event loop's thread and a wait for work of that loop."""
    following = [*cycle.edges[1:], cycle.edges[0]]
    looping = (
        edge.kind == "future" and after.waiter.tid in view.graph.places.by_pid[after.waiter.pid].loop_of
        for edge, after in zip(cycle.edges, following)
    )
    return _LOOP_REMEDY() if any(looping) else None


def _summary(cycle: Cycle) -> Text:
    left_out = len(cycle.agents) - _NAMED
    return _SUMMARY(
        count=len(cycle.edges),
        agents=cycle.agents[:_NAMED],
        more=_MORE_AGENTS(count=left_out) if left_out > 0 else None,
        things=tuple(dict.fromkeys(edge.what for edge in cycle.edges[:3])),
        others=" …" if len(cycle.edges) > 3 else None,
    )
