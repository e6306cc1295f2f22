"""Agents (threads, tasks, whole processes) and indices to find them in evidence."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from ..evidence import Evidence, Loop, Process, PythonFrame, Resource, Task, Thread


class Agent(NamedTuple):
    """A thread (``tid``), a task (``task``, its id) or, with neither, a process as a whole."""

    pid: int
    tid: Optional[int] = None
    task: Optional[str] = None

    @property
    def is_process(self) -> bool:
        """Return whether the agent is a process as a whole."""
        return self.tid is None and self.task is None


class Place:
    """A process with indices of its threads, tasks, resources and loops."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pid = process.pid
        self.threads: Dict[int, Thread] = {t.tid: t for t in process.threads}
        self.tasks: Dict[str, Task] = {t.id: t for t in process.tasks}
        self.resources: Dict[str, Resource] = {r.id: r for r in process.resources}
        self.loops: Dict[str, Loop] = {loop.id: loop for loop in process.loops}
        self.loop_of: Dict[int, Loop] = {loop.tid: loop for loop in process.loops if loop.tid is not None}
        #: Threads that only sleep and count, for ever: they can move, and end no wait.
        self.quiet: FrozenSet[int] = frozenset(t.tid for t in process.threads if t.quiet)
        self.main: Optional[Thread] = next((t for t in process.threads if t.is_main), None)
        #: Results derived from a resource, by its id, shared by all its waiters.
        self.kept: Dict[str, object] = {}


class Places:
    """All processes of an evidence document, indexed by pid and by parent."""

    def __init__(self, evidence: Evidence) -> None:
        self.by_pid: Dict[int, Place] = {p.pid: Place(p) for p in evidence.processes}
        self.children: Dict[int, List[int]] = {}
        for process in evidence.processes:
            if process.ppid is not None:
                self.children.setdefault(process.ppid, []).append(process.pid)

    def thread(self, agent: Agent) -> Optional[Thread]:
        """Return the agent's thread; None if it is no thread or not in the evidence."""
        place = self.by_pid.get(agent.pid)
        return place.threads.get(agent.tid) if place is not None and agent.tid is not None else None

    def task(self, agent: Agent) -> Optional[Task]:
        """Return the agent's task; None if it is no task or not in the evidence."""
        place = self.by_pid.get(agent.pid)
        return place.tasks.get(agent.task) if place is not None and agent.task is not None else None

    def process(self, agent: Agent) -> Optional[Process]:
        """Return the agent's process; None if not in the evidence."""
        place = self.by_pid.get(agent.pid)
        return place.process if place is not None else None

    def resource(self, pid: int, ident: Optional[str]) -> Optional[Resource]:
        """Return a resource of a process by id; None if not in the evidence."""
        place = self.by_pid.get(pid)
        return place.resources.get(ident) if place is not None and ident is not None else None

    def stack(self, agent: Agent) -> Tuple[PythonFrame, ...]:
        """Return an agent's Python frames, most recent call or innermost await first.

        For a process these are the frames of its main thread.
        """
        task = self.task(agent)
        if task is not None:
            return task.stack
        thread = self.thread(agent)
        if thread is None and agent.is_process:
            place = self.by_pid.get(agent.pid)
            thread = place.main if place is not None else None
        return thread.python if thread is not None else ()

    def label(self, agent: Agent) -> str:
        """Return the agent's name for the reader: "worker-3 (17)", "task fetch", "process 12 (app.py)"."""
        task, thread, process = self.task(agent), self.thread(agent), self.process(agent)
        if agent.task is not None:
            called = task.name or task.id if task is not None else agent.task
            return (
                called if called.lower().startswith("task") else f"task {called}"
            )  # asyncio's default names are Task-1, Task-2, …
        if agent.tid is not None:
            return _thread_label(thread) if thread is not None else f"thread {agent.tid}"
        name = program(process) if process is not None else None
        return f"process {agent.pid} ({name})" if name else f"process {agent.pid}"


def _thread_label(thread: Thread) -> str:
    """Return "NAME (TID)", or "thread TID" if it has no name."""
    return f"{thread.name} ({thread.tid})" if thread.name else f"thread {thread.tid}"


def program(process: Process) -> Optional[str]:
    """Return the name of the process's script, or of its executable; None if unknown."""
    words = [word for word in process.argv[:4] if not word.startswith("-")]
    script = next((word for word in words[1:] if word.endswith(".py")), None)
    name = script or (words[0] if words else process.exe)
    return name.rsplit("/", 1)[-1] if name else None
