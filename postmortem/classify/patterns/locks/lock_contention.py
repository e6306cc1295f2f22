"""Many threads queue for one lock, and it does move.

**What it looks like.** Several threads, or tasks, want the same lock at any moment; they get it after a while, one after the
other, so their stacks and their wake-ups change over the window.

**Easily mistaken for** `lock-order-deadlock`, where nothing moves; a holder that itself waits without end, which is then the
cause.

**Why it is slow.** Only one thread at a time is inside the `with` block. If something in it takes long (a request, a query, a
sleep, a log record that is written), all the others wait for it, however many threads there are.

**Remedy.** Hold the lock for as short as possible: prepare and wait outside, only change the shared data inside; or give
each part of the data, or each thread, a lock of its own.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List

from ....evidence import Process, PythonFrame, Resource, Thread
from ....evidence.vocabulary import ResourceKind
from ....waitgraph import Agent
from ...facts.knowledge import own_frame, short
from ...facts.view import View, label, plural
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .lockqueues import LockQueue, queue_of, wanted

PATTERN = Pattern(
    id="lock-contention",
    title="many threads queue for one lock, and it does move",
    explanation=(
        "These threads all want one lock, and only the one that holds it goes on. It is given on again and again, so this is "
        "no deadlock, but they work one after the other, at the pace of whatever happens while the lock is held."
    ),
    remedy=(
        "Take what lasts (requests, queries, files, sleeps, computation) out of the `with` block, and hold the lock only "
        "around the shared data; or split the lock: one for each object, shard or connection."
    ),
    needs=("window",),
    outranks=("sleeping", "network-wait", "child-wait", "missed-wakeup", "gil-contention", "shutdown-join",
              "python-busy-loop", "pool-exhausted"),
    references=("https://docs.python.org/3/library/threading.html#lock-objects",),
)  # fmt: skip

#: A waiter on a condition waits for a notification, as idle workers do; only the lock inside the condition is listed.
_LOCKS: FrozenSet[ResourceKind] = frozenset(("lock", "rlock", "mutex", "shared-semaphore", "rwlock", "file-lock"))
#: Least number of waiters at the moment of capture, and on average over the window. Workers that hold a lock for a thousandth
#: of their time measure 0-0.1; if each holds it for most of its turn, nearly all but one of them.
MIN_WAITERS, MIN_AVERAGE = 2, 1.5
#: Least share of the waiters that got the lock, or were elsewhere, at some time of the window.
MIN_MOVED = 0.3


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each lock with several waiters: whether it changes hands."""
    for process in view.pythons:
        for lock in process.resources:
            if lock.kind == "async-lock" and len(lock.waiting_tasks) >= MIN_WAITERS:
                yield _of_tasks(view, process, lock)
    for process, lock, waiters, crowd in wanted(view, _LOCKS):
        if len(waiters) < MIN_WAITERS:
            continue
        if not any(t.samples for t in waiters):
            yield CannotTell((f"an observation window: does {lock.description} move?",))
            continue
        yield _answer(view, process, queue_of(view, process, lock, waiters, crowd))


def _answer(view: View, process: Process, queue: LockQueue) -> Answer:
    """Return a match if the lock changes hands and is in demand throughout the window."""
    stuck = [t for t in queue.waiters if view.graph.stuck(Agent(process.pid, t.tid)) is not None]
    what = f"{queue.lock.description}, which {plural(len(queue.waiters), 'thread')} want"
    if len(stuck) > len(queue.waiters) // 2 and not queue.moved:
        return No(f"{what}, does not move at all")
    holder_moves = queue.holder is not None and (view.moves(queue.holder) or (view.cpu_share(queue.holder) or 0) > 0.05)
    if queue.moved < MIN_MOVED * len(queue.waiters):
        return No(
            f"{what}, was given to none of them during the window" + ("" if holder_moves else "; its holder rests")
        )
    if queue.average < MIN_AVERAGE:
        return No(f"{what}, was wanted by {queue.average:.1f} of them on average")
    return _match(view, process, queue)


def _match(view: View, process: Process, queue: LockQueue) -> Match:
    frames: List[PythonFrame] = []
    facts = [
        f"{plural(len(queue.waiters), 'thread')} wanted {queue.lock.description} at the moment of capture, "
        f"{queue.average:.1f} on average over {view.window or 0:.1f} s",
        f"{queue.moved} of them got it, or were elsewhere, during that time: it moves",
    ]
    doing = None
    if queue.holder is not None:
        doing = own_frame(queue.holder.python)
        where = f" since {short(queue.held.frame)}" if queue.held is not None else ""
        now = f", now at {short(doing)}" if doing is not None else ""
        facts.append(f"{label(queue.holder)} held it then{where}{now}{_does(queue.holder)}")
        frames += [f for f in (doing, queue.under, queue.held.frame if queue.held else None) if f is not None]
    wanting = [f for t in queue.waiters for f in [own_frame(t.python)] if f is not None]
    frames += wanting[:2]
    frames += queue.inside(view)
    named = (
        f" while {label(queue.holder)} is at {short(doing)}" if queue.holder is not None and doing is not None else ""
    )
    return Match(
        confidence="likely",
        summary=f"{plural(len(queue.waiters), 'thread')} queue for {queue.lock.description}{named}; it moves, one at a time",
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, queue.holder) for f in list(dict.fromkeys(frames))[:6]),
        victims=tuple(view.victim(process, t) for t in queue.waiters),
        pid=process.pid,
    )


def _of_tasks(view: View, process: Process, lock: Resource) -> Answer:
    """Return the answer for an asyncio.Lock, judged by which tasks waited for it at the start of the window and at its end."""
    waiting = [task for task in process.tasks if task.id in lock.waiting_tasks]
    what = f"{lock.description}, which {plural(len(waiting), 'task')} want"
    if all(task.moved is None for task in waiting):
        return CannotTell((f"an observation window: does {lock.description} move?",))
    moved = sum(bool(task.moved) for task in waiting)
    owner = next((task for task in process.tasks if task.id == lock.owner_task), None)
    if not moved and (owner is None or not owner.moved):
        return No(f"{what}, was given to none of them during the window")
    frames = [
        f for task in (*([owner] if owner else []), *waiting[:1]) for f in [own_frame(task.stack)] if f is not None
    ]
    held = next((h for h in owner.holds if h.resource == lock.id), None) if owner is not None else None
    frames += [held.frame] if held is not None else []
    facts = [
        f"{plural(len(waiting), 'task')} wanted {lock.description} at the moment of capture",
        f"{moved} of them waited for something else, or had it, {view.window or 0:.1f} s before: it moves",
    ]
    if owner is not None:
        doing = f", and is at {short(frames[0])}" if frames else ""
        facts.append(f"task {owner.name} holds it{doing}" + (f" ({owner.wait.kind})" if owner.wait is not None else ""))
    return Match(
        confidence="likely",
        summary=f"{plural(len(waiting), 'task')} queue for {lock.description}; it moves, one at a time",
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, None, owner.name if owner else None) for f in dict.fromkeys(frames)),
        victims=tuple(view.victim_of(Agent(process.pid, task=task.id)) for task in waiting[:20]),
        pid=process.pid,
    )


def _does(holder: Thread) -> str:
    wait = holder.wait
    return f" ({wait.phrase or wait.kind})" if wait is not None and wait.kind not in ("gil",) else ""
