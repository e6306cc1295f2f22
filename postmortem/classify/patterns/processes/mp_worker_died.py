"""A pool or a queue waits for the work of a worker process that has died.

**What it looks like.** A thread waits for `AsyncResult.get()`, `Pool.map` or the like; every worker of the pool is idle; one of
them is younger than the others, or has a higher number. Or it waits in `JoinableQueue.join`, and no other process has that
queue any more. Or a `ProcessPoolExecutor` has seen that a worker ended and gives up, but joins a thread that still writes to
the workers' pipe. Or a thread waits in `Queue.get`, a child has ended, and all processes that have the queue wait for items
themselves. Or all threads of a `ThreadPool` wait for a job, while one waits for a result. In a core of the parent alone, the
numbers of the workers tell that others ended before them.

**Easily mistaken for** a long task, where a worker is at work; `semaphore-orphan`, where the dead worker also held a lock.

**Why it hangs.** When a worker of `multiprocessing.Pool` dies, the pool starts another one in its place, but does not restart
the job of the dead one: its result never arrives. The same follows if a job in a `ThreadPool` raises what is no `Exception`,
such as `SystemExit`. If one of the pool's own threads ends by an exception, it is `missed-wakeup`.

**Remedy.** Use `concurrent.futures.ProcessPoolExecutor`, which raises BrokenProcessPool; give `get` a timeout; look for what
killed the worker: the OOM killer, a fault in native code, `os._exit`.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Pool, Process, PythonFrame, Resource, Thread
from ....findings import Confidence, Culprit, Slot, Template
from ....sourcepaths import package
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.ended import ended_children, lost_count, made_children, told
from ...facts.forked import own_stacks
from ...facts.knowledge import (
    FEEDS,
    POOL_THREADS,
    gets_item,
    has_items,
    in_table,
    is_library,
    is_stdlib,
    joins_queue,
    multiprocessing,
    own_frame,
)
from ...facts.poolwaits import pool_waiters
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.calls import wants_an_answer
from ...roots.rest import asks_for_a_result
from .poolwork import lost_lock, replaced

PATTERN = Pattern(
    id="mp-worker-died",
    tier="resource",
    title="waits for the work of a worker process that has died",
    explanation=(
        "A worker process of the pool ended in the middle of a job. multiprocessing.Pool starts another worker, but does "
        "not do the job again, so its result never arrives. In the same way, an item of a JoinableQueue is never marked done."
    ),
    remedy=(
        "Find out what ended the worker (the kernel's log for the OOM killer; a fault in native code; os._exit or sys.exit "
        "in the job). concurrent.futures.ProcessPoolExecutor raises BrokenProcessPool instead; AsyncResult.get(timeout) at "
        "least returns."
    ),
    needs=("python", "cores"),
    references=(
        "https://docs.python.org/3/library/concurrent.futures.html#concurrent.futures.process.BrokenProcessPool",
        "https://github.com/python/cpython/issues/66587",
    ),
)

_POOL, _EXECUTOR = "multiprocessing.Pool", "ProcessPoolExecutor"
_TASKS, _GIVES_UP = "_handle_tasks", "terminate_broken"
_FILE = multiprocessing("pool")

#: Functions of a pool's workers, and of those who wait for its results.
_POOL_WORKERS = tuple((file, "worker") for file in _FILE)
_POOL_RESULTS = tuple((file, function) for file in _FILE for function in ("next", "wait", "get"))
_NEAR = 5  # innermost frames of a thread that waits for a result

#: Most processes named.
_SHOWN = 8

_ASKS = Template(
    "{agent} asks{at} for a result again and again, but {count:v the only worker process that is left has|all @ worker processes "
    "that are left have} nothing to do: one that had the job seems to have died"
)
_IDLE_WORKERS = Template("{count:n worker process} {pids} {count:v runs|run} no code of the program")
_MADE = Template(
    "the process has made {made:n Process object} of multiprocessing, {lost} of which {lost:v has|have} no process that runs"
)
_SUMMARY = Template("{thread} waits{at} for {what}, but every worker is idle: the one that had the job {died}")
_HAS_DIED = Template("has died")
_SEEMS_TO = Template("seems to have died")
_WAITS = Template("{thread} waits for {what}")
_LOOKS = Template("{thread} polls for {what}, and sleeps in between")
_POOLS_END = Template("the end of {pool}")
_TO_COME = Template(
    "{count:n result} of {pool} {count:v is|are} missing, and {workers:v its only worker waits|all @ workers wait} for a job"
)
_AT_WORK = Template("{pool} has {results:n result} to come, and {workers:n worker} at work")
_LOST_LOCK = Template("the workers of {pool} wait for a lock whose holder has ended: see semaphore-orphan")
_QUEUE = Template(
    "{thread} waits at {frame} until all items of a JoinableQueue are done, but no process that took them is left: {told}"
)
_GETS = Template(
    "{thread} waits{at} for an item of a multiprocessing.Queue, but {left}: {count:n child process|child processes} of this one "
    "{count:v has|have} ended"
)
_NO_OTHER = Template("no other process has that queue any more")
_ALL_WANT = Template(
    "{count:v the other process that has that queue waits|all @ others that have that queue wait} for items"
)
_WANTS_ITEM = Template("process {pid} waits for an item of a queue itself")
_ALONE = Template("the queue's pipe is {pipe}: only this process could write to it, and no feeder thread of it does")
_GETS_REMEDY = Template(
    "Find out why the workers ended without handing over their items: killed, ended by os._exit before the feeder thread had "
    "written (call close() and join_thread() of the queue), or an exception. Get with a time limit while workers live, and look "
    "at their exit codes."
)
_ENDED = Template("process {pids: and process } ended")
_NOBODY = Template("no other process has the queue any more")


_BREAKS = Template(
    "{pool} has seen that a worker ended, and its manager, {manager}, waits{what:+ for @} while it gives up all jobs; "
    "{waiter} waits for it{at}"
)
_BROKEN = Template("{manager} is in terminate_broken: it has seen that a worker ended before its job was done")
_STILL_WRITES = Template("{feeder} still writes a job to the workers' pipe, which no worker reads any more")
_UPGRADE = Template(
    "Find out what ended the worker (the kernel's log for the OOM killer; a fault in native code; os._exit in the job). Python "
    "3.11.5 and 3.12 no longer hang here but raise BrokenProcessPool; before, hand over names of files instead of large data."
)
_UNREAD = Template("the workers themselves were not read, so whether one of them still works on it is not known")
_ALL_SENT = Template("no job is left in the pool's queue: {thread} waits for the next one")
_MORE_THAN = Template(
    "its workers have higher numbers than its first ones: {count:n worker} {count:v was|were} started in place of others"
)
_HELPER = Template("{pool} has lost {helpers: and }, a thread of its own: see missed-wakeup")
_NO_WORKERS = Template("{thread} waits{at} for {what}, but {pool} has no worker any more")
_NONE_LEFT = Template(
    "{pool} has {count:n job} to do, and lists no worker process: those that it had have ended, and none was started again"
)
_NO_THREAD_HAS_IT = Template(
    "{thread} waits{at} for a result of a ThreadPool, but no thread has that job: {count:v its only worker waits|all @ workers "
    "that are left wait} for the next one"
)
_WAITS_FOR_A_JOB = Template("{thread} is a worker, and waits for a job")
_ENDS_A_WORKER = Template(
    "a worker ends without a result when its job raises what is no Exception: SystemExit (sys.exit, argparse), KeyboardInterrupt"
)
_THREADS_REMEDY = Template(
    "Look for sys.exit, a parser of arguments, or a thread that is made to end, in the jobs of the pool, and catch SystemExit "
    "there; wait with a time limit (`get(timeout)`, `next(timeout)`)."
)
_MISSING = Template(
    "{thread} waits{at} for {what}; {count:n worker} of the pool {count:v has|have} been replaced, and the job of one that "
    "ended is lost"
)


def match(view: View) -> Iterator[Answer]:
    """Yield answers for pools with missing results, and for threads in JoinableQueue.join."""
    for process in view.pythons:
        for pool in process.pools:
            if pool.kind == _POOL and pool.pending:
                yield from _pool(view, process, pool)
            elif pool.kind == _EXECUTOR and pool.broken:
                yield from _breaking(view, process, pool)
            elif pool.kind == _EXECUTOR and pool.pending and not (pool.processes or pool.gone or pool.shutdown):
                yield from _without_workers(view, process, pool)
        yield from _of_threads(view, process)
        yield from _of_library(view, process)
        for thread in process.threads:
            if joins_queue(thread.python):
                yield from _queue(view, process, thread)
            elif gets_item(thread.python):
                yield from _nobody_puts(view, process, thread)


def _of_threads(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for a result of a ThreadPool all of whose threads wait for work: no thread has the job any more.

    A worker keeps what a job raises, but ends with what is no Exception, such as SystemExit (worker in
    Lib/multiprocessing/pool.py, CPython 3.8 to 3.14).
    """
    own = [t for t in process.threads if any(in_table(f, POOL_THREADS) for f in t.python)]
    workers = [t for t in own if any(in_table(f, _POOL_WORKERS) for f in t.python)]
    waiters = [t for t in process.threads if t not in own and any(in_table(f, _POOL_RESULTS) for f in t.python[:_NEAR])]
    if not workers or not waiters or any(pool.kind == _POOL for pool in process.pools):
        return  # without workers here they are processes
    if any(view.moves(t) or not view.rests(t) for t in (*own, *waiters)) or not all(map(view.idle, own)):
        return  # a job runs, or the program's iterable of jobs, or a callback
    queues = {resource.id for resource in process.resources if resource.kind == "queue"}
    if any(t.wait is None or t.wait.resource not in queues for t in workers):
        return  # a job that is a function in C has no frame of its own
    endless = all(t.wait is not None and t.wait.endless is True for t in waiters)
    frame = own_frame(waiters[0].python)
    yield Match(
        confidence="likely" if endless and view.window else "possible",
        summary=_NO_THREAD_HAS_IT(thread=clauses.named(waiters[0]), at=clauses.at(frame), count=len(workers)),
        evidence=(
            *(_WAITS_FOR_A_JOB(thread=clauses.named(worker)) for worker in workers[:_SHOWN]),
            _ENDS_A_WORKER(),
        ),
        culprits=_at(view, process, [(t, None) for t in waiters]),
        victims=tuple(view.victim(process, t) for t in waiters[1:]),
        remedy=_THREADS_REMEDY(),
        pid=process.pid,
    )


def _of_library(view: View, process: Process) -> Iterator[Match]:
    """Yield a match for a library's own pool of processes that is asked for a result, while all that are left are idle.

    The library's code runs in its children; the process has made more Process objects than there are children.
    """
    asking = [(Agent(process.pid, t.tid), t.python) for t in process.threads if asks_for_a_result(t)]
    asking += [
        (Agent(process.pid, task=task.id), task.stack)
        for task in process.tasks
        if task.wait is not None and task.wait.kind == "sleep" and wants_an_answer(task)
    ]
    if not asking:
        return
    children = made_children(view, process)
    lost = lost_count(view, process)
    for agent, frames in asking if lost > 0 else ():
        library = next((package(f.file) for f in frames if is_library(f) and not is_stdlib(f)), None)
        several = [child for child in children if library is not None and _runs(child, library)]
        if several and all(_idles(view, child) for child in several):
            yield _lost(view, process, agent, own_frame(frames), several, lost)
            return


def _runs(child: Process, library: str) -> bool:
    """Return whether a child runs code of a library."""
    return any(package(frame.file) == library for frames in own_stacks(child) for frame in frames)


def _idles(view: View, child: Process) -> bool:
    """Return whether no thread or task of a child runs code of the program, and none computes."""
    return all(all(map(is_library, frames)) for frames in own_stacks(child)) and all(map(view.rests, child.threads))


def _lost(
    view: View, process: Process, agent: Agent, frame: Optional[PythonFrame], workers: List[Process], lost: int
) -> Match:
    pids = tuple(worker.pid for worker in workers[:_SHOWN])
    return Match(
        confidence="likely" if view.window else "possible",
        summary=_ASKS(agent=agent, at=clauses.at(frame), count=len(workers)),
        evidence=(
            _IDLE_WORKERS(count=len(workers), pids=pids),
            _MADE(made=process.children_made or 0, lost=lost),
            *told(view, ended_children(view, process)),
        ),
        culprits=(view.culprit_of(agent, frame),) if frame is not None else (),
        victims=(view.victim_of(agent), *(view.victim_of(one) for one in view.graph.behind(frozenset((agent,))))),
        pid=process.pid,
    )


def _queue(view: View, process: Process, thread: Thread) -> Iterator[Match]:
    """Yield a match if no process is left that could call task_done for the remaining items."""
    agent = Agent(process.pid, thread.tid)
    stuck, frame = view.graph.stuck(agent), own_frame(thread.python)
    wanted = view.graph.places.resource(process.pid, thread.wait.resource) if thread.wait is not None else None
    if stuck is None or frame is None or wanted is None or any(w.pid != process.pid for w in wanted.wakers):
        return  # other processes have the queue, and have findings of their own
    ended = [p.pid for p in view.children(process) if p.state in ("Z", "X")]
    how = _ENDED(pids=tuple(ended[:3])) if ended else _NOBODY()
    yield Match(
        confidence=stuck,
        summary=_QUEUE(thread=clauses.named(thread), frame=frame, told=how),
        evidence=(*view.graph.reasons(agent), how),
        culprits=(view.culprit(process, frame, thread),),
        pid=process.pid,
    )


def _nobody_puts(view: View, process: Process, thread: Thread) -> Iterator[Match]:
    """Yield a match if a thread waits for an item of a queue that only its own process still has, and its children have ended."""
    agent, frame, ended = Agent(process.pid, thread.tid), own_frame(thread.python), ended_children(view, process)
    stuck = view.graph.stuck(agent)
    wanted = view.graph.places.resource(process.pid, thread.wait.resource) if thread.wait is not None else None
    if stuck is None or frame is None or wanted is None or wanted.kind not in ("pipe", "socket") or not ended:
        return
    if has_items(process):
        return  # they are still to come
    others = {end.pid for end in wanted.ends} - {process.pid}
    left = [child for child in view.children(process) if child.pid in others]
    if len(left) < len(others) or not all(_wants_items(view, child) for child in left):
        return  # another process has the queue
    failed = any(one.status for one in ended)  # 0 for one that was done; None may be that, too
    yield Match(
        confidence="likely" if failed or not left else "possible",
        summary=_GETS(
            thread=clauses.named(thread),
            at=clauses.at(frame),
            left=_ALL_WANT(count=len(left)) if left else _NO_OTHER(),
            count=len(ended),
        ),
        evidence=(
            *(() if left else (_ALONE(pipe=wanted.description),)),
            *(_WANTS_ITEM(pid=child.pid) for child in left[:_SHOWN]),
            *told(view, ended),
        ),
        culprits=(view.culprit(process, frame, thread),),
        victims=tuple(view.victim_of(one) for one in view.graph.behind(frozenset((agent,)))),
        remedy=_GETS_REMEDY(),
        pid=process.pid,
    )


def _wants_items(view: View, child: Process) -> bool:
    """Return whether a process waits for an item itself, for good, and has none to hand over."""
    main = view.main(child)
    if main is None or not gets_item(main.python) or has_items(child):
        return False
    return view.graph.stuck(Agent(child.pid, main.tid)) is not None and not view.moves(main)


def _pool(view: View, process: Process, pool: Pool) -> Iterator[Answer]:
    waiters = pool_waiters(process, pool)
    if pool.helpers_ended and waiters:
        yield No(_HELPER(pool=pool.description, helpers=pool.helpers_ended))
        return
    unread = [pid for pid in pool.processes if pid not in view.by_pid]
    if unread and pool.replaced and waiters:
        answer = _unread(view, process, pool, waiters)
        if answer is not None:
            yield answer
            return
    busy = [pid for pid in pool.processes if pid not in pool.idle]
    if busy or not pool.processes:
        yield No(_AT_WORK(pool=pool.description, results=pool.pending or 0, workers=len(busy)))
        return
    if any(lost_lock(view, pid) for pid in pool.processes):
        yield No(_LOST_LOCK(pool=pool.description))
        return
    waiters = waiters or list(_polls(view, process, pool))
    if waiters:
        yield _match(view, process, pool, waiters)


def _at(view: View, process: Process, waiters: List[Tuple[Thread, Optional[Resource]]]) -> Tuple[Culprit, ...]:
    """Return the program's lines that wait."""
    places = [(t, f) for t, _r in waiters for f in [own_frame(t.python)] if f is not None]
    return tuple(dict.fromkeys(view.culprit(process, f, t) for t, f in places))


def _without_workers(view: View, process: Process, pool: Pool) -> Iterator[Match]:
    """Yield the match of an executor that has jobs and a manager, but no worker process, as after its workers' last job.

    Workers are started before the first job is handed out, and an executor that loses one unexpectedly gives up all jobs.
    """
    agents = {Agent(process.pid, tid) for tid in pool.threads}
    resources = {r.id: r for r in process.resources if any(w.tid in pool.threads for w in r.wakers)}
    waiters = [
        (thread, resources[thread.wait.resource])
        for thread in process.threads
        if thread.wait is not None
        and thread.wait.resource in resources
        and Agent(process.pid, thread.tid) not in agents
    ]
    if not waiters or any(view.moves(thread) for thread, _r in waiters):
        return
    thread, result = waiters[0]
    yield Match(
        confidence="likely" if thread.wait is not None and thread.wait.endless is not False else "possible",
        summary=_NO_WORKERS(
            thread=clauses.named(thread),
            at=clauses.at(own_frame(thread.python)),
            what=result.description,
            pool=pool.description,
        ),
        evidence=(
            _NONE_LEFT(pool=pool.description, count=pool.pending or 0),
            *told(view, ended_children(view, process)),
        ),
        culprits=_at(view, process, [(t, r) for t, r in waiters]),
        victims=tuple(view.victim(process, t) for t, _r in waiters[1:]),
        pid=process.pid,
    )


def _unread(
    view: View, process: Process, pool: Pool, waiters: List[Tuple[Thread, Optional[Resource]]]
) -> Optional[Match]:
    """Return the match of a pool whose workers were not read, as in a core of the parent alone; None without a reason.

    All jobs have been handed out, and workers were started in place of others.
    """
    tasks = next(
        (t for t in process.threads if t.tid in pool.threads and t.python and t.python[0].function == _TASKS), None
    )
    endless = all(t.wait is not None and t.wait.endless is not False for t, _r in waiters)
    if tasks is None or not endless:
        return None
    thread, result = waiters[0]
    what: Slot = result.description if result is not None else _POOLS_END(pool=pool.description)
    return Match(
        confidence="likely",
        summary=_MISSING(
            thread=clauses.named(thread), at=clauses.at(own_frame(thread.python)), what=what, count=pool.replaced or 0
        ),
        evidence=(
            _MORE_THAN(count=pool.replaced or 0),
            _ALL_SENT(thread=clauses.named(tasks)),
            *told(view, ended_children(view, process)),
            _UNREAD(),
        ),
        culprits=_at(view, process, waiters),
        victims=tuple(view.victim(process, t) for t, _r in waiters),
        pid=process.pid,
    )


def _breaking(view: View, process: Process, pool: Pool) -> Iterator[Match]:
    """Yield the match of an executor that gives up because a worker ended, and does not come to an end of it."""
    managers = (view.thread(process, tid) for tid in pool.threads)
    manager = next((t for t in managers if t is not None and any(f.function == _GIVES_UP for f in t.python)), None)
    if manager is None or manager.wait is None or manager.wait.endless is False or view.moves(manager):
        return
    agent = Agent(process.pid, manager.tid)
    waiting = [t for t in view.waits_on(process, manager.tid) if own_frame(t.python) is not None]
    feeder = view.thread(process, manager.joins)
    writes = feeder is not None and _writes(feeder)
    circle = feeder is not None and any(agent in edge.wakers for edge in view.edges(process, feeder))
    edge = next(iter(view.edges(process, manager)), None)
    shown = waiting[0] if waiting else manager
    frame = own_frame(shown.python)
    certain: Confidence = "proven" if view.graph.stuck(agent) == "proven" else "likely" if waiting else "possible"
    yield Match(
        confidence="possible" if circle else certain,  # the circle is the cause; that a worker ended only led there
        summary=_BREAKS(
            pool=pool.description,
            manager=clauses.named(manager),
            what=edge.what if edge is not None else None,
            waiter=clauses.named(shown),
            at=clauses.at(frame),
        ),
        evidence=(
            _BROKEN(manager=clauses.named(manager)),
            *told(view, ended_children(view, process)),
            *((_STILL_WRITES(feeder=clauses.named(feeder)),) if feeder is not None and writes else ()),
        ),
        culprits=tuple(dict.fromkeys(view.culprit(process, f, t) for t in waiting for f in [own_frame(t.python)] if f)),
        victims=tuple(view.victim(process, t) for t in waiting),
        remedy=_UPGRADE() if writes else None,
        pid=process.pid,
    )


def _writes(feeder: Thread) -> bool:
    """Return whether a queue's feeder thread waits to write to its pipe."""
    wait = feeder.wait
    feeds = any(in_table(f, FEEDS) for f in feeder.python)
    return feeds and wait is not None and wait.kind in ("pipe", "socket") and wait.syscall in ("write", "writev")


def _polls(view: View, process: Process, pool: Pool) -> Iterator[Tuple[Thread, Optional[Resource]]]:
    """Yield threads that repeatedly sleep while a result will never arrive: they poll for it."""
    lost = next((r for r in process.resources if r.part_of == pool.id and r.closed and not r.wakers), None)
    for thread in process.threads if lost is not None else ():
        if (
            thread.wait is not None
            and thread.wait.kind == "sleep"
            and view.moves(thread)
            and view.matters(process, thread)
        ):
            yield thread, lost


def _match(view: View, process: Process, pool: Pool, waiters: List[Tuple[Thread, Optional[Resource]]]) -> Match:
    polls = any(t.wait is not None and t.wait.kind == "sleep" for t, _r in waiters)
    does = _LOOKS if polls else _WAITS
    endless = polls or all(t.wait is not None and t.wait.endless is not False for t, _r in waiters)
    results = [r for _t, r in waiters if r is not None]
    proof = next((r.because for r in process.resources if r.part_of == pool.id and r.closed and not r.wakers), ())
    new = len(pool.gone) + (pool.replaced or 0)
    thread = waiters[0][0]
    at = clauses.at(own_frame(thread.python))
    what: Slot = results[0].description if results else _POOLS_END(pool=pool.description)
    places = [(t, f) for t, _r in waiters for f in [own_frame(t.python)] if f is not None]
    confidence: Confidence = "proven" if proof and not polls else "likely" if proof or new else "possible"
    return Match(
        confidence=confidence if endless else "possible",
        summary=_SUMMARY(thread=clauses.named(thread), at=at, what=what, died=_HAS_DIED() if proof else _SEEMS_TO()),
        evidence=(
            *(does(thread=clauses.named(t), what=r.description if r is not None else what) for t, r in waiters[:3]),
            _TO_COME(count=pool.pending or 0, pool=pool.description, workers=len(pool.processes)),
            *replaced(view, pool),
            *told(view, ended_children(view, process)),
            *proof,
        ),
        culprits=tuple(dict.fromkeys(view.culprit(process, f, t) for t, f in places)),
        victims=tuple(view.victim(process, t) for t, _r in waiters),
        pid=process.pid,
    )
