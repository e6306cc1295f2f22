"""Pools of processes, read from the threads that manage them.

Sources:
- Lib/multiprocessing/pool.py of 3.8-3.15, ``multiprocessing.Pool``: threads ``_handle_workers`` (``pool``: list of
  Process; ``processes``: wanted number; ``cache``: job → result), ``_handle_tasks`` (``taskqueue``, from which it
  writes to the workers' pipe) and ``_handle_results``; ``maxtasksperchild`` of ``_handle_workers``.
- Lib/concurrent/futures/process.py, ``ProcessPoolExecutor``: in 3.8 the function ``_queue_management_worker`` with
  ``processes`` (pid → Process) and ``pending_work_items``; since 3.9 the method ``_ExecutorManagerThread.run``, whose
  ``self`` has them.
"""

from __future__ import annotations

from typing import Container, Dict, Final, Iterable, List, Literal, NamedTuple, Optional, Sequence, Tuple

from ..cpython.frames.frame import Frame, Frames
from ..cpython.objects.attributes import attribute
from ..cpython.objects.builtins import NotThat, Objects
from ..cpython.sync.primitives import simple_queue
from ..foreign.numbers import is_decimal
from ..memory import Fault
from .executors import work_item

POOL: Final = "multiprocessing.Pool"
EXECUTOR: Final = "ProcessPoolExecutor"
_EXECUTOR_FILE = "concurrent/futures/process.py"
_MOST_WORKERS = 10_000


def multiprocessing(module: str) -> Tuple[str, ...]:
    """Return the path endings of a module of multiprocessing.

    One is the standard library's, the other that of multiprocess (0.70, used by pathos), the same code with another
    pickler.
    """
    return f"multiprocessing/{module}.py", f"/multiprocess/{module}.py"


_POOL_FILES = multiprocessing("pool")


class Worker(NamedTuple):
    """A worker, as its Process object describes it."""

    pid: Optional[int]
    name: Optional[str]
    ended: Optional[bool]  # its exit status has been collected
    status: Optional[int] = None  # that status; negative: minus the number of the signal that ended it


class ProcessPool(NamedTuple):
    """State of a pool of processes; None where a field is unknown."""

    kind: Literal["multiprocessing.Pool", "ProcessPoolExecutor"]
    identity: int  # address of its results or jobs, shared by its threads
    limit: Optional[int]
    workers: Optional[Tuple[Worker, ...]]
    pending: Optional[int]  # number of results not received yet
    handlers: Dict[str, int]  # role ("_handle_tasks", …) → tid
    owner: Optional[int] = None  # the executor; None if collected, and for a Pool
    broken: Optional[bool] = None
    shutdown: Optional[bool] = None
    recycles: Optional[bool] = None  # True: workers end after a number of jobs, and are replaced


def process_pools(frames: Frames, stacks: Iterable[Tuple[int, Sequence[Frame]]]) -> List[ProcessPool]:
    """Return the pools that threads of a process manage; multiprocessing's thread pools are left out.

    ``stacks``: (tid, frames) of the threads.
    """
    found: Dict[int, ProcessPool] = {}
    for tid, stack in stacks:
        for frame in _own(stack)[-8:]:
            pool = _of_pool(frames, frame, tid) or _of_executor(frames, frame, tid)
            if pool is not None and any(f.is_in("terminate_broken", _EXECUTOR_FILE) for f in stack):
                pool = pool._replace(broken=True)  # the manager has seen that a worker ended, and ends the others
            if pool is not None:
                found[pool.identity] = _merged(found.get(pool.identity), pool)
    return [pool for pool in found.values() if pool.workers is not None]


def _own(stack: Sequence[Frame]) -> Sequence[Frame]:
    """Strip the frames that a forked process has from its parent: all from the call of fork outwards."""
    forked = next((n for n, f in enumerate(stack) if f.is_in("_launch", *multiprocessing("popen_fork"))), None)
    return stack if forked is None else stack[:forked]


def _merged(known: Optional[ProcessPool], pool: ProcessPool) -> ProcessPool:
    """Combine what two threads of a pool show."""
    if known is None:
        return pool
    return known._replace(
        limit=known.limit if known.limit is not None else pool.limit,
        workers=known.workers if known.workers is not None else pool.workers,
        handlers={**known.handlers, **pool.handlers},
        recycles=known.recycles if known.recycles is not None else pool.recycles,
        broken=known.broken if known.broken is not None else pool.broken,
    )


def _of_pool(frames: Frames, frame: Frame, tid: int) -> Optional[ProcessPool]:
    """Read a multiprocessing.Pool from a frame of one of its threads; None for other frames."""
    role = frame.function
    if role not in ("_handle_workers", "_handle_tasks", "_handle_results") or not frame.is_in(role, *_POOL_FILES):
        return None
    cache, pool, wanted, most = (
        frames.local(frame, name) for name in ("cache", "pool", "processes", "maxtasksperchild")
    )
    if not cache:
        return None
    objects = frames.objects
    return ProcessPool(
        POOL,
        cache,
        objects.integer_or_none(wanted),
        _listed(objects, pool),
        _length(objects, cache),
        {role: tid},
        recycles=objects.type_name(most) == "int" if most else None,
    )


def _of_executor(frames: Frames, frame: Frame, tid: int) -> Optional[ProcessPool]:
    """Read a ProcessPoolExecutor from a frame of its manager thread; None for other frames."""
    objects = frames.objects
    wanted = ("processes", "pending_work_items", "executor_reference")
    if frame.is_in("_queue_management_worker", _EXECUTOR_FILE):
        processes, pending, reference = (frames.local(frame, name) for name in wanted)
    elif frame.is_in("run", _EXECUTOR_FILE):
        manager = frames.local(frame, "self")
        processes, pending, reference = (attribute(objects, manager, name) if manager else None for name in wanted)
    else:
        return None
    if not processes or not pending:
        return None
    try:
        values = [value for _pid, value in objects.dict_items(processes)][:_MOST_WORKERS]
        workers: Optional[Tuple[Worker, ...]] = tuple(worker(objects, value) for value in values)
    except (Fault, NotThat):
        workers = None
    return _with_executor(
        objects,
        ProcessPool(
            EXECUTOR, pending, None, workers, _length(objects, pending), {"manager": tid}, _referent(objects, reference)
        ),
    )


def _with_executor(objects: Objects, pool: ProcessPool) -> ProcessPool:
    """Add the executor's ``_max_workers``, ``_broken`` (False, or a reason string) and ``_shutdown_thread``."""
    if pool.owner is None:
        return pool
    limit, broken, shutdown = (
        attribute(objects, pool.owner, n) for n in ("_max_workers", "_broken", "_shutdown_thread")
    )
    return pool._replace(
        limit=objects.integer_or_none(limit),
        broken=None if not broken else objects.type_name(broken) == "str",
        shutdown=None if not shutdown else bool(objects.integer_or_none(shutdown)),
    )


def _referent(objects: Objects, reference: Optional[int]) -> Optional[int]:
    """Return the executor behind a weak reference; None if it was collected.

    Source: PyWeakReference.wr_object, Include/cpython/weakrefobject.h.
    """
    try:
        found = objects.field(reference, 16) if reference else 0
    except Fault:
        return None
    return found if found and attribute(objects, found, "_pending_work_items") else None


def _listed(objects: Objects, pool: Optional[int]) -> Optional[Tuple[Worker, ...]]:
    """Return the workers of a list of Process objects; None if unreadable or a thread pool's."""
    try:
        items = objects.items(pool, _MOST_WORKERS) if pool else None
    except (Fault, NotThat):
        return None
    if items is None or any(objects.type_name(item) == "DummyProcess" for item in items):
        return None
    return tuple(worker(objects, item) for item in items)


def worker(objects: Objects, process: int) -> Worker:
    """Read a Process object.

    Sources: Lib/multiprocessing/process.py (BaseProcess._popen, ._name), popen_fork.py (Popen.pid, .returncode).
    """
    popen = attribute(objects, process, "_popen")
    name = attribute(objects, process, "_name")
    code = attribute(objects, popen, "returncode") if popen else None
    ended = None if not code else objects.type_name(code) == "int"
    return Worker(
        objects.integer_or_none(attribute(objects, popen, "pid") if popen else None),
        objects.optional_text(name) if name else None,
        ended,
        objects.integer_or_none(code) if ended else None,
    )


def number_of(worker: Worker) -> Optional[int]:
    """Return the number in a worker's name (4 for ``ForkPoolWorker-4``); None if there is none.

    BaseProcess.__init__ numbers processes in order of creation.
    """
    tail = (worker.name or "").rpartition("-")[2]
    return int(tail) if is_decimal(tail) and len(tail) < 10 else None


def started_process(frames: Frames, stack: Sequence[Frame]) -> Optional[Worker]:
    """Return the Process that a thread joins; None if it joins none.

    Source: Lib/multiprocessing/process.py, BaseProcess.join.
    """
    frame = next((f for f in stack[:8] if f.is_in("join", *multiprocessing("process"))), None)
    process = frames.local(frame, "self") if frame is not None else None
    return worker(frames.objects, process) if process else None


class Awaited(NamedTuple):
    """A result that a thread waits for and the pool's workers produce."""

    result: int  # address of the ApplyResult, MapResult or IMapIterator
    cache: Optional[int]  # ProcessPool.identity
    job: Optional[int]
    left: Optional[int]  # missing parts of a map
    kind: str  # "ApplyResult"


def awaited_result(frames: Frames, stack: Sequence[Frame]) -> Optional[Awaited]:
    """Return the result that the innermost multiprocessing.pool method waits for.

    None if there is none, or if the thread is one of a pool's own.
    """
    objects = frames.objects
    for frame in stack[:8]:
        if frame.code.filename.endswith(_POOL_FILES):
            result = frames.local(frame, "self")
            cache = attribute(objects, result, "_cache") if result else None
            if not result or not cache or frame.function not in ("wait", "get", "next"):
                return None
            return Awaited(
                result,
                cache,
                objects.integer_or_none(attribute(objects, result, "_job")),
                objects.integer_or_none(attribute(objects, result, "_number_left")),
                objects.type_name(result) or "result",
            )
        if not frame.code.filename.endswith("/threading.py"):
            return None
    return None


def joined_pool(frames: Frames, stack: Sequence[Frame], identity: int) -> Optional[int]:
    """Return the Pool object that a thread joins, if ``identity`` is its table of results; else None."""
    frame = next((f for f in stack[:6] if f.is_in("join", *_POOL_FILES)), None)
    pool = frames.local(frame, "self") if frame is not None else None
    return pool if pool and attribute(frames.objects, pool, "_cache") == identity else None


def results_thread_ended(frames: Frames, stack: Sequence[Frame], living: Container[int]) -> Optional[str]:
    """Return the type name of the pool whose results thread has ended, although its awaited result is still missing.

    For pools of threads, too. ``stack``: of the waiting thread; ``living``: addresses of the ``threading.Thread`` objects of
    all threads that run. None if that thread runs, if the pool was closed, or if a job may still fail before it runs.

    Source: Lib/multiprocessing/pool.py of 3.8-3.15: ``_handle_results`` sets each result and runs its callback, whose
    exception ends that thread; only for jobs that it cannot pass on ``_handle_tasks`` sets the result itself.
    """
    objects = frames.objects
    awaited = awaited_result(frames, stack)
    pool = pool_of(frames, awaited.result) if awaited is not None else None
    if not pool:
        return None
    keeper, results, tasks, queue = (
        attribute(objects, pool, name) for name in ("_worker_handler", "_result_handler", "_task_handler", "_taskqueue")
    )
    jobs = simple_queue(objects, queue) if queue else None
    if (
        jobs is None
        or jobs.items != ()
        or keeper not in living
        or tasks not in living
        or not results
        or results in living
    ):
        return None
    started = objects.integer_or_none(attribute(objects, results, "_ident")) is not None
    return objects.type_name(pool) if started else None


def pool_of(frames: Frames, result: int) -> Optional[int]:
    """Return the Pool object of a pending result; None if unknown."""
    return attribute(frames.objects, result, "_pool")


def job_functions(objects: Objects, pending: int) -> Dict[int, Optional[str]]:
    """Map each future of a ProcessPoolExecutor's pending jobs to its function's name."""
    found: Dict[int, Optional[str]] = {}
    try:
        for _number, value in objects.dict_items(pending):
            item = work_item(objects, value)
            if item is not None:
                found[item.future] = item.function
    except (Fault, NotThat):
        pass  # keep those that were read
    return found


def _length(objects: Objects, address: int) -> Optional[int]:
    """Return the length of a dict or of a subclass's instance; None if unreadable."""
    try:
        return sum(1 for _ in objects.dict_items(address))
    except (Fault, NotThat):
        return None
