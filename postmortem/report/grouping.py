"""Threads and tasks with identical stacks, put together: two hundred workers are one paragraph."""

from __future__ import annotations

from typing import Dict, Hashable, List, NamedTuple, Set, Tuple

from ..evidence import Process, PythonFrame, Task, Thread
from ..findings import Diagnosis

_IDLE_SHARE = 0.02  # of a core; pool workers and servers that only wait stay far below


class ThreadGroup(NamedTuple):
    threads: Tuple[Thread, ...]
    cited: bool  # a finding names one of them
    idle: bool  # waits for something known that is not the GIL, and used no CPU to speak of

    @property
    def first(self) -> Thread:
        return self.threads[0]


class TaskGroup(NamedTuple):
    tasks: Tuple[Task, ...]

    @property
    def first(self) -> Task:
        return self.tasks[0]


def threads(process: Process, diagnosis: Diagnosis) -> List[ThreadGroup]:
    """Groups of threads: cited ones first, then the main thread's, then the largest, idle ones last."""
    cited = _cited(process, diagnosis)
    found: Dict[Hashable, List[Thread]] = {}
    for thread in process.threads:
        found.setdefault(_thread_key(thread), []).append(thread)
    groups = [
        ThreadGroup(tuple(members), any(t.tid in cited for t in members), all(_idle(t) for t in members))
        for members in found.values()
    ]
    groups.sort(key=lambda g: (not g.cited, not _has_main(g), g.idle, -len(g.threads), g.first.tid))
    return groups


def tasks(process: Process) -> List[TaskGroup]:
    """Groups of unfinished tasks by stack and what they await, the largest first."""
    found: Dict[Hashable, List[Task]] = {}
    for task in process.tasks:
        if task.state != "done":
            found.setdefault((task.state, task.awaiting, _places(task.stack)), []).append(task)
    return sorted((TaskGroup(tuple(members)) for members in found.values()), key=lambda g: (-len(g.tasks), g.first.id))


def _cited(process: Process, diagnosis: Diagnosis) -> Set[int]:
    named: Set[int] = set()
    for finding in diagnosis.findings:
        named.update(c.tid for c in finding.culprits if c.pid == process.pid and c.tid is not None)
        named.update(v.tid for v in finding.victims if v.pid == process.pid)
    return named


def _has_main(group: ThreadGroup) -> bool:
    return any(thread.is_main for thread in group.threads)


def _thread_key(thread: Thread) -> Hashable:
    wait = thread.wait
    python = thread.python
    # Two threads in one Python call differ in their native tops from moment to moment: the Python stack decides.
    stack: Hashable = _places(python) if python else tuple((f.function, f.module) for f in thread.native)
    return (stack, thread.gil, None if wait is None else (wait.kind, wait.syscall, wait.resource), thread.state == "Z")


def _places(frames: Tuple[PythonFrame, ...]) -> Hashable:
    return tuple((frame.file, frame.line, frame.function) for frame in frames)


def _idle(thread: Thread) -> bool:
    if thread.wait is None or thread.wait.kind == "gil" or thread.gil in ("holds", "waits"):
        return False
    counters = thread.counters
    if counters is None or counters.cpu_s is None or counters.seconds <= 0:
        return True
    return counters.cpu_s / counters.seconds < _IDLE_SHARE
