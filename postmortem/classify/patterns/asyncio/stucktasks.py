"""Tasks that nothing can wake any more, distinguished from those parked on purpose."""

from __future__ import annotations

import signal
from typing import Iterator, List, NamedTuple, Optional

from ....evidence import Loop, Process, PythonFrame, Task
from ....findings import Confidence, Template
from ....findings.found import Said
from ....waitgraph import Agent, Edge
from ...facts import clauses
from ...facts.forked import lost_helpers
from ...facts.knowledge import own_frame, receives_signals
from ...facts.view import View
from ...pattern import Match
from ...roots.calls import collects, is_inside_call, wants_an_answer
from ...roots.rest import loop_serves

#: Kinds of resources that a task holds: where the holder is not known, the cause was not read.
_HELD = frozenset(("async-lock", "async-semaphore", "pool"))
_AWAITS = Template("{agent} awaits {what}{at}, and nothing is left that could end the wait{more}")
_LIKEWISE = Template("; {count:n other task} {count:v wait} in the same way")
_BEHIND = Template("{count:n other} {count:v wait} behind this: {agents}")
#: Objects of threads, and variables, that a task can only poll.
_POLLED = ("event", "queue", "future")


class StuckTask(NamedTuple):
    """A task that nothing can wake."""

    agent: Agent
    edge: Edge  # the wait that nothing can end
    frame: Optional[PythonFrame]  # the program's line that awaits it
    confidence: Confidence
    parked: bool  # True: on purpose, since nothing waits for it


def stuck_tasks(view: View, process: Process) -> Iterator[StuckTask]:
    """Yield the stuck tasks at the ends of chains: they await an object that no known agent holds or serves."""
    graph = view.graph
    for task in process.tasks:
        agent = Agent(process.pid, task=task.id)
        stuck = graph.stuck(agent)
        edge = graph.blocking(agent) if stuck else None
        if stuck is None or edge is None or not (edge.kind.startswith("async-") or edge.kind in _POLLED) or _owed(edge):
            continue
        unknown_handlers = edge.everyone and process.signal_handlers is None
        confidence: Confidence = (
            "possible" if unknown_handlers or (stuck == "likely" and _supervised(process)) else stuck
        )
        receives = receives_signals(task.stack)  # whoever sends the signal ends that wait
        wanted = _wanted(view, process, agent, edge, confidence) if not receives else None
        yield StuckTask(agent, edge, own_frame(task.stack), wanted or confidence, wanted is None)


def _supervised(process: Process) -> bool:
    """Return whether the program enumerates all tasks, so that it may cancel those that wait too long."""
    return "all_tasks" in (process.cancels or ())


def _owed(edge: Edge) -> bool:
    """Return whether a known agent holds the resource or does the work."""
    return bool(edge.wakers) and not edge.signals and not edge.everyone


def mutual(waiting: List[StuckTask]) -> List[StuckTask]:
    """Return the tasks that wait for signals of one another; the others may wait by design, or behind them."""
    while True:
        agents = {t.agent for t in waiting}
        kept = [t for t in waiting if not agents.isdisjoint(set(t.edge.wakers) - set(t.edge.bystanders))]
        if len(kept) == len(waiting):
            return kept
        waiting = kept


def unsignalled(waiting: List[StuckTask]) -> List[StuckTask]:
    """Return the tasks whose waits none of those who refer to their objects ends; the others may wait for one of them."""
    return [t for t in waiting if t.edge.wakers and set(t.edge.wakers) <= set(t.edge.bystanders)]


def for_notifications(waiting: List[StuckTask]) -> bool:
    """Return whether all tasks wait to be notified on conditions: see missed-wakeup."""
    return bool(waiting) and all(t.edge.kind == "async-condition" for t in waiting)


def lost(view: View, process: Process, waiting: List[StuckTask]) -> Match:
    """Return the match of tasks that wait for what nothing can set or signal any more."""
    order = ("proven", "likely", "possible")
    waiting = sorted(waiting, key=lambda t: (t.frame is None, t.edge.kind != "async-future", order.index(t.confidence)))
    first, others = waiting[0], len(waiting) - 1
    behind = view.graph.behind(frozenset(t.agent for t in waiting))
    more = _LIKEWISE(count=others) if others else None
    facts: List[Said] = list(view.graph.reasons(*(t.agent for t in waiting[:8])))
    if behind:
        facts.append(_BEHIND(count=len(behind), agents=tuple(behind[:4])))
    # a library may have promised it whose threads a fork left behind: that is then the cause
    elsewhere = first.edge.kind in _HELD or bool(lost_helpers(view, process))
    return Match(
        confidence="likely" if first.confidence == "proven" and elsewhere else first.confidence,
        summary=_AWAITS(agent=first.agent, what=first.edge.what, at=clauses.at(first.frame), more=more),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(view.culprit_of(t.agent, t.frame) for t in waiting[:8] if t.frame is not None)),
        victims=tuple(view.victim_of(agent) for agent in behind),
        pid=process.pid,
    )


def apart(view: View, several: List[StuckTask]) -> List[StuckTask]:
    """Return the tasks, each at the innermost line of the program that none of the others shares.

    A shared line, such as a helper around a queue, is not to blame. A task without a line of its own keeps its line.
    """
    stacks = [[f for f in view.graph.places.stack(t.agent) if own_frame((f,)) is not None] for t in several]
    found = []
    for number, (task, stack) in enumerate(zip(several, stacks)):
        shared = {f for other, frames in enumerate(stacks) if other != number for f in frames}
        frame = own_frame([f for f in stack if f not in shared])
        found.append(task._replace(frame=frame or task.frame))
    return found


def alike(several: List[StuckTask], view: View) -> bool:
    """Return whether all tasks have the same stack, and wait for objects whose wakers are not all known.

    Such tasks may all be queueing for one thing: nothing shows that one of them is to wake another.
    """
    resources = [view.graph.places.resource(t.agent.pid, t.edge.resource) for t in several]
    known = all(resource is not None and resource.closed for resource in resources)
    return not known and len({view.graph.places.stack(t.agent) for t in several}) == 1


def _wanted(view: View, process: Process, agent: Agent, edge: Edge, confidence: Confidence) -> Optional[Confidence]:
    """Return the confidence that a task hangs; None if it is parked on purpose.

    A parked task is awaited by no agent, and its loop goes on with other things.
    """
    loop = _loop(view, agent)
    if loop is None or loop.tid is None or view.graph.stuck(Agent(process.pid, loop.tid)):
        return confidence
    if view.graph.is_awaited(agent):
        on_its_own = edge.kind == "async-event" and not edge.wakers and not _is_dead(view, process, loop)
        return "possible" if on_its_own and _only_supervised(view, agent) else confidence
    task = view.graph.places.task(agent)
    if task is not None and collects(task):
        return confidence
    if loop.main_task != agent.task or task is None:
        return "possible"
    deeper = sum(own_frame((frame,)) is not None for frame in task.stack) > 1
    resource = view.graph.places.resource(agent.pid, edge.resource)
    unnamed = resource is not None and resource.named is False
    if loop_serves(process, loop) and wants_an_answer(task):
        return "possible" if confidence == "possible" else "likely"
    if loop_serves(process, loop) or (unnamed and not is_inside_call(task)):
        return None
    return confidence if deeper and edge.kind == "async-future" else "possible"


def _only_supervised(view: View, agent: Agent) -> bool:
    """Return whether every waiter only supervises the task: gather, TaskGroup, the main task, or a thread that runs it.

    A task that serves until it is told to stop is awaited in the same way.
    """
    for waiter in view.graph.waiters(agent):
        task, place = view.graph.places.task(waiter), view.graph.places.by_pid.get(waiter.pid)
        loop = place.loops.get(task.loop or "") if task is not None and place is not None else None
        several = task is not None and task.wait is not None and len(task.wait.tasks) > 1
        if task is not None and not several and (loop is None or loop.main_task != task.id):
            return False
    return True


def _is_dead(view: View, process: Process, loop: Loop) -> bool:
    """Return whether a loop will never run anything again: whatever a task waits for by design does not come either.

    It has no timer, no descriptor and no signal handler, none of its tasks can go on, and its main task waits for others.
    """
    main = view.graph.places.task(Agent(process.pid, task=loop.main_task)) if loop.main_task is not None else None
    if main is None or main.wait is None or not main.wait.tasks or process.signal_handlers is None:
        return False
    if any(handler.signal != signal.SIGINT for handler in process.signal_handlers):  # trio always handles Ctrl-C
        return False
    if loop.scheduled != 0 or loop.watched != 0 or loop.ready or loop.signals:
        return False
    tasks = (task for task in process.tasks if task.loop == loop.id and task.state != "done")
    return all(
        _is_the_loops_own(task) or view.graph.stuck(Agent(process.pid, task=task.id)) == "proven" for task in tasks
    )


def _is_the_loops_own(task: Task) -> bool:
    """Return whether a task waits for whatever other threads hand to the loop, as the one of trio's entry queue does."""
    wait = task.wait
    return wait is not None and wait.kind == "queue" and wait.resource is None and wait.endless is True


def _loop(view: View, agent: Agent) -> Optional[Loop]:
    """Return the loop of a task; None if unknown."""
    task, place = view.graph.places.task(agent), view.graph.places.by_pid.get(agent.pid)
    return place.loops.get(task.loop or "") if task is not None and place is not None else None
