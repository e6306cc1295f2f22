"""Agents that wait by design: what they wait for comes from outside, or nobody wants its result."""

from __future__ import annotations

import itertools
from typing import FrozenSet, Optional, Sequence

from ...evidence import Loop, Process, PythonFrame, Resource, Task, Thread
from ...evidence.vocabulary import ResourceKind
from ...waitgraph import Agent, Edge
from ..facts import knowledge
from ..facts.view import View
from .calls import calls_for_a_result, wants_an_answer

_ACCEPTS = ("accept", "accept4")
#: Descriptors that only the kernel, the user or the program itself feeds.
_FED: FrozenSet[ResourceKind] = frozenset(("eventfd", "timerfd", "signalfd", "inotify"))


def serves(view: View, process: Process, thread: Thread) -> bool:
    """Return whether a thread is in the dispatch frame of a pool or server: it waits for a job, a connection or a request."""
    wait = thread.wait
    if wait is None:
        return False
    if wait.kind in ("lock", "rlock", "mutex") and not (
        view.idle(thread) and (wait.endless is False or _gets_job(thread))
    ):
        return False
    if thread.python and knowledge.in_table(thread.python[0], knowledge.WINDOW_LOOPS):
        return True
    if view.idle(thread) or wait.syscall in _ACCEPTS or wait.kind == "signal" or _dispatches(thread):
        return True
    resource = view.graph.places.resource(process.pid, wait.resource)
    if resource is None:
        return False
    parts = [resource, *(r for r in process.resources if r.part_of == resource.id)]
    fed = resource.kind in _FED and not (calls_for_a_result(thread) and not process.listening)
    return fed or any(map(is_servers, parts)) or _wakes_itself(process, thread, resource)


def _gets_job(thread: Thread) -> bool:
    """Return whether a lock for which a thread waits is of the condition by which its pool hands out jobs."""
    return any(knowledge.in_table(frame, knowledge.GETS_JOB) for frame in thread.python[:3])


def _wakes_itself(process: Process, thread: Thread, resource: Resource) -> bool:
    """Return whether a library looks now and then at a pipe into which its own process writes, from a signal handler mostly.

    gunicorn's master does so; multiprocessing's pipes are for items.
    """
    wait, inner = thread.wait, next(iter(thread.python), None)
    polls = (
        wait is not None
        and wait.syscall in knowledge.SELECT_CALLS
        and wait.endless is False
        and resource.kind == "pipe"
    )
    library = inner is not None and knowledge.is_library(inner) and not knowledge.is_stdlib(inner)
    return polls and library and any(end.pid == process.pid and "w" in end.mode for end in resource.ends)


def has_company(view: View, process: Process) -> bool:
    """Return whether the process serves: another thread than the main one waits for jobs, connections or requests."""
    main = view.main(process)
    others = [thread for thread in process.threads if thread is not main and thread.python]
    return bool(process.listening) or any(serves(view, process, thread) for thread in others)


def is_servers(resource: Resource) -> bool:
    """Return whether a socket waits for a connection, or for the first byte of a client."""
    return resource.listening is True or (resource.accepted is True and not resource.received)


def loop_serves(process: Process, loop: Loop) -> bool:
    """Return whether a loop watches a listening or accepted socket; of one whose descriptors are unknown, its process listens.

    A server in another thread says nothing about the loop.
    """
    if loop.watched is None and process.listening:
        return True
    resources = {resource.id: resource for resource in process.resources}
    watched = [resources.get(name) for name in (*loop.descriptors, *loop.sockets)]
    return any(one is not None and (one.listening or one.accepted) for one in watched)


def is_parked(view: View, agent: Agent, edge: Optional[Edge]) -> bool:
    """Return whether a main task only keeps its loop running, for servers or other tasks, while the loop goes on.

    It awaits a future that has no name and that no known code sets, or anything while the loop serves.
    """
    place, task = view.graph.places.by_pid.get(agent.pid), view.graph.places.task(agent)
    loop = place.loops.get(task.loop or "") if place is not None and task is not None else None
    if place is None or task is None or loop is None or loop.main_task != task.id or edge is None:
        return False
    if loop.tid is None or view.graph.stuck(Agent(place.pid, loop.tid)) is not None:
        return False
    if loop_serves(place.process, loop):
        return not wants_an_answer(task)
    resource = place.resources.get(edge.resource or "")
    return resource is not None and resource.named is False and all(waker.site is None for waker in resource.wakers)


def awaits_request(view: View, process: Process, task: Task) -> bool:
    """Return whether a task is a server's that waits for the next request of a connection.

    None of the program's code is in it, and nobody awaits its end; a waiter that it could signal does not count.
    """
    wait = task.wait
    if not process.listening or wait is None or wait.kind not in ("future", "descriptor") or not task.stack:
        return False
    return all(map(knowledge.is_library, task.stack)) and task.id not in _awaited_tasks(view, process)


def _awaited_tasks(view: View, process: Process) -> FrozenSet[str]:
    """Return the ids of a process's tasks of which another task awaits the end."""
    key = ("awaited tasks", process.pid)
    if key not in view.remembered:
        waits = (task.wait for task in process.tasks if task.wait is not None)
        view.remembered[key] = frozenset(awaited for wait in waits for awaited in wait.tasks)
    return view.remembered[key]  # type: ignore[return-value]


def _dispatches(thread: Thread) -> bool:
    """Return whether a thread is in a server's own loop, above all frames of the program."""
    frames = thread.python
    at = next((i for i, frame in enumerate(frames[:6]) if knowledge.in_table(frame, SERVES)), None)
    return at is not None and all(knowledge.is_stdlib(frame) for frame in frames[:at])


def is_native(thread: Thread) -> bool:
    """Return whether a thread runs no Python code, such as a helper of a library."""
    return not thread.python


def in_request(thread: Thread) -> bool:
    """Return whether a thread is at work for a server's client or a pool: a library's or a pool's code called the program's.

    A thread of the program begins in its own code.
    """
    if any(knowledge.in_table(frame, DISPATCHES) for frame in thread.python):
        return True
    outer = next((i for i, frame in enumerate(reversed(thread.python)) if not knowledge.is_stdlib(frame)), None)
    if outer is None:
        return False
    called = list(reversed(thread.python))[outer:]
    return knowledge.is_library(called[0]) and any(not knowledge.is_library(frame) for frame in called)


#: Loops of the standard library's servers, which wait for connections: (path suffix, function).
SERVES = (
    ("/socketserver.py", "serve_forever"),
    *((file, function) for file in knowledge.multiprocessing("managers") for function in ("serve_forever", "accepter")),
)
#: Functions that call the code of a job or request on a thread of their own: (path suffix, function).
DISPATCHES = (
    ("concurrent/futures/thread.py", "_worker"),
    ("concurrent/futures/process.py", "_process_worker"),
    *((file, "worker") for file in knowledge.multiprocessing("pool")),
    ("/socketserver.py", "process_request_thread"),
    ("/socketserver.py", "process_request"),
    ("anyio/_backends/_asyncio.py", "run"),
)


#: Where a native thread looks again and again for a lock of gevent's, which the process itself has (gevent 21.1-26.9).
_OF_THE_PROCESS = (("gevent/thread.py", "acquire"),)
#: Names of functions that ask for a lock.
_ASKS = ("acquire", "lock", "__enter__")


def is_asleep(thread: Thread) -> bool:
    """Return whether a thread is in a plain sleep."""
    return thread.wait is not None and thread.wait.kind == "sleep"


def asks_for_a_result(thread: Thread) -> bool:
    """Return whether a thread sleeps inside a library that the program has called: a retry, a back-off, a lock that is polled."""
    own = knowledge.own_frame(thread.python)
    return (
        is_asleep(thread)
        and own is not None
        and not knowledge.is_library(own)
        and knowledge.is_library(thread.python[0])
    )


def asks_for_lock(frames: Sequence[PythonFrame], asleep: bool) -> Optional[PythonFrame]:
    """Return the library's function in which a thread or task gets a lock that is kept elsewhere, such as by a server.

    It sleeps there between two attempts (``asleep``), or waits for the server's answer in a module of locks. ``frames``: its
    stack, innermost first.
    """
    called = itertools.takewhile(knowledge.is_library, frames)
    packaged = [frame for frame in called if not knowledge.is_stdlib(frame)]
    if any(knowledge.in_table(frame, _OF_THE_PROCESS) for frame in packaged):
        return None
    if asleep:
        return packaged[0] if packaged and packaged[0].function in _ASKS else None
    return next((frame for frame in packaged if frame.function in _ASKS and _is_of_locks(frame)), None)


def _is_of_locks(frame: PythonFrame) -> bool:
    """Return whether a frame is of a module of locks, as its name or its package's says."""
    return "lock" in "/".join(frame.file.split("/")[-2:])
