"""A finalizer (`__del__`, a weakref callback) tries to acquire a lock that the code it interrupted holds.

**What it looks like.** One thread waits for a lock; further down its own stack the same lock is held, and between the two
is a `__del__` or a weakref callback that no code called explicitly.

**Easily mistaken for** `self-deadlock`, where the program itself makes the second call.

**Why it hangs.** Dropping the last reference to an object runs its `__del__` at once, in the current thread and with whatever
locks it holds; the garbage collector can do the same at any allocation.

**Remedy.** Acquire no lock in `__del__`, or drop references outside the `with` block.
"""

from __future__ import annotations

from typing import Iterator

from ....evidence import PythonFrame
from ....findings import Template
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, Pattern
from .reentry import Reentry, reentries

PATTERN = Pattern(
    id="finalizer-deadlock",
    title="a finalizer wants a lock that the interrupted code holds",
    explanation=(
        "An object was destroyed while a lock was held. Its finalizer ran at once, in the same thread, and tries to acquire "
        "the same lock, which is not re-entrant, so the thread waits for itself."
    ),
    remedy="Keep locks out of __del__ (queue the work instead), or drop the last reference after leaving the `with` block.",
    needs=("python",),
    outranks=("self-deadlock", "lock-order-deadlock", "shutdown-join", "child-wait", "network-wait", "sleeping"),
    references=("https://docs.python.org/3/reference/datamodel.html#object.__del__",),
)

_SUMMARY = Template("{finalizer} ran while {thread} held {lock}, and waits for the same lock")
_BEGAN = Template("while {below} was running, an object was destroyed, and {finalizer} began to run")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each thread that waits, in a finalizer, for a lock that it holds."""
    for found in reentries(view):
        if found.via == "finalizer" and found.entered is not None:
            yield _match(view, found, found.entered)


def _match(view: View, found: Reentry, finalizer: PythonFrame) -> Match:
    thread, resource, held = found.thread, found.resource, found.held
    again = own_frame(thread.python)
    dropped = thread.python[held.depth]
    below = thread.python[thread.python.index(finalizer) + 1 : held.depth + 1]
    places = (again, finalizer, held.frame, own_frame(below), dropped)
    return Match(
        confidence="proven" if found.sure else "likely",
        summary=_SUMMARY(finalizer=finalizer, thread=clauses.named(thread), lock=resource.description),
        evidence=(
            found.taken,
            _BEGAN(below=own_frame(below) or dropped, finalizer=finalizer),
            found.wanted_again,
        ),
        culprits=tuple(dict.fromkeys(view.culprit(found.process, f, thread) for f in places if f is not None)),
        pid=found.process.pid,
    )
