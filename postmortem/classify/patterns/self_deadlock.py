"""A thread waits for a plain lock that it already holds.

**What it looks like.** One thread waits for a lock at 0 % CPU, and further down its own stack stands the `with` of the same
lock. Others queue behind it.

**Easily mistaken for** `lock-order-deadlock` (two threads); `finalizer-deadlock` and `signal-handler-deadlock`, where code
that nobody called re-enters the lock.

**Why it hangs.** A `threading.Lock` does not know its owner: taking it twice waits for a release that only the waiting
thread itself could do.

**Remedy.** Do the inner call after leaving the `with` block, split off a function that expects the lock to be held, or use
an `RLock`.
"""

from __future__ import annotations

from typing import Iterator

from ...evidence import HeldLock, Process, Resource, Thread
from ..knowledge import is_finalizer, own_frame, short
from ..pattern import Answer, Match, No, Pattern
from ..view import View, label, plural

PATTERN = Pattern(
    id="self-deadlock",
    title="a thread takes a lock that it already holds",
    explanation=(
        "A plain Lock is not re-entrant: the second acquire waits for a release, and the only thread that could release "
        "it is the one that waits."
    ),
    remedy=(
        "Leave the `with` block before calling code that takes the lock again, give that code a variant for callers who "
        "hold it, or make the lock a threading.RLock."
    ),
    needs=("python",),
    outranks=("shutdown-join", "child-wait", "network-wait", "sleeping", "gil-contention", "python-busy-loop"),
    references=("https://docs.python.org/3/library/threading.html#rlock-objects",),
)


def match(view: View) -> Iterator[Answer]:
    for process in view.pythons:
        resources = {r.id: r for r in process.resources}
        for thread in process.threads:
            resource = resources.get(thread.wait.resource or "") if thread.wait else None
            if resource is None or resource.owner_tid != thread.tid or resource.kind == "rlock":
                continue
            held = next((h for h in thread.holds if h.resource == resource.id), None)
            if held is None or held.depth == 0:
                continue
            if any(is_finalizer(f) for f in thread.python[: held.depth]):
                yield No("a finalizer re-enters the lock: see finalizer-deadlock")
                continue
            yield _match(view, process, thread, resource, held)


def _match(view: View, process: Process, thread: Thread, resource: Resource, held: HeldLock) -> Match:
    again = own_frame(thread.python)
    queue = [t for tid in resource.waiters if tid != thread.tid for t in [view.thread(process, tid)] if t]
    at = f" at {short(again)}" if again else ""
    facts = [
        f"{label(thread)} took {resource.description} at {short(held.frame)} (known: {held.basis})",
        f"the same thread waits for the same lock{at}, {plural(held.depth, 'call')} further in",
    ]
    if queue:
        facts.append(f"{plural(len(queue), 'other thread')} queue for the lock")
    culprits = [view.culprit(process, f, thread) for f in (again, held.frame) if f is not None]
    # the call that leads from the one to the other is often the line to move
    culprits += [view.culprit(process, f, thread) for f in thread.python[held.depth : held.depth + 1]]
    endless = thread.wait is not None and thread.wait.endless is not False
    return Match(
        confidence="proven" if endless and held.basis != "inferred" else "likely",
        summary=f"{label(thread)} waits{at} for {resource.description}, which it holds itself since {short(held.frame)}",
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim(process, t) for t in queue),
        pid=process.pid,
    )
