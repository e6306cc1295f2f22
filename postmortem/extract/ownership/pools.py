"""Thread pools, and the threads that could complete their futures."""

from __future__ import annotations

from typing import Callable, Dict, Final, Iterable, List, NamedTuple, Optional, Tuple

from ...cpython.objects.attributes import attribute
from ...evidence import Because, Fact, Pool, PythonFrame, Resource, Waker, fact
from ...evidence import replace as changed
from ...frameworks.executors import ThreadPool, WorkItem, jobs_of, running_item, thread_pools
from ...frameworks.twisted.threadpools import full_pools, team_of
from ..process.context import PythonContext
from .ownership import plain

KIND: Final = "ThreadPoolExecutor"
#: Values of Future._state that end every wait (Lib/concurrent/futures/_base.py).
_OVER = ("FINISHED", "CANCELLED", "CANCELLED_AND_NOTIFIED")


class FutureFacts(NamedTuple):
    """A future and the agents that could complete it."""

    what: str  # "Future of Sizer.measure, queued in ThreadPoolExecutor size"
    state: Optional[str]  # "pending", "running", "finished", …
    wakers: Tuple[Waker, ...]
    closed: Optional[bool]
    because: Tuple[Because, ...]

    def added_to(self, resource: Resource) -> Resource:
        """Return a future's resource with these facts."""
        return changed(
            resource,
            description=self.what,
            state=self.state,
            wakers=self.wakers,
            closed=self.closed,
            because=self.because,
        )


class QueuedJob(NamedTuple):
    """A job in the queue of a pool that has all its workers."""

    pool: str
    runners: Tuple[Waker, ...]
    full: Fact
    item: WorkItem


class Pools:
    """The thread pools of one process."""

    def __init__(self, context: PythonContext, *beside: Callable[[int], Optional[FutureFacts]]) -> None:
        """Create a reader of pools.

        ``beside``: look-ups for futures that belong to no thread pool, tried in order.
        """
        self._python = context.python
        self._table, self._threads = context.threads, context.threads.states
        self._beside = beside
        self._found: Optional[List[ThreadPool]] = None
        self._workers: Dict[int, List[int]] = {}  # queue → threads that take jobs from it
        self._running: Dict[int, Tuple[int, WorkItem]] = {}  # future → its runner
        self._queued: Dict[int, Tuple[ThreadPool, int, WorkItem]] = {}  # future → its pool and index in the queue

    def _read(self) -> List[ThreadPool]:
        if self._found is None:
            stacks = [self._threads[tid].frames for tid in sorted(self._threads)]
            self._found = [*thread_pools(self._python.frames, stacks), *full_pools(self._python.frames, stacks)]
            for tid in sorted(self._threads):
                frames = self._threads[tid].frames
                item = running_item(self._python.frames, frames)
                if item is not None:
                    self._running[item.future] = (tid, item)
                queue = jobs_of(self._python.frames, frames) or team_of(self._python.frames, frames)
                if queue is not None:
                    self._workers.setdefault(queue, []).append(tid)
            for pool in self._found:
                for place, item in enumerate(pool.items or ()):
                    if item.future:
                        self._queued.setdefault(item.future, (pool, place, item))
        return self._found

    # ------------------------------------------------------------------ pools

    def evidence(self) -> Tuple[Pool, ...]:
        """Return all pools as evidence."""
        return tuple(self._pool(number, pool) for number, pool in enumerate(self._read(), 1))

    def of_queue(self, queue: int) -> Optional[str]:
        """Return the label of the pool with this queue of jobs; None if there is none."""
        found = next((p for p in self._read() if p.queue == queue), None)
        return self.label(found) if found is not None else None

    @staticmethod
    def label(pool: ThreadPool) -> str:
        """Return the name of a pool in reports."""
        return f"{pool.kind} {pool.name}" if pool.name else pool.kind

    def _pool(self, number: int, pool: ThreadPool) -> Pool:
        workers = self.workers(pool)
        idle = [tid for tid in workers if self._idle(tid)]
        gone = None if pool.threads is None else len(pool.threads) - len(workers)
        size = f"{len(workers)} of {pool.limit} workers" if pool.limit is not None else f"{len(workers)} workers"
        lost = f", {gone} ended" if gone and not pool.shutdown else ""
        return Pool(
            id=f"executor-{number}",
            kind=pool.kind,
            description=f"{self.label(pool)} ({size}{lost})",
            limit=pool.limit,
            threads=workers,
            idle=tuple(idle),
            queued=None if pool.items is None else len(pool.items),
            broken=pool.broken,
            shutdown=pool.shutdown,
        )

    def workers(self, pool: ThreadPool) -> Tuple[int, ...]:
        """Return the threads that take jobs from a pool's queue."""
        self._read()
        return tuple(self._workers.get(pool.queue, ()))

    def _runners(self, pool: ThreadPool) -> Tuple[Waker, ...]:
        """Return a pool's workers as those that run its queued jobs."""
        name = f"worker of {self.label(pool)}"
        return tuple(Waker("runner", "memory", tid=tid, name=name) for tid in self.workers(pool))

    def _idle(self, tid: int) -> bool:
        return self._threads[tid].frames[0].function == "_worker"

    # ------------------------------------------------------------------ futures

    def future(self, address: int) -> FutureFacts:
        """Return a future's description and the agents that could complete it."""
        self._read()
        state = self._state(address)
        if address in self._running:
            return self._run(address, state)
        if address in self._queued:
            return self._waiting(*self._queued[address], state)
        for known in self._beside:
            facts = known(address)
            if facts is not None:
                return facts
        what = f"Future ({state}, of no thread pool that was found)" if state else "Future"
        return FutureFacts(what, state, (), None, ())

    def several(self, addresses: Iterable[int]) -> FutureFacts:
        """Return the facts of a wait for several futures: agents that could complete a pending one."""
        found = sorted((self.future(address) for address in addresses), key=lambda facts: facts.what)
        pending = [facts for facts in found if (facts.state or "").upper() not in _OVER]
        closed = True if pending and all(facts.closed for facts in pending) else None
        shown = "; ".join(dict.fromkeys(facts.what for facts in pending[:3]))
        more = f"; and {len(pending) - 3} more" if len(pending) > 3 else ""
        return FutureFacts(
            f"{len(pending)} of {len(found)} Futures: {shown}{more}" if pending else f"{len(found)} Futures",
            "pending" if pending else "finished",
            tuple({waker.tid: waker for facts in pending for waker in facts.wakers}.values()),
            closed,
            tuple(dict.fromkeys(step for facts in pending for step in facts.because)),
        )

    def _state(self, address: int) -> Optional[str]:
        found = attribute(self._python.objects, address, "_state")
        text = self._python.objects.optional_text(found) if found else None
        return text.lower() if text else None

    def _run(self, address: int, state: Optional[str]) -> FutureFacts:
        tid, item = self._running[address]
        name = self._table.label(tid)
        waker = Waker("runner", "memory", tid=tid, frame=self._job_frame(tid), name=name)
        what = f"Future of {item.function or 'a job'}, running on {name}"
        return FutureFacts(what, state, (waker,), True, (fact("work-item-runs", worker=name),))

    def _job_frame(self, tid: int) -> Optional[PythonFrame]:
        """Return the frame of the job, directly above the pool's own; None if there is none."""
        frames = self._threads[tid].frames
        depth = next((i for i, f in enumerate(frames) if f.code.filename.endswith("concurrent/futures/thread.py")), 0)
        if not depth:
            return None
        return plain(self._python.frames)(frames[depth - 1])

    def queued(self) -> Dict[int, QueuedJob]:
        """Return the jobs, by the address of their work items, that only the workers of a full pool can run."""
        found: Dict[int, QueuedJob] = {}
        for pool in self._read():
            full = self._full(pool)
            if full is not None:
                label, runners = self.label(pool), self._runners(pool)
                found.update({item.address: QueuedJob(label, runners, full, item) for item in pool.items or ()})
        return found

    def _full(self, pool: ThreadPool) -> Optional[Fact]:
        """Return the fact that a pool has all its workers, so that it starts no more; None if it may start some."""
        workers = self.workers(pool)
        if pool.limit is None or pool.threads is None or not len(workers) == len(pool.threads) >= pool.limit:
            return None
        if any(thread not in self._table.by_object for thread in pool.threads):
            return None
        names = tuple(map(self._table.label, workers))
        return fact("pool-full", pool=self.label(pool), workers=len(workers), limit=pool.limit, names=names)

    def _waiting(self, pool: ThreadPool, place: int, item: WorkItem, state: Optional[str]) -> FutureFacts:
        """Return the facts of a queued future.

        Only a worker of its pool can take it; a pool with all its workers starts no more.
        """
        label, full = self.label(pool), self._full(pool)
        because: Tuple[Fact, ...] = (
            fact("work-item-queued", place=place + 1, length=len(pool.items or ()), pool=label),
        )
        because += (full,) if full is not None else ()
        return FutureFacts(
            f"Future of {item.function or 'a job'}, queued in {label}",
            state,
            self._runners(pool),
            True if full is not None else None,
            because,
        )
