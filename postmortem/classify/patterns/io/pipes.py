"""Pipes and sockets between processes: the waiters at one end and the holders of the other, for several patterns."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import Process, PythonFrame, Resource, Task, Thread
from ....findings import Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import GOES_ON, Agent
from ...facts import clauses
from ...facts.knowledge import is_library, multiprocessing, own_frame
from ...facts.view import View

WRITES = frozenset(("write", "writev", "pwrite64", "sendto", "sendmsg", "sendmmsg", "sendfile", "splice"))
READS = frozenset(("read", "readv", "recvfrom", "recvmsg"))
#: Files whose frames show that a task waits for a process started by its loop.
_ASYNC_CHILD = ("asyncio/subprocess.py", "asyncio/base_subprocess.py")
_STDERR = 2

_OF_PROGRAM = Template("{waiter} of {program}")
_SOME_DESCRIPTOR = Template("a descriptor")
_WORKER = Template(
    "the other end belongs to its parent or another ancestor: an idle worker that waits for orders looks like this"
)
_MANAGER = Template(
    "it calls an object of a multiprocessing manager, such as a queue or a lock, which may wait by design"
)


class Waiter(NamedTuple):
    """A thread, or a task of its loop, that waits without a timeout for a descriptor or a process."""

    process: Process
    thread: Thread
    task: Optional[Task]
    resource: Resource

    @property
    def frames(self) -> Tuple[PythonFrame, ...]:
        """Return the Python frames of the task or thread."""
        return self.task.stack if self.task is not None else self.thread.python

    @property
    def call(self) -> str:
        """Return the name of the system call."""
        return (self.thread.wait.syscall if self.thread.wait is not None else None) or "write"

    @property
    def agent(self) -> Agent:
        """Return the task or thread as an agent of the wait-for graph."""
        if self.task is not None:
            return Agent(self.process.pid, task=self.task.id)
        return Agent(self.process.pid, self.thread.tid)

    @property
    def who(self) -> Text:
        """Return the task or thread and its program."""
        waiter = clauses.task(self.task) if self.task is not None else clauses.named(self.thread)
        return _OF_PROGRAM(waiter=waiter, program=clauses.process(self.process))

    def culprits(self, view: View) -> Tuple[Culprit, ...]:
        """Return the program's line that waits, as a culprit; () if there is none."""
        frame = own_frame(self.frames)
        if frame is None:
            return ()
        return (view.culprit(self.process, frame, self.thread, self.task.name if self.task is not None else None),)


class Holder(NamedTuple):
    """A process that holds the other end of a pipe or socket."""

    pid: int
    name: Text  # "export.py (PID 123)"
    how: Said  # "descriptor 6"
    standard: bool  # True: as its stdin, stdout or stderr, and so on purpose


def holders(view: View, resource: Resource) -> Tuple[Holder, ...]:
    """Return the processes that could end a wait for a pipe or socket by writing to it or closing it."""
    found = []
    for waker in resource.wakers:
        if waker.pid is None:
            continue
        process, ends = view.by_pid.get(waker.pid), [end for end in resource.ends if end.pid == waker.pid]
        other = next((end.program for end in ends if end.program), None)
        name = clauses.process(process) if process is not None else clauses.numbered(other, waker.pid)
        standard = any(end.fd <= _STDERR and end.mode != "r" for end in ends)
        found.append(Holder(waker.pid, name, waker.name or _SOME_DESCRIPTOR(), standard))
    return tuple(found)


def inherited(view: View, resource: Resource, reader: int, pid: int) -> bool:
    """Return whether a process has the other end of a pipe or socket only as a copy of its ancestor's, from a fork.

    The ancestor has the end under the same number. The reader's own copy tells nothing: it may have made the pipe for
    its child.
    """
    process = view.by_pid.get(pid)
    if process is None:
        return False
    mine = {(end.fd, end.mode) for end in resource.ends if end.pid == pid}
    above = [one for one in view.ancestors(process) if one != reader]
    theirs = {(end.fd, end.mode) for end in resource.ends if end.pid in above}
    return bool(mine) and mine <= theirs


def waiters(view: View, process: Process) -> Tuple[Waiter, ...]:
    """Return the idle waiters of a process: threads in a system call without a known timeout, and tasks.

    Tasks count if they wait for a child or a descriptor. Several patterns ask, and there may be thousands of tasks, so the
    result is cached.
    """
    key = ("waiters", process.pid)
    if key not in view.remembered:
        view.remembered[key] = tuple(_waiters(view, process))
    return view.remembered[key]  # type: ignore[return-value]


def _waiters(view: View, process: Process) -> Iterator[Waiter]:
    """Yield the waiters of a process."""
    resources = {r.id: r for r in process.resources}
    for thread in process.threads:
        wait = thread.wait
        resource = resources.get(wait.resource or "") if wait is not None else None
        if wait is None or resource is None or wait.endless is False:
            continue
        if not view.moves(thread) and view.rests(thread):
            yield Waiter(process, thread, None, resource)
    threads = {loop.id: view.thread(process, loop.tid) for loop in process.loops}
    for task in process.tasks:
        thread_of = threads.get(task.loop or "")
        if task.state != "pending" or thread_of is None or thread_of.wait is None or own_frame(task.stack) is None:
            continue
        awaited = _awaited(process, task, resources)
        stays = not (task.moved if task.moved is not None else view.moves(thread_of))
        if awaited is not None and thread_of.wait.kind == "event-loop" and stays:
            yield Waiter(process, thread_of, task, awaited)


def waiters_of_unknown(view: View, process: Process, placeholder: Resource) -> Iterator[Waiter]:
    """Yield threads that wait on a descriptor without recorded details, as in a lone core, with a placeholder resource."""
    for thread in process.threads:
        wait = thread.wait
        unknown = wait is not None and wait.resource is None and wait.fd is not None and wait.kind in ("pipe", "other")
        if unknown and view.rests(thread) and not view.moves(thread):
            yield Waiter(process, thread, None, placeholder)


def _awaited(process: Process, task: Task, resources: Dict[str, Resource]) -> Optional[Resource]:
    """Return the descriptor, or the end of a child, that a task awaits without a timeout; None for other waits.

    If the descriptor is unknown, the result stands for all descriptors watched by the loop.
    """
    wait = task.wait
    if wait is not None and wait.kind == "descriptor" and wait.endless is True:
        loop = next((one for one in process.loops if one.id == task.loop), None)
        watched = [resources[ident] for ident in loop.descriptors if ident in resources] if loop is not None else []
        if wait.resource in resources:
            return resources[wait.resource]
        if loop is not None and watched and len(watched) == loop.watched:
            wakers = tuple(waker for part in watched for waker in part.wakers)
            return Resource("", "descriptors", " or ".join(part.description for part in watched[:3]), wakers=wakers)
    child = any(frame.file.endswith(_ASYNC_CHILD) for frame in task.stack[:4])
    return Resource("", "process", "a process that its loop started") if child else None


def writes(waiter: Waiter) -> bool:
    """Return whether a waiter is blocked in a write because the pipe, socket or terminal is not read."""
    wait = waiter.thread.wait
    return (
        waiter.task is None
        and wait is not None
        and wait.syscall in WRITES
        and (
            waiter.resource.kind in ("pipe", "socket")
            or (waiter.resource.kind == "terminal" and bool(waiter.resource.wakers))
        )
    )


def read_ends(waiter: Waiter) -> List[Resource]:
    """Return the pipes and socket pairs that a waiter reads: one, or several that it polls."""
    wait, process = waiter.thread.wait, waiter.process
    if waiter.task is not None and waiter.resource.kind == "process":  # its loop reads for it
        watched = {ident for loop in process.loops if loop.id == waiter.task.loop for ident in loop.descriptors}
        return [r for r in process.resources if r.id in watched and _reads(process, r) and r.kind == "pipe"]
    if wait is None or (waiter.task is None and (wait.syscall in WRITES or wait.kind == "event-loop")):
        return []
    parts = [waiter.resource]
    if waiter.resource.kind == "descriptors":
        parts = [r for r in process.resources if r.part_of == waiter.resource.id]
    if any(part.listening for part in parts):
        return []  # a server waits for clients; what else it polls only wakes it
    polls = waiter.task is None and wait.syscall not in READS  # a socket pair that a loop polls is its wake-up channel
    return [r for r in parts if _reads(process, r) and not (polls and r.kind == "socket")]


def _reads(process: Process, resource: Resource) -> bool:
    """Return whether a process can read a resource that is a pipe or a socket pair."""
    if resource.kind == "socket":  # without an address on either side: made by socketpair(2)
        return resource.local is None and resource.remote is None and bool(resource.wakers)
    return resource.kind == "pipe" and any(e.pid == process.pid and e.mode in ("r", "rw") for e in resource.ends)


def drained(reader: Process, several: List[Waiter], pipe: Resource) -> bool:
    """Return whether a thread or loop of the reader waits to read from the pipe, which then does not stay full."""
    if any(part.key == pipe.key for waiter in several for part in read_ends(waiter)):
        return True
    if any(f.function == "put" and f.file.endswith("/queue.py") for t in reader.threads for f in t.python[:3]):
        return True  # a thread that passes on what it reads waits for room in a queue
    keys = {r.id: r.key for r in reader.resources}
    return any(keys.get(ident) == pipe.key for loop in reader.loops for ident in loop.descriptors)


def awaits_orders(view: View, process: Process, thread: Thread, resource: Optional[Resource]) -> Optional[Text]:
    """Return why a wait for this peer may be idle by design; None if nothing shows that."""
    if resource is not None and any(waker.pid in view.ancestors(process) for waker in resource.wakers):
        return _WORKER()
    if any(frame.file.endswith(multiprocessing("managers")) for frame in thread.python[:6]):
        return _MANAGER()
    return None


def behind(view: View, process: Process) -> Optional[Waiter]:
    """Return a waiter for a process, or for its end of a pipe, that has a line of the program; its parent first."""
    found = [w for p in view.processes if p is not process for w in waiters(view, p) if own_frame(w.frames)]
    needing = [w for w in found if any(waker.pid == process.pid for waker in w.resource.wakers)]
    return min(needing, key=lambda w: w.process.pid != process.ppid, default=None)


def culprits_of(view: View, waiter: Waiter) -> Tuple[Culprit, ...]:
    """Return the waiter's line as a culprit.

    If it is a library's thread that reads for the program, the program's lines that wait for it come first.
    """
    found: List[Culprit] = []
    for thread in view.waits_on(waiter.process, waiter.thread.tid) if all(map(is_library, waiter.frames)) else ():
        frame = own_frame(thread.python)
        if frame is not None and not is_library(frame):
            found.append(view.culprit(waiter.process, frame, thread))
    return (*found, *waiter.culprits(view))


def left_behind(view: View, reader: Process, end: Holder) -> bool:
    """Return whether a holder is an orphan that still owns the write end as stdin, stdout or stderr; it will hardly write.

    It has lost its parent, and rests: a daemon that wakes now and then; or it belongs to an orphan that listens, a server that
    stays. What a shell started with ``&`` to compute, read or write something ends by itself, and so does the wait for it.
    """
    process = view.by_pid.get(end.pid)
    if process is None or not end.standard or not process.threads:
        return False
    family = [process, *(view.by_pid[pid] for pid in view.ancestors(process) if pid in view.by_pid)]
    if any(one.listening or any(r.listening for r in one.resources) for one in family) and reader not in family:
        return True
    if process.ppid in view.by_pid:
        return False
    return all(view.rests(thread) and (view.switches(thread) or 0.0) < GOES_ON for thread in process.threads)


def only_reads(view: View, end: Holder) -> bool:
    """Return whether every thread of the holder waits to read some pipe."""
    process = view.by_pid.get(end.pid)
    if process is None or not process.threads:
        return False
    reading = {w.thread.tid for w in waiters(view, process) if w.task is None and read_ends(w)}
    return all(thread.tid in reading for thread in process.threads)


def waits_too(view: View, end: Holder, pipe: Resource) -> bool:
    """Return whether every thread of the holder reads the same pipe."""
    process = view.by_pid.get(end.pid)
    if process is None or not process.threads:
        return False
    same = {r.id for r in process.resources if r.key == pipe.key}
    return all(t.wait is not None and t.wait.resource in same for t in process.threads)
