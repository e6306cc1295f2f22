"""Events beside the graph's agents that might still end a wait: reasons not to call an agent stuck for certain.

- A Python signal handler runs in the main thread, whatever that waits for, and may raise, release or signal.
- Tasks, and futures of executors, may be cancelled: by any code of the program that cancels, or by the end of the main
  task of their loop.
- Native threads may call back into Python with pointers that no reference count records.
"""

from __future__ import annotations

import signal
from typing import Dict, FrozenSet, Mapping, Optional, Set, Tuple

from ..evidence import Process, fact
from .agents import Agent, Place, Places
from .edges import Edge, EdgeKind

#: Sent by people, service managers or terminals to end or suspend a program: not relied on to end a wait.
_ENDING = frozenset((
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH,
    signal.SIGTTIN, signal.SIGTTOU,
))  # fmt: skip
_CANCELLABLE: FrozenSet[EdgeKind] = frozenset(("future", "async-future"))


def handles(process: Optional[Process]) -> Optional[bool]:
    """Return whether the program has a signal handler that could signal something; None if unknown."""
    if process is None or process.signal_handlers is None:
        return None
    return not all(handler.quiet for handler in process.signal_handlers)


def interrupted(place: Place, edge: Edge, has_children: bool) -> bool:
    """Return whether the handler of a signal that is no request to end may interrupt the wait.

    One that only sets a flag does not: the wait goes on when it returns.

    - A thread: Python's handlers run in the main thread.
    - A task: its loop runs handlers as callbacks, which may reach every task.
    - A process as a whole, or one without Python: any signal that it catches.
    """
    quiet = _ENDING | (frozenset() if has_children else {signal.SIGCHLD})
    process, task = place.process, place.tasks.get(edge.waiter.task or "")
    if edge.waiter.is_process or (process.python is None and not process.signal_handlers):
        return bool(set(process.catches or ()) - quiet)
    if edge.waiter.tid is not None and edge.waiter.tid != (place.main.tid if place.main is not None else None):
        return False
    own = {handler.signal for handler in process.signal_handlers or () if not handler.quiet}
    loop = place.loops.get(task.loop or "") if task is not None else None
    return bool((own | set(loop.signals or () if loop is not None else ())) - quiet)


def weakened(
    edges: Mapping[Agent, Tuple[Edge, ...]], places: Places, moving: Set[Agent]
) -> Dict[Agent, Tuple[Edge, ...]]:
    """Return the edges, marked as open to every event that could end them as far as known."""
    cancelling = {pid for pid, place in places.by_pid.items() if place.process.cancels != ()}
    native = {pid for pid, place in places.by_pid.items() if _has_native_mover(place, moving)}
    found: Dict[Agent, Tuple[Edge, ...]] = {}
    for agent, several in edges.items():
        place = places.by_pid.get(agent.pid)
        cancels = agent.pid in cancelling and (agent.task is not None or any(e.kind in _CANCELLABLE for e in several))
        if place is not None and (cancels or _may_be_left(place, agent, moving)):
            found[agent] = tuple(e._replace(everyone=True) for e in several)
        elif agent.pid in native and any(e.signals for e in several):
            found[agent] = tuple(e._replace(outside=(fact("native-code"),)) if e.signals else e for e in several)
        else:
            found[agent] = several
    return found


def without_bystanders(edges: Mapping[Agent, Tuple[Edge, ...]]) -> Mapping[Agent, Tuple[Edge, ...]]:
    """Return the edges without wakers that only refer to what is awaited; the same mapping if no edge differs."""
    found: Dict[Agent, Tuple[Edge, ...]] = {}
    for agent, several in edges.items():
        if any(edge.bystanders or edge.only_named for edge in several):
            found[agent] = tuple(_strict(edge) for edge in several)
    return {**edges, **found} if found else edges


def _strict(edge: Edge) -> Edge:
    wakers = tuple(waker for waker in edge.wakers if waker not in edge.bystanders) if edge.bystanders else edge.wakers
    return edge._replace(wakers=wakers, everyone=edge.everyone and not edge.only_named)


def is_far(edge: Edge, far_s: float) -> bool:
    """Return whether the limit of a wait ends it only ``far_s`` seconds after the capture, or later."""
    return edge.endless is False and edge.remaining_s is not None and edge.remaining_s >= far_s


def _may_be_left(place: Place, agent: Agent, moving: Set[Agent]) -> bool:
    """Return whether the agent is a task whose loop's main task can move: when that ends, all others are cancelled."""
    task = place.tasks.get(agent.task or "")
    loop = place.loops.get(task.loop or "") if task is not None else None
    if loop is None or loop.main_task is None or loop.main_task == agent.task:
        return False
    return Agent(place.pid, task=loop.main_task) in moving


def _has_native_mover(place: Place, moving: Set[Agent]) -> bool:
    """Return whether a thread unknown to the interpreter may move."""
    if place.process.python is None:
        return False
    return any(t.ident is None and not t.python and Agent(place.pid, t.tid) in moving for t in place.process.threads)
