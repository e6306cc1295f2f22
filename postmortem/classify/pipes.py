"""Pipes and sockets between processes as patterns look at them: who waits at which end, and who holds the other one."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..evidence import End, Process, PythonFrame, Resource, Task, Thread
from ..findings import Culprit
from ..waitgraph import Agent
from .knowledge import own_frame
from .view import View, label

WRITES = frozenset(("write", "writev", "pwrite64", "sendto", "sendmsg", "sendmmsg", "sendfile", "splice"))
#: A task that is in one of these waits for a process that its loop started.
_ASYNC_CHILD = ("asyncio/subprocess.py", "asyncio/base_subprocess.py")
_DEEPEST = 10


class Waiter(NamedTuple):
    """A thread, or a task of its loop, that waits without end for a descriptor or a process."""

    process: Process
    thread: Thread
    task: Optional[Task]
    resource: Resource

    @property
    def frames(self) -> Tuple[PythonFrame, ...]:
        return self.task.stack if self.task is not None else self.thread.python

    @property
    def agent(self) -> Agent:
        if self.task is not None:
            return Agent(self.process.pid, task=self.task.id)
        return Agent(self.process.pid, self.thread.tid)

    @property
    def who(self) -> str:
        name = f"task {self.task.name}" if self.task is not None else label(self.thread)
        return f"{name} of {program(self.process)}"

    def culprits(self, view: View) -> Tuple[Culprit, ...]:
        frame = own_frame(self.frames)
        if frame is None:
            return ()
        return (view.culprit(self.process, frame, self.thread, self.task.name if self.task is not None else None),)


def program(process: Process) -> str:
    """``export.py (PID 123)``"""
    words = [word for word in process.argv if not word.startswith("-")]
    script = next((word for word in words[1:4] if word.endswith(".py")), None)
    name = script or (words[0] if words else process.exe or "process")
    return f"{name.rsplit('/', 1)[-1]} (PID {process.pid})"


def holder(view: View, end: End) -> str:
    """The process behind an end, for people."""
    process = view.by_pid.get(end.pid)
    if process is not None:
        return program(process)
    return f"{end.program} (PID {end.pid})" if end.program else f"PID {end.pid}"


def waiters(view: View, process: Process) -> Iterator[Waiter]:
    """Of one process: threads in a system call without a time limit that rest there; the program's tasks that wait for a
    child or a descriptor."""
    resources = {r.id: r for r in process.resources}
    for thread in process.threads:
        wait = thread.wait
        resource = resources.get(wait.resource or "") if wait is not None else None
        if wait is None or resource is None or wait.endless is not True:
            continue
        if not view.moves(thread) and view.rests(thread):
            yield Waiter(process, thread, None, resource)
    threads = {loop.id: view.thread(process, loop.tid) for loop in process.loops}
    for task in process.tasks:
        thread_of = threads.get(task.loop or "")
        if task.state != "pending" or thread_of is None or thread_of.wait is None or own_frame(task.stack) is None:
            continue
        awaited = _awaited(task, resources)
        if awaited is not None and thread_of.wait.kind == "event-loop" and not view.moves(thread_of):
            yield Waiter(process, thread_of, task, awaited)


def _awaited(task: Task, resources: Dict[str, Resource]) -> Optional[Resource]:
    """A descriptor that a task waits for without end, or the child whose end it waits for."""
    wait = task.wait
    if wait is not None and wait.kind == "descriptor" and wait.endless is True and wait.resource in resources:
        return resources[wait.resource]
    child = any(frame.file.endswith(_ASYNC_CHILD) for frame in task.stack[:4])
    return Resource("", "process", "a process that its loop started") if child else None


def writes(waiter: Waiter) -> bool:
    """Is it kept from writing, because nobody reads?"""
    wait = waiter.thread.wait
    return (
        waiter.task is None
        and wait is not None
        and wait.syscall in WRITES
        and waiter.resource.kind in ("pipe", "socket")
    )


def read_ends(waiter: Waiter) -> List[Resource]:
    """The pipes that it waits to read: one, or those of the several that it polls."""
    wait, process = waiter.thread.wait, waiter.process
    if waiter.task is not None and waiter.resource.kind == "process":  # its loop reads for it
        watched = {ident for loop in process.loops if loop.id == waiter.task.loop for ident in loop.descriptors}
        parts = [r for r in process.resources if r.id in watched]
    elif wait is None or (wait.syscall in WRITES and waiter.task is None):
        return []
    else:
        parts = [r for r in process.resources if r.part_of == waiter.resource.id] or [waiter.resource]
    return [r for r in parts if r.kind == "pipe" and any(e.pid == process.pid and e.mode == "r" for e in r.ends)]


def holders(resource: Resource, mode: str) -> Tuple[End, ...]:
    """The ends of one side, ``r`` or ``w``."""
    return tuple(end for end in resource.ends if end.mode in (mode, "rw"))


def ancestors(view: View, process: Process) -> Tuple[int, ...]:
    """Its parent, grandparent, …, as far as they were captured, and the first that was not."""
    found: List[int] = []
    current: Optional[Process] = process
    while current is not None and current.ppid is not None and current.ppid not in found and len(found) < _DEEPEST:
        found.append(current.ppid)
        current = view.by_pid.get(current.ppid)
    return tuple(found)


def only_reads(view: View, end: End) -> bool:
    """Does every thread of that process wait to read some pipe?"""
    process = view.by_pid.get(end.pid)
    if process is None or not process.threads:
        return False
    reading = {w.thread.tid for w in waiters(view, process) if w.task is None and read_ends(w)}
    return all(thread.tid in reading for thread in process.threads)


def waits_too(view: View, end: End, pipe: Resource) -> bool:
    """Does every thread of that process read the same pipe?"""
    process = view.by_pid.get(end.pid)
    if process is None or not process.threads:
        return False
    same = {r.id for r in process.resources if r.key == pipe.key}
    return all(t.wait is not None and t.wait.resource in same for t in process.threads)
