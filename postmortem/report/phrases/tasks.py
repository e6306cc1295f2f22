"""Waits and held locks of tasks, in words."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from ...evidence import Process, Resource, Task, TaskWait
from . import labels

_NAMED = 3
#: Most tasks of one group that are compared.
_COMPARED = 100


class Waits:
    """A describer of the tasks of one process."""

    def __init__(self, process: Process) -> None:
        self._names: Dict[str, str] = {task.id: task.name or task.id for task in process.tasks}
        self._resources: Dict[str, Resource] = {resource.id: resource for resource in process.resources}

    def of(self, tasks: Sequence[Task]) -> str:
        """Return what tasks with the same stack wait for, who holds that, and the locks they hold; "" if nothing is known."""
        tasks = tasks[:_COMPARED]
        ends = {_ends(task.wait) for task in tasks}
        alike = len(ends) == 1  # what remains differs from task to task where all began after each other
        said = {self._awaits(task, alike) for task in tasks}
        parts = [said.pop() if len(said) == 1 else _several(tasks)]
        held = {self._holds(task) for task in tasks}
        parts.append(held.pop() if len(held) == 1 else "Each holds something different.")
        return " ".join(filter(None, parts))

    def _awaits(self, task: Task, with_rest: bool) -> str:
        wait = task.wait
        if wait is None:
            return "Waits only for its turn." if task.ready else ""
        limit = ", without a time limit" if wait.endless else _ends(wait) if with_rest else ""
        resource = self._resources.get(wait.resource or "")
        if resource is not None:
            return f"Waits for {resource.description}{self._holder(resource.owner_task)}{limit}."
        if wait.tasks:
            return f"Waits for {self._several_named(wait)}{limit}."
        return f"{wait.detail[:1].upper()}{wait.detail[1:]}{limit}." if wait.detail else ""

    def _several_named(self, wait: TaskWait) -> str:
        names = self._named(wait.tasks)
        if len(wait.tasks) == 1:
            return f"task {names[0]}"
        what = "the first of" if wait.any else "all"
        more = f" and {len(wait.tasks) - _NAMED} more" if len(wait.tasks) > _NAMED else ""
        return f"{what} {len(wait.tasks)} tasks: {', '.join(names)}{more}"

    def _named(self, idents: Tuple[str, ...]) -> List[str]:
        return [self._names.get(ident, ident) for ident in idents[:_NAMED]]

    def _holder(self, owner: Optional[str]) -> str:
        return "" if owner is None else f", held by task {self._named((owner,))[0]}"

    def _holds(self, task: Task) -> str:
        found = []
        for held in tuple(dict.fromkeys(task.holds))[:_NAMED]:
            resource = self._resources.get(held.resource)
            if resource is not None:
                place = f"{labels.short_path(held.frame.file)}:{held.frame.line or '?'}"
                found.append(f"{resource.description}, acquired in {held.frame.function} at {place}")
        return f"Holds {'; '.join(found)}." if found else ""


def _ends(wait: Optional[TaskWait]) -> str:
    return labels.limit_ends(wait.remaining_s, wait.kind) if wait is not None else ""


def _several(tasks: Sequence[Task]) -> str:
    kinds = {task.wait.kind if task.wait is not None else None for task in tasks}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind == "tasks":
        return "Each waits for other tasks."
    return f"Each waits for a different {kind}." if kind not in (None, "other") else ""
