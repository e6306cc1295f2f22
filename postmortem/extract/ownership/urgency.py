"""Waits that hold up others. Unknown wakers are a gap only for these, not for the wait of an idle worker, say."""

from __future__ import annotations

from typing import Sequence, Set

from ...evidence import Loop, Resource, Task, Thread


class Urgency:
    """Agents that are not idle by design.

    - the main thread and the main task of each loop
    - threads and tasks that others wait for by name: joined, awaited, owner or known waker of a resource
    """

    def __init__(
        self, threads: Sequence[Thread], tasks: Sequence[Task], loops: Sequence[Loop], resources: Sequence[Resource]
    ) -> None:
        self._threads: Set[int] = {t.tid for t in threads if t.is_main}
        self._threads |= {t.joins for t in threads if t.joins is not None}
        self._tasks: Set[str] = {ident for t in tasks if t.wait is not None for ident in t.wait.tasks}
        self._tasks |= {loop.main_task for loop in loops if loop.main_task is not None}
        for resource in resources:
            if resource.waiters or resource.waiting_tasks:
                self._note(resource)

    def _note(self, resource: Resource) -> None:
        owed = [waker for waker in resource.wakers if waker.role != "reach"]
        self._threads |= {tid for tid in (resource.owner_tid, *(w.tid for w in owed)) if tid is not None}
        self._tasks |= {task for task in (resource.owner_task, *(w.task for w in owed)) if task is not None}

    def holds_up(self, resource: Resource) -> bool:
        """Return whether one of these agents waits for a resource."""
        return not self._threads.isdisjoint(resource.waiters) or not self._tasks.isdisjoint(resource.waiting_tasks)
