"""Many threads queue for one lock, which does change hands.

**What it looks like.** Several threads, or tasks, want the same lock at any moment; they get it after a while, one after the
other, so their stacks and their wake-ups change over the window.

**Easily mistaken for** `lock-order-deadlock`, where nothing moves; a holder that itself waits without end, which is then the
cause; a few threads that take turns at something on purpose: with fewer than five waiters it is *possible* only.

**Why it is slow.** Only one thread at a time is inside the `with` block. If something in it takes long (a request, a query, a
sleep, a log record that is written), all the others wait for it, however many threads there are.

**Remedy.** Hold the lock for as short as possible: prepare and wait outside, only change the shared data inside; or give
each part of the data, or each thread, a lock of its own.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional

from ....evidence import Process, PythonFrame, Resource, Thread
from ....evidence.vocabulary import ResourceKind
from ....findings import Template, Text
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import in_table, multiprocessing, own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .lockqueues import LockQueue, queue_of, wanted

PATTERN = Pattern(
    id="lock-contention",
    tier="group",
    title="many threads queue for one lock, which does change hands",
    explanation=(
        "These threads all want one lock, and only the one that holds it makes progress. The lock keeps changing hands, so "
        "this is no deadlock, but they work one after the other, at the pace of whatever happens while the lock is held."
    ),
    remedy=(
        "Move slow work (requests, queries, files, sleeps, computation) out of the `with` block, and hold the lock only "
        "while changing the shared data; or split the lock: one for each object, shard or connection."
    ),
    needs=("window",),
    references=("https://docs.python.org/3/library/threading.html#lock-objects",),
)  # fmt: skip

#: A waiter on a condition waits for a notification, as idle workers do; only the lock inside the condition is listed.
_LOCKS: FrozenSet[ResourceKind] = frozenset(("lock", "rlock", "mutex", "shared-semaphore", "rwlock", "file-lock"))
#: Least number of waiters at the moment of capture, and on average over the window. Workers that hold a lock for a thousandth
#: of their time measure 0-0.1; if each holds it for most of its turn, nearly all but one of them.
MIN_WAITERS, MIN_AVERAGE = 2, 1.5
#: Least share of the waiters that got the lock, or were elsewhere, at some time of the window.
MIN_MOVED = 0.3
#: Least mean share of the window for which those who wait now waited: with less, the lock is used often, but rarely kept.
MIN_SHARE = 0.5
#: Least number of waiters, and share of the window for which they waited, that tell a lock which is kept for longer than it.
MIN_CROWD, KEPT = 5, 0.95
#: Least share of waiting tasks that did not wait yet when the window began, which tells that each waits for less than it.
MOST = 0.8
#: Where a handler of logging takes its lock (Lib/logging/__init__.py, 3.8-3.15).
_HANDLES = (("logging/__init__.py", "handle"), ("logging/__init__.py", "acquire"))
#: Functions that take the next item out of a queue between processes, under its lock for reading.
_TAKES = tuple((file, "get") for file in (*multiprocessing("queues"), *multiprocessing("pool"), "billiard/queues.py"))

_SUMMARY = Template("{count:n thread} {count:v queue} for {lock}{holder}{moves}")
_CHANGES = Template("; it does change hands")
_SUMMARY_OF_TASKS = Template("{count:n task} {count:v queue} for {lock}; it does change hands")
_WHILE = Template(" while {holder} is at {frame}")
_WINDOW = Template("an observation window: does {lock} change hands?")
_WANTED = Template("{lock}, which {count:n thread} {count:v want}")
_WANTED_BY_TASKS = Template("{lock}, which {count:n task} {count:v want}")
_STANDS_STILL = Template("{wanted}, does not change hands at all")
_GIVEN_TO_NONE = Template("{wanted}, was acquired by none of them during the window{rests}")
_RESTS = Template("; no holder was seen to make progress")
_RARELY_WANTED = Template("{wanted}, had only {average:.1f} waiters on average over the window")
_HELD_UP = Template("{wanted}, is held by {holder}, which waits for another lock: that one is the cause")
_TURNS = Template("{wanted}, is held by {holder}, which waits for the next item of the queue: they take turns at that")
_QUEUED = Template(
    "{count:n thread} wanted {lock} at the moment of capture, {average:.1f} on average over {seconds:.1f} s"
)
_MOVED = Template("{count} of them got it, or were elsewhere, during that time: it changes hands")
_KEPT = Template("none of them got it during that time, but its holder went on")
_HELD = Template("{holder} held it{since}{now}{doing}")
_SINCE = Template(", acquired at {frame}")
_NOW = Template(", and was at {frame}")
_DOING = Template(" ({wait})")
_TASKS_QUEUED = Template("{count:n task} wanted {lock} at the moment of capture")
_TASKS_MOVED = Template(
    "{count} of them waited for something else, or held it, {seconds:.1f} s before: it changes hands"
)
_TASK_HOLDS = Template("{owner} holds it{at}{doing}")
_IS_AT = Template(", and is at {frame}")


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
            yield CannotTell((_WINDOW(lock=lock.description),))
            continue
        yield _answer(view, process, queue_of(view, process, lock, waiters, crowd))


def _answer(view: View, process: Process, queue: LockQueue) -> Answer:
    """Return a match if the lock changes hands and is in demand throughout the window."""
    stuck = [t for t in queue.waiters if view.graph.stuck(Agent(process.pid, t.tid)) is not None]
    wanted_by = _WANTED(lock=queue.lock.description, count=len(queue.waiters))
    if len(stuck) > len(queue.waiters) // 2 and queue.moved <= queue.handed:
        return No(_STANDS_STILL(wanted=wanted_by))
    holder_moves = queue.holder is not None and (
        queue.handed or view.moves(queue.holder) or (view.cpu_share(queue.holder) or 0) > 0.05
    )
    if not queue.moved and _keeps(view, process, queue):
        return _match(view, process, queue)
    if not queue.moved or (queue.moved < MIN_MOVED * len(queue.waiters) and not holder_moves):
        return No(_GIVEN_TO_NONE(wanted=wanted_by, rests=None if holder_moves else _RESTS()))
    if queue.holder is not None and _is_held_up(view, queue):
        return No(_HELD_UP(wanted=wanted_by, holder=clauses.named(queue.holder)))
    if queue.holder is not None and _waits_for_a_job(queue.holder):
        return No(_TURNS(wanted=wanted_by, holder=clauses.named(queue.holder)))
    if queue.average < MIN_AVERAGE:
        return No(_RARELY_WANTED(wanted=wanted_by, average=queue.average))
    return _match(view, process, queue)


def _keeps(view: View, process: Process, queue: LockQueue) -> bool:
    """Return whether one holder kept the lock for the whole window, for waits that end, while a crowd waited for it.

    A holder that computes, or is stuck, is the cause by itself.
    """
    holder = queue.holder
    if holder is None or holder.wait is None or len(queue.waiters) < MIN_CROWD or queue.share <= KEPT:
        return False
    return not view.graph.stuck(Agent(process.pid, holder.tid)) and view.moves(holder)


def _keeps_messages(view: View, queue: LockQueue) -> bool:
    """Return whether the lock is that of a handler of logging, which waits for a peer, a disk or a pause meanwhile.

    Writing a message is to take no time: nobody waits on purpose for another thread's to be written.
    """
    taken = queue.held.frame if queue.held is not None else None
    slow = queue.holder is not None and queue.holder.wait is not None and view.rests(queue.holder)
    return slow and taken is not None and in_table(taken, _HANDLES)


def _is_held_up(view: View, queue: LockQueue) -> bool:
    """Return whether the holder waits for another lock, without an end, and did not go on: that lock is the cause."""
    holder = queue.holder
    wait = holder.wait if holder is not None else None
    if holder is None or wait is None or wait.kind not in ("lock", "rlock", "mutex"):
        return False
    return wait.endless is True and wait.resource not in (None, queue.lock.id) and not view.moves(holder)


def _waits_for_a_job(holder: Thread) -> bool:
    """Return whether the holder has nothing to do: it waits for the next item of a queue between processes, as the rest will."""
    wait = holder.wait
    reads = wait is not None and wait.kind == "pipe" and wait.syscall in ("read", "poll", "select")
    return reads and any(in_table(frame, _TAKES) for frame in holder.python[:6])


def _match(view: View, process: Process, queue: LockQueue) -> Match:
    frames: List[PythonFrame] = []
    lock, count = queue.lock.description, len(queue.waiters)
    facts = [
        _QUEUED(count=count, lock=lock, average=queue.average, seconds=view.window or 0),
        _MOVED(count=queue.moved) if queue.moved else _KEPT(),
    ]
    named = None
    if queue.holder is not None:
        holder, doing = clauses.named(queue.holder), own_frame(queue.holder.python)
        since = _SINCE(frame=queue.held.frame) if queue.held is not None else None
        now = _NOW(frame=doing) if doing is not None else None
        facts.append(_HELD(holder=holder, since=since, now=now, doing=_does(queue.holder)))
        named = _WHILE(holder=holder, frame=doing) if doing is not None else None
        frames += [f for f in (doing, queue.under, queue.held.frame if queue.held else None) if f is not None]
    wanting = [f for t in queue.waiters for f in [own_frame(t.python)] if f is not None]
    frames += wanting[:2]
    frames += queue.inside(view)
    moves = queue.moved > 1 or queue.moved >= MIN_MOVED * count
    sure = (moves and count >= MIN_CROWD) or _keeps_messages(view, queue)
    return Match(
        confidence="likely" if sure and queue.share >= MIN_SHARE else "possible",
        summary=_SUMMARY(count=count, lock=lock, holder=named, moves=_CHANGES() if queue.moved else None),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, queue.holder) for f in list(dict.fromkeys(frames))[:6]),
        victims=tuple(view.victim(process, t) for t in queue.waiters),
        pid=process.pid,
    )


def _of_tasks(view: View, process: Process, lock: Resource) -> Answer:
    """Return the answer for an asyncio.Lock, judged by which tasks waited for it at the start of the window and at its end."""
    waiting = [task for task in process.tasks if task.id in lock.waiting_tasks]
    if all(task.moved is None for task in waiting):
        return CannotTell((_WINDOW(lock=lock.description),))
    moved = sum(bool(task.moved) for task in waiting)
    owner = next((task for task in process.tasks if task.id == lock.owner_task), None)
    if not moved and (owner is None or not owner.moved):
        wanted_by = _WANTED_BY_TASKS(lock=lock.description, count=len(waiting))
        return No(_GIVEN_TO_NONE(wanted=wanted_by, rests=None))
    frames = [
        f for task in (*([owner] if owner else []), *waiting[:1]) for f in [own_frame(task.stack)] if f is not None
    ]
    held = next((h for h in owner.holds if h.resource == lock.id), None) if owner is not None else None
    frames += [held.frame] if held is not None else []
    facts = [
        _TASKS_QUEUED(count=len(waiting), lock=lock.description),
        _TASKS_MOVED(count=moved, seconds=view.window or 0),
    ]
    if owner is not None:
        at = _IS_AT(frame=frames[0]) if frames else None
        doing = _DOING(wait=owner.wait.kind) if owner.wait is not None else None
        facts.append(_TASK_HOLDS(owner=Agent(process.pid, task=owner.id), at=at, doing=doing))
    handed = moved + bool(owner is not None and owner.moved)
    long = moved < MOST * len(waiting)  # else nearly all came within the window, and may have the lock as soon
    return Match(
        confidence="likely" if long and (handed > 1 or handed >= MIN_MOVED * len(waiting)) else "possible",
        summary=_SUMMARY_OF_TASKS(count=len(waiting), lock=lock.description),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, None, owner.name if owner else None) for f in dict.fromkeys(frames)),
        victims=tuple(view.victim_of(Agent(process.pid, task=task.id)) for task in waiting[:20]),
        pid=process.pid,
    )


def _does(holder: Thread) -> Optional[Text]:
    wait = holder.wait
    return _DOING(wait=wait.phrase or wait.kind) if wait is not None and wait.kind not in ("gil",) else None
