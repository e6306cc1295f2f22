"""Process pools: their workers, and the results that threads wait for.

``with_workers`` adds what the workers do, once their own processes have been read.
"""

from __future__ import annotations

from typing import Dict, Final, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...evidence import Fact, Pool, Process, PythonFrame, Resource, Thread, Wait, Waker, fact
from ...evidence import replace as changed
from ...evidence.vocabulary import WaitKind
from ...frameworks.children import registered_after_fork, started_children
from ...frameworks.processpools import (
    EXECUTOR,
    POOL,
    Awaited,
    ProcessPool,
    Worker,
    awaited_result,
    job_functions,
    joined_pool,
    multiprocessing,
    number_of,
    pool_of,
    process_pools,
    started_process,
)
from ...sourcepaths import is_program
from ..ownership.pools import FutureFacts
from ..process.context import PythonContext
from ..waits.threadwaits import FutexFacts

KIND: Final = "pool-result"
#: Semaphores of a multiprocessing.Pool: two of each of its three SimpleQueues (Lib/multiprocessing/pool.py, queues.py).
_COUNTED_A_POOL: Final = 6
_POOL_FILES, _QUEUES = multiprocessing("pool"), multiprocessing("queues")
#: An idle worker reads the pipe of jobs, or waits for that pipe's lock.
_TAKES: FrozenSet[WaitKind] = frozenset(("pipe", "semaphore"))
#: (file, function) in which a worker takes jobs; it is idle while its queue's ``get`` runs above.
_LOOPS = (*((file, "worker") for file in _POOL_FILES), ("concurrent/futures/process.py", "_process_worker"))
#: Seconds, fixed and per worker, that workers started together may differ in age: starting one takes some milliseconds.
#: A worker younger than that replaces another one.
_YOUNGER_S, _START_S = 0.3, 0.05


class _Draft(NamedTuple):
    ident: str
    awaited: Awaited
    users: List[Frame]
    waiters: List[int]


class WorkerBook:
    """A collector of waits for process pools."""

    def __init__(self, context: PythonContext) -> None:
        self._python = context.python
        self._threads = context.threads.states
        self._names = context.names
        self._drafts: Dict[int, _Draft] = {}
        self._found: Optional[List[ProcessPool]] = None
        self._counted: Optional[Tuple[bool, List[Worker]]] = None
        self._jobs: Optional[Dict[int, FutureFacts]] = None  # by future

    def wait(self, tid: int, frames: Sequence[Frame]) -> Optional[FutexFacts]:
        """Return the facts of a thread's wait for a pool's result; None if it waits for something else."""
        awaited = awaited_result(self._python.frames, frames)
        if awaited is None or self._pool_number(awaited) is None:
            return None
        draft = self._drafts.setdefault(awaited.result, _Draft(f"{KIND}-{len(self._drafts) + 1}", awaited, [], []))
        draft.users.extend(frames[:10])
        draft.waiters.append(tid)
        return FutexFacts("condition", draft.ident, "for a result of a pool of processes", "waits")

    def joined(self, wait: Wait, frames: Sequence[Frame]) -> Wait:
        """Return a wait in Process.join as one for the child.

        Only a pipe signals the end of a fork server's child (Lib/multiprocessing/popen_forkserver.py, poll).
        """
        if wait.kind not in ("pipe", "event-loop", "process"):
            return wait
        child = started_process(self._python.frames, frames)
        return wait if child is None or child.pid is None else changed(wait, kind="process", pid=child.pid)

    def _pools(self) -> List[ProcessPool]:
        if self._found is None:
            stacks = [(tid, state.frames) for tid, state in sorted(self._threads.items())]
            self._found = process_pools(self._python.frames, stacks)
        return self._found

    def _pool_number(self, awaited: Awaited) -> Optional[int]:
        """Return the pool's number, from 1; None if it is no process pool."""
        return next((n for n, pool in enumerate(self._pools(), 1) if pool.identity == awaited.cache), None)

    def _name(self, pool: ProcessPool) -> Optional[str]:
        """Return the program's name for a pool that is used; None if not found."""
        for address, users in self._used(pool):
            own = [f for f in users if not f.code.filename.endswith(_POOL_FILES)]
            name = self._names.find(lambda value, address=address: value == address, own)  # type: ignore[misc]
            if name is not None:
                return name
        return None

    def _used(self, pool: ProcessPool) -> Iterator[Tuple[int, List[Frame]]]:
        """Yield (address of the Pool, frames that use it)."""
        for draft in self._drafts.values():
            address = pool_of(self._python.frames, draft.awaited.result)
            if draft.awaited.cache == pool.identity and address:
                yield address, draft.users
        for state in self._threads.values():
            address = joined_pool(self._python.frames, state.frames, pool.identity)
            if address:
                yield address, state.frames[:10]
        if pool.owner is not None:
            for tid, state in sorted(self._threads.items()):
                if tid not in pool.handlers.values():
                    yield pool.owner, state.frames[:20]

    def future(self, address: int) -> Optional[FutureFacts]:
        """Return the agents that complete a ProcessPoolExecutor's future; None for any other future.

        - the manager thread, after a worker has answered
        - the feeder thread of its queue, if a job cannot be sent

        Call it once all threads have been read: a pool may be named after a frame that waits for it.
        """
        if self._jobs is None:
            self._jobs = {}
            for number, pool in enumerate(self._pools(), 1):
                if pool.kind == EXECUTOR:
                    self._jobs = {**self._managed(number, pool), **self._jobs}
        return self._jobs.get(address)

    def _managed(self, number: int, pool: ProcessPool) -> Dict[int, FutureFacts]:
        """Return the facts of an executor's futures by address."""
        jobs = job_functions(self._python.objects, pool.identity)
        if not jobs:
            return {}
        known = self._pool(number, pool)
        feeders = [tid for tid, state in self._threads.items() if any(f.is_in("_feed", *_QUEUES) for f in state.frames)]
        wakers = [Waker("runner", "memory", tid=tid, name=f"manager of {known.description}") for tid in known.threads]
        wakers += [Waker("reach", "memory", tid=tid, name="feeder thread of a queue") for tid in feeders]
        shared = FutureFacts(
            "",
            "pending",
            tuple(wakers),
            True,
            (fact("with-manager", count=len(jobs), pool=known.description),),
        )
        return {
            future: shared._replace(what=f"Future of {function or 'a job'}, with {known.description}")
            for future, function in jobs.items()
        }

    def pools(self) -> Tuple[Pool, ...]:
        """Return all process pools as evidence."""
        return tuple(self._pool(number, pool) for number, pool in enumerate(self._pools(), 1))

    def _pool(self, number: int, pool: ProcessPool) -> Pool:
        name = self._name(pool)
        workers = pool.workers or ()
        return Pool(
            id=f"process-pool-{number}",
            kind=pool.kind,
            description=f"{pool.kind} {name}" if name else pool.kind,
            limit=pool.limit,
            processes=tuple(w.pid for w in workers if w.pid is not None and not w.ended),
            gone=tuple(w.pid for w in workers if w.pid is not None and w.ended),
            threads=tuple(sorted(pool.handlers.values())),
            pending=pool.pending,
            replaced=_beyond_first(pool, self._is_only(pool)) if pool.kind == POOL and not pool.recycles else None,
            recycles=pool.recycles,
            helpers_ended=self._helpers_ended(pool),
            broken=pool.broken,
            shutdown=pool.shutdown,
        )

    def _is_only(self, pool: ProcessPool) -> bool:
        """Return whether no other Pool was ever made here, and no other Process object exists.

        Every worker's number up to the largest one was then given to a worker of this pool.
        """
        if self._counted is None:
            made = registered_after_fork(self._python)
            self._counted = made is not None and made < 2 * _COUNTED_A_POOL, started_children(self._python, None)
        alone, children = self._counted
        return alone and {child.pid for child in children} <= {worker.pid for worker in pool.workers or ()}

    def _helpers_ended(self, pool: ProcessPool) -> Tuple[str, ...]:
        """Return the functions of a Pool's own threads that have ended, although it is in use.

        ``_handle_workers`` is the first to end when a pool is closed or terminated (Lib/multiprocessing/pool.py of
        3.8-3.15): while it runs, the others run too. () if some thread's stack was not read.
        """
        cut = any(state.cut is not None for state in self._threads.values())
        if pool.kind != POOL or "_handle_workers" not in pool.handlers or cut or not self._python.all_threads:
            return ()
        return tuple(role for role in ("_handle_tasks", "_handle_results") if role not in pool.handlers)

    def resources(self) -> Tuple[Resource, ...]:
        """Return the awaited results as resources."""
        return tuple(self._resource(draft) for draft in self._drafts.values())

    def _resource(self, draft: _Draft) -> Resource:
        number = self._pool_number(draft.awaited) or 0
        pool = self._pool(number, self._pools()[number - 1])
        left = f", {draft.awaited.left} parts of it missing" if draft.awaited.left else ""
        job = f" of job {draft.awaited.job}" if draft.awaited.job is not None else ""
        return Resource(
            id=draft.ident,
            kind=KIND,
            description=f"the result{job} of {pool.description}{left}",
            waiters=tuple(draft.waiters),
            state="pending",
            part_of=pool.id,
        )


def _beyond_first(pool: ProcessPool, only: bool) -> Optional[int]:
    """Return the least number of workers started after the pool's first ones, which are numbered consecutively.

    ``only``: all numbers up to the largest belong to this pool.
    """
    numbers = [number_of(worker) for worker in pool.workers or ()]
    known = [number for number in numbers if number is not None]
    if not known or pool.limit is None or len(known) < len(numbers):
        return None
    if only:
        return max(0, max(known) - pool.limit)
    return sum(number >= min(known) + pool.limit for number in known)


# ------------------------------------------------------------------ with the workers' own side


def with_workers(processes: Sequence[Process]) -> List[Process]:
    """Return the processes with the states of their pools' workers, and whether awaited results can still come."""
    by_pid = {p.pid: p for p in processes}
    return [_completed(p, by_pid) if any(q.processes or q.gone for q in p.pools) else p for p in processes]


def _completed(process: Process, by_pid: Mapping[int, Process]) -> Process:
    pools = tuple(_with_states(pool, by_pid) if pool.processes or pool.gone else pool for pool in process.pools)
    known = {pool.id: pool for pool in pools}
    resources = [*process.resources, *_other_results(process, pools)]
    completed = (
        _with_runners(process, r, known[r.part_of], by_pid) if r.kind == KIND and r.part_of in known else r
        for r in resources
    )
    return changed(process, pools=pools, resources=tuple(completed))


def _other_results(process: Process, pools: Sequence[Pool]) -> Iterator[Resource]:
    """Yield pending results that no thread waits for directly, as Pool.join waits for all of them."""
    named = {r.part_of for r in process.resources if r.kind == KIND}
    for pool in pools:
        if pool.pending and pool.id not in named:
            what = "a result" if pool.pending == 1 else f"{pool.pending} results"
            yield Resource(
                f"{KIND}-of-{pool.id}", KIND, f"{what} of {pool.description}", state="pending", part_of=pool.id
            )


def _with_states(pool: Pool, by_pid: Mapping[int, Process]) -> Pool:
    alive = [pid for pid in pool.processes if pid in by_pid and by_pid[pid].state not in ("Z", "X")]
    younger = None if pool.recycles else _younger([by_pid[pid].age_s for pid in alive])
    return changed(
        pool,
        processes=tuple(alive),
        gone=(*pool.gone, *(pid for pid in pool.processes if pid not in alive)),
        idle=tuple(pid for pid in alive if is_idle(by_pid[pid])),
        replaced=pool.replaced if pool.kind != POOL or younger is None else max(pool.replaced or 0, younger),
    )


def _younger(ages: Sequence[Optional[float]]) -> Optional[int]:
    """Return the number of workers too young to have been started with the first one; None if ages are unknown."""
    known = [age for age in ages if age is not None]
    if not known or len(known) < len(ages):
        return None
    return sum(age < max(known) - _YOUNGER_S - _START_S * len(known) for age in known)


def is_idle(worker: Process) -> bool:
    """Return whether a worker waits for its next job."""
    return _resting(worker) is not None


def _resting(worker: Process) -> Optional[Thread]:
    main = next((t for t in worker.threads if t.is_main), None)
    if main is None or main.wait is None or main.wait.endless is not True:
        return None
    frames = main.python
    depth = next((i for i, f in enumerate(frames) if _in_loop(f)), 0)
    above = frames[depth - 1] if depth else None
    # a pool may have queues of another class, whose `get` is a library's, for instance joblib's
    rests = (
        above is not None
        and above.function == "get"
        and (above.file.endswith(_QUEUES) or (main.wait.kind in _TAKES and not is_program(above.file)))
    )
    return main if rests else None


def _in_loop(frame: PythonFrame) -> bool:
    return any(frame.file.endswith(file) and frame.function == function for file, function in _LOOPS)


def _with_runners(process: Process, resource: Resource, pool: Pool, by_pid: Mapping[int, Process]) -> Resource:
    proof = _proof(process, pool, by_pid)
    if proof:
        return changed(resource, closed=True, because=proof)
    busy = [pid for pid in pool.processes if pid not in pool.idle]
    runners = tuple(Waker("runner", "memory", pid, name=f"worker of {pool.description}") for pid in busy)
    return changed(resource, wakers=runners)


def _proof(process: Process, pool: Pool, by_pid: Mapping[int, Process]) -> Tuple[Fact, ...]:
    """Return the reasons why a pending result will never come; empty if it may.

    All stages are idle, so the result is nowhere: a blocking read shows that its pipe is empty, and ``_handle_tasks``
    waits only while its queue is.
    """
    threads = {
        t.python[i].function: t
        for t in process.threads
        for i in range(len(t.python))
        if t.tid in pool.threads and t.python[i].file.endswith(_POOL_FILES)
    }
    tasks, results = threads.get("_handle_tasks"), threads.get("_handle_results")
    if pool.kind != POOL or tasks is None or results is None or not pool.processes:
        return ()
    asks = tasks.python[0].function == "_handle_tasks" and _waits(tasks, "futex")
    reader = next((by_pid[pid].pid for pid in pool.processes if _reads(by_pid[pid])), None)
    if not asks or not _waits(results, "read") or reader is None or set(pool.idle) != set(pool.processes):
        return ()
    more = len(pool.processes) > 8
    return (
        fact("workers-wait", pool=pool.description, processes=pool.processes[:8], more=more),
        fact("no-job-queued", thread=f"{tasks.name or 'a thread'} ({tasks.tid})"),
        fact("no-job-sent", pid=reader),
        fact("no-result-sent", thread=f"{results.name or 'a thread'} ({results.tid})"),
    )


def _waits(thread: Thread, syscall: str) -> bool:
    return thread.wait is not None and thread.wait.syscall == syscall and thread.wait.endless is True


def _reads(worker: Process) -> bool:
    thread = _resting(worker)
    return thread is not None and _waits(thread, "read")
