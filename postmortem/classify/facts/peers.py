"""What the processes at the other end of a socket or pipe may still do."""

from __future__ import annotations

from typing import FrozenSet, List, Optional, Set

from ...evidence import Process, Resource, Wait
from ...evidence.vocabulary import TaskWaitKind, WaitKind
from ...waitgraph import Agent
from .knowledge import SELECT_CALLS, own_frame
from .view import View

#: Waits for a signal, an item or a permit, which code of the same process gives; of threads those for an event or a queue are
#: of the kind of the condition inside.
_SIGNALS: FrozenSet[WaitKind] = frozenset(("condition", "semaphore"))
#: System calls that wait for a connection, or for one of several descriptors, a listening socket perhaps among them.
_ACCEPTS = SELECT_CALLS | {"accept", "accept4"}
#: Seconds: a wait that lasts longer is none at the end of which an answer is expected.
_SOON_S = 60.0
_TASK_SIGNALS: FrozenSet[TaskWaitKind] = frozenset(("condition", "event", "queue"))


def clients_of(server: Process) -> Set[int]:
    """Return the PIDs of the processes that are connected with a server."""
    return {end.pid for r in server.resources if r.kind == "socket" for end in r.ends} - {server.pid}


def is_other_end(one: Resource, other: Resource) -> bool:
    """Return whether two sockets are the ends of one connection."""
    return one.remote is not None and (one.local, one.remote) == (other.remote, other.local)


def is_with_itself(process: Process, socket: Resource) -> bool:
    """Return whether both ends of a connection are known, and are in one process alone."""
    return len(socket.ends) > 1 and {end.pid for end in socket.ends} == {process.pid}


def kept_out(view: View, server: Process) -> List[Process]:
    """Return the captured processes that wait, without a time limit, for a server that has not accepted their connections.

    Empty if a thread of the server waits for connections: it will accept them.
    """
    ports = set(map(str, server.listening or ()))
    listening = {one.id for one in server.resources if one.listening}
    links = {one.id for one in server.resources if one.kind == "socket" and one.remote is not None}
    waits = [thread.wait for thread in server.threads if thread.wait is not None and thread.wait.kind != "sleep"]
    if not ports or any(
        wait.resource in listening or (wait.syscall in _ACCEPTS and wait.resource not in links) for wait in waits
    ):
        return []
    return [one for one in view.processes if one is not server and _is_kept_out(view, one, server, ports)]


def _is_kept_out(view: View, client: Process, server: Process, ports: Set[str]) -> bool:
    """Return whether a thread of a client waits for the answer of a server that has no end of its connection."""
    resources = {one.id: one for one in client.resources}
    for thread in client.threads:
        wait = thread.wait
        link = resources.get(wait.resource or "") if wait is not None and wait.kind == "socket" else None
        if wait is None or link is None or not lasts(wait) or view.moves(thread):
            continue
        if port_of(link.remote) in ports and not any(is_other_end(link, one) for one in server.resources):
            return True
    return False


def lasts(wait: Wait) -> bool:
    """Return whether a wait has no time limit, or one far beyond what an answer takes."""
    return wait.endless is True or (wait.endless is False and not _ends_soon(False, wait.remaining_s, wait.timeout_s))


def by_network(resource: Optional[Resource]) -> bool:
    """Return whether a resource is a connection over the network: its peer has a port."""
    return resource is not None and port_of(resource.remote) is not None


def port_of(address: Optional[str]) -> Optional[str]:
    """Return what follows the last colon of a socket's address; None if there is none."""
    _host, colon, port = (address or "").rpartition(":")
    return port if colon and port else None


def server_of(view: View, process: Process) -> Optional[Process]:
    """Return a captured process that is no Python program, and that a process is connected with; None if there is none."""
    return next((one for one in view.processes if one.python is None and process.pid in clients_of(one)), None)


def answers_later(view: View, process: Process, resource: Optional[Resource]) -> bool:
    """Return whether code at the other end of a socket waits for a signal that may come, and may answer then.

    A thread of the program, such as a dispatcher's for one of its clients, that another one there is to signal; in a process
    that talks to itself a task, such as that of a long poll, or an event loop at the other end that a timer will wake.
    """
    if resource is None:
        return False
    if resource.peer_in_tree is True and _is_woken_soon(process, resource):
        return True
    pids = {waker.pid or process.pid for waker in resource.wakers}
    if resource.peer_in_tree is True and pids == {process.pid} and _has_waiting_task(view, process):
        return True
    return any(_has_waiting_thread(view, view.by_pid[pid]) for pid in pids if pid in view.by_pid)


def goes_on_soon(view: View, agent: Agent) -> bool:
    """Return whether a thread or task works, or is in a wait that a time limit ends soon."""
    thread, task = view.graph.places.thread(agent), view.graph.places.task(agent)
    if thread is not None:
        wait = thread.wait
        return wait is None or view.moves(thread) or _ends_soon(wait.endless, wait.remaining_s, wait.timeout_s)
    if task is None or task.wait is None:
        return False
    return _ends_soon(task.wait.endless, task.wait.remaining_s, task.wait.timeout_s)


def _ends_soon(endless: Optional[bool], remaining_s: Optional[float], timeout_s: Optional[float]) -> bool:
    """Return whether a wait ends within ``_SOON_S``; one of unknown length does not."""
    left = remaining_s if remaining_s is not None else timeout_s
    return endless is False and left is not None and left < _SOON_S


def _is_woken_soon(process: Process, resource: Resource) -> bool:
    """Return whether a timer soon wakes the loop that watches the other end of a connection of a process with itself."""
    ends = {other.id for other in process.resources if is_other_end(resource, other)}
    timers = (loop.next_timer_s for loop in process.loops if not ends.isdisjoint((*loop.sockets, *loop.descriptors)))
    return any(timer is not None and timer < _SOON_S for timer in timers)


def _has_waiting_task(view: View, process: Process) -> bool:
    waits = ((task.wait, Agent(process.pid, task=task.id)) for task in process.tasks)
    return any(w is not None and w.kind in _TASK_SIGNALS and view.graph.stuck(agent) is None for w, agent in waits)


def _has_waiting_thread(view: View, peer: Process) -> bool:
    known = {resource.id: resource for resource in peer.resources}
    for thread in peer.threads:
        wait = thread.wait
        if wait is None or wait.kind not in _SIGNALS or not wait.endless or own_frame(thread.python) is None:
            continue
        wanted = known.get(wait.resource or "")
        givers = [w for w in wanted.wakers if w.grade == "names"] if wanted is not None else []
        if any(view.graph.stuck(Agent(w.pid or peer.pid, w.tid, w.task)) is None for w in givers):
            return True
    return False
