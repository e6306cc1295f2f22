"""The path from a waiting agent to the end of its wait, along what other agents owe it."""

from __future__ import annotations

from itertools import islice
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from ...evidence import Process, Resource, Thread
from ...waitgraph import Agent, Edge, Place
from ...waitgraph.edges import EdgeKind
from ..facts.knowledge import is_library, request_of
from ..facts.peers import port_of
from ..facts.view import View
from .rest import asks_for_a_result, awaits_request, serves

_MOST = 60
#: Kinds of waits for the result of somebody's work: a main thread in one of them does not keep a server alive.
RESULTS: FrozenSet[EdgeKind] = frozenset(("future", "async-future", "pool-result"))


class Way(NamedTuple):
    """A path of agents, each of which waits for the next; the last one is its end.

    ``edge`` is the wait of the last agent, which no agent owes it; None if the last agent runs, sleeps, or is in a cycle.
    ``edges[i]`` is the wait of ``agents[i]`` for ``agents[i + 1]``.
    """

    agents: Tuple[Agent, ...]
    edges: Tuple[Edge, ...]
    edge: Optional[Edge] = None
    cycle: Tuple[Edge, ...] = ()  # the waits of a cycle at the end of the path

    @property
    def start(self) -> Agent:
        """Return the first agent."""
        return self.agents[0]

    @property
    def end(self) -> Agent:
        """Return the last agent."""
        return self.agents[-1]


def follow(view: View, start: Agent) -> Way:
    """Follow the wait of an agent to its root."""
    agents: List[Agent] = [start]
    edges: List[Edge] = []
    seen = {start}
    while len(agents) < _MOST:
        edge, owing = _step(view, agents[-1])
        if edge is None:
            break
        if owing is None:
            return Way(tuple(agents), tuple(edges), edge)
        if owing in seen:
            return _closed(view, agents, (*edges, edge), agents.index(owing))
        edges.append(edge)
        agents.append(owing)
        seen.add(owing)
    return Way(tuple(agents), tuple(edges))


def _step(view: View, agent: Agent) -> Tuple[Optional[Edge], Optional[Agent]]:
    """Return an agent's wait and who owes its end, found once."""
    steps: Dict[Agent, Tuple[Optional[Edge], Optional[Agent]]] = view.remembered.setdefault("steps", {})  # type: ignore[assignment]
    if agent not in steps:
        edge = telling(view, agent)
        steps[agent] = edge, _owing(view, edge) if edge is not None else None
    return steps[agent]


def _closed(view: View, agents: Sequence[Agent], edges: Tuple[Edge, ...], back: int) -> Way:
    """Return a path that comes back to its agent number ``back``: a cycle, unless one of its waits is for a mere signal.

    A signal that the code of only one agent can give counts as owed by that agent.
    """
    at = next(
        (at for at in range(back, len(edges)) if edges[at].signals and only_able(view, edges[at], named=True) is None),
        None,
    )
    if at is None:
        return Way(tuple(agents), edges[:-1], None, edges[back:])
    return Way(tuple(agents[: at + 1]), edges[:at], edges[at])


def telling(view: View, agent: Agent) -> Optional[Edge]:
    """Return the wait to follow: a task's turn on a blocked loop before what it awaits; None if the agent can go on."""
    several = view.graph.edges.get(agent, ())
    thread = view.graph.places.thread(agent)
    if thread is not None and thread.wait is not None and thread.wait.kind != "gil" and view.computes(thread):
        return None  # it only passes through the wait that it was found in
    turn = next((edge for edge in several if edge.kind == "turn" and _blocked(view, edge)), None)
    return turn or next((edge for edge in several if edge.kind != "turn"), None) or next(iter(several), None)


def _blocked(view: View, turn: Edge) -> bool:
    """Return whether the loop's thread waits for something else than its loop's events or the GIL."""
    threads = [view.graph.places.thread(agent) for agent in turn.wakers]
    return any(t is not None and t.wait is not None and t.wait.kind not in ("event-loop", "gil") for t in threads)


def _owing(view: View, edge: Edge) -> Optional[Agent]:
    """Return the agent that owes the end of a wait: a holder, a runner, an awaited task, a child; None if nobody does.

    Of several, one that cannot move comes first, and threads and tasks before whole processes.
    """
    if edge.gone or view.graph.heeds_signals(edge):
        return None
    if edge.kind == "event-loop":
        return _main_task(view, edge.waiter)
    if edge.kind == "pool" and _has_parts(view, edge):
        return None
    if edge.signals or _merely_refer(view, edge):
        return hindered(view, edge)
    wakers = [agent for agent in edge.wakers if agent != edge.waiter and agent != Agent(edge.waiter.pid)]
    wakers = wakers or _listening(view, edge)
    if edge.kind in ("future", "pool-result"):
        wakers = [agent for agent in wakers if not _serves(view, agent)]  # an idle worker works on no result
        wakers = wakers or _workers(view, edge)
    wakers.sort(key=lambda agent: (agent.is_process, view.graph.stuck(agent) is None, _goes_on(view, agent)))
    for waker in wakers:
        inside = waker if not waker.is_process else _inside(view, edge, waker)
        if inside is not None:
            return inside
    return None


def _workers(view: View, edge: Edge) -> List[Agent]:
    """Return the worker processes of the pool that is to provide a result, those at work first; the idle ones work on none."""
    place = view.graph.places.by_pid.get(edge.waiter.pid)
    tids = {agent.tid for agent in edge.wakers if agent.pid == edge.waiter.pid}
    pools = place.process.pools if place is not None else ()
    pids = [pid for pool in pools if tids & set(pool.threads) for pid in pool.processes if pid not in pool.idle]
    workers = [view.by_pid[pid] for pid in pids if pid in view.by_pid]
    return [Agent(one.pid) for one in sorted(workers, key=lambda one: not _at_work(view, one))][:_MOST]


def _listening(view: View, edge: Edge) -> List[Agent]:
    """Return the process of the tree that listens where a connection leads that it has not accepted yet.

    Where a server and its workers share the listening socket, it is the one that is at work.
    """
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource) if edge.kind == "socket" else None
    port = port_of(resource.remote) if resource is not None else None
    if port is None:
        return []
    others = [p for p in view.processes if p.pid != edge.waiter.pid]
    listening = [p for p in others if any(port_of(r.local) == port for r in p.resources if r.listening)]
    shared = [p for p in others if port in map(str, p.listening or ()) and _at_work(view, p)]
    return [Agent(p.pid) for p in (listening or shared)][:1]


def _at_work(view: View, process: Process) -> bool:
    """Return whether a thread of a process runs Python code."""
    return any(t.python and (t.wait is None or view.computes(t)) for t in process.threads)


def _serves(view: View, agent: Agent) -> bool:
    """Return whether an agent is a thread that waits for jobs or clients."""
    thread = view.graph.places.thread(agent)
    return thread is not None and serves(view, view.by_pid[agent.pid], thread)


def _awaits_request(view: View, agent: Agent) -> bool:
    """Return whether an agent is a task of a server between two requests, which holds nobody up."""
    task, process = view.graph.places.task(agent), view.by_pid.get(agent.pid)
    return task is not None and process is not None and awaits_request(view, process, task)


def _goes_on(view: View, agent: Agent) -> bool:
    """Return whether a task moved over the window or only sleeps, so that another one rather holds the waiter up."""
    task = view.graph.places.task(agent)
    return task is not None and (bool(task.moved) or (task.wait is not None and task.wait.kind == "sleep"))


def _merely_refer(view: View, edge: Edge) -> bool:
    """Return whether the wakers of a lock without a known holder only refer to it."""
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource)
    if resource is None or not resource.wakers or resource.owner_tid is not None or resource.owner_task is not None:
        return False
    return resource.owner_pid is None and all(waker.role in ("reach", "callback") for waker in resource.wakers)


def hindered(view: View, edge: Edge) -> Optional[Agent]:
    """Return an agent that is to signal the waiter, but waits for something else itself; None if there is none.

    One that can never move, where the waiter cannot either; else the only one whose code may end the wait. If that computes,
    it has not come to that code yet.
    """
    if view.graph.stuck(edge.waiter) is not None:
        perhaps: List[Agent] = [*edge.wakers[:_MOST], *(_held_up(view, edge.waiter) if edge.everyone else ())]
        perhaps.sort(key=lambda one: one in edge.bystanders)  # those whose code may end the wait first
        for waker in (one for one in perhaps if not one.is_process and one != edge.waiter):
            own = telling(view, waker) if view.graph.stuck(waker) is not None else None
            if own is not None and not own.signals and own.kind != "turn":
                return waker
        return None
    able = only_able(view, edge, beside_servers=True)
    thread = view.graph.places.thread(able) if able is not None else None
    owes = thread is not None and only_able(view, edge, named=True) is not None
    if thread is not None and owes and (asks_for_a_result(thread) or view.computes(thread)):
        return able
    own = (
        telling(view, able)
        if able is not None and not _serves(view, able) and not _awaits_request(view, able)
        else None
    )
    return (
        able if own is not None and own.resource != edge.resource and own.kind not in ("event-loop", "turn") else None
    )


def _held_up(view: View, agent: Agent) -> List[Agent]:
    """Return the threads of an agent's process that wait for a known holder, or for one that has ended."""
    place = view.graph.places.by_pid.get(agent.pid)
    threads = [Agent(agent.pid, tid) for tid in islice(place.threads, _MOST)] if place is not None else []
    waits = ((one, telling(view, one)) for one in threads)
    return [
        one for one, edge in waits if edge is not None and (edge.gone or edge.named) and not _receives(view, one, edge)
    ]


def _receives(view: View, agent: Agent, edge: Edge) -> bool:
    """Return whether a thread without code of the program reads what other processes send, as a library's receivers do."""
    thread = view.graph.places.thread(agent)
    return edge.kind in ("pipe", "socket") and thread is not None and all(map(is_library, thread.python))


def _has_parts(view: View, edge: Edge) -> bool:
    """Return whether a pool has parts left by its own count, so that those who have some owe nothing."""
    pool = view.graph.places.resource(edge.waiter.pid, edge.resource)
    return pool is not None and bool(pool.value)


def only_able(view: View, edge: Edge, *, named: bool = False, beside_servers: bool = False) -> Optional[Agent]:
    """Return the only thread or task whose code may end a wait; None if there are several, or that is unknown.

    - ``named``: only if its code is known to do so
    - ``beside_servers``: also if others might, but serve clients, and its code alone is known to do so
    """
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource)
    able = [waker for waker in edge.wakers if waker not in edge.bystanders]
    if resource is not None and len(able) > 1 and beside_servers:
        able = _with_code(view, resource, able)
    if resource is None or len(able) != 1 or able[0].is_process:
        return None
    if any(w.tid is None and w.task is None and w.grade != "refers" for w in resource.wakers):
        return None
    names = any(Agent(edge.waiter.pid, w.tid, w.task) == able[0] and w.grade == "names" for w in resource.wakers)
    return able[0] if names or not named else None


def _with_code(view: View, resource: Resource, able: List[Agent]) -> List[Agent]:
    """Return the only agent whose code is known to end a wait, if all others serve: they could do so only for a client."""
    pid = able[0].pid
    sure = [
        one for one in able if any(Agent(pid, w.tid, w.task) == one and w.grade == "names" for w in resource.wakers)
    ]
    return sure if len(sure) == 1 and all(one in sure or _serves(view, one) for one in able) else able


def _main_task(view: View, agent: Agent) -> Optional[Agent]:
    """Return the main task of the loop that a thread runs; None if it has none or has ended."""
    place = view.graph.places.by_pid.get(agent.pid)
    loop = place.loop_of.get(agent.tid or 0) if place is not None else None
    task = place.tasks.get(loop.main_task or "") if place is not None and loop is not None else None
    return Agent(agent.pid, task=task.id) if task is not None and task.state != "done" else None


def _inside(view: View, edge: Edge, process: Agent) -> Optional[Agent]:
    """Return the thread of another process to follow; None if it only happens to have the other end, or only serves.

    It is the main thread, or where that waits for whoever comes next, the only other thread that is held up.
    """
    place = view.graph.places.by_pid.get(process.pid)
    main = place.main if place is not None else None
    if place is None or main is None:
        return None
    asked = _asked_of_manager(view, edge, place)
    if asked is not None:
        return asked
    if main.wait is None or view.computes(main):
        return Agent(process.pid, main.tid)
    if _waits_for_anyone(view, place, main) or (main.wait.kind == "sleep" and _is_served_beside(view, edge, place)):
        held_up = [
            thread for thread in place.process.threads if thread is not main and _is_held_up(view, place, thread)
        ]
        if len(held_up) == 1:
            return Agent(process.pid, held_up[0].tid)
        return Agent(process.pid, main.tid) if edge.kind == "process" and not _is_served(main) else None
    if edge.kind in ("pipe", "socket", "descriptors") and _reads_too(view, edge, process.pid, main):
        return None
    return Agent(process.pid, main.tid)


def _asked_of_manager(view: View, edge: Edge, place: Place) -> Optional[Agent]:
    """Return a thread of a multiprocessing manager that runs the method which the waiter asks for; None if there is none.

    A manager has a thread for each client. Those in one method are taken to wait for the same.
    """
    client = view.graph.places.thread(edge.waiter)
    frames = client.python if client is not None else ()
    return next((Agent(place.pid, t.tid) for t in place.process.threads if request_of(frames, t.python)), None)


def _waits_for_anyone(view: View, place: Place, main: Thread) -> bool:
    """Return whether the main thread of a process waits for whichever client comes next, or for a signal to end."""
    wait = main.wait
    if wait is None:
        return False
    several = view.graph.edges.get(Agent(place.pid, main.tid), ())
    signalled = any(edge.signals and edge.kind not in RESULTS for edge in several)
    return _is_served(main) or signalled


def _is_served_beside(view: View, edge: Edge, place: Place) -> bool:
    """Return whether an event loop of a process has the other end of a connection, or listens where it leads."""
    ours = view.graph.places.resource(edge.waiter.pid, edge.resource) if edge.kind == "socket" else None
    if ours is None or port_of(ours.remote) is None:
        return False
    theirs = [place.resources[name] for loop in place.process.loops for name in loop.sockets if name in place.resources]
    return any(
        one.remote == ours.local or (one.listening and port_of(one.local) == port_of(ours.remote)) for one in theirs
    )


def _is_served(thread: Thread) -> bool:
    """Return whether a thread waits for connections or for its loop's events."""
    wait = thread.wait
    return wait is not None and (wait.kind == "event-loop" or wait.syscall in ("accept", "accept4"))


def _is_held_up(view: View, place: Place, thread: Thread) -> bool:
    """Return whether a thread waits for something that another agent owes it, or that is lost."""
    several = view.graph.edges.get(Agent(place.pid, thread.tid), ())
    return bool(thread.python) and any(edge.verb == "wants" or edge.kind == "future" for edge in several)


def _reads_too(view: View, edge: Edge, pid: int, main: Thread) -> bool:
    """Return whether the other process waits for the same pipe, so that it owes nothing."""
    key = _key(view, edge.waiter.pid, edge.resource)
    return key is not None and main.wait is not None and key == _key(view, pid, main.wait.resource)


def _key(view: View, pid: int, ident: Optional[str]) -> Optional[str]:
    resource = view.graph.places.resource(pid, ident)
    return resource.key if resource is not None else None
