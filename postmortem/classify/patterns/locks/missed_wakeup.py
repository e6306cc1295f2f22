"""Threads wait to be notified, and nothing is left that could notify them.

**What it looks like.** One or more threads wait on a condition, an event, a queue or a barrier, without a time limit and at
0 % CPU. No other thread runs, no timer is set, nothing from outside can arrive; or other threads do run, but have no
reference through which they could reach the object. Or a thread waits for a result of a `multiprocessing.Pool`, and one of its
own threads has ended, by an exception that standard error shows.

**Easily mistaken for** an idle worker pool, whose next job comes from outside; `shutdown-join`, where the program has ended
already; `orphaned-lock`, where a lock was never released.

**Why it hangs.** Such a wait ends only when other code calls notify, set, put, task_done or release. The code that should
have done so did it too early, for too few waiters, not on every way out, or has ended.

**Remedy.** Signal on every way out (`try`/`finally`), after every change that waiters may check for (`notify_all`), and once
more when the last producer ends (a sentinel, `Event.set`); where that cannot be guaranteed, wait with a time limit.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Pool, Process, PythonFrame
from ....findings import Template, Text
from ....waitgraph import Edge, WaitGraph
from ...facts import clauses
from ...facts.ended import ended_children
from ...facts.forked import own_stacks
from ...facts.knowledge import COLLECTS, gets_item, has_items, in_table, is_library, joins_queue, own_frame
from ...facts.permits import is_spent
from ...facts.poolwaits import pool_waiters
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.calls import calls_for_a_result
from ...roots.rest import in_request
from ...roots.walk import follow, telling
from ...roots.works import may_leave
from ..asyncio.stucktasks import for_notifications, lost, stuck_tasks
from .clientloops import blocked_clients
from .othercauses import SIGNALLED, other_cause, signals_itself
from .oversleeping import overslept, unsignalled

PATTERN = Pattern(
    id="missed-wakeup",
    tier="wait",
    title="threads or tasks wait to be signalled, and nothing is left that could do it",
    explanation=(
        "These threads or tasks sleep until other code of the program signals them. All code that could do so is waiting "
        "itself, has ended, or has no reference to the object any more: the signal was sent too early, to too few, or never."
    ),
    remedy=(
        "Signal on every way out of the code that has to do it (try/finally), call notify_all() after every change that a "
        "waiter may check for, and put a sentinel or set the event when the last producer ends."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/threading.html#condition-objects",
        "https://docs.python.org/3/library/queue.html#queue.Queue.task_done",
    ),
)

_JOIN_REMEDY = Template(
    "Queue.join waits until task_done() has been called once for every item that was put. Call it in a `finally` clause, so that "
    "no exception, `continue` or `return` can skip it."
)

_SUMMARY = Template("{waiter} {waits}{at}, and nothing is left that could end the wait{more}")
_IN_DETAIL = Template("{phrase} ({what})")
_IN_SHORT = Template("{verb} {what}")
_MORE = Template("; {count:n other thread} {count:v wait} in the same way")
_IDLE_WORKERS = Template("{count:n worker} of process {pid} {count:v wait} for a job, as idle workers do")
_KEEPS = Template("{agent} holds a lock that others want, acquired at {frame}")
_HANDLERS = Template(
    "whether the program has a signal handler that signals them could not be read: if it has one, they may not hang"
)
_LEAVES = Template(
    "the loop around the wait tests something else, too: a handler that the program has set for a signal may end it"
)
_PARKED = Template(
    "nothing waits for it, and others go on: it may wait on purpose, like a main thread that only keeps servers alive"
)
_UNREAD = Template(
    "what {what} is for could not be read: if it is a lock, the thread that holds it is the cause, not a missed signal"
)


_NOT_DONE = Template(
    "{thread} waits{at} until all items of a JoinableQueue are done, and {count:n worker process|worker processes} "
    "{count:v waits|wait} for the next one: an item was taken, and task_done() not called for it"
)
_TAKES = Template("process {pid} waits for an item of a queue{at}")
_SHOWN = 4
_UNCOLLECTED = Template("{thread} waits{at} for {what}, but the pool's thread in {helpers: and } has ended")
_POOLS_END = Template("the end of {pool}")
_LOST_HELPER = Template(
    "{pool} has lost {helpers: and }, a thread of its own that has ended: no exception should end it while the pool is in use"
)
_HELPER_REMEDY = Template(
    "Look for the exception that ended that thread, on standard error: often a result or an exception of a job that cannot be "
    "unpickled, such as one whose class wants further arguments. Catch it in the job, and return or raise plain data instead."
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each process with threads that wait for a signal that no code can give."""
    graph = view.graph
    roots = graph.roots()
    for process in view.pythons:
        edges = [e for a in roots if a.pid == process.pid and a.tid is not None for e in [graph.blocking(a)] if e]
        waits = [e for e in edges if e.kind in SIGNALLED and not signals_itself(graph, e) and not _helps(graph, e)]
        waits = [e for e in waits if not _lacks_a_permit(graph, e)]  # see pool-exhausted
        waits = [e for e in waits if not _needs_a_turn(view, e)]  # see loop-self-wait
        if other_cause(graph, process, roots):
            waits = [e for e in waits if not e.everyone]  # the signal may depend on an agent blocked by that fault
        waits = [
            e for e in waits if follow(view, e.waiter).end == e.waiter
        ]  # the root is what hinders the code that would signal
        busy = [e for e in waits if not _idle(view, e)]
        told = {e.waiter for e in busy}
        yield from (one for agent, one in blocked_clients(view, process) if agent not in told)
        if busy:
            yield _match(view, process, busy, waits)
        elif waits:
            yield No(_IDLE_WORKERS(count=len(waits), pid=process.pid))
        yield from _undone(view, process)
        yield from (one for pool in process.pools for one in _never_collected(view, process, pool))
        yield from _not_notified(view, process)
    yield from overslept(view)
    yield from unsignalled(view)


def _not_notified(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for tasks that wait on conditions which nothing can notify any more, or only those who wait themselves."""
    in_circles = {agent for cycle in view.graph.cycles for agent in cycle.agents}
    waiting = [t for t in stuck_tasks(view, process) if t.agent not in in_circles and not t.parked]
    if for_notifications(waiting):
        yield lost(view, process, waiting)


def _undone(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for a thread in JoinableQueue.join while all its children that take from queues wait for another item.

    No process is left that has an item in hand, and so none that would call task_done for it.
    """
    joining = [thread for thread in process.threads if joins_queue(thread.python)]
    workers = [child for child in view.children(process) if any(gets_item(thread.python) for thread in child.threads)]
    others = [child for child in view.children(process) if child not in workers]
    if not joining or not workers or any(map(_runs_program, others)) or ended_children(view, process):
        return  # of one that has ended the item is lost: see mp-worker-died
    if has_items(process) or not all(_rests(view, child) for child in workers):
        return
    places = [(thread, frame) for thread in joining for frame in [own_frame(thread.python)] if frame is not None]
    yield Match(
        confidence="likely" if not any(view.moves(thread) for thread in joining) else "possible",
        summary=_NOT_DONE(
            thread=clauses.named(joining[0]), at=clauses.at(places[0][1]) if places else None, count=len(workers)
        ),
        evidence=tuple(_TAKES(pid=child.pid, at=clauses.at(_line(child))) for child in workers[:_SHOWN]),
        culprits=(
            *(view.culprit(process, frame, thread) for thread, frame in places),
            *(view.culprit(child, frame) for child in workers[:1] for frame in [_line(child)] if frame is not None),
        ),
        remedy=_JOIN_REMEDY(),
        pid=process.pid,
    )


def _never_collected(view: View, process: Process, pool: Pool) -> Iterator[Match]:
    """Yield the match of a pool of processes one of whose own threads has ended: it hands out no job, or takes no result."""
    waiters = pool_waiters(process, pool) if pool.helpers_ended else []
    if not waiters:
        return
    thread, result = waiters[0]
    places = [(one, frame) for one, _result in waiters for frame in [own_frame(one.python)] if frame is not None]
    endless = all(one.wait is not None and one.wait.endless is not False for one, _result in waiters)
    yield Match(
        confidence="likely" if endless else "possible",
        summary=_UNCOLLECTED(
            thread=clauses.named(thread),
            at=clauses.at(own_frame(thread.python)),
            what=result.description if result is not None else _POOLS_END(pool=pool.description),
            helpers=pool.helpers_ended,
        ),
        evidence=(_LOST_HELPER(pool=pool.description, helpers=pool.helpers_ended),),
        culprits=tuple(dict.fromkeys(view.culprit(process, frame, one) for one, frame in places)),
        victims=tuple(view.victim(process, one) for one, _result in waiters),
        remedy=_HELPER_REMEDY(),
        pid=process.pid,
    )


def _runs_program(child: Process) -> bool:
    """Return whether a child runs code of the program."""
    return any(not is_library(frame) for frames in own_stacks(child) for frame in frames)


def _rests(view: View, child: Process) -> bool:
    """Return whether no thread of a process that takes from queues went on during the window."""
    return not any(view.moves(thread) or view.computes(thread) for thread in child.threads if gets_item(thread.python))


def _line(child: Process) -> Optional[PythonFrame]:
    """Return the program's line at which a process takes from a queue."""
    return next((own_frame(thread.python) for thread in child.threads if gets_item(thread.python)), None)


def _needs_a_turn(view: View, edge: Edge) -> bool:
    """Return whether a task would signal that needs its turn on a loop whose thread waits: what keeps that is the cause."""
    tasks = [waker for waker in edge.wakers if waker.task is not None]
    turns = [telling(view, task) for task in tasks]
    return any(turn is not None and turn.kind == "turn" for turn in turns)


def _lacks_a_permit(graph: WaitGraph, edge: Edge) -> bool:
    """Return whether a thread waits for a permit of a semaphore rather than for a signal."""
    resource = graph.places.resource(edge.waiter.pid, edge.resource)
    return resource is not None and is_spent(resource)


def _helps(graph: WaitGraph, edge: Edge) -> bool:
    """Return whether a native thread of a library waits for work, without any code of the program, and nobody for it."""
    return _is_native(graph, edge) and not graph.places.stack(edge.waiter) and not graph.is_awaited(edge.waiter)


def _is_native(graph: WaitGraph, edge: Edge) -> bool:
    """Return whether only the wait itself is known: what the native object is for was not read."""
    resource = graph.places.resource(edge.waiter.pid, edge.resource)
    return resource is not None and resource.native is True


def _idle(view: View, edge: Edge) -> bool:
    thread = view.graph.places.thread(edge.waiter)
    return thread is not None and view.idle(thread)


def _match(view: View, process: Process, busy: List[Edge], waits: List[Edge]) -> Match:
    graph = view.graph
    unread = [
        e for e in busy if e.resource is None or _is_native(graph, e)
    ]  # it may be a lock, whose holder is the cause
    # a thread that a fork left behind may have been to signal it: that is then the cause
    lost = bool(process.forked and process.left_behind)
    proven = not unread and not lost and all(graph.stuck(e.waiter) == "proven" for e in busy)
    # a thread that nothing waits for, in a process that goes on, may be parked on purpose
    parked = graph.goes_on(process.pid) and not any(
        graph.is_awaited(e.waiter) or e.wakers or _wants_a_value(view, process, e) or _owes_an_answer(graph, e)
        for e in busy
    )
    handled = process.signal_handlers is None and any(e.everyone for e in busy)
    leaves = bool(process.signal_handlers) and any(may_leave(view, e) for e in busy)
    places: List[Tuple[Edge, PythonFrame]] = [
        (e, f) for e in busy for f in [own_frame(graph.places.stack(e.waiter))] if f is not None
    ]
    main_first = sorted(places, key=lambda p: p[0].waiter.tid != process.pid)
    victims = [a for a in graph.behind(frozenset(e.waiter for e in busy)) if a.tid is not None]
    kept = [(e.waiter, f) for e in busy for f in view.kept(e.waiter)]
    joins = [e for e in busy if _joins_queue(graph, e)]
    return Match(
        confidence="possible" if parked or leaves or (handled and not proven) else "proven" if proven else "likely",
        summary=_summary(graph, main_first, busy),
        evidence=(
            *graph.reasons(*(e.waiter for e in waits)),
            *(_KEEPS(agent=a, frame=f) for a, f in kept[:3]),
            *((_HANDLERS(),) if handled else ()),
            *((_LEAVES(),) if leaves else ()),
            *((_PARKED(),) if parked else ()),
            *((_UNREAD(what=unread[0].what),) if unread else ()),
        ),
        culprits=tuple(
            dict.fromkeys(view.culprit_of(a, f) for a, f in (*((e.waiter, f) for e, f in main_first), *kept))
        ),
        victims=tuple(view.victim_of(a) for a in victims),
        remedy=_JOIN_REMEDY() if joins else None,
        pid=process.pid,
    )


def _wants_a_value(view: View, process: Process, edge: Edge) -> bool:
    """Return whether a thread waits at a barrier, or the main thread for an item or a result: not only to keep servers alive."""
    if edge.kind == "barrier":
        return True
    main = view.main(process)
    if main is None or edge.waiter.tid != main.tid:
        return False
    collects = any(in_table(frame, COLLECTS) for frame in main.python)
    return edge.kind in ("queue", "future") or collects or calls_for_a_result(main)


def _owes_an_answer(graph: WaitGraph, edge: Edge) -> bool:
    """Return whether a thread waits in the middle of a request: the client of a server, or of a pool, waits for it."""
    thread = graph.places.thread(edge.waiter)
    return thread is not None and not thread.is_main and in_request(thread)


def _joins_queue(graph: WaitGraph, edge: Edge) -> bool:
    return any(f.function == "join" and f.file.endswith("/queue.py") for f in graph.places.stack(edge.waiter)[:4])


def _summary(graph: WaitGraph, places: List[Tuple[Edge, PythonFrame]], busy: List[Edge]) -> Text:
    edge = places[0][0] if places else busy[0]
    thread = graph.places.thread(edge.waiter)
    detail = thread.wait.phrase if thread is not None and thread.wait is not None else None
    detailed = detail and edge.resource is not None
    return _SUMMARY(
        waiter=edge.waiter,
        waits=_IN_DETAIL(phrase=detail, what=edge.what) if detailed else _IN_SHORT(verb=edge.verb, what=edge.what),
        at=clauses.at(places[0][1]) if places else None,
        more=_MORE(count=len(busy) - 1) if len(busy) > 1 else None,
    )
