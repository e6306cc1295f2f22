"""A cycle of threads: each one holds a lock that the next one wants.

**What it looks like.** Two or more threads wait for locks without a timeout, at 0 % CPU, and the chain *waits for → is held
by* leads back to where it began. Others queue behind them.

**Easily mistaken for** `lock-contention`, where the lock moves; `orphaned-lock`, whose holder is gone.

**Why it hangs.** The locks are taken in different orders. Each thread waits for the other to let go, and neither can.

**Remedy.** Take the locks in one fixed order everywhere, take both at once, or let the inner call happen outside the lock.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ...evidence import HeldLock, Process, PythonFrame
from ...findings import Culprit
from ..knowledge import own_frame, short
from ..pattern import Answer, Match, No, Pattern
from ..view import Edge, View, do, label, plural

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
    outranks=("shutdown-join", "child-wait", "network-wait", "sleeping", "gil-contention", "python-busy-loop"),
    references=("https://docs.python.org/3/library/threading.html#lock-objects",),
)

#: Owners that were read, not guessed; a join names its thread itself.
_READ = ("recorded", "with-slot", "join")


def match(view: View) -> Iterator[Answer]:
    looked_at = 0
    for process in view.pythons:
        edges = {e.waiter.tid: e for e in view.edges(process)}
        looked_at += len(process.threads)
        cycles = list(_cycles(edges))
        for cycle in cycles:
            yield _match(view, process, cycle, list(edges.values()))
        if not cycles and edges:
            yield No(f"no cycle among {plural(len(process.threads), 'thread')} of process {process.pid} "
                     f"and {plural(len(edges), 'wait')} whose other side is known")  # fmt: skip


def _cycles(edges: dict[int, Edge]) -> Iterator[List[Edge]]:
    """Each thread waits for one thing, so following the edges finds every cycle."""
    done: set[int] = set()
    for start in sorted(edges):
        path: List[int] = []
        tid = start
        while tid in edges and tid not in done and tid not in path:
            path.append(tid)
            tid = edges[tid].owner_tid
        if tid in path and len(path) - path.index(tid) > 1:
            yield [edges[t] for t in path[path.index(tid) :]]
        done.update(path)


def _match(view: View, process: Process, cycle: List[Edge], edges: List[Edge]) -> Match:
    sure = all(e.basis in _READ and e.endless for e in cycle)
    tids = {e.waiter.tid for e in cycle}
    facts: List[str] = []
    culprits: List[Culprit] = []
    for edge in cycle:
        owner = view.thread(process, edge.owner_tid)
        name = label(owner) if owner else f"thread {edge.owner_tid}"
        wants = own_frame(edge.waiter.python)
        held = _held(owner.holds if owner else (), edge.resource)
        at = f" at {short(wants)}" if wants else ""
        since = f", taken at {short(held.frame)}" if held else ""
        if edge.basis == "join":
            facts.append(f"{label(edge.waiter)}{at} waits for {edge.what}")
        else:
            facts.append(f"{label(edge.waiter)}{at} wants {edge.what}, held by {name}{since} (known: {edge.basis})")
        culprits += [view.culprit(process, f, edge.waiter) for f in _places(wants, None)]
        culprits += [view.culprit(process, f, owner) for f in _places(None, held)]
    victims = [e.waiter for e in edges if e.waiter.tid not in tids]
    if victims:
        facts.append(f"{plural(len(victims), 'other thread')} {do(len(victims), 'wait')} behind them")
    return Match(
        confidence="proven" if sure else "likely",
        summary=_summary(cycle),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim(process, t) for t in victims),
        pid=process.pid,
    )


def _summary(cycle: List[Edge]) -> str:
    names = " → ".join(label(e.waiter) for e in cycle)
    what = " and ".join(dict.fromkeys(e.what for e in cycle[:3]))
    more = " …" if len(cycle) > 3 else ""
    return f"{len(cycle)} threads wait for each other in a circle ({names} → back): {what}{more}"


def _held(holds: Tuple[HeldLock, ...], resource: Optional[str]) -> Optional[HeldLock]:
    return next((h for h in holds if h.resource == resource), None)


def _places(wants: Optional[PythonFrame], held: Optional[HeldLock]) -> List[PythonFrame]:
    return [f for f in (wants, held.frame if held else None) if f is not None]
