"""A thread waits for a plain lock that it already holds.

**What it looks like.** One thread waits for a lock at 0 % CPU, and further down its own stack is the `with` of the same
lock. Others queue behind it.

**Easily mistaken for** `lock-order-deadlock` (two threads); `finalizer-deadlock` and `signal-handler-deadlock`, where code
that was not called explicitly re-enters the lock.

**Why it hangs.** A `threading.Lock` does not know its owner: the second acquire waits for a release, and only the waiting
thread itself could do that.

**Remedy.** Make the inner call after leaving the `with` block, split off a function that expects the lock to be held, or use
an `RLock`.
"""

from __future__ import annotations

from typing import Iterator

from ....findings import Template
from ...facts import clauses
from ...facts.knowledge import is_library, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .reentry import Reentry, reentries

PATTERN = Pattern(
    id="self-deadlock",
    tier="resource",
    title="a thread waits for a lock that it already holds",
    explanation=(
        "A plain Lock is not re-entrant: the second acquire waits for a release, and the only thread that could release "
        "it is the one that waits."
    ),
    remedy=(
        "Leave the `with` block before calling code that acquires the lock again, give that code a variant for callers that "
        "hold it, or make the lock a threading.RLock."
    ),
    needs=("python",),
    references=("https://docs.python.org/3/library/threading.html#rlock-objects",),
)

_SUMMARY = Template("{thread} waits{at} for {lock}, which it already holds, acquired at {since}")
_AGAIN = Template("the same thread waits for the same lock{at}, {depth:n call} deeper")
_QUEUE = Template("{count:n other thread} {count:v queue} for the lock")
_NO_CALL = Template("the lock is re-entered by a {via}, not by a call of the program")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each thread that waits for a lock that it holds, through its own calls."""
    for found in reentries(view):
        if found.via == "call":
            yield _match(view, found)
        else:
            yield No(_NO_CALL(via=found.via))


def _match(view: View, found: Reentry) -> Match:
    process, thread, resource, held = found.process, found.thread, found.resource, found.held
    again = own_frame(thread.python)
    queue = [t for tid in resource.waiters if tid != thread.tid for t in [view.thread(process, tid)] if t]
    at = clauses.at(again)
    facts = [found.taken, _AGAIN(at=at, depth=held.depth)]
    if queue:
        facts.append(_QUEUE(count=len(queue)))
    # the call between the two lines is often the line to move; where a library has the lock, the line that it called back
    between = [frame for frame in thread.python[: held.depth] if not is_library(frame)]
    called_back = between[-1:] if is_library(held.frame) else []
    places = (again, *called_back, held.frame, *thread.python[held.depth : held.depth + 1])
    return Match(
        confidence="proven" if found.sure else "likely",
        summary=_SUMMARY(thread=clauses.named(thread), at=at, lock=resource.description, since=held.frame),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(view.culprit(process, f, thread) for f in places if f is not None)),
        victims=tuple(view.victim(process, t) for t in queue),
        pid=process.pid,
    )
