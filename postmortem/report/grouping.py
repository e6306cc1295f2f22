"""Groups of processes, threads and tasks with identical stacks: two hundred workers are one paragraph."""

from __future__ import annotations

import re
from collections import Counter
from typing import Dict, Hashable, List, NamedTuple, Sequence, Set, Tuple

from ..evidence import Evidence, Gap, Process, PythonFrame, Task, Thread
from ..findings import Diagnosis
from .phrases.gaps import in_words

# Idle pool workers and servers stay far below both. Threads that contend for the GIL use little CPU each.
_IDLE_SHARE = 0.02  # of a core
_IDLE_SWITCHES = 20  # voluntary switches per second


_NUMBER = re.compile(r"\d+")


class ProcessGroup(NamedTuple):
    """Processes that run the same program in the same state."""

    processes: Tuple[Process, ...]  # the one to show first
    cited: bool  # a finding names one of them

    @property
    def first(self) -> Process:
        """Return the process to show."""
        return self.processes[0]


class ThreadGroup(NamedTuple):
    """Threads with the same stack and wait."""

    threads: Tuple[Thread, ...]
    cited: bool  # a finding names one of them
    idle: bool  # all wait for something known other than the GIL, and use hardly any CPU

    @property
    def first(self) -> Thread:
        """Return the thread to show."""
        return self.threads[0]


class TaskGroup(NamedTuple):
    """Tasks with the same stack and wait."""

    tasks: Tuple[Task, ...]
    cited: bool  # a culprit's line is in their stack

    @property
    def first(self) -> Task:
        """Return the task to show."""
        return self.tasks[0]


def processes(evidence: Evidence, diagnosis: Diagnosis) -> List[ProcessGroup]:
    """Return groups of processes that run the same program and whose threads do the same.

    The first process's group comes first, then cited ones, then the largest. Numbers in command lines (a descriptor, a
    worker's index) are ignored.
    """
    cited = {c.pid for f in diagnosis.findings for c in f.culprits} | {
        v.pid for f in diagnosis.findings for v in f.victims
    }
    found: Dict[Hashable, List[Process]] = {}
    for process in evidence.processes:
        found.setdefault(_process_key(process), []).append(process)
    # the first process of the evidence is the command itself: it stays first in its group
    groups = [
        ProcessGroup(
            tuple(sorted(members, key=lambda p: (p is not evidence.processes[0], p.pid not in cited))),
            any(p.pid in cited for p in members),
        )
        for members in found.values()
    ]
    return sorted(groups, key=lambda g: (g.first is not evidence.processes[0], not g.cited, -len(g.processes)))


def threads(process: Process, diagnosis: Diagnosis) -> List[ThreadGroup]:
    """Return groups of threads: cited ones first, then the main thread's, then the largest, idle ones last."""
    cited = _cited(process, diagnosis)
    found: Dict[Hashable, List[Thread]] = {}
    for thread in process.threads:
        found.setdefault(_thread_key(thread), []).append(thread)
    groups = [
        ThreadGroup(tuple(members), any(t.tid in cited for t in members), all(idle(t) for t in members))
        for members in found.values()
    ]
    groups.sort(key=lambda g: (not g.cited, not _has_main(g), g.idle, -len(g.threads), g.first.tid))
    return groups


def tasks(process: Process, diagnosis: Diagnosis) -> List[TaskGroup]:
    """Return groups of unfinished tasks by stack and what they await: those with a culprit first, then the largest."""
    culprits = {(c.file, c.line, c.function) for finding in diagnosis.findings for c in finding.culprits}
    named = {c.task for finding in diagnosis.findings for c in finding.culprits if c.pid == process.pid}
    found: Dict[Hashable, List[Task]] = {}
    for task in process.tasks:
        if task.state != "done":
            found.setdefault((task.state, task.awaiting, _places(task.stack)), []).append(task)
    groups = [
        TaskGroup(
            tuple(sorted(members, key=lambda task: task.name not in named and task.id not in named)),
            any((f.file, f.line, f.function) in culprits for f in members[0].stack),
        )
        for members in found.values()
    ]
    return sorted(groups, key=lambda g: (not g.cited, -len(g.tasks)))


def gaps(found: Sequence[Gap]) -> List[List[Gap]]:
    """Return groups of gaps, in words, that differ only in their subject."""
    alike: Dict[Tuple[str, str, object], List[Gap]] = {}
    for gap in map(in_words, found):
        alike.setdefault(_cause(gap), []).append(gap)
    return list(alike.values())


def _cause(gap: Gap) -> Tuple[str, str, object]:
    """Return a gap without the numbers of its subject: ``process 7``, or ``process 7 (sh)``, recurs in reason and remedy."""
    named = re.compile(r"\b(?:" + "|".join(re.findall(r"\d+", gap.subject) or ["(?!)"]) + r")\b(?: \([^)]*\))?")
    return gap.source, named.sub("#", gap.reason or ""), named.sub("#", gap.remedy) if gap.remedy else None


def _cited(process: Process, diagnosis: Diagnosis) -> Set[int]:
    """Return the tids of a process that findings name."""
    named: Set[int] = set()
    for finding in diagnosis.findings:
        named.update(c.tid for c in finding.culprits if c.pid == process.pid and c.tid is not None)
        named.update(v.tid for v in finding.victims if v.pid == process.pid and v.tid is not None)
    return named


def _process_key(process: Process) -> Hashable:
    what = (_NUMBER.sub("#", " ".join(process.argv)), process.exe, process.state, process.fatal_signal, process.python)
    confined = (process.cgroup.path, process.cgroup.frozen) if process.cgroup else None
    doing = Counter(_outline(thread) for thread in process.threads)
    tasks = Counter((task.state, task.awaiting, _places(task.stack)) for task in process.tasks)
    return (*what, confined, frozenset(doing.items()), frozenset(tasks.items()))


def _outline(thread: Thread) -> Hashable:
    """Return a thread's stack and wait, without what differs between processes."""
    stack, gil, _wait, ended = _thread_key(thread)
    wait = thread.wait
    return (stack, gil, None if wait is None else (wait.kind, wait.syscall), ended, bool(thread.holds))


def _has_main(group: ThreadGroup) -> bool:
    return any(thread.is_main for thread in group.threads)


def _thread_key(thread: Thread) -> Tuple[Hashable, str, Hashable, bool]:
    wait = thread.wait
    python = thread.python
    # The native tops of threads in the same Python call differ from moment to moment: the Python stack decides.
    stack: Hashable = _places(python) if python else tuple((f.function, f.module) for f in thread.native)
    return (stack, thread.gil, None if wait is None else (wait.kind, wait.syscall, wait.resource), thread.state == "Z")


def _places(frames: Tuple[PythonFrame, ...]) -> Hashable:
    return tuple((frame.file, frame.line, frame.function) for frame in frames)


def idle(thread: Thread) -> bool:
    """Return whether a thread waits for something known other than the GIL, and uses hardly any CPU."""
    if thread.wait is None or thread.wait.kind == "gil" or thread.gil in ("holds", "waits"):
        return False
    counters = thread.counters
    if counters is None or counters.seconds <= 0:
        return True
    switches = counters.voluntary_switches or 0
    return (counters.cpu_s or 0.0) < _IDLE_SHARE * counters.seconds and switches < _IDLE_SWITCHES * counters.seconds
