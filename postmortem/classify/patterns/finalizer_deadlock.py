"""A finalizer (`__del__`) takes a lock that the interrupted code below it holds.

**What it looks like.** One thread waits for a lock; further down its own stack the same lock is held, and between the two
stands a `__del__` that nobody called by name.

**Easily mistaken for** `self-deadlock`, where the program itself makes the second call.

**Why it hangs.** Dropping the last reference to an object runs its `__del__` at once, in whatever thread and under whatever
locks it happens; the collector does the same at any allocation.

**Remedy.** Take no lock in `__del__`, or drop references outside the `with` block.
"""

from __future__ import annotations

from typing import Iterator

from ...evidence import HeldLock, Process, Resource, Thread
from ..knowledge import is_finalizer, own_frame, short
from ..pattern import Answer, Match, Pattern
from ..view import View, label

PATTERN = Pattern(
    id="finalizer-deadlock",
    title="a finalizer re-enters a lock held below it",
    explanation=(
        "The last reference to an object was dropped while a lock was held. Its __del__ ran right there and wants the same "
        "lock, which is not re-entrant, so the thread waits for itself."
    ),
    remedy="Keep locks out of __del__ (queue the work instead), or drop the last reference after leaving the `with` block.",
    needs=("python",),
    outranks=("self-deadlock", "lock-order-deadlock", "shutdown-join", "child-wait", "network-wait", "sleeping"),
    references=("https://docs.python.org/3/reference/datamodel.html#object.__del__",),
)


def match(view: View) -> Iterator[Answer]:
    for process in view.pythons:
        resources = {r.id: r for r in process.resources}
        for thread in process.threads:
            resource = resources.get(thread.wait.resource or "") if thread.wait else None
            if resource is None or resource.owner_tid != thread.tid or resource.kind == "rlock":
                continue
            held = next((h for h in thread.holds if h.resource == resource.id), None)
            if held is not None and any(is_finalizer(f) for f in thread.python[: held.depth]):
                yield _match(view, process, thread, resource, held)


def _match(view: View, process: Process, thread: Thread, resource: Resource, held: HeldLock) -> Match:
    finalizer = next(f for f in thread.python if is_finalizer(f))
    again = own_frame(thread.python)
    dropped = thread.python[held.depth]
    frames = [f for f in (again, finalizer, held.frame, dropped) if f is not None]
    return Match(
        confidence="proven" if held.basis != "inferred" else "likely",
        summary=f"{short(finalizer)} ran while {label(thread)} held {resource.description}, and wants the same lock",
        evidence=(
            f"{label(thread)} took {resource.description} at {short(held.frame)} (known: {held.basis})",
            f"at {short(dropped)} an object lost its last reference, and {short(finalizer)} began to run",
            f"it waits for the same lock at {short(again)}" if again else "it waits for the same lock",
        ),
        culprits=tuple(dict.fromkeys(view.culprit(process, f, thread) for f in frames)),
        pid=process.pid,
    )
