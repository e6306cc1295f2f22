"""Output of pm-locks and pm-tasks: holders and waiters, as in the report."""

from __future__ import annotations

from typing import Dict, Iterator, List

from ..evidence import Process, Resource, Task
from .asking import Asked, Wrong
from .show import Line, clean, place_of, table, tids
from .subject import Subject

MAX_TASKS, MAX_TASK_FRAMES = 100, 20
_GONE = "a thread that has ended"
#: Kinds of resources without holders.
_NO_LOCKS = {
    "process", "pipe", "socket", "descriptors", "eventfd", "timerfd", "signalfd", "inotify", "terminal", "file",
}  # fmt: skip
_BASES = {"recorded": "record", "with-slot": "with", "inferred": "code"}


def listed(subject: Subject, _asked: Asked) -> Iterator[Line]:
    """List the locks that threads hold or wait for."""
    process = subject.process
    rows = [
        (
            clean(lock.description, 60),
            lock.kind,
            _holder(lock, process),
            _basis(lock),
            tids(lock.waiters),
            _taken_at(lock, process),
        )
        for lock in process.resources
        if lock.kind not in _NO_LOCKS and not lock.kind.startswith("async-") and (lock.waiters or lock.kind != "gil")
    ]
    if rows:
        yield from table(("LOCK", "KIND", "HOLDER", "BY", "WAITERS", "ACQUIRED AT"), rows)
    else:
        yield "", "No thread holds or waits for a known lock."


def _holder(lock: Resource, process: Process) -> str:
    if lock.owner_gone:
        return _GONE
    if lock.owner_pid not in (None, process.pid):
        return f"process {lock.owner_pid}"
    return "unknown" if lock.owner_tid is None else str(lock.owner_tid)


def _basis(lock: Resource) -> str:
    if lock.kind == "thread" and lock.owner_tid is not None:
        return "join"
    return _BASES.get(lock.owner_basis or "", "-")


def _taken_at(lock: Resource, process: Process) -> str:
    held = (h for t in process.threads if t.tid == lock.owner_tid for h in t.holds if h.resource == lock.id)
    return next((place_of(one.frame) for one in held), "")


def tasks(subject: Subject, asked: Asked) -> Iterator[Line]:
    """List asyncio's tasks: the stack of each, and what it awaits."""
    if len(asked.arguments) > 1:
        raise Wrong("Usage: pm-tasks [NAME]")
    process = subject.process
    found = [task for task in process.tasks if not asked.arguments or task.name == asked.arguments[0]]
    waits = _Waits(process)
    for task in found[:MAX_TASKS]:
        yield "bold", f"{waits.label(task.id)} ({task.state}{waits.text(task)})"
        yield from (("", f"  #{index:<3} {place_of(f)}") for index, f in enumerate(task.stack[:MAX_TASK_FRAMES]))
        if len(task.stack) > MAX_TASK_FRAMES:
            yield "", f"      … {len(task.stack) - MAX_TASK_FRAMES} more frames not shown"
    if len(found) > MAX_TASKS:
        yield "", f"… {len(found) - MAX_TASKS} more tasks; `pm-tasks NAME` shows one"
    if not found:
        yield "", f"No task is named {clean(asked.arguments[0])}." if asked.arguments else "There are no asyncio tasks."


class _Waits:
    """What the tasks of a process await, and the tasks that hold it."""

    def __init__(self, process: Process) -> None:
        self._labels = {task.id: clean(task.name or "a task") for task in process.tasks}
        self._resources = {resource.id: resource for resource in process.resources}
        self._holders: Dict[str, List[str]] = {}
        for task in process.tasks:
            for held in task.holds:
                self._holders.setdefault(held.resource, []).append(task.id)

    def label(self, task: str) -> str:
        """Return a task's name."""
        return self._labels.get(task, "a task that is not listed")

    def text(self, task: Task) -> str:
        """Return text such as ``, awaits asyncio.Lock gate, held by Task-2``; "" if the task waits for nothing."""
        if task.ready:
            return ", ready to run"
        wait = task.wait
        if wait is None:
            return ""
        resource = self._resources.get(wait.resource or "")
        if resource is not None:
            return f", awaits {clean(resource.description)}{self._state(resource)}{self._held(resource)}"
        if wait.tasks:
            names = ", ".join(self.label(one) for one in wait.tasks[:3])
            more = f" and {len(wait.tasks) - 3} more" if len(wait.tasks) > 3 else ""
            how = f"{clean(wait.detail)}: " if wait.detail else ""
            return f", awaits {how}{'one of ' if wait.any and len(wait.tasks) > 1 else ''}{names}{more}"
        what = wait.detail or task.awaiting
        return f", awaits {clean(what)}" if what else ""

    def _state(self, resource: Resource) -> str:
        """Return the number of permits or items, and their limit."""
        if resource.value is None:
            return ""
        return f" ({resource.value} of {resource.limit})" if resource.limit else f" ({resource.value})"

    def _held(self, resource: Resource) -> str:
        owner = [] if resource.owner_task is None else [resource.owner_task]
        holders = list(dict.fromkeys([*owner, *self._holders.get(resource.id, ())]))
        return f", held by {', '.join(self.label(one) for one in holders[:3])}" if holders else ""
