"""Thread pools whose workers are all occupied by jobs that wait, while others are queued behind them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, FrozenSet, Iterator, List, Optional, Tuple

from ....evidence import Pool, Process, PythonFrame, Task, Thread
from ....findings import Template, Text
from ....findings.told import RootKind
from ....sourcepaths import package
from ....waitgraph import Agent
from ....waitgraph.edges import EdgeKind, What
from ...facts import clauses
from ...facts.knowledge import in_table, is_library, is_stdlib, own_frame
from ...facts.view import View
from ...pattern import Match
from ...roots.rest import in_request
from ...roots.roots import frame_of, kind_of
from ...roots.walk import Way, follow, telling
from .queuedwork import (
    LONG_S,
    able_beside,
    asked_by_itself,
    given_by_queued,
    is_full,
    library_groups,
    signalled_by_queued,
    stays,
    want_results,
)

_SUMMARY = Template(
    "all {count} workers of {pool} are occupied by jobs that wait{at}, and {queued:n job} {queued:v wait} in its queue"
)
_ONLY = Template(
    "the only worker of {pool} is occupied by a job that waits{at}, and {queued:n job} {queued:v wait} in its queue"
)
_AT = Template("{count:n worker} {count:v wait} at {frame} for {what}")
_WANTS = Template("{agent} waits{at} for what a job in the queue would give, and no other code that can still run")
_NAME = Template("{task} waits in the same queue for a host name to be resolved, which asyncio does in this pool, too")
_STANDS = Template("none of them moved during the window")
_ASKS = Template("none of them left its function during the window: each asks for an item again and again")
_STAYS = Template("none of them left its job during the window, though they went on")
_SLOW = Template(
    "what would decide it: whether more workers would get more done meanwhile, or the others are as slow as these"
)
_ABLE = Template(
    "what would decide it: whether the code outside of the pool that can still end a wait for {what} comes to do so"
)
_ALL_WAIT = Template(
    "all {count} threads on which {function} runs the program's code wait{at}: none is left for other work"
)
_ALL_PROCESSES = Template(
    "all {count} worker processes of {program} wait at {frame} for an answer of {remote}: none is left for other work"
)
_SAME_SERVER = Template("their parent is connected to {remote}, too, and takes the work for them from it")
_BEHIND = Template("{count:n task} {count:v waits|wait} in {function} of {library} until one of these threads is free")
_DECIDES = Template("what would decide it: whether what they wait for has to run on one of the threads of {function}")
#: Functions of asyncio that give the resolving of a name to a loop's default pool (Lib/asyncio/base_events.py, 3.8-3.15).
_NAMES = (("asyncio/base_events.py", "getaddrinfo"), ("asyncio/base_events.py", "getnameinfo"))
#: Jobs in the queue for each worker, from which on a pool may be too small for jobs that only wait.
CROWD = 4
#: Innermost frames of a task among which the call is that gives work to a thread.
_INNERMOST = 6
#: Fewest threads of a library that make a pool.
_SEVERAL = 2
_REMEDY = Template(
    "Do not let a job of the pool wait for what only another job, or a later request, will do: give long waits a pool or threads "
    "of their own, limit how many of them may run at once to less than the pool's size, or wait with a time limit."
)
#: What a job may wait for inside the program; a slow peer, child or disk, and a lock with its holder, are other causes.
_INSIDE: FrozenSet[RootKind] = frozenset(("signal", "queue", "permits", "future", "pool"))
#: Waits for signals and items, which nobody holds.
_SIGNALS: FrozenSet[EdgeKind] = frozenset(("condition", "event", "queue"))


def occupied(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for each pool with a queue all of whose workers stay in jobs that wait: for the program, or for peers.

    For peers only if the queue is long: such jobs come to their end.
    """
    for pool in process.pools:
        workers = [Agent(process.pid, tid) for tid in pool.threads]
        if not is_full(pool):
            continue
        if want_results(view, process, pool) or signalled_by_queued(view, process, pool):
            continue  # see executor-self-deadlock
        ways = [follow(view, worker) for worker in workers]
        if all(_waits(view, way) or _signal_each_other(view, way, workers) for way in ways):
            yield _match(view, process, pool, ways)
        elif view.window and all(_stays_in_its_job(view, process, way) for way in ways):
            yield _match(view, process, pool, ways, asks=all(_consumes(view, process, way) for way in ways))
        elif all(kind_of(view, way) == "native-lock" and _stands(view, way) for way in ways):
            yield from _kept_in_libraries(view, process, pool, ways)
        elif (pool.queued or 0) >= CROWD * len(workers) and all(_is_outside(view, way) for way in ways):
            if all(_sleeps_long(view, way) for way in ways):
                continue  # see sleeping
            yield _match(view, process, pool, ways, slow=True)


def _kept_in_libraries(view: View, process: Process, pool: Pool, ways: List[Way]) -> Iterator[Match]:
    """Yield a match for a pool whose workers wait inside libraries, for what was not read, if a queued job is waited for.

    No thread of the process computes: none does for a library what its callers wait for.
    """
    wanting = [
        (Agent(process.pid, thread.tid), thread)
        for thread in process.threads
        if thread.tid not in pool.threads and _wants_a_queued_job(view, process, pool, thread)
    ]
    if not wanting or any(map(view.computes, process.threads)):
        return
    found = _match(view, process, pool, ways)
    frames = [(agent, frame) for agent, thread in wanting for frame in [own_frame(thread.python)] if frame is not None]
    facts = (_WANTS(agent=agent, at=clauses.at(frame)) for agent, frame in frames[:_SEVERAL])
    own = tuple(view.culprit_of(agent, frame) for agent, frame in frames)
    yield replace(found, evidence=(*facts, *found.evidence), culprits=tuple(dict.fromkeys((*own, *found.culprits))))


def _wants_a_queued_job(view: View, process: Process, pool: Pool, thread: Thread) -> bool:
    """Return whether a thread waits for a signal, or an item, that only a job in a pool's queue would give."""
    edge = telling(view, Agent(process.pid, thread.tid))
    resource = view.graph.places.resource(process.pid, edge.resource) if edge is not None else None
    if resource is None or resource.kind not in _SIGNALS or not stays(edge) or view.moves(thread):
        return False
    return given_by_queued(view, process, pool, resource)


def crowded(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for each library's group of threads that all wait inside the program's code, so that none is free."""
    joined = {thread.joins for thread in process.threads}
    for (_file, function), threads in library_groups(process).items():
        if any(thread.tid in joined for thread in threads):
            continue  # they are to end: who joins them waits for that
        ways = [follow(view, Agent(process.pid, thread.tid)) for thread in threads]
        if len(threads) >= _SEVERAL and all(map(in_request, threads)) and all(_waits(view, way) for way in ways):
            yield _full(view, process, function, ways)


def crowded_processes(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for the workers of a process that all wait at one line for an answer of the server that gives them work."""
    workers = [one for one in view.children(process) if one.argv == process.argv and view.main(one) is not None]
    mains = [main for one in workers for main in [view.main(one)] if main is not None]
    places = {own_frame(main.python) for main in mains}
    frame = places.pop() if len(places) == 1 else None
    remotes = {_remote(one, main) for one, main in zip(workers, mains)}
    remote = remotes.pop() if len(remotes) == 1 else None
    if len(workers) < _SEVERAL or frame is None or remote is None or any(map(view.moves, mains)):
        return
    if remote in {resource.remote for resource in process.resources if resource.kind == "socket"}:
        yield Match(
            confidence="likely" if view.window else "possible",
            summary=_ALL_PROCESSES(count=len(workers), program=clauses.process(process), frame=frame, remote=remote),
            evidence=(_SAME_SERVER(remote=remote), *((_STANDS(),) if view.window else ())),
            culprits=(view.culprit(workers[0], frame, mains[0]),),
            victims=tuple(view.victim(one, main) for one, main in zip(workers[1:], mains[1:])),
            remedy=_REMEDY(),
            pid=workers[0].pid,
        )


def _remote(process: Process, main: Thread) -> Optional[str]:
    """Return the address of the peer that a main thread waits for; None if it waits for something else."""
    wanted = main.wait.resource if main.wait is not None else None
    return next((r.remote for r in process.resources if r.id == wanted and r.kind == "socket"), None)


def _full(view: View, process: Process, function: str, ways: List[Way]) -> Match:
    frames = [frame for way in ways for frame in [frame_of(view, way.start)] if frame is not None]
    first = {frame_of(view, way.start): way.start for way in reversed(ways)}
    asks, behind = _queued_behind(process, [way.start for way in ways])
    lasting = view.window is not None and all(stays(edge) for way in ways for edge in (*way.edges, way.edge))
    queue = _BEHIND(count=len(behind), function=asks.function, library=package(asks.file)) if asks is not None else None
    return Match(
        confidence="likely" if behind and lasting else "possible",
        summary=_ALL_WAIT(count=len(ways), function=function, at=clauses.at(frames[0]) if frames else None),
        evidence=(queue, _STANDS()) if queue is not None and view.window else (_DECIDES(function=function),),
        culprits=tuple(view.culprit_of(first[frame], frame) for frame in dict.fromkeys(frames)),
        remedy=_REMEDY(),
        pid=process.pid,
    )


def _queued_behind(process: Process, threads: List[Agent]) -> Tuple[Optional[PythonFrame], List[Task]]:
    """Return a library's call that gives work to these threads, and the tasks in it that have no thread yet.

    Other tasks are in the same call, and wait for what these threads do.
    """
    tids = {agent.tid for agent in threads}
    done_by = {r.id for r in process.resources if any(waker.tid in tids for waker in r.wakers)}
    calls: Dict[Tuple[str, str, Optional[int]], PythonFrame] = {}
    others: List[Task] = []
    for task in process.tasks:
        if task.state != "pending" or task.wait is None or task.ready:
            continue
        if task.wait.resource in done_by:
            found = (frame for frame in task.stack[:_INNERMOST] if is_library(frame) and not is_stdlib(frame))
            calls.update({(frame.file, frame.function, frame.line): frame for frame in found})
        elif task.wait.kind in ("event", "semaphore", "future"):
            others.append(task)
    behind: Dict[PythonFrame, List[Task]] = {}
    for task in others:
        places = ((frame.file, frame.function, frame.line) for frame in task.stack[:_INNERMOST])
        shared = next((calls[place] for place in places if place in calls), None)
        if shared is not None:
            behind.setdefault(shared, []).append(task)
    return max(behind.items(), key=lambda item: len(item[1])) if behind else (None, [])


def _is_outside(view: View, way: Way) -> bool:
    """Return whether a worker waits for a peer or sleeps."""
    thread = view.graph.places.thread(way.start)
    return (
        thread is not None
        and thread.wait is not None
        and thread.wait.kind in ("socket", "sleep")
        and view.rests(thread)
    )


def _sleeps_long(view: View, way: Way) -> bool:
    """Return whether a worker is in a sleep that lasts a minute or more: that keeps it, however many there are."""
    thread = view.graph.places.thread(way.start)
    wait = thread.wait if thread is not None else None
    return wait is not None and wait.kind == "sleep" and (wait.timeout_s or 0.0) >= LONG_S


def _stays_in_its_job(view: View, process: Process, way: Way) -> bool:
    """Return whether a worker waits for signals of its process, again and again, and never left the function of its job."""
    thread = view.graph.places.thread(way.start)
    own = next((f for f in reversed(thread.python) if not is_library(f)), None) if thread is not None else None
    if thread is None or thread.wait is None or own is None or not view.rests(thread):
        return False
    resource = view.graph.places.resource(process.pid, thread.wait.resource)
    return resource is not None and resource.kind in _SIGNALS and _never_left(view, thread, own)


def _never_left(view: View, thread: Thread, frame: PythonFrame) -> bool:
    """Return whether a thread was in a frame's function in every sample of the window."""
    place = frame.file, frame.function
    return view.sampled_share(thread, lambda frames: any((f.file, f.function) == place for f in frames)) == 1.0


def _consumes(view: View, process: Process, way: Way) -> bool:
    """Return whether a worker asks for items of a queue again and again, a short time each, and never left its function."""
    thread = view.graph.places.thread(way.start)
    wait, own = (thread.wait, own_frame(thread.python)) if thread is not None else (None, None)
    if thread is None or wait is None or own is None or wait.endless is not False:
        return False
    resource = view.graph.places.resource(process.pid, wait.resource)
    short = (wait.timeout_s or 0.0) <= (view.window or 0.0)
    return resource is not None and resource.kind == "queue" and short and _never_left(view, thread, own)


def _waits(view: View, way: Way) -> bool:
    """Return whether a worker waits for something of the program, and nothing on its way moved."""
    return kind_of(view, way) in _INSIDE and _stands(view, way)


def _signal_each_other(view: View, way: Way, workers: List[Agent]) -> bool:
    """Return whether a worker waits for a signal that another worker of its pool, or a queued job, would give."""
    signals = all(edge.kind in _SIGNALS and edge.waiter in workers for edge in way.cycle)
    return bool(way.cycle) and signals and _stands(view, way)


def _stands(view: View, way: Way) -> bool:
    """Return whether nothing on the way of a worker moved."""
    threads = [view.graph.places.thread(agent) for agent in way.agents]
    return not any(thread is not None and (view.moves(thread) or not view.rests(thread)) for thread in threads)


def _match(view: View, process: Process, pool: Pool, ways: List[Way], slow: bool = False, asks: bool = False) -> Match:
    places: Counter[Tuple[Optional[PythonFrame], Optional[What]]] = Counter()
    for way in ways:
        edge = way.edges[0] if way.edges else way.edge
        places[frame_of(view, way.start), edge.what if edge is not None else None] += 1
    frames = [frame for (frame, _what), _count in places.most_common() if frame is not None]
    endless = all(stays(edge) for way in ways for edge in (*way.edges, way.edge))
    first = {frame_of(view, way.start): way.start for way in reversed(ways)}
    wanted = {edge.resource for way in ways for edge in (way.edge, *way.cycle) if edge is not None}
    able = [r for r in process.resources if r.id in wanted and able_beside(view, process, pool, r)]
    at = clauses.at(frames[0]) if frames else None
    stands = view.window is not None and all(_stands(view, way) for way in ways)
    again = not stands  # a time limit that was not reached lets a worker go, one that was reached did not
    sure = asks or (endless and (stands or view.window is None))
    sure = sure or ((endless or again) and not slow and asked_by_itself(process, pool))
    told = _SUMMARY(count=len(ways), pool=pool.description, at=at, queued=pool.queued) if len(ways) > 1 else None
    tasks = _waiting_tasks(process, pool)
    names = [task for task in tasks if any(in_table(frame, _NAMES) for frame in task.stack)]
    lines = [(frame, Agent(process.pid, task=task.id)) for task in tasks for frame in [own_frame(task.stack)] if frame]
    given, giver = Counter(frame for frame, _task in lines), dict(reversed(lines))
    by_task = (view.culprit_of(giver[frame], frame) for frame, _count in given.most_common(1))
    return Match(
        confidence="likely" if (names if slow else sure and not able) else "possible",
        summary=told or _ONLY(pool=pool.description, at=at, queued=pool.queued),
        evidence=(
            *(_AT(count=count, frame=frame, what=what) for (frame, what), count in places.most_common(4)),
            *(_NAME(task=Agent(process.pid, task=task.id)) for task in names[:1]),
            *(() if slow and names else _time(view, slow, asks, stands)),
            *(_ABLE(what=resource.description) for resource in able[:1]),
        ),
        culprits=(*(view.culprit_of(first[frame], frame) for frame in dict.fromkeys(frames)), *by_task),
        victims=tuple(view.victim_of(a) for a in view.graph.behind(frozenset(way.start for way in ways))[:20]),
        remedy=_REMEDY(),
        pid=process.pid,
    )


def _waiting_tasks(process: Process, pool: Pool) -> List[Task]:
    """Return the tasks that wait for jobs of a pool."""
    jobs = {r.id for r in process.resources if any(w.role == "runner" and w.tid in pool.threads for w in r.wakers)}
    return [task for task in process.tasks if task.wait is not None and task.wait.resource in jobs]


def _time(view: View, slow: bool, asks: bool, stands: bool) -> Iterator[Text]:
    """Yield the text on what the workers did during the window; of slow peers what would decide it."""
    if slow:
        yield _SLOW()
    elif asks:
        yield _ASKS()
    elif view.window:
        yield _STANDS() if stands else _STAYS()
