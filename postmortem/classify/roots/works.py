"""Whether anything in the process tree works, or listens to the world outside, while the program waits."""

from __future__ import annotations

from typing import FrozenSet, Iterable

from ...evidence import Loop, Process, Task, Thread
from ...evidence.vocabulary import WaitKind
from ...waitgraph import GOES_ON, Agent, Edge
from ..facts import native
from ..facts.view import WORKS_SHARE, View
from .rest import is_native, serves

#: Waits that something outside of the process may end.
_OUTSIDE: FrozenSet[WaitKind] = frozenset(("socket", "pipe", "file", "process", "other", "signal", "event-loop"))


def nobody_works(view: View, process: Process, way: Iterable[Agent], edge: Edge) -> bool:
    """Return whether nothing is left that could end a wait inside a process: nothing works, none listens, none may signal.

    - ``way``: the agents that wait for the end of this wait
    - ``edge``: the wait

    Without an observation window, as in a lone core, what runs at that moment is at work.
    """
    if edge.endless is False or process.signal_handlers is None or (process.signal_handlers and may_leave(view, edge)):
        return False
    if any(loop.watched != 0 or has_timers(process, loop) for loop in process.loops):
        return False  # a peer, or a timer, may end what a task or callback of the loop waits for
    tasks = [task for task in process.tasks if Agent(process.pid, task=task.id) not in set(way)]
    if any(_goes_on(view, process, task, edge) for task in tasks):
        return False
    if any(view.graph.stuck(agent) is None for agent in edge.wakers if agent not in edge.bystanders):
        return False
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource)
    if resource is not None and any(
        waker.grade == "names" and waker.tid is None and waker.task is None for waker in resource.wakers
    ):
        return False
    waiting = set(way)
    others = [thread for thread in process.threads if Agent(process.pid, thread.tid) not in waiting]
    elsewhere = [thread for other in view.processes if other is not process for thread in other.threads]
    return not any(_may_act(view, process, thread, edge) for thread in others) and not any(
        works(view, t) for t in elsewhere
    )


def may_leave(view: View, edge: Edge) -> bool:
    """Return whether a wait is repeated by a loop that tests something else, too: a signal handler may end that loop."""
    waiter = view.graph.places.thread(edge.waiter) or view.graph.places.task(edge.waiter)
    wait = waiter.wait if waiter is not None else None
    return wait is not None and wait.polls_s is not None and wait.endless is not True


def _may_act(view: View, process: Process, thread: Thread, edge: Edge) -> bool:
    """Return whether a thread works, may be woken from outside, or goes on by itself to code that may end the wait."""
    if works(view, thread):
        return True
    if is_native(thread):
        return _may_signal(view, thread, edge)
    if view.idle(thread):
        return False
    if serves(view, process, thread):
        return True
    wait, agent = thread.wait, Agent(process.pid, thread.tid)
    if wait is None:
        return True
    if wait.kind == "sleep" or wait.endless is False:
        return agent not in edge.bystanders and not (agent not in edge.wakers and _is_graded(view, edge))
    if wait.kind not in _OUTSIDE:
        return False
    edges = view.graph.edges.get(agent, ())
    own = all(waker.pid == process.pid for edge in edges for waker in edge.wakers)
    return not edges or not own or any(edge.outside or not edge.wakers for edge in edges)


def _may_signal(view: View, thread: Thread, edge: Edge) -> bool:
    """Return whether a native thread goes on by itself, in the library whose native object is waited for."""
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource)
    waiter = view.graph.places.thread(edge.waiter)
    if resource is None or resource.native is not True or waiter is None:
        return False
    goes_on = thread.wait is None or thread.wait.kind == "sleep" or thread.wait.endless is False
    inside = native.called(waiter)[:1]
    return goes_on and any(native.frames_of(thread, frame.module) for frame in inside)


def has_timers(process: Process, loop: Loop) -> bool:
    """Return whether a loop may have timers that are not those of its tasks' sleeps and time limits."""
    limits = [task for task in process.tasks if task.loop == loop.id and task.wait is not None]
    known = sum(task.wait is not None and (task.wait.kind == "sleep" or task.wait.endless is False) for task in limits)
    return loop.scheduled is None or loop.scheduled > known


def _goes_on(view: View, process: Process, task: Task, edge: Edge) -> bool:
    """Return whether a task runs, or goes on by itself to code that may end the wait."""
    if task.state == "done":
        return False
    wait, agent = task.wait, Agent(process.pid, task=task.id)
    if wait is None or task.ready or task.state == "running":
        return True
    if wait.kind == "sleep" or wait.endless is False:
        return agent not in edge.bystanders and not (agent not in edge.wakers and _is_graded(view, edge))
    return wait.kind in ("descriptor", "process", "other")


def _is_graded(view: View, edge: Edge) -> bool:
    """Return whether the code of all agents was examined for what may end a wait, so that the others cannot."""
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource)
    return resource is not None and any(waker.grade is not None for waker in resource.wakers)


def works(view: View, thread: Thread) -> bool:
    """Return whether a thread computes, or wakes more often than a heartbeat does."""
    return (view.cpu_share(thread) or 0.0) > WORKS_SHARE or (view.switches(thread) or 0.0) >= GOES_ON
