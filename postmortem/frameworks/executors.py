"""Thread pools of ``concurrent.futures``: workers, queued items, and running items.

Sources:
- Lib/concurrent/futures/thread.py of 3.8-3.15: ``_worker(executor_reference, work_queue, …)``; ``_WorkItem`` with
  ``future`` and ``fn`` (since 3.14 ``task``: a tuple that begins with the function); ``ThreadPoolExecutor`` with
  ``_max_workers``, ``_threads``, ``_thread_name_prefix``, ``_shutdown``, ``_broken``.
- Include/cpython/weakrefobject.h: PyWeakReference.wr_object.
"""

from __future__ import annotations

import contextlib
from typing import Dict, List, Literal, NamedTuple, Optional, Sequence, Tuple

from ..cpython.frames.calls import callable_name
from ..cpython.frames.frame import Frame, Frames
from ..cpython.objects.attributes import attribute, attributes
from ..cpython.objects.builtins import NotThat, Objects
from ..cpython.sync.primitives import simple_queue
from ..memory import Fault

_FILE = "concurrent/futures/thread.py"
#: Outermost frames searched for a pool's: ``_bootstrap``, ``_bootstrap_inner``, ``run``, ``_worker``, ``run``, since
#: 3.15 ``WorkerContext.run``.
_OUTERMOST = 10
_REFERENT = 16


ThreadPoolKind = Literal["ThreadPoolExecutor", "twisted.ThreadPool"]


class WorkItem(NamedTuple):
    """A submitted call; addresses."""

    address: int
    future: int
    function: Optional[str]
    called: int = 0  # the callable; 0: unknown
    arguments: Tuple[int, ...] = ()  # those without names


class ThreadPool(NamedTuple):
    """State of a ThreadPoolExecutor; None where a field is unknown."""

    queue: int  # address of its SimpleQueue, which identifies the pool
    name: Optional[str]
    limit: Optional[int]  # maximum number of workers
    threads: Optional[Tuple[int, ...]]  # addresses of its threading.Thread objects, ended ones included
    items: Optional[Tuple[WorkItem, ...]]  # queued items, in order
    shutdown: Optional[bool]
    broken: Optional[bool]
    kind: ThreadPoolKind = "ThreadPoolExecutor"


def worker_frame(frames: Sequence[Frame]) -> Optional[Frame]:
    """Return the frame in which a worker takes jobs; None if the thread is not a worker."""
    return next((f for f in frames[-_OUTERMOST:] if f.is_in("_worker", _FILE)), None)


def jobs_of(reader: Frames, frames: Sequence[Frame]) -> Optional[int]:
    """Return the address of the queue from which a worker takes jobs; None if the thread is not a worker."""
    frame = worker_frame(frames)
    return reader.local(frame, "work_queue") if frame is not None else None


def running_item(reader: Frames, frames: Sequence[Frame]) -> Optional[WorkItem]:
    """Return the item that a worker is running; None if there is none."""
    for frame in frames[-_OUTERMOST:]:
        if frame.is_in("run", _FILE):
            item = reader.local(frame, "self")
            if item is not None and reader.objects.is_instance(item, "_WorkItem"):
                return work_item(reader.objects, item)
    return None


def work_item(objects: Objects, address: int) -> Optional[WorkItem]:
    """Read a ``_WorkItem``; None if unreadable."""
    try:
        values = attributes(objects, address)
        function, given = values.get("fn"), values.get("args")
        if function is None and "task" in values:
            function, given = objects.items(values["task"])[:2]
        arguments = tuple(objects.items(given)) if given else ()
        name = callable_name(objects, function) if function else None
        return WorkItem(address, values["future"], name, function or 0, arguments)
    except (Fault, NotThat, KeyError, ValueError):
        return None


def thread_pools(reader: Frames, stacks: Sequence[Sequence[Frame]]) -> List[ThreadPool]:
    """Return the pools whose workers have these stacks, in order of their first worker."""
    found: Dict[int, ThreadPool] = {}
    for frames in stacks:
        frame, queue = worker_frame(frames), jobs_of(reader, frames)
        if frame is None or not queue or queue in found:
            continue
        found[queue] = _pool(reader.objects, queue, reader.local(frame, "executor_reference"))
    return list(found.values())


def _pool(objects: Objects, queue: int, reference: Optional[int]) -> ThreadPool:
    executor = _referent(objects, reference)
    values: Dict[str, int] = {}
    if executor:
        with contextlib.suppress(Fault, NotThat):
            values = attributes(objects, executor)
    return ThreadPool(
        queue,
        objects.optional_text(values["_thread_name_prefix"]) if "_thread_name_prefix" in values else None,
        objects.integer_or_none(values.get("_max_workers")),
        _set(objects, values.get("_threads")),
        _items(objects, queue),
        _truth(objects, values.get("_shutdown")),
        _truth(objects, values.get("_broken")),
    )


def _referent(objects: Objects, reference: Optional[int]) -> Optional[int]:
    """Return the executor behind a weak reference; None if it was collected."""
    try:
        found = objects.field(reference, _REFERENT) if reference else 0
        return found if found and attribute(objects, found, "_work_queue") else None
    except Fault:
        return None


def _items(objects: Objects, queue: int) -> Optional[Tuple[WorkItem, ...]]:
    """Return the queued items, without the None items that only wake a worker."""
    found = simple_queue(objects, queue)
    if found is None or found.items is None:
        return None
    items = [work_item(objects, one) for one in found.items if objects.type_name(one) != "NoneType"]
    return None if None in items else tuple(item for item in items if item is not None)


def _set(objects: Objects, address: Optional[int]) -> Optional[Tuple[int, ...]]:
    try:
        return tuple(objects.set_items(address)) if address else None
    except (Fault, NotThat):
        return None


def _truth(objects: Objects, address: Optional[int]) -> Optional[bool]:
    """Return the truth of a bool, or of a str: ``_broken`` is False or the reason."""
    text = objects.optional_text(address) if address else None
    if text is not None:
        return bool(text)
    found = objects.integer_or_none(address)
    return None if found is None else bool(found)
