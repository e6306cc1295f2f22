"""Evidence in a few words: who waits for what."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from postmortem.evidence import Evidence, Loop, Process, Resource, Task, TaskWait, Thread, Trigger, Wait
from postmortem.evidence.vocabulary import OwnerBasis, WaitKind
from postmortem.waitgraph import WaitGraph

PID = 100


def waiting(tid: int, resource: Optional[str] = None, kind: WaitKind = "lock", **known: Any) -> Thread:
    """A thread that waits for a resource without a time limit; ``wait`` holds other fields of its wait."""
    wait = Wait(kind, "futex", resource, **{"endless": True, **known.pop("wait", {})})
    return Thread(tid, name=f"T{tid}", is_main=tid == PID, wait=wait, **known)


def running(tid: int) -> Thread:
    return Thread(tid, name=f"T{tid}", is_main=tid == PID)


def lock(ident: str, owner: Optional[int] = None, basis: Optional[OwnerBasis] = "with-slot", **known: Any) -> Resource:
    return Resource(ident, known.pop("kind", "lock"), f"Lock {ident}", owner, basis if owner else None, **known)


def task(ident: str, wait: Optional[TaskWait] = None, loop: str = "loop-1", **known: Any) -> Task:
    return Task(ident, f"job-{ident}", known.pop("state", "pending"), loop, wait=wait, **known)


def idle_loop(tid: int, **known: Any) -> Loop:
    """A loop without timers and without descriptors of the program's."""
    return Loop("loop-1", tid, **{"ready": 0, "scheduled": 0, "watched": 0, **known})


def process(threads: Sequence[Thread], resources: Sequence[Resource] = (), **known: Any) -> Process:
    known = {"pid": PID, "signal_handlers": (), "cancels": (), **known}
    return Process(threads=tuple(threads), resources=tuple(resources), **known)


def graph(*processes: Process) -> WaitGraph:
    return WaitGraph(Evidence(Trigger("core"), processes))
