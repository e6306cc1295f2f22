"""A finalizer (`__del__`, a weakref callback, a destructor in C) wants a lock whose holder waits for its thread.

**What it looks like.** One thread waits for a lock; further down its own stack the same lock is held, and between the two
is a `__del__` or a weakref callback that no code called explicitly. Or another thread holds the lock, and waits for the
thread in which the finalizer runs: for its job's result, for its end, for a lock. The finalizer need not be Python: the
collector also runs the `__dealloc__` of extensions (h5py, database drivers), which take their library's lock.

**Easily mistaken for** `self-deadlock`, where the program itself makes the second call.

**Why it hangs.** Dropping the last reference to an object runs its `__del__` at once, in the current thread and with whatever
locks it holds; the garbage collector can do the same at any allocation, in whichever thread allocates.

**Remedy.** Acquire no lock in `__del__`, or drop references outside the `with` block. Close such objects explicitly, avoid
reference cycles through them, and do not wait for other threads while holding their library's lock.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread
from ....evidence.vocabulary import ResourceKind
from ....findings import Template
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, Pattern
from .reentry import Interruption, Reentry, interruption, reentries

PATTERN = Pattern(
    id="finalizer-deadlock",
    tier="specific",
    title="a finalizer wants a lock whose holder waits for its thread",
    explanation=(
        "Dropping the last reference to an object, or a run of the garbage collector at any allocation, runs its finalizer "
        "at once, in the middle of other code. Here it wants a lock that the interrupted code holds, or a thread that waits "
        "for the interrupted one, so neither ever goes on."
    ),
    remedy=(
        "Keep locks out of __del__ (queue the work instead), or drop the last reference after leaving the `with` block. Close "
        "objects whose destructor takes a library's lock explicitly, and keep them out of reference cycles."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/reference/datamodel.html#object.__del__",
        "https://github.com/h5py/h5py/issues/2019",
    ),
)

_SUMMARY = Template("{finalizer} ran while {thread} held {lock}, and waits for the same lock")
_BEGAN = Template("while {below} was running, an object was destroyed, and {finalizer} began to run")
#: Resources that are held, so that a finalizer may want what another thread has.
_HELD: FrozenSet[ResourceKind] = frozenset(("lock", "rlock", "condition", "mutex", "rwlock", "import-lock"))

_ACROSS = Template(
    "{finalizer} runs in {thread}{at} and waits for {lock}, which {holder} holds; {holder} waits{holds_at} for {thread}"
)
_NATIVE = Template("a destructor in native code")
_COLLECTED = Template(
    "a garbage collection began in {thread}{at}, and {finalizer} of an object that it freed waits for {lock}"
)
_FREED = Template("an object was destroyed in {thread}{at}, and {finalizer} waits for {lock}")
_HOLDS = Template("{holder} holds {lock}{since} ({basis:known})")
_SINCE = Template(", acquired at {frame}")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each thread that waits, in a finalizer, for a lock that it holds."""
    for found in reentries(view):
        if found.via == "finalizer" and found.entered is not None:
            yield _match(view, found, found.entered)
    for process in view.pythons:
        resources = {r.id: r for r in process.resources if r.kind in _HELD and r.owner_tid is not None}
        for thread in process.threads:
            lock = resources.get(thread.wait.resource or "") if thread.wait is not None else None
            ran = interruption(thread) if lock is not None and lock.owner_tid != thread.tid else None
            holder = view.thread(process, lock.owner_tid) if lock is not None and ran is not None else None
            if (
                lock is not None
                and ran is not None
                and holder is not None
                and _owes(view, process, thread, holder, ran)
            ):
                yield _across(view, process, thread, holder, lock, ran)


def _owes(view: View, process: Process, thread: Thread, holder: Thread, ran: Interruption) -> bool:
    """Return whether the lock's holder waits for what the thread did, or had, before the finalizer began."""
    agent, other = Agent(process.pid, thread.tid), Agent(process.pid, holder.tid)
    alone = any(edge.wakers == (agent,) and edge.endless for edge in view.graph.edges.get(other, ()))
    if view.graph.stuck(agent) is None or not (alone or other in view.graph.behind(frozenset((agent,)))):
        return False
    wanted = {r.id for r in process.resources if r.waiters}
    return not any(h.depth < ran.depth and h.resource in wanted for h in thread.holds)


def _across(view: View, process: Process, thread: Thread, holder: Thread, lock: Resource, ran: Interruption) -> Match:
    """Return the match of a finalizer that wants a lock of another thread, which waits for the finalizer's."""
    finalizer = ran.entered if ran.entered is not None else _NATIVE()
    who, other, interrupted = clauses.named(thread), clauses.named(holder), own_frame(ran.below)
    at, waiting = clauses.at(interrupted), own_frame(holder.python)
    held = next((h for h in holder.holds if h.resource == lock.id), None)
    basis = lock.owner_basis or "inferred"
    sure = basis != "inferred" and view.graph.stuck(Agent(process.pid, thread.tid)) == "proven"
    taken = own_frame(holder.python[held.depth :]) or held.frame if held is not None else None
    began = _COLLECTED if ran.collecting else _FREED
    places: Tuple[Tuple[PythonFrame, Thread], ...] = tuple(
        (f, t)
        for f, t in (
            (ran.entered, thread),
            (waiting, holder),
            (interrupted, thread),
            (taken, holder),
        )
        if f is not None
    )
    return Match(
        confidence="proven" if sure else "likely",
        summary=_ACROSS(
            finalizer=finalizer, thread=who, at=at, lock=lock.description, holder=other, holds_at=clauses.at(waiting)
        ),
        evidence=(
            began(thread=who, at=at, finalizer=finalizer, lock=lock.description),
            _HOLDS(
                holder=other,
                lock=lock.description,
                since=_SINCE(frame=held.frame) if held is not None else None,
                basis=basis,
            ),
            *lock.because,
            *view.graph.reasons(Agent(process.pid, holder.tid)),
        ),
        culprits=tuple(dict.fromkeys(view.culprit(process, f, t) for f, t in places)),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid) if t is not holder),
        pid=process.pid,
    )


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
