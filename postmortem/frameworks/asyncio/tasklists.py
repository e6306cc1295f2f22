"""Registries of asyncio tasks in an interpreter.

- Up to 3.11: ``asyncio.tasks._all_tasks``.
- Since 3.12: ``_scheduled_tasks`` and ``_eager_tasks``; since 3.14 these hold only tasks that are not
  ``_asyncio.Task``.
- Since 3.14, ``_asyncio.Task``: a linked list of the thread state, moved to one of the interpreter when the thread
  ends.

The module publishes the offsets in a section of its file, ``.AsyncioDebug`` (Py_AsyncioModuleDebugOffsets).

Sources: Lib/asyncio/tasks.py, Modules/_asynciomodule.c, Include/internal/pycore_tstate.h, pycore_llist.h.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from ...cpython.objects.attributes import attributes
from ...cpython.objects.builtins import NotThat
from ...cpython.runtime.layouts import Layout
from ...cpython.state.interpreter import InterpreterState, Python
from ...memory import Elf, Fault, Image

MAX_TASKS = 200_000
_SETS = ("_scheduled_tasks", "_all_tasks", "_eager_tasks")
_SECTION = ".AsyncioDebug"
#: Words of Py_AsyncioModuleDebugOffsets in 3.14 and 3.15: asyncio_task_object, asyncio_interpreter_state,
#: asyncio_thread_state.
_WORDS = (
    "task_size", "task_name", "task_awaited_by", "task_is_task", "task_awaited_by_is_set", "task_coro", "task_node",
    "interpreter_size", "interpreter_tasks", "thread_size", "running_loop", "running_task", "thread_tasks",
)  # fmt: skip


def task_layout(image: Image, layout: Layout) -> Layout:
    """Return the layout completed by the offsets that _asyncio publishes; unchanged if they are implausible."""
    if layout.task_node < 0:
        return layout
    for path, start in {f.path: f.start for f in reversed(image.files) if f.offset == 0}.items():
        elf = image.elf(path) if "asyncio" in path or "python" in path else None
        said = _said(image, elf, start) if elf is not None else None
        if said is not None:
            return replace(layout, **said)  # type: ignore[arg-type]
    return layout


def _said(image: Image, elf: Elf, start: int) -> Optional[Dict[str, int]]:
    """Return the published offsets as fields of a layout; None if absent or implausible."""
    section = elf.section(_SECTION)
    if section is None or not section.address:
        return None
    try:
        said = dict(zip(_WORDS, image.words(section.address + start - elf.first_vaddr, len(_WORDS))))
    except Fault:
        return None
    for size, limit in (("task_size", 1 << 12), ("interpreter_size", 1 << 24), ("thread_size", 1 << 20)):
        prefix = size.split("_")[0] + "_"
        if said[size] > limit or any(v >= said[size] for n, v in said.items() if n.startswith(prefix) and n != size):
            return None
    return {
        "task_name": said["task_name"],
        "task_coro": said["task_coro"],
        "task_node": said["task_node"],
        # FutureObj_HEAD and TaskObj: the state precedes task_is_task, the flags follow task_awaited_by_is_set, the number of
        # cancellation requests and the awaited future precede the coroutine.
        "fut_state": said["task_is_task"] - 4,
        "task_must_cancel": said["task_awaited_by_is_set"] + 1,
        "task_cancels": said["task_coro"] - 16,
        "task_fut_waiter": said["task_coro"] - 8,
        "is_asyncio_tasks": said["interpreter_tasks"],
        "ts_asyncio_tasks": said["thread_tasks"],
    }


IsTask = Callable[[int], bool]


def task_addresses(
    python: Python, interpreter: InterpreterState, layout: Layout, is_task: IsTask, problems: List[str]
) -> Iterator[int]:
    """Yield every task, possibly more than once; ``problems`` collects what could not be read."""
    for where, members in _places(python, interpreter, layout, is_task):
        try:
            yield from members
        except (Fault, NotThat) as exc:
            problems.append(f"{where}: {exc}")


def _places(
    python: Python, interpreter: InterpreterState, layout: Layout, is_task: IsTask
) -> Iterator[Tuple[str, Iterator[int]]]:
    """Yield (name, its tasks) of every registry."""
    if layout.task_node >= 0 and python.module_dict(interpreter, "_asyncio"):
        gone = interpreter.address + layout.is_asyncio_tasks
        yield "asyncio's tasks of gone threads", _listed(python, gone, layout, is_task)
        for thread in interpreter.threads:
            where = f"asyncio's tasks of thread {thread.native_id}"
            yield where, _listed(python, thread.address + layout.ts_asyncio_tasks, layout, is_task)
    for name in _SETS:
        held = python.module_value(interpreter, "asyncio.tasks", name)
        if held is not None:
            yield f"asyncio.tasks.{name}", _members(python, held, is_task)


def _listed(python: Python, head: int, layout: Layout, is_task: IsTask) -> Iterator[int]:
    """Yield the tasks of a circular list whose nodes lie in the tasks. Raises Fault or NotThat."""
    memory = python.memory
    node, before = memory.u64(head), head
    for _ in range(MAX_TASKS):
        if node in (head, 0):  # 0: the list was never used
            return
        if memory.u64(node + 8) != before:
            raise NotThat("the list is damaged")
        if is_task(node - layout.task_node):
            yield node - layout.task_node
        node, before = memory.u64(node), node


def _members(python: Python, held: int, is_task: IsTask) -> Iterator[int]:
    """Yield the tasks of a set, or of a WeakSet (``data``: a set of weak references). Raises Fault or NotThat."""
    objects = python.objects
    weak = objects.is_instance(held, "WeakSet")
    data = attributes(objects, held).get("data") if weak else held
    if data is None:
        raise NotThat("a WeakSet without its set")
    for item in objects.set_items(data):
        try:
            target = objects.field(item, 16) if weak else item  # PyWeakReference.wr_object
        except Fault:
            continue
        if is_task(target):
            yield target
