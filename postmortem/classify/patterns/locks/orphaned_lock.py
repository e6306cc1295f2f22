"""A lock whose holder is gone without having released it.

**What it looks like.** One or more threads wait for a lock at 0 % CPU. The lock is locked, and no existing thread holds it:
an RLock or an import records a thread that has ended; a plain lock is in no `with` and in no function that still runs. Or
clients of a `multiprocessing.Manager` wait for a lock that it keeps for them, and each client that is still connected is one
of those who wait.

**Easily mistaken for** `missed-wakeup`, where nothing is held; `fork-inherited-lock`, whose holder lives on in the parent;
`lock-order-deadlock`, whose holders all exist.

**Why it hangs.** Between `acquire()` and `release()` an exception, a `return` or the end of the thread left the function. The
lock stays locked for ever: nothing releases it on behalf of a thread that ends.

**Remedy.** `with lock:` in place of `acquire()` and `release()`, or `release()` in a `finally` clause.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional, Sequence, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread
from ....evidence.vocabulary import ResourceKind
from ....findings import Template
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses, knowledge
from ...facts.ended import ended_children, lost_count, told
from ...facts.knowledge import is_library, is_stdlib, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="orphaned-lock",
    tier="resource",
    title="a lock was acquired and never released, and its holder is gone",
    explanation=(
        "The lock is locked, but no existing thread or task holds it. The code that acquired it was left (by an exception, a "
        "return or the end of its thread) without releasing it, and nothing else will."
    ),
    remedy=(
        "Acquire the lock by `with lock:`, so that every way out of the block releases it; where acquire() and release() "
        "must be called separately, put release() into a `finally` clause. Look in the log for an exception in between."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/threading.html#using-locks-conditions-and-semaphores-in-the-with-statement",
        "https://github.com/python/cpython/issues/74956",
    ),
)  # fmt: skip

_TAKES = ("acquire", "__enter__")
_LOCKS: FrozenSet[ResourceKind] = frozenset(("lock", "rlock", "import-lock", "mutex", "rwlock"))

_NO_TASK_HOLDS = Template("{count:n task} {count:v wait} for {lock}{taken}: no existing task holds it")
_NOBODY_HOLDS = Template("{count:n thread} {count:v wait} for {lock}{taken}: no existing thread holds it")
_NOBODY_KNOWN_HOLDS = Template(
    "{count:n thread} {count:v wait} for {lock}{taken}: no existing thread is known to hold it"
)
_TAKEN = Template(", acquired at {frame} and never released")
_ALL_HELD = Template("every lock that threads of process {pid} wait for is held by another thread, which still exists")
_WANTS = Template("{waiter} wants {lock}{at}, without a time limit")
_MORE = Template("{count:n more thread} {count:v want} it, too")
_HOLDER_GONE = Template("{lock} records a holder that no longer exists (the process has {count:n thread})")
_BY_HAND = Template("{frame} acquires it without `with`, and may be left without releasing it")
_THROUGH_THAT = Template("{frame} acquires it by calling that function")
_RELEASES = Template("{agent} goes on to code that releases it: perhaps it was handed on to that")
_GATE = Template("{frame} releases it without having acquired it: perhaps the lock is used as a signal")


_NO_CLIENT_HOLDS = Template(
    "{count:n process|processes} {count:v wait}{at} for a lock that {manager} keeps for all of them, and none that is connected "
    "with it has the lock: who had it has ended, or given up its connection"
)
_NO_CLIENT_KNOWN = Template(
    "{count:n process|processes} {count:v wait}{at} for a lock that {manager} keeps for all of them, and none of them is known "
    "to have it"
)
_ASKS = Template("{client} of process {pid} asks the manager for it{at}")
_EACH_WAITS = Template(
    "in {manager} {count:v the only thread that serves a client waits|all @ threads that serve clients wait} for {lock}; that of "
    "a client which had it would wait for the next request"
)
_NONE_ENDED = Template(
    "no process is known to have ended: perhaps one of them already has it, and asks for it once more"
)
_MANAGERS_REMEDY = Template(
    "A manager does not release what a client held that was killed. Let clients that may be killed hold no lock of a manager, "
    "acquire it with a time limit, or use a lock that ends with its holder (fcntl.flock), and start the job anew when one dies."
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each lock that is held by no existing thread or task."""
    for process in view.pythons:
        yield from _of_manager(view, process)
        if process.forked:
            continue  # the holder may live on in the parent
        wanted = [r for r in process.resources if r.kind in _LOCKS and r.waiters]
        lost = [r for r in wanted if r.owner_gone or (r.owner_tid is None and r.locked and r.because)]
        for resource in lost:
            waiters = _waiters(view, process, resource)
            if waiters and (resource.owner_gone or resource.taken_at):
                yield _match(view, process, resource, waiters)
        yield from _tasks(view, process)
        if wanted and all(_is_held(view, process, resource) for resource in wanted):
            yield No(_ALL_HELD(pid=process.pid))


def _of_manager(view: View, manager: Process) -> Iterator[Match]:
    """Yield the match of a lock that a manager's process (multiprocessing.Manager) keeps for others, and none of these has.

    A client's thread in the manager waits for the client's next request, unless it is in one: if all are in a request that
    waits for the same lock, no client that is still connected has it, unless it asks for what it has: *likely* only where a
    process has ended that may have been a client.
    """
    serving = [
        t for t in manager.threads if any(knowledge.in_table(frame, knowledge.SERVES_CLIENT) for frame in t.python)
    ]
    wanted = {thread.wait.resource for thread in serving if thread.wait is not None and thread.wait.kind == "lock"}
    lock = view.graph.places.resource(manager.pid, next(iter(wanted))) if len(wanted) == 1 else None
    if lock is None or lock.kind != "lock" or not lock.locked or lock.owner_tid is not None:
        return
    waiting = _waiters(view, manager, lock)
    clients = list(_clients(view, manager)) if len(waiting) == len(serving) == len(lock.waiters) else []
    if not clients:
        return
    parents = {client.ppid: view.by_pid.get(client.ppid or 0) for client, _thread, _frame in clients}
    ended = [one for parent in parents.values() if parent is not None for one in ended_children(view, parent)]
    gone = bool(ended) or any(parent is not None and lost_count(view, parent) > 0 for parent in parents.values())
    yield Match(
        confidence="likely" if gone else "possible",
        summary=(_NO_CLIENT_HOLDS if gone else _NO_CLIENT_KNOWN)(
            count=len(clients), at=clauses.at(clients[0][2]), manager=clauses.process(manager)
        ),
        evidence=(
            *(_ASKS(client=clauses.named(t), pid=p.pid, at=clauses.at(frame)) for p, t, frame in clients[:4]),
            _EACH_WAITS(count=len(serving), manager=clauses.process(manager), lock=lock.description),
            *(told(view, tuple(ended)) if gone else (_NONE_ENDED(),)),
        ),
        culprits=tuple(view.culprit(client, frame, thread) for client, thread, frame in clients[:4]),
        victims=tuple(view.victim(client, thread) for client, thread, _frame in clients),
        remedy=_MANAGERS_REMEDY(),
        pid=clients[0][0].pid,
    )


def _clients(view: View, manager: Process) -> Iterator[Tuple[Process, Thread, PythonFrame]]:
    """Yield the threads of other processes that wait for a manager's answer, each with the program's line."""
    for client in view.pythons:
        resources = {resource.id: resource for resource in client.resources if client is not manager}
        for thread in client.threads:
            socket = resources.get(thread.wait.resource or "") if thread.wait is not None else None
            frame = own_frame(thread.python)
            asks = any(knowledge.in_table(one, knowledge.ASKS_MANAGER) for one in thread.python)
            if asks and socket is not None and frame is not None and any(e.pid == manager.pid for e in socket.ends):
                yield client, thread, frame


def _is_held(view: View, process: Process, resource: Resource) -> bool:
    """Return whether a lock has a known holder that exists and is none of those who wait for it."""
    owner = resource.owner_tid
    if resource.owner_gone or owner is None or owner in resource.waiters:
        return False
    return resource.owner_pid not in (None, process.pid) or view.thread(process, owner) is not None


def _tasks(view: View, process: Process) -> Iterator[Answer]:
    """Yield matches for asyncio's locks."""
    for resource in process.resources:
        lost = resource.owner_gone or (resource.because and resource.taken_at and not resource.owner_task)
        if resource.kind != "async-lock" or not lost:
            continue
        waiting = [
            t for t in process.tasks if t.id in resource.waiting_tasks and t.wait and t.wait.endless is not False
        ]
        if not waiting:
            continue
        agents = [Agent(process.pid, task=t.id) for t in waiting]
        taken = resource.taken_at
        places = taken or tuple(f for t in waiting for f in [own_frame(t.stack)] if f is not None)
        certain = all(view.graph.stuck(agent) == "proven" for agent in agents)  # no code can release it
        releasing = _releasing(view, process, resource, agents)
        yield Match(
            confidence="possible" if releasing is not None else "proven" if certain else "likely",
            summary=_NO_TASK_HOLDS(
                count=len(waiting), lock=resource.description, taken=_TAKEN(frame=taken[0]) if taken else None
            ),
            evidence=(
                *(_WANTS(waiter=agent, lock=resource.description, at=None) for agent in agents[:4]),
                *resource.because,
                *(_BY_HAND(frame=frame) for frame in taken),
                *((_RELEASES(agent=releasing),) if releasing is not None else ()),
            ),
            culprits=tuple(dict.fromkeys(view.culprit(process, frame) for frame in places)),
            victims=tuple(view.victim_of(a) for a in (*agents, *view.graph.behind(frozenset(agents)))),
            pid=process.pid,
        )


def _releasing(view: View, process: Process, lock: Resource, waiting: Sequence[Agent]) -> Optional[Agent]:
    """Return an agent that can go on to code which releases a lock for another; None if none is known."""
    behind = {*waiting, *view.graph.behind(frozenset(waiting))}
    named = [w for w in lock.wakers if w.grade == "names" and (w.tid is not None or w.task is not None)]
    agents = [Agent(process.pid, w.tid if w.task is None else None, w.task) for w in named]
    return next((one for one in agents if one not in behind and view.graph.stuck(one) is None), None)


def _waiters(view: View, process: Process, resource: Resource) -> List[Thread]:
    """Return the threads that wait for it without a time limit and have not moved."""
    found = [view.thread(process, tid) for tid in resource.waiters]
    return [t for t in found if t is not None and t.wait is not None and t.wait.endless and not view.moves(t)]


def _match(view: View, process: Process, resource: Resource, waiters: List[Thread]) -> Match:
    taken = resource.taken_at
    wants = next((f for t in waiters for f in [own_frame(t.python)] if f is not None), None)
    lock = resource.description
    facts: List[Said] = [
        _WANTS(waiter=clauses.named(t), lock=lock, at=clauses.at(own_frame(t.python))) for t in waiters[:4]
    ]
    if len(waiters) > 4:
        facts.append(_MORE(count=len(waiters) - 4))
    if resource.owner_gone:
        facts.append(_HOLDER_GONE(lock=lock, count=len(process.threads)))
    facts += resource.because
    facts += [_BY_HAND(frame=frame) for frame in taken]
    callers = [frame for t in waiters[:4] for frame in _callers(t, taken)]
    facts += [_THROUGH_THAT(frame=frame) for frame in dict.fromkeys(callers)]
    culprits = [view.culprit(process, frame) for frame in (*taken, *callers)]
    if not culprits and wants is not None:
        culprits = [view.culprit(process, wants, waiters[0])]
    opener = next(iter(resource.released_at), None)
    # a running thread may open a gate, unless all code that can still run was read and none names it
    unnamed = all(view.graph.stuck(Agent(process.pid, t.tid)) is not None for t in waiters)
    open_ended = (
        opener is not None
        and not unnamed
        and any(view.graph.stuck(Agent(process.pid, t.tid)) is None for t in process.threads)
    )
    if opener is not None:
        facts.append(_GATE(frame=opener))
    releasing = _releasing(view, process, resource, [Agent(process.pid, t.tid) for t in waiters])
    if releasing is not None:
        facts.append(_RELEASES(agent=releasing))
    open_ended = open_ended or (releasing is not None and not resource.owner_gone)
    told = _NOBODY_KNOWN_HOLDS if open_ended else _NOBODY_HOLDS
    where = _TAKEN(frame=taken[0]) if len(taken) == 1 and not open_ended else None
    return Match(
        confidence="proven" if resource.owner_gone else "possible" if open_ended else "likely",
        summary=told(count=len(waiters), lock=lock, taken=where),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(culprits)),
        victims=tuple(view.victim(process, t) for t in waiters),
        pid=process.pid,
    )


def _callers(thread: Thread, taken: Tuple[PythonFrame, ...]) -> Iterator[PythonFrame]:
    """Yield the callers of a function that only acquires the lock, up to the program's own line.

    The waiting thread is calling such a function; the code that left the lock held called it the same way.
    """
    frames = thread.python
    places = {(f.file, f.function) for f in taken if f.function in _TAKES}
    at = next((i for i, f in enumerate(frames) if (f.file, f.function) in places), len(frames))
    for frame in frames[at + 1 :]:
        if not is_stdlib(frame):
            yield frame
        if not is_library(frame):
            return
