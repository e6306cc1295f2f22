"""The role of a thread or task at a line named by a finding: it acquires a lock that it holds, or waits for one."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Optional, Sequence, Tuple

from ...evidence import Evidence, HeldLock, Process, PythonFrame, Resource
from ...evidence.vocabulary import ResourceKind
from ...findings import Culprit
from . import labels

#: Resources with several holders, each of which has a part.
_MANY: FrozenSet[ResourceKind] = frozenset(("semaphore", "queue"))
#: Most culprits at one place that are compared; most objects that are named.
_COMPARED, _NAMED = 50, 3


def of(evidence: Evidence, members: Sequence[Culprit]) -> str:
    """Return what all culprits at one place do there, in a sentence; "" if nothing is known."""
    all_done = [_deeds(evidence, culprit) for culprit in members[:_COMPARED]]
    said: List[str] = []
    for deed in all_done[0] if all_done else ():
        if all(deed in one for one in all_done):
            things = list(dict.fromkeys(one[deed] for one in all_done))
            said.append(deed.format(" or ".join(things[:_NAMED])) + (" (one each)" if len(things) > 1 else ""))
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _deeds(evidence: Evidence, culprit: Culprit) -> Dict[str, str]:
    """Return action → objects; `with a, b:` acquires two."""
    found: Dict[str, List[str]] = {}
    for deed, thing in _done(evidence, culprit):
        found.setdefault(deed, []).append(thing)
    return {deed: " and ".join(things) for deed, things in found.items()}


def _done(evidence: Evidence, culprit: Culprit) -> Iterator[Tuple[str, str]]:
    """Yield (action, object) of a culprit at its line."""
    process = next((p for p in evidence.processes if p.pid == culprit.pid), None)
    if process is None or culprit.line is None:
        return
    holds, frames, resource = _agent(process, culprit)
    taken = [held.resource for held in holds if _is_at(held.frame, culprit)]
    for ident in dict.fromkeys(taken):
        yield _taken(labels.find_resource(process, ident))
    place = labels.own_place(frames)
    wanted = labels.find_resource(process, resource)
    if place is not None and _is_at(place, culprit) and wanted is not None and wanted.id not in taken:
        yield "waits here for {}", wanted.description


def _agent(process: Process, culprit: Culprit) -> Tuple[Tuple[HeldLock, ...], Tuple[PythonFrame, ...], Optional[str]]:
    """Return (held locks, stack, awaited resource) of the culprit's task or thread."""
    for task in process.tasks if culprit.task is not None else ():
        if culprit.task in (task.name, task.id):
            return task.holds, task.stack, task.wait.resource if task.wait is not None else None
    for thread in process.threads:
        if thread.tid == culprit.tid:
            return thread.holds, thread.python, thread.wait.resource if thread.wait is not None else None
    return (), (), None


def _is_at(frame: PythonFrame, culprit: Culprit) -> bool:
    return (frame.file, frame.line, frame.function) == (culprit.file, culprit.line, culprit.function)


def _taken(resource: Optional[Resource]) -> Tuple[str, str]:
    if resource is None:
        return "acquires {} here and holds it", "a lock"
    if resource.kind == "import-lock":
        return "starts the {} here, which has not finished", resource.description
    if resource.kind in _MANY:
        return "takes something from {} here and still has it", resource.description
    return "acquires {} here and holds it", resource.description
