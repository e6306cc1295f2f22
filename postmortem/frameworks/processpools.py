"""Pools of processes, read from the threads that look after them.

``multiprocessing.Pool`` has three (Lib/multiprocessing/pool.py, 3.8-3.15): ``_handle_workers`` (``pool``, a list of Process
objects, ``processes``, how many there should be, ``cache``, job → result), ``_handle_tasks`` (``taskqueue``, from which it
writes to the workers' pipe) and ``_handle_results``. ``ProcessPoolExecutor`` has one (Lib/concurrent/futures/process.py): in
3.8 the function ``_queue_management_worker`` with ``processes`` (pid → Process) and ``pending_work_items``, since 3.9 the
method ``_ExecutorManagerThread.run`` with these as attributes.
"""

from __future__ import annotations

from typing import Dict, Final, Iterable, List, Literal, NamedTuple, Optional, Sequence, Tuple

from ..cpython.frames.frame import Frame, Frames
from ..cpython.objects.attributes import attribute
from ..cpython.objects.builtins import NotThat, Objects
from ..foreign.numbers import is_decimal
from ..memory import Fault
from .executors import work_item

POOL: Final = "multiprocessing.Pool"
EXECUTOR: Final = "ProcessPoolExecutor"
_EXECUTOR_FILE = "concurrent/futures/process.py"
_MOST_WORKERS = 10_000


def multiprocessing(module: str) -> Tuple[str, ...]:
    """How the path of a module of multiprocessing ends: of the standard library's, and of multiprocess's (0.70, what pathos
    uses), which is the same code with another pickler."""
    return f"multiprocessing/{module}.py", f"/multiprocess/{module}.py"


_POOL_FILES = multiprocessing("pool")


class Worker(NamedTuple):
    """A Process object."""

    pid: Optional[int]
    name: Optional[str]
    ended: Optional[bool]  # has somebody collected its status?


class ProcessPool(NamedTuple):
    kind: Literal["multiprocessing.Pool", "ProcessPoolExecutor"]
    identity: int  # address of its table of results or jobs: the same for all of its threads
    limit: Optional[int]
    workers: Optional[Tuple[Worker, ...]]
    pending: Optional[int]  # results that have not come
    handlers: Dict[str, int]  # role ("_handle_tasks", …) → tid
    owner: Optional[int] = None  # the executor: None when it was collected, and for a Pool
    broken: Optional[bool] = None
    shutdown: Optional[bool] = None


def process_pools(frames: Frames, stacks: Iterable[Tuple[int, Sequence[Frame]]]) -> List[ProcessPool]:
    """``stacks``: (tid, frames) of the threads of a process. A thread pool of multiprocessing is none of these."""
    found: Dict[int, ProcessPool] = {}
    for tid, stack in stacks:
        for frame in _own(stack)[-8:]:
            pool = _of_pool(frames, frame, tid) or _of_executor(frames, frame, tid)
            if pool is not None:
                found[pool.identity] = _merged(found.get(pool.identity), pool)
    return [pool for pool in found.values() if pool.workers is not None]


def _own(stack: Sequence[Frame]) -> Sequence[Frame]:
    """Without what a forked process has of the stack of its parent: it goes on where that called fork."""
    forked = next((n for n, f in enumerate(stack) if f.is_in("_launch", *multiprocessing("popen_fork"))), None)
    return stack if forked is None else stack[:forked]


def _merged(known: Optional[ProcessPool], pool: ProcessPool) -> ProcessPool:
    if known is None:
        return pool
    return known._replace(
        limit=known.limit if known.limit is not None else pool.limit,
        workers=known.workers if known.workers is not None else pool.workers,
        handlers={**known.handlers, **pool.handlers},
    )


def _of_pool(frames: Frames, frame: Frame, tid: int) -> Optional[ProcessPool]:
    role = frame.function
    if role not in ("_handle_workers", "_handle_tasks", "_handle_results") or not frame.is_in(role, *_POOL_FILES):
        return None
    cache, pool, wanted = (frames.local(frame, name) for name in ("cache", "pool", "processes"))
    if not cache:
        return None
    objects = frames.objects
    return ProcessPool(
        POOL, cache, objects.integer_or_none(wanted), _listed(objects, pool), _length(objects, cache), {role: tid}
    )


def _of_executor(frames: Frames, frame: Frame, tid: int) -> Optional[ProcessPool]:
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
        workers: Optional[Tuple[Worker, ...]] = tuple(_worker(objects, value) for value in values)
    except (Fault, NotThat):
        workers = None
    return _with_executor(
        objects,
        ProcessPool(
            EXECUTOR, pending, None, workers, _length(objects, pending), {"manager": tid}, _referent(objects, reference)
        ),
    )


def _with_executor(objects: Objects, pool: ProcessPool) -> ProcessPool:
    """ProcessPoolExecutor._max_workers, ._broken (False, or a sentence that says why), ._shutdown_thread."""
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
    """Of a weak reference (PyWeakReference.wr_object, Include/cpython/weakrefobject.h): an executor, or None."""
    try:
        found = objects.field(reference, 16) if reference else 0
    except Fault:
        return None
    return found if found and attribute(objects, found, "_pending_work_items") else None


def _listed(objects: Objects, pool: Optional[int]) -> Optional[Tuple[Worker, ...]]:
    """None for a thread pool's."""
    try:
        items = objects.items(pool, _MOST_WORKERS) if pool else None
    except (Fault, NotThat):
        return None
    if items is None or any(objects.type_name(item) == "DummyProcess" for item in items):
        return None
    return tuple(_worker(objects, item) for item in items)


def _worker(objects: Objects, process: int) -> Worker:
    """Lib/multiprocessing/process.py: BaseProcess._popen, ._name; popen_fork.py: Popen.pid, .returncode."""
    popen = attribute(objects, process, "_popen")
    name = attribute(objects, process, "_name")
    code = attribute(objects, popen, "returncode") if popen else None
    ended = None if not code else objects.type_name(code) == "int"
    return Worker(
        objects.integer_or_none(attribute(objects, popen, "pid") if popen else None),
        objects.optional_text(name) if name else None,
        ended,
    )


def number_of(worker: Worker) -> Optional[int]:
    """Processes are numbered as they are made, and named by that: ``ForkPoolWorker-4`` (BaseProcess.__init__)."""
    tail = (worker.name or "").rpartition("-")[2]
    return int(tail) if is_decimal(tail) and len(tail) < 10 else None


def started_process(frames: Frames, stack: Sequence[Frame]) -> Optional[Worker]:
    """The Process that a thread joins (Lib/multiprocessing/process.py, BaseProcess.join)."""
    frame = next((f for f in stack[:8] if f.is_in("join", *multiprocessing("process"))), None)
    process = frames.local(frame, "self") if frame is not None else None
    return _worker(frames.objects, process) if process else None


class Awaited(NamedTuple):
    """What a thread waits for that its pool's workers are to do."""

    result: int  # address of the ApplyResult, MapResult or IMapIterator
    cache: Optional[int]  # ProcessPool.identity
    job: Optional[int]
    left: Optional[int]  # parts of it that are still missing: of a map
    kind: str  # "ApplyResult"


def awaited_result(frames: Frames, stack: Sequence[Frame]) -> Optional[Awaited]:
    """What the innermost call of a method of multiprocessing.pool waits for; None when there is none, or when it is one
    of a pool's own threads."""
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
    """The Pool object that a thread joins, when it is the one with this table of results."""
    frame = next((f for f in stack[:6] if f.is_in("join", *_POOL_FILES)), None)
    pool = frames.local(frame, "self") if frame is not None else None
    return pool if pool and attribute(frames.objects, pool, "_cache") == identity else None


def pool_of(frames: Frames, result: int) -> Optional[int]:
    """The Pool object of a result that has not come."""
    return attribute(frames.objects, result, "_pool")


def job_functions(objects: Objects, pending: int) -> Dict[int, Optional[str]]:
    """Future → name of the function that it is the result of, of the jobs of a ProcessPoolExecutor."""
    found: Dict[int, Optional[str]] = {}
    try:
        for _number, value in objects.dict_items(pending):
            item = work_item(objects, value)
            if item is not None:
                found[item.future] = item.function
    except (Fault, NotThat):
        pass  # those that were read
    return found


def _length(objects: Objects, address: int) -> Optional[int]:
    """Of a dict, or an object of a class made from it."""
    try:
        return sum(1 for _ in objects.dict_items(address))
    except (Fault, NotThat):
        return None
