"""Tasks that nobody can wake any more, told apart from those that are parked on purpose."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional

from ....evidence import Loop, Process, PythonFrame, Resource
from ....findings import Confidence
from ....waitgraph import Agent, Edge
from ...facts.knowledge import own_frame
from ...facts.view import View


class StuckTask(NamedTuple):
    agent: Agent
    edge: Edge  # what it will not get
    frame: Optional[PythonFrame]  # the program's line that awaits it
    confidence: Confidence
    parked: bool  # on purpose: nobody waits for it


def stuck_tasks(view: View, process: Process) -> Iterator[StuckTask]:
    """Tasks that wait for an object of asyncio's, not for somebody who is named: where chains of waits end."""
    graph = view.graph
    for task in process.tasks:
        agent = Agent(process.pid, task=task.id)
        stuck = graph.stuck(agent)
        edge = graph.blocking(agent) if stuck else None
        if stuck is None or edge is None or not edge.kind.startswith("async-") or _owed(edge):
            continue
        unknown_handlers = edge.everyone and process.signal_handlers is None
        confidence: Confidence = (
            "possible" if unknown_handlers or (stuck == "likely" and _supervised(process)) else stuck
        )
        wanted = _wanted(view, process, agent, edge, confidence)
        yield StuckTask(agent, edge, own_frame(task.stack), wanted or confidence, wanted is None)


def _supervised(process: Process) -> bool:
    """Does the program look for all its tasks? It may cancel those that wait for too long."""
    return "all_tasks" in (process.cancels or ())


def _owed(edge: Edge) -> bool:
    """Is there somebody who has it, or does the work?"""
    return bool(edge.wakers) and not edge.signals and not edge.everyone


def apart(view: View, several: List[StuckTask]) -> List[StuckTask]:
    """The same, each at the innermost line of the program where none of the others is: what they all go through, such as
    a helper around a queue, is nobody's fault. Those that differ nowhere stay where they are."""
    stacks = [[f for f in view.graph.places.stack(t.agent) if own_frame((f,)) is not None] for t in several]
    found = []
    for number, (task, stack) in enumerate(zip(several, stacks)):
        shared = {f for other, frames in enumerate(stacks) if other != number for f in frames}
        frame = own_frame([f for f in stack if f not in shared])
        found.append(task._replace(frame=frame or task.frame))
    return found


def alike(several: List[StuckTask], view: View) -> bool:
    """Do all wait at the same line, come the same way, for things of which it is not known who reaches them? They may as well
    queue for one thing: that each is what another waits for, nothing says."""
    resources = [view.graph.places.resource(t.agent.pid, t.edge.resource) for t in several]
    known = all(resource is not None and resource.closed for resource in resources)
    return not known and len({view.graph.places.stack(t.agent) for t in several}) == 1


def _wanted(view: View, process: Process, agent: Agent, edge: Edge, confidence: Confidence) -> Optional[Confidence]:
    """Return how sure it is that a task hangs; None when it is parked on purpose: nobody waits for it, and its loop goes on with
    other things."""
    loop = _loop(view, agent)
    if loop is None or loop.tid is None or view.graph.stuck(Agent(process.pid, loop.tid)):
        return confidence
    if view.graph.is_awaited(agent):
        on_its_own = edge.kind != "async-future" and not edge.wakers
        return "possible" if on_its_own and _only_supervised(view, agent) else confidence
    task = view.graph.places.task(agent)
    if loop.main_task != agent.task or task is None:
        return "possible"
    deeper = sum(own_frame((frame,)) is not None for frame in task.stack) > 1
    resource = view.graph.places.resource(agent.pid, edge.resource)
    if _serves(process, loop) or (resource is not None and resource.named is False):
        return None
    return confidence if deeper and edge.kind == "async-future" else "possible"


def _only_supervised(view: View, agent: Agent) -> bool:
    """Is everybody who waits for it one who started it beside others (gather, TaskGroup), the main task, or a thread that
    runs it? A task that serves until it is told to stop is waited for like that, too."""
    for waiter in view.graph.waiters(agent):
        task, place = view.graph.places.task(waiter), view.graph.places.by_pid.get(waiter.pid)
        loop = place.loops.get(task.loop or "") if task is not None and place is not None else None
        several = task is not None and task.wait is not None and len(task.wait.tasks) > 1
        if task is not None and not several and (loop is None or loop.main_task != task.id):
            return False
    return True


def _loop(view: View, agent: Agent) -> Optional[Loop]:
    task, place = view.graph.places.task(agent), view.graph.places.by_pid.get(agent.pid)
    return place.loops.get(task.loop or "") if task is not None and place is not None else None


def _serves(process: Process, loop: Loop) -> bool:
    resources = {r.id: r for r in process.resources}
    watched: List[Optional[Resource]] = [resources.get(name) for name in (*loop.descriptors, *loop.sockets)]
    return bool(process.listening) or any(r is not None and (r.listening or r.accepted) for r in watched)
