"""Threads and tasks that serve the other end of a pipe or socket.

A descriptor belongs to the whole process. A thread is taken to serve it that waits for it, whose frame refers to its socket or
connection, or that runs a method of an object that has it: otherwise a thread would seem to wait for its own process, and thus
for itself. So is a task whose variables lead to the connection, unless it waits for what comes on it; but others of its process
may use it, too.
"""

from __future__ import annotations

import itertools
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...cpython.frames.frame import Frame
from ...cpython.objects.attributes import attribute, attributes
from ...cpython.objects.builtins import NotThat
from ...cpython.state.interpreter import Python
from ...evidence import Process, Resource, Task, Thread, Waker
from ...evidence import replace as changed
from ...frameworks.asyncio.connections import Connections
from ...frameworks.asyncio.streams import descriptor_of_file, descriptor_of_socket
from ...frameworks.asyncio.tasks import TaskState
from ...memory import Fault
from ...timelimits import TimeLimit

#: Limits: threads searched, frames of a thread, locals of a frame, threads named for one resource.
_MOST_LOOKED_AT, _MOST_FRAMES, _MOST_LOCALS, _MOST_THREADS = 1000, 60, 200, 16
#: Seconds for the connections of all tasks of a process.
_SECONDS = 0.5
_SELF = "self"
_CONNECTION = "_handle"  # of Lib/multiprocessing/connection.py, _ConnectionBase


def with_servers(
    pid: int,
    resources: Sequence[Resource],
    threads: Sequence[Thread],
    frames: Mapping[int, Sequence[Frame]],
    python: Optional[Python],
) -> Tuple[Resource, ...]:
    """Return the resources, with threads in place of the process itself if it has several.

    ``frames``: by tid.
    """
    asked = [r for r in resources if r.kind in ("pipe", "socket") and r.waiters and any(w.pid == pid for w in r.wakers)]
    if not asked or len(threads) < 2:
        return tuple(resources)
    at_hand = _at_hand(threads, frames, python)
    by_tid = {t.tid: t for t in threads}
    made = {r.id: _named(pid, r, by_tid, at_hand) for r in asked}
    return tuple(made.get(r.id, r) for r in resources)


def with_connections(tasks: Sequence[Task], states: Mapping[str, TaskState], python: Python) -> Tuple[Task, ...]:
    """Return the tasks, those that wait with the descriptors of the connections that they serve."""
    known, limit = Connections(python.frames), TimeLimit(_SECONDS)
    found = []
    for task in tasks:
        state = states.get(task.id)
        if state is not None and task.state == "pending" and task.wait is not None and not limit.passed():
            serves = known.of(state.frames)
            found.append(changed(task, serves=serves) if serves else task)
        else:
            found.append(task)
    return tuple(found)


def with_serving_tasks(processes: Sequence[Process]) -> List[Process]:
    """Return the processes, the wakers of sockets with the tasks that serve their other ends before the process itself."""
    serving: Dict[Tuple[int, int], List[Task]] = {}
    for process in processes:
        sockets = {r.id: r.ends[0].fd for r in process.resources if r.kind == "socket" and r.ends}
        for task in process.tasks:
            reads = sockets.get(task.wait.resource or "") if task.wait is not None else None
            for number in task.serves:
                if number != reads:
                    serving.setdefault((process.pid, number), []).append(task)
    if not serving:
        return list(processes)
    return [changed(p, resources=tuple(_with_tasks(r, serving) for r in p.resources)) for p in processes]


def _with_tasks(resource: Resource, serving: Mapping[Tuple[int, int], Sequence[Task]]) -> Resource:
    """Return a socket with the tasks as wakers that serve its other end; its own end is the first."""
    if resource.kind != "socket" or resource.listening or len(resource.ends) < 2:
        return resource
    mine, *others = resource.ends
    found = [
        Waker("end", "inferred", end.pid, task=task.id, name=f"descriptor {end.fd}")
        for end in others
        for task in serving.get((end.pid, end.fd), ())
        if (end.pid, end.fd) != (mine.pid, mine.fd)
    ]
    return changed(resource, wakers=(*found[:_MOST_THREADS], *resource.wakers)) if found else resource


def _named(pid: int, resource: Resource, threads: Mapping[int, Thread], at_hand: Mapping[int, Set[int]]) -> Resource:
    waits = {t.wait.fd for tid in resource.waiters for t in [threads.get(tid)] if t is not None and t.wait is not None}
    ends = [end for end in resource.ends if end.pid == pid and end.fd not in waits]
    serving = [(tid, end.fd) for end in ends for tid in sorted(at_hand.get(end.fd, set()) - set(resource.waiters))]
    own: Tuple[Waker, ...]
    if serving:
        own = tuple(Waker("end", "inferred", pid, tid, name=f"descriptor {fd}") for tid, fd in serving[:_MOST_THREADS])
    elif len(resource.waiters) < len(threads) <= _MOST_THREADS:
        name = next((w.name for w in resource.wakers if w.pid == pid), None)
        own = tuple(Waker("end", "kernel", pid, tid, name=name) for tid in threads if tid not in resource.waiters)
    else:
        return resource
    wakers: List[Waker] = [w for w in resource.wakers if w.pid != pid]
    return changed(resource, wakers=(*wakers, *own))


def _at_hand(
    threads: Sequence[Thread], frames: Mapping[int, Sequence[Frame]], python: Optional[Python]
) -> Dict[int, Set[int]]:
    """Return descriptor → threads that wait for it or refer to it in a frame's variable."""
    found: Dict[int, Set[int]] = {}
    for thread in threads[:_MOST_LOOKED_AT]:
        numbers = {thread.wait.fd} if thread.wait is not None and thread.wait.fd is not None else set()
        numbers.update(_in_frames(python, frames.get(thread.tid, ())) if python is not None else ())
        for number in numbers:
            found.setdefault(number, set()).add(thread.tid)
    return found


def _in_frames(python: Python, frames: Iterable[Frame]) -> Iterator[int]:
    for frame in itertools.islice(frames, _MOST_FRAMES):
        known = list(itertools.islice(python.frames.locals(frame), _MOST_LOCALS))
        values = [value for _name, value in known]
        values += _parts_of(python, values[0]) if known and known[0][0] == _SELF else []
        for value in values:
            number = _descriptor(python, value)
            if number is not None:
                yield number


def _parts_of(python: Python, value: int) -> List[int]:
    """Return the attributes of an object whose method runs: a server's, or a connection's handler's, have its socket."""
    try:
        return list(itertools.islice(attributes(python.objects, value).values(), _MOST_LOCALS))
    except (Fault, NotThat):
        return []


def _descriptor(python: Python, value: int) -> Optional[int]:
    objects = python.objects
    number = descriptor_of_socket(objects, value)
    if number is None:
        number = descriptor_of_file(objects, value)
    if number is None and (objects.type_name(value) or "").endswith("Connection"):
        handle = attribute(objects, value, _CONNECTION)
        try:
            number = objects.integer(handle) if handle else None
        except (Fault, NotThat):
            return None
    return number
