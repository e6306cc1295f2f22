"""Tasks that poll: ``asyncio.sleep``, or a wait with a short limit, in a loop that asks an object."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence

from ...cpython.frames.frame import Frame
from ...evidence import Task, TaskWait
from ...evidence import replace as changed
from ...evidence.vocabulary import TaskWaitKind
from ...frameworks.asyncio.primitives import PrimitiveKind
from .endpoints import DescriptorBook
from .locks import LockWaits
from .polling import LONGEST_S, Polled, Polling, ThingKind, layer_of, pauses
from .tasks import TasksRead

_KINDS: Mapping[ThingKind, TaskWaitKind] = {
    "future": "future", "event": "event", "queue": "queue", "thread": "thread", "semaphore": "semaphore",
    "process": "process", "variable": "event", "shared-variable": "event", "global-variable": "event", "contents": "event",
    "async-future": "future", "async-event": "event", "async-queue": "queue",
    "async-lock": "lock", "async-semaphore": "semaphore",
}  # fmt: skip
_PRIMITIVES: Mapping[ThingKind, PrimitiveKind] = {
    "async-event": "event", "async-queue": "queue", "async-lock": "lock", "async-semaphore": "semaphore",
}  # fmt: skip
#: Most tasks whose loops are searched.
_MOST_TASKS = 500


def polling_tasks(tasks: TasksRead, polling: Polling, waits: LockWaits, descriptors: DescriptorBook) -> TasksRead:
    """Return the tasks, with those that poll waiting for what they ask."""
    reader = _Reader(tasks, polling, waits, descriptors)
    found, searched = [], 0
    for task in tasks.tasks:
        if searched < _MOST_TASKS and _may_poll(task) and task.id in tasks.states:
            searched += 1
            found.append(reader.read(task, tasks.states[task.id].frames))
        else:
            found.append(task)
    return tasks._replace(tasks=tuple(map(reader.within, found)))


def _may_poll(task: Task) -> bool:
    wait = task.wait
    if wait is None or task.state != "pending" or wait.endless is not False:
        return False
    if wait.kind == "sleep":
        return wait.timeout_s is not None and 0.0 < wait.timeout_s <= LONGEST_S
    return wait.timeout_s is not None and bool(wait.resource or wait.tasks)


class _Reader:
    def __init__(self, tasks: TasksRead, polling: Polling, waits: LockWaits, descriptors: DescriptorBook) -> None:
        self._tasks = tasks
        self._polling = polling
        self._waits = waits
        self._descriptors = descriptors
        self._addresses = tasks.awaits.addresses()
        self._inner: Dict[str, Optional[bool]] = {}

    def within(self, task: Task) -> Task:
        """Return a task that ``wait_for`` made for one attempt (up to 3.11) with the limit of all attempts."""
        if task.id not in self._inner or task.wait is None or task.wait.endless is not False:
            return task
        wait = task.wait
        endless, every = self._inner[task.id], wait.timeout_s or 0.0
        return changed(task, wait=changed(wait, endless=endless, polls_s=every, timeout_s=None, remaining_s=None))

    def read(self, task: Task, frames: Sequence[Frame]) -> Task:
        """Return a task, with what it polls if it does."""
        wait = task.wait
        if wait is None:
            return task
        on: Optional[int] = None
        if wait.kind != "sleep":
            on = self._addresses.get(wait.resource or "", 0)
        found = self._polling.of(frames, pauses(frames), on)
        if found is None or (found.thing is None and found.endless is False):
            return task
        asks = self._asks(task, wait, found, frames)
        if asks is None:
            return task
        repeated = changed(asks, endless=found.endless, polls_s=wait.timeout_s, timeout_s=None, remaining_s=None)
        return changed(task, wait=repeated, moved=False if task.moved else task.moved)

    def _asks(self, task: Task, wait: TaskWait, found: Polled, frames: Sequence[Frame]) -> Optional[TaskWait]:
        """Return a task's wait for what it asks; None if that is not known as a resource."""
        if found.thing is None or found.kind is None:
            self._inner.update(dict.fromkeys(wait.tasks, found.endless))
            return wait
        every = f"asks every {wait.timeout_s or 0.0:g} s"
        if found.kind == "task":
            ident = self._tasks.awaits.tasks.get(found.thing)
            if ident is None:
                return None
            return changed(wait, kind="task", resource=None, tasks=(ident,), detail=None)
        layer = layer_of(found)
        if layer is not None:
            facts = self._waits.primitives.task_wait(layer, task.id, frames)
            detail = f"{every} {facts.detail}" if facts.detail else every
            return changed(wait, kind=_KINDS[found.kind], resource=facts.resource, detail=detail)
        if found.kind == "process" and found.pid is not None:
            ident = self._tasks.awaits.process(task.id, found.pid)
            return changed(wait, kind="process", resource=ident, detail=every)
        if found.kind not in _KINDS or not found.kind.startswith("async-"):
            return None
        ident = self._tasks.awaits.polled(found.thing, task.id, frames[found.depth :], _PRIMITIVES.get(found.kind))
        return changed(wait, kind=_KINDS[found.kind], resource=ident, detail=every)
