"""Culprits grouped by place, so that sixty tasks at one line are one line to change; and victims."""

from __future__ import annotations

from typing import Dict, Iterator, List, Sequence, Tuple

from ...evidence import Evidence
from ...findings import Culprit, Finding, Victim
from . import labels


def by_place(culprits: Sequence[Culprit]) -> List[List[Culprit]]:
    """Return culprits grouped by line and function, in the order of the finding."""
    places: Dict[Tuple[str, object, str], List[Culprit]] = {}
    for culprit in culprits:
        places.setdefault((culprit.file, culprit.line, culprit.function), []).append(culprit)
    return list(places.values())


def who(culprits: Sequence[Culprit]) -> str:
    """Return ``process 7, thread 9`` for one culprit, ``60 tasks of process 7`` for many."""
    first = culprits[0]
    tasks = {(c.pid, c.task) for c in culprits if c.task is not None}
    threads = {(c.pid, c.tid) for c in culprits if c.tid is not None}
    if len(tasks) > 1:
        return f"{len(tasks)} tasks of process {first.pid}"
    if len(threads) > 1:
        return f"{len(threads)} threads of process {first.pid}"
    parts = [f"process {first.pid}"]
    if first.tid is not None:
        parts.append(f"thread {first.tid}")
    if first.task is not None:
        parts.append(f"task {first.task}")
    return ", ".join(parts)


def labelled(evidence: Evidence, victims: Sequence[Victim]) -> Iterator[Tuple[str, Victim]]:
    """Yield each victim with its name for the reader."""
    threads = {(process.pid, thread.tid): thread for process in evidence.processes for thread in process.threads}
    for victim in victims:
        thread = threads.get((victim.pid, victim.tid)) if victim.tid is not None else None
        yield labels.label(thread, victim.tid, victim.task), victim


def sufferers(finding: Finding) -> Tuple[Victim, ...]:
    """Return the victims that are not culprits themselves."""
    blamed = {(c.pid, c.tid, c.task) for c in finding.culprits}
    return tuple(v for v in finding.victims if (v.pid, v.tid, v.task) not in blamed)
