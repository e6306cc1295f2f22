"""A lock shared by processes is held by a process that has ended.

**What it looks like.** Processes wait in `SemLock.__enter__`, `acquire` or a multiprocessing queue at 0 % CPU, all for the same
semaphore. Its value is 0, and no existing process holds it by its own count. A Semaphore, which any process may release,
counts if every waiter would release it itself, and every process that could release it waits.

**Easily mistaken for** an idle worker pool, where one worker holds the lock of the queue and reads; `mp-worker-died`, where the
result is lost but no lock is.

**Why it hangs.** A semaphore in shared memory has no owner: when the process that acquired it is killed (by the OOM killer,
`terminate()`, a fault), the kernel does not release it, and neither does any other process.

**Remedy.** Do not kill processes that may hold a lock: ask them to end. Where they may be killed, guard the data with a file
lock (`fcntl.lockf`), which the kernel releases, or let one process own the data and send it messages.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread
from ....findings import CONFIDENCES, Confidence, Template, Text
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.forked import own_frames
from ...facts.knowledge import in_table, is_stdlib, multiprocessing, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.works import works

PATTERN = Pattern(
    id="semaphore-orphan",
    tier="specific",
    title="a lock shared by processes is held by a process that has ended",
    explanation=(
        "The lock is a semaphore in memory that several processes share. The process that acquired it has ended without "
        "releasing it, and the kernel does not do that: all others wait for ever."
    ),
    remedy=(
        "Do not kill a process while it may hold the lock: send it a sentinel or set an Event and join it, instead of "
        "terminate() or kill(); find out what killed it (the OOM killer, a fault in native code). Where a lock must survive "
        "that, use a file lock (fcntl.lockf), which the kernel releases when a process ends."
    ),
    needs=("python", "cores"),
    references=(
        "https://docs.python.org/3/library/multiprocessing.html#multiprocessing.Process.terminate",
        "https://docs.python.org/3/library/multiprocessing.html#synchronization-primitives",
    ),
)  # fmt: skip


_SUMMARY = Template(
    "{thread} of process {pid} waits{at} for {lock}, which a process that has ended never released{like}"
)
_LIKE = Template("; {others:n other thread} {others:v wait} for it, too")
_WAITS = Template("{thread} of process {pid} waits for {lock}{forever}")
_ARE_HELD = Template("{count:n thread} {count:v wait} for locks that living processes hold")


_NOTIFIER = Template(
    "{thread} of process {pid} has woken those who wait for a condition, and waits{at} until each of them says so: {lock}; one "
    "of them has ended"
)
_SAYS_SO = Template("a process that lives says so as soon as it is woken, whatever it does then")
_ASK_THEM = Template(
    "Do not terminate or kill processes that may wait for a Condition, Event or Barrier of multiprocessing: send them a "
    "sentinel, or set a flag and notify, and join them; or wake them by a pipe or queue each."
)
#: Functions that wait until each process that they have woken has said so; ``notify_all``, ``Event.set`` call it.
_NOTIFIES = tuple((file, "notify") for file in multiprocessing("synchronize"))
_SLEEPS = tuple((file, "wait") for file in multiprocessing("synchronize"))


class _Waiter(NamedTuple):
    """A thread that waits for a shared semaphore."""

    process: Process
    thread: Thread
    resource: Resource


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each shared semaphore whose holder has ended."""
    lost: Dict[str, List[_Waiter]] = {}
    unacknowledged: List[_Waiter] = []
    held = 0
    for process in view.pythons:
        resources = {r.id: r for r in process.resources if r.kind == "shared-semaphore" and r.key}
        for thread in process.threads:
            resource = resources.get(thread.wait.resource or "") if thread.wait is not None else None
            if resource is None or resource.key is None:
                continue
            if _waits_for_the_woken(view, thread):
                unacknowledged.append(_Waiter(process, thread, resource))
            elif resource.owner_gone or _lost_permit(thread, resource):
                lost.setdefault(resource.key, []).append(_Waiter(process, thread, resource))
            elif resource.owner_tid is not None:
                held += 1
    for waiters in lost.values():
        yield _match(view, waiters)
    for waiter in unacknowledged:
        yield _of_notifier(view, waiter)
    if held and not lost:
        yield No(_ARE_HELD(count=held))


def _waits_for_the_woken(view: View, thread: Thread) -> bool:
    """Return whether a thread notifies a condition, and waited all through the window for those whom it has woken.

    Each that lives says so at once, before it waits for the lock (Lib/multiprocessing/synchronize.py: ``_woken_count``).
    """
    notifies = bool(thread.python) and in_table(thread.python[0], _NOTIFIES)
    notifies = notifies and not any(in_table(frame, _SLEEPS) for frame in thread.python)  # it is the sleeper itself
    endless = thread.wait is not None and thread.wait.endless is True
    return notifies and endless and bool(view.window) and view.rests(thread) and not view.moves(thread)


def _of_notifier(view: View, waiter: _Waiter) -> Match:
    """Return the match of a thread that waits for the acknowledgement of a process which has ended."""
    frame, lock = _frame(waiter), waiter.resource.description
    named = clauses.named(waiter.thread)
    return Match(
        confidence="likely",
        summary=_NOTIFIER(thread=named, pid=waiter.process.pid, at=clauses.at(frame), lock=lock),
        evidence=(_waits(waiter), _SAYS_SO()),
        culprits=(view.culprit(waiter.process, frame, waiter.thread),) if frame is not None else (),
        victims=tuple(view.victim(waiter.process, t) for t in view.waits_on(waiter.process, waiter.thread.tid)),
        remedy=_ASK_THEM(),
        pid=waiter.process.pid,
    )


def _lost_permit(thread: Thread, resource: Resource) -> bool:
    """Return whether a semaphore that its users always release has no permit and no existing holder.

    Of one that a program shares by name only that is known.
    """
    given_back = resource.value == 0 and resource.closed and resource.taken_at and resource.owner_tid is None
    lost = bool(given_back) or (resource.value == 0 and _is_named(resource))
    return lost and thread.wait is not None and thread.wait.endless is True


def _is_named(resource: Resource) -> bool:
    """Return whether a semaphore is one of sem_open(3) that C code uses, not one of multiprocessing's."""
    return resource.native is True


def _confidence(view: View, waiter: _Waiter) -> Confidence:
    """Return the confidence: a process that moves may still release a semaphore.

    Without a bound, a semaphore may never have had a permit.
    """
    resource = waiter.resource
    if resource.owner_gone:
        return "proven" if waiter.thread.wait is not None and waiter.thread.wait.endless else "possible"
    stuck = view.graph.stuck(Agent(waiter.process.pid, waiter.thread.tid))
    if stuck is None and _is_named(resource):
        several = [thread for process in view.processes for thread in process.threads]
        return "possible" if any(works(view, thread) for thread in several) or not view.window else "likely"
    if stuck is None:
        return "likely" if resource.limit else "possible"
    return stuck if resource.limit else "likely"


def _frame(waiter: _Waiter) -> Optional[PythonFrame]:
    """Return the program's line, without the parent's frames and the code that started the process."""
    found = own_frame(own_frames(waiter.thread.python))
    return None if found is None or is_stdlib(found) else found


def _customers(view: View, waiters: List[_Waiter]) -> Iterator[Tuple[Process, Thread, PythonFrame]]:
    """Yield where the program waits for results of a pool whose workers wait for the pool's own lock."""
    pids = {w.process.pid for w in waiters}
    for process in view.pythons:
        results = {
            r.id for p in process.pools if pids & set(p.processes) for r in process.resources if r.part_of == p.id
        }
        for thread in process.threads:
            frame = own_frame(thread.python)
            if frame is not None and thread.wait is not None and thread.wait.resource in results:
                yield process, thread, frame


def _waits(waiter: _Waiter) -> Text:
    thread, wait = clauses.named(waiter.thread), waiter.thread.wait
    forever = clauses.forever(wait.endless) if wait is not None else None
    return _WAITS(thread=thread, pid=waiter.process.pid, lock=waiter.resource.description, forever=forever)


def _match(view: View, waiters: List[_Waiter]) -> Match:
    first = next((w for w in waiters if _frame(w)), waiters[0])
    others = len(waiters) - 1
    places = [(w.process, w.thread, f) for w in waiters for f in [_frame(w)] if f is not None]
    return Match(
        confidence=max((_confidence(view, w) for w in waiters), key=CONFIDENCES.index),
        summary=_SUMMARY(
            thread=clauses.named(first.thread),
            pid=first.process.pid,
            at=clauses.at(_frame(first)),
            lock=first.resource.description,
            like=_LIKE(others=others) if others else None,
        ),
        evidence=(*map(_waits, waiters[:5]), *first.resource.because),
        culprits=tuple(dict.fromkeys(view.culprit(p, f, t) for p, t, f in places or _customers(view, waiters))),
        victims=tuple(view.victim(w.process, w.thread) for w in waiters),
        pid=first.process.pid,
    )
