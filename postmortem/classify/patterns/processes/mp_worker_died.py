"""A pool or a queue waits for the work of a worker process that has died.

**What it looks like.** A thread waits for `AsyncResult.get()`, `Pool.map` or the like; every worker of the pool is idle; one of
them is younger than the others. Or it waits in `JoinableQueue.join`, and no other process has that queue any more.

**Easily mistaken for** a long task, where a worker is at work; `semaphore-orphan`, where the dead worker also held a lock.

**Why it hangs.** When a worker of `multiprocessing.Pool` dies, the pool starts another one in its place, but does not restart
the job of the dead one: its result never arrives.

**Remedy.** Use `concurrent.futures.ProcessPoolExecutor`, which raises BrokenProcessPool; give `get` a timeout; look for what
killed the worker: the OOM killer, a fault in native code, `os._exit`.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Pool, Process, Resource, Thread
from ....findings import Confidence, Slot, Template
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import multiprocessing, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .poolwork import lost_lock, replaced

PATTERN = Pattern(
    id="mp-worker-died",
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
    outranks=("missed-wakeup", "child-wait", "network-wait", "sleeping", "shutdown-join"),
    references=(
        "https://docs.python.org/3/library/concurrent.futures.html#concurrent.futures.process.BrokenProcessPool",
        "https://github.com/python/cpython/issues/66587",
    ),
)

_POOL = "multiprocessing.Pool"
_FILE, _QUEUES = multiprocessing("pool"), multiprocessing("queues")

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
_ENDED = Template("process {pids: and process } ended")
_NOBODY = Template("no other process has the queue any more")


def match(view: View) -> Iterator[Answer]:
    """Yield answers for pools with missing results, and for threads in JoinableQueue.join."""
    for process in view.pythons:
        for pool in process.pools:
            if pool.kind == _POOL and pool.pending:
                yield from _pool(view, process, pool)
        for thread in process.threads:
            if any(f.function == "join" and f.file.endswith(_QUEUES) for f in thread.python[:5]):
                yield from _queue(view, process, thread)


def _queue(view: View, process: Process, thread: Thread) -> Iterator[Match]:
    """Yield a match if no process is left that could call task_done for the remaining items."""
    agent = Agent(process.pid, thread.tid)
    stuck, frame = view.graph.stuck(agent), own_frame(thread.python)
    wanted = view.graph.places.resource(process.pid, thread.wait.resource) if thread.wait is not None else None
    if stuck is None or frame is None or wanted is None or any(w.pid != process.pid for w in wanted.wakers):
        return  # other processes have the queue, and have findings of their own
    ended = [p.pid for p in view.children(process) if p.state in ("Z", "X")]
    told = _ENDED(pids=tuple(ended[:3])) if ended else _NOBODY()
    yield Match(
        confidence=stuck,
        summary=_QUEUE(thread=clauses.named(thread), frame=frame, told=told),
        evidence=(*view.graph.reasons(agent), told),
        culprits=(view.culprit(process, frame, thread),),
        pid=process.pid,
    )


def _pool(view: View, process: Process, pool: Pool) -> Iterator[Answer]:
    waiters: List[Tuple[Thread, Optional[Resource]]] = [(t, None) for t in process.threads if _joins(pool, t)]
    waiters += [(t, r) for t in process.threads for r in [_awaits(process, pool, t)] if r is not None]
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


def _awaits(process: Process, pool: Pool, thread: Thread) -> Optional[Resource]:
    """Return the result of this pool that a thread waits for; None if it waits for none."""
    wanted = thread.wait.resource if thread.wait is not None else None
    return next((r for r in process.resources if r.id == wanted and r.part_of == pool.id), None) if wanted else None


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


def _joins(pool: Pool, thread: Thread) -> bool:
    """Return whether a thread is in Pool.join, which waits for every result."""
    return thread.tid not in pool.threads and any(
        f.function == "join" and f.file.endswith(_FILE) for f in thread.python[:6]
    )


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
            *proof,
        ),
        culprits=tuple(dict.fromkeys(view.culprit(process, f, t) for t, f in places)),
        victims=tuple(view.victim(process, t) for t, _r in waiters),
        pid=process.pid,
    )
