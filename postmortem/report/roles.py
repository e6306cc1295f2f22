"""What a thread or task does at a line that a finding names: takes a lock there that it holds, or waits for another."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ..evidence import Evidence, HeldLock, Process, PythonFrame, Resource
from ..findings import Culprit
from . import wording

#: Of these one takes a part, and others may have parts as well.
_MANY = ("semaphore", "queue", "pool")


def of(evidence: Evidence, culprit: Culprit) -> str:
    """A sentence; "" where the line is no such place, or nobody knows."""
    process = next((p for p in evidence.processes if p.pid == culprit.pid), None)
    if process is None or culprit.line is None:
        return ""
    holds, frames, resource = _agent(process, culprit)
    taken = [held.resource for held in holds if _is_at(held.frame, culprit)]
    said: List[str] = []
    for ident in dict.fromkeys(taken):
        said.append(_taken(wording.find_resource(process, ident)))
    place = wording.own_place(frames)
    wanted = wording.find_resource(process, resource)
    if place is not None and _is_at(place, culprit) and wanted is not None and wanted.id not in taken:
        said.append(f"waits here for {wanted.description}")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _agent(
    process: Process, culprit: Culprit
) -> Tuple[Tuple[HeldLock, ...], Tuple[PythonFrame, ...], Optional[str]]:
    """What the task, or else the thread, of a culprit holds, where it stands, and what it waits for."""
    for task in process.tasks if culprit.task is not None else ():
        if culprit.task in (task.name, task.id):
            return task.holds, task.stack, task.wait.resource if task.wait is not None else None
    for thread in process.threads:
        if thread.tid == culprit.tid:
            return thread.holds, thread.python, thread.wait.resource if thread.wait is not None else None
    return (), (), None


def _is_at(frame: PythonFrame, culprit: Culprit) -> bool:
    return (frame.file, frame.line, frame.function) == (culprit.file, culprit.line, culprit.function)


def _taken(resource: Optional[Resource]) -> str:
    if resource is None:
        return "takes a lock here, and holds it"
    if resource.kind == "import":
        return f"begins the {resource.description} here, which has not ended"
    if resource.kind in _MANY:
        return f"takes something out of {resource.description} here, and has it still"
    return f"takes {resource.description} here, and holds it"
