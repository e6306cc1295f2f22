"""The gates of one process as evidence: who waits for which, beside the object that each sleeps on."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...cpython.frames.frame import Frame
from ...evidence import HeldLock, PythonFrame, Resource, Task, TaskWait, Thread
from ...evidence import replace as changed
from ..ownership.gates import Gates, Waiting
from ..ownership.reached import Agent
from ..waits.locks import LockWaits
from ..waits.tasks import TasksRead
from .context import PythonContext
from .threads import ThreadsRead


class GateBook(NamedTuple):
    """Gates by the agents that wait for them, those that threads hold, and their resources."""

    gates: Mapping[Agent, str]
    held: Mapping[int, Sequence[HeldLock]]
    resources: Tuple[Resource, ...]

    def thread(self, thread: Thread) -> Thread:
        """Return a thread with the gate that it waits for."""
        gate = self.gates.get(Agent(tid=thread.tid))
        if gate is None or thread.wait is None:
            return thread
        return changed(thread, wait=changed(thread.wait, gate=gate))

    def task(self, task: Task) -> Task:
        """Return a task with the gate that it waits for; a task of another framework than asyncio gets a wait."""
        gate = self.gates.get(Agent(task=task.id))
        if gate is None:
            return task
        return changed(task, wait=changed(task.wait or TaskWait("other"), gate=gate))

    def settled(
        self, resources: Sequence[Resource], threads: Sequence[Thread], tasks: Sequence[Task]
    ) -> Tuple[Resource, ...]:
        """Return the gates with who can end all waits behind them, once that is known of the inner objects.

        A waiter goes on only if the object that it sleeps on is signalled.
        """
        known = {resource.id: resource for resource in resources}
        inner: Dict[str, List[Optional[Resource]]] = {}
        for thread in threads:
            if thread.wait is not None and thread.wait.gate is not None:
                inner.setdefault(thread.wait.gate, []).append(known.get(thread.wait.resource or ""))
        for task in tasks:
            if task.wait is not None and task.wait.gate is not None:
                inner.setdefault(task.wait.gate, []).append(known.get(task.wait.resource or ""))
        return tuple(_closed(gate, inner.get(gate.id, ())) for gate in self.resources)


def _closed(gate: Resource, inner: Sequence[Optional[Resource]]) -> Resource:
    if gate.closed or not inner:
        return gate
    several = {one.id: one for one in inner if one is not None and one.closed}
    if any(one is None or not one.closed for one in inner):
        return gate
    holders = {(w.tid, w.task) for w in gate.wakers}
    more = [w for one in several.values() for w in one.wakers if (w.tid, w.task) not in holders]
    because = tuple(dict.fromkeys(fact for one in several.values() for fact in one.because))
    return changed(gate, closed=True, wakers=(*gate.wakers, *dict.fromkeys(more)), because=(*gate.because, *because))


def find_gates(context: PythonContext, threads: ThreadsRead, waits: LockWaits, tasks: TasksRead) -> GateBook:
    """Return the gates of a process."""
    states = {**tasks.states, **tasks.others}
    stacks: Dict[Agent, Sequence[Frame]] = {
        Agent(tid=tid): state.frames for tid, state in sorted(context.threads.states.items())
    }
    stacks.update({Agent(task=ident): state.frames for ident, state in states.items() if state.state == "pending"})
    waiting = [*_of_threads(threads, waits), *_of_tasks(tasks)]
    search = Gates(context)
    search.find(waiting, stacks, {state.address: ident for ident, state in states.items()})
    return GateBook(search.gates, search.held, search.resources)


def _of_threads(threads: ThreadsRead, waits: LockWaits) -> List[Waiting]:
    kinds, addresses = waits.primitives.kinds(), waits.primitives.addresses()
    found = []
    for thread, frames in threads.drafts:
        resource = thread.wait.resource if thread.wait is not None and not thread.wait.over else None
        if resource in kinds:
            found.append(Waiting(Agent(tid=thread.tid), frames, addresses.get(resource), kinds[resource]))
    return found


def _of_tasks(tasks: TasksRead) -> List[Waiting]:
    kinds, addresses, found = tasks.awaits.kinds(), tasks.awaits.addresses(), []
    states = {**tasks.states, **tasks.others}
    by_id = {task.id: task for task in tasks.tasks}
    for task in tasks.tasks:
        agent = Agent(task=task.id)
        inner = _of_wait_for(task, by_id)
        resource = inner.resource if inner is not None else None
        if task.id in states and resource in kinds and not task.ready:
            found.append(Waiting(agent, states[task.id].frames, addresses.get(resource), kinds[resource]))
        elif task.id in tasks.others and task.state == "pending" and task.ready is False and task.wait is None:
            found.append(Waiting(agent, tasks.others[task.id].frames, None, None))
    return found


def _of_wait_for(task: Task, by_id: Mapping[str, Task]) -> Optional[TaskWait]:
    """Return a task's wait; up to 3.11 that of the task into which its ``wait_for`` has put what it awaits."""
    wait = task.wait
    first = task.stack[0] if task.stack else None
    if wait is None or len(wait.tasks) != 1 or first is None or first.function != "wait_for" or not _is_asyncios(first):
        return wait
    inner = by_id.get(wait.tasks[0])
    if inner is None or not inner.stack or not all(map(_is_asyncios, inner.stack)):
        return wait
    return inner.wait


def _is_asyncios(frame: PythonFrame) -> bool:
    return "/asyncio/" in frame.file
