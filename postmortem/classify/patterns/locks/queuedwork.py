"""Workers of thread pools that wait for jobs still queued in their own pool or in another one."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .... import sourcepaths
from ....evidence import Pool, Process, PythonFrame, Resource, Thread, Waker
from ....waitgraph import Agent, Edge
from ...facts import knowledge
from ...facts.peers import is_with_itself
from ...facts.view import WORKS_WAKES, View
from ...roots.rest import in_request, serves
from ...roots.walk import follow, telling

#: Seconds: a wait that gives up later than that keeps its thread.
LONG_S = 60.0
#: Most agents visited on the way from a worker to the job that it needs.
_FOLLOWED = 300
#: Kinds whose threads run the jobs; the threads of a process pool only hand them out and collect what came of them.
OF_THREADS = ("ThreadPoolExecutor", "twisted.ThreadPool")


class Link(NamedTuple):
    """A worker, and the queued job without which it cannot go on."""

    worker: Agent
    wait: Edge  # the worker's own wait
    via: Tuple[Agent, ...]  # tasks and threads between it and the agent that waits for the job itself, nearest first
    job: Resource  # the future of the job
    pool: Pool  # the pool whose workers alone could run it


Links = Dict[str, List[Link]]


def stuck_pools(view: View, process: Process) -> List[Tuple[List[Pool], List[Link]]]:
    """Return groups of pools in which every worker is stuck, each on jobs that only workers of the group could run.

    Most groups are a single pool, whose workers wait for its own queue.
    """
    own = [pool for pool in process.pools if pool.kind in OF_THREADS and pool.threads]
    stuck = [pool for pool in own if all(map(view.graph.stuck, workers(process, pool)))]
    links = {pool.id: _links(view, process, pool, stuck) for pool in stuck}
    reached = {pool.id: _reached(pool.id, links) for pool in stuck}
    groups: List[Tuple[List[Pool], List[Link]]] = []
    told: Set[str] = set()
    for pool in stuck:
        if pool.id in told or pool.id not in reached[pool.id]:
            continue
        group = [p for p in stuck if p.id in reached[pool.id] and pool.id in reached[p.id]]
        ids = {p.id for p in group}
        told |= ids
        groups.append((group, [link for p in group for link in links[p.id] if link.pool.id in ids]))
    return groups


def queued_behind(view: View, process: Process, pool: Pool) -> List[Tuple[Agent, Edge, Agent]]:
    """Return for each worker (worker, its wait, an agent that is to end it) where that agent waits for the pool's own queue.

    Empty unless that holds for every worker: the agent waits for a job that only a worker of the pool could run.
    """
    own = set(workers(process, pool))
    found: List[Tuple[Agent, Edge, Agent]] = []
    for worker in own:
        edge = telling(view, worker)
        able = (
            [one for one in edge.wakers if one not in edge.bystanders and not one.is_process]
            if edge is not None
            else []
        )
        able += [*_coroutines(view, process, worker), *_handlers(view, process, edge)]
        behind = next((one for one in able if one not in own and _needs_queue(view, one, pool)), None)
        if edge is None or behind is None or view.graph.is_limited(edge):
            return []
        found.append((worker, edge, behind))
    return sorted(found)


def _coroutines(view: View, process: Process, worker: Agent) -> List[Agent]:
    """Return the tasks for one of which a worker waits in a function that runs a coroutine on another thread's loop."""
    thread = view.graph.places.thread(worker)
    bridges = thread is not None and any(knowledge.in_table(frame, knowledge.BRIDGES) for frame in thread.python)
    return [Agent(process.pid, task=task.id) for task in process.tasks if task.state == "pending"] if bridges else []


def _handlers(view: View, process: Process, edge: Optional[Edge]) -> List[Agent]:
    """Return the tasks of which one handles what a worker asks of its own process: it waits at a socket of that alone."""
    resource = view.graph.places.resource(process.pid, edge.resource) if edge is not None else None
    if resource is None or resource.kind != "socket" or not process.listening:
        return []
    alone = is_with_itself(process, resource)
    return [Agent(process.pid, task=task.id) for task in process.tasks if task.state == "pending"] if alone else []


def is_full(pool: Pool) -> bool:
    """Return whether jobs are queued in a pool that has all its workers, none of them idle."""
    return bool(pool.queued and pool.threads) and not pool.idle and len(pool.threads) >= (pool.limit or 0)


def want_results(view: View, process: Process, pool: Pool) -> List[Tuple[Agent, Edge]]:
    """Return the workers of a full pool with queued jobs, and their waits, if all wait for results of unknown origin.

    A library's own futures do not say which job completes them; what a job waits for as a result is most often another job.
    """
    agents = workers(process, pool)
    if not is_full(pool):
        return []
    found: List[Tuple[Agent, Edge]] = []
    for agent in agents:
        edge, thread = telling(view, agent), view.graph.places.thread(agent)
        resource = view.graph.places.resource(process.pid, edge.resource) if edge is not None else None
        runners = {waker.tid for waker in resource.wakers if waker.role == "runner"} if resource is not None else {None}
        unknown = not runners or (runners <= set(pool.threads) and edge is not None and edge.kind != "future")
        if edge is None or thread is None or not unknown or edge.endless is False:
            return []
        if edge.kind != "future" and not (_asks_reactor(thread) and not _asks_outside(process)):
            return []
        if any(one.task is not None and not _needs_queue(view, one, pool) for one in edge.wakers):
            return []  # a task that waits for something else brings the result
        if view.moves(thread) or not view.rests(thread):
            return []
        found.append((agent, edge))
    return found


def _asks_reactor(thread: Thread) -> bool:
    """Return whether a thread waits for the result of what it has Twisted's reactor do."""
    return any(knowledge.in_table(frame, knowledge.REACTOR_RESULTS) for frame in thread.python)


def _asks_outside(process: Process) -> bool:
    """Return whether a process may have a connection that it has opened: an answer may come from there."""
    if any(loop.watched is None for loop in process.loops):
        return True
    opened = [r for r in process.resources if r.kind == "socket" and r.remote and not r.accepted]
    return not all(is_with_itself(process, socket) for socket in opened)


def signalled_by_queued(view: View, process: Process, pool: Pool) -> List[Tuple[Agent, Edge]]:
    """Return the workers of a full pool, and their waits, if jobs in its own queue would give all the signals they wait for.

    Empty if other code that can still run may give one.
    """
    agents = workers(process, pool)
    if not is_full(pool):
        return []
    found: List[Tuple[Agent, Edge]] = []
    for agent in agents:
        edge, thread = telling(view, agent), view.graph.places.thread(agent)
        resource = view.graph.places.resource(process.pid, edge.resource) if edge is not None else None
        if edge is None or resource is None or not stays(edge) or thread is None:
            return []
        if not given_by_queued(view, process, pool, resource) or view.moves(thread) or not view.rests(thread):
            return []
        found.append((agent, edge))
    return found


def given_by_queued(view: View, process: Process, pool: Pool, resource: Resource) -> bool:
    """Return whether the code of a job in a pool's queue alone gives the signal, or item, of a resource."""
    named = any(w.role == "runner" and w.tid in pool.threads and w.grade == "names" for w in resource.wakers)
    return named and not able_beside(view, process, pool, resource)


def stays(edge: Optional[Edge]) -> bool:
    """Return whether a wait has no time limit, or one that is a minute away or more: it keeps its thread."""
    return edge is None or edge.endless is not False or (edge.remaining_s or 0.0) >= LONG_S


def able_beside(view: View, process: Process, pool: Pool, resource: Resource) -> List[Waker]:
    """Return who may end a wait for a resource, apart from a pool's workers, those who wait for these, and servers' threads.

    A server's thread does so only for a client, by a job of the pool.
    """
    own = set(workers(process, pool))
    return [waker for waker in _able(resource) if not _is_behind(view, process, waker, own)]


def _able(resource: Optional[Resource]) -> List[Waker]:
    """Return who may end a wait for a resource, apart from those that a pool's queue or a library names."""
    wakers = resource.wakers if resource is not None else ()
    return [waker for waker in wakers if waker.role in ("reach", "callback") and waker.grade != "refers"]


def _is_behind(view: View, process: Process, waker: Waker, own: Set[Agent]) -> bool:
    """Return whether a thread or task is one of some workers, waits for one of them, or serves.

    A task waits for a worker only if no loop's thread may end its wait, too.
    """
    if waker.tid is None and waker.task is None:
        return False
    agent = Agent(process.pid, waker.tid, waker.task)
    thread = view.graph.places.thread(agent)
    waits = thread.wait if thread is not None else None
    if waits is not None and waits.kind == "event-loop":
        return False  # what its descriptors and timers bring is not known
    if waker.task is not None and any(_on_a_loop(view, process, one) for one in _able(_awaited(view, agent))):
        return False
    return (thread is not None and serves(view, process, thread)) or not own.isdisjoint(follow(view, agent).agents)


def _on_a_loop(view: View, process: Process, waker: Waker) -> bool:
    """Return whether a waker is a thread that waits for the events of a loop."""
    thread = view.graph.places.thread(Agent(process.pid, waker.tid)) if waker.tid is not None else None
    return thread is not None and thread.wait is not None and thread.wait.kind == "event-loop"


def _awaited(view: View, agent: Agent) -> Optional[Resource]:
    """Return the resource that an agent waits for; None if it is unknown."""
    edge = telling(view, agent)
    return view.graph.places.resource(agent.pid, edge.resource) if edge is not None else None


def asks_itself(view: View, process: Process, pool: Pool) -> Tuple[str, List[Agent]]:
    """Return a library and a pool's workers if all run its requests and wait in its client, which is connected to itself.

    ("", []) otherwise: some worker is at work, a client's connection leads elsewhere, or no request is queued.
    """
    threads = view.threads(process, pool.threads)
    called = {_serves_and_asks(thread) for thread in threads}
    library = called.pop() if len(called) == 1 else None
    still = all(view.rests(thread) and (view.switches(thread) or 0.0) < WORKS_WAKES for thread in threads)
    if not (library and pool.queued and _is_only_client_of_itself(process) and still):
        return "", []
    return library, workers(process, pool)


def _is_only_client_of_itself(process: Process) -> bool:
    """Return whether every connection that a process has opened leads to itself, and there is one."""
    clients = [one for one in process.resources if one.kind == "socket" and one.remote and one.accepted is False]
    alone = all(any(w.role == "end" and w.pid == process.pid for w in one.wakers) for one in clients)
    return bool(clients) and alone


def asked_by_itself(process: Process, pool: Pool) -> bool:
    """Return whether a thread of the process waits in the client of the library that gives a pool its jobs: one is queued.

    The process is connected with no other server.
    """
    own = [thread for thread in process.threads if thread.tid in pool.threads]
    serving = frozenset.intersection(*(frozenset(_packages(_outer(thread))) for thread in own)) if own else frozenset()
    others = [thread for thread in process.threads if thread.tid not in pool.threads and thread.wait is not None]
    asking = any(not serving.isdisjoint(_packages(_called(thread))) for thread in others)
    return asking and _is_only_client_of_itself(process)


def _outer(thread: Thread) -> Sequence[PythonFrame]:
    """Return the frames that have called the program's code in a thread."""
    own = [at for at, frame in enumerate(thread.python) if sourcepaths.is_program(frame.file)]
    return thread.python[own[-1] + 1 :] if own else ()


def _called(thread: Thread) -> Sequence[PythonFrame]:
    """Return the frames that the program's code in a thread has called; none without its code."""
    own = next((at for at, frame in enumerate(thread.python) if sourcepaths.is_program(frame.file)), 0)
    return thread.python[:own]


def asks_own_server(view: View, process: Process, pool: Pool) -> List[Agent]:
    """Return a full pool's workers if all wait for answers of the server of their own process, which gives its jobs to them.

    Empty unless a job is queued, both ends of every connection that they wait at are in this process alone, and no other
    thread or loop of the process is at the other ends.
    """
    threads = view.threads(process, pool.threads)
    if not pool.queued or pool.idle or len(threads) < (pool.limit or 0) or not process.listening:
        return []
    resources = {resource.id: resource for resource in process.resources if resource.kind == "socket"}
    asked = [resources.get(thread.wait.resource or "") if thread.wait is not None else None for thread in threads]
    ends = [end for one in asked if one is not None for end in one.ends]
    if not all(one is not None and not one.accepted and is_with_itself(process, one) for one in asked):
        return []
    others = [thread for thread in process.threads if thread.tid not in pool.threads]
    served = {end for one in resources.values() if one.accepted for end in one.ends}
    at_work = any(in_request(thread) or view.computes(thread) for thread in others)
    if at_work or not served.isdisjoint(ends) or any(view.moves(t) or not view.rests(t) for t in threads):
        return []
    return workers(process, pool)


def library_groups(process: Process) -> Dict[Tuple[str, str], List[Thread]]:
    """Return (file, function) → the threads that a library has begun there, without those of known pools."""
    known = {tid for pool in process.pools for tid in pool.threads}
    groups: Dict[Tuple[str, str], List[Thread]] = {}
    for thread in process.threads:
        outer = next((frame for frame in reversed(thread.python) if not knowledge.is_stdlib(frame)), None)
        if outer is not None and knowledge.is_library(outer) and thread.tid not in known:
            groups.setdefault((outer.file, outer.function), []).append(thread)
    return groups


def servers_that_ask_themselves(view: View, process: Process) -> Iterator[List[Thread]]:
    """Yield each library's group of threads that all run requests, and wait for answers of the server whose requests these are.

    No thread has the other ends of these connections: the server has accepted them, or will, and none is free to serve them.
    """
    sockets = [resource for resource in process.resources if resource.kind == "socket" and resource.remote]
    for threads in library_groups(process).values():
        tids = {thread.tid for thread in threads}
        served = {one.remote for one in sockets if _is_served(one) and _served_by(one, tids)}
        elsewhere = {one.remote for one in sockets if _is_served(one) and not _served_by(one, tids)}
        served |= _only_address(process) - elsewhere
        if all(map(in_request, threads)) and all(_asks_here(view, process, thread, served) for thread in threads):
            yield threads


def _only_address(process: Process) -> Set[Optional[str]]:
    """Return the addresses at which clients of a process have found it, if it listens at one port: all its requests came there.

    None of a process with an event loop, whose tasks may serve what its threads ask for.
    """
    ports = {str(port) for port in process.listening or ()}
    if len(ports) != 1 or process.loops:
        return set()
    remotes = (one.remote for one in process.resources if one.kind == "socket" and not one.accepted)
    return {remote for remote in remotes if remote and remote.rpartition(":")[2] in ports}


def processes_that_ask_themselves(view: View) -> Iterator[List[Process]]:
    """Yield the worker processes of each server that all run a request, and wait for answers of that same server.

    One waits at a connection that nobody has accepted: those that could are these workers, and the process that began them.
    """
    told: Set[FrozenSet[int]] = set()
    for process in view.pythons:
        socket = _asked(view, process)
        sharing = frozenset(end.pid for end in socket.ends) if socket is not None else frozenset()
        if socket is None or sharing in told or len([end for end in socket.ends if end.pid == process.pid]) < 2:
            continue
        told.add(sharing)
        several = [view.by_pid[pid] for pid in sorted(sharing) if pid in view.by_pid]
        asked = {one.pid: _asked(view, one) for one in several}
        workers = [one for one in several if asked[one.pid] is not None]
        begun = {one.ppid for one in workers}
        within = all({end.pid for end in found.ends} <= sharing for found in asked.values() if found is not None)
        if within and len(several) == len(sharing) and {one.pid for one in several if one not in workers} <= begun:
            yield workers


def _asked(view: View, process: Process) -> Optional[Resource]:
    """Return the socket at which the only thread at work in a process waits for an answer, in a request; None otherwise."""
    main = view.main(process)
    wanted = main.wait.resource if main is not None and main.wait is not None else None
    socket = view.graph.places.resource(process.pid, wanted)
    if main is None or socket is None or socket.kind != "socket" or not in_request(main) or view.moves(main):
        return None
    others = [thread for thread in process.threads if thread is not main and in_request(thread)]
    return None if others or socket.accepted else socket


def _served_by(socket: Resource, tids: Set[int]) -> bool:
    """Return whether some of these threads may have the other end of a connection of a process with itself."""
    return any(waker.role == "end" and waker.tid in tids for waker in socket.wakers)


def _is_served(socket: Resource) -> bool:
    """Return whether one thread is known to have the other end of a connection of a process with itself."""
    return len({waker.tid for waker in socket.wakers if waker.role == "end"} - {None}) == 1


def _asks_here(view: View, process: Process, thread: Thread, served: Set[Optional[str]]) -> bool:
    """Return whether a thread waits for an answer of one of the addresses ``served``, and no thread has the other end."""
    wanted = thread.wait.resource if thread.wait is not None and thread.wait.endless else None
    socket = view.graph.places.resource(process.pid, wanted)
    if socket is None or socket.remote not in served or _is_served(socket) or view.moves(thread):
        return False
    return is_with_itself(process, socket)


def _serves_and_asks(thread: Thread) -> Optional[str]:
    """Return the library that has called the program's code in a thread, and that this code has called and waits in."""
    frames = thread.python
    own = [at for at, frame in enumerate(frames) if sourcepaths.is_program(frame.file)]
    if not own or thread.wait is None or _asks_reactor(thread):
        return None
    asked, serving = map(_packages, (frames[: own[0]], frames[own[-1] :]))
    return next(iter(sorted(asked & serving)), None)


def _packages(frames: Sequence[PythonFrame]) -> Set[str]:
    """Return the installed packages whose code is among some frames."""
    return {package for frame in frames for package in [sourcepaths.package(frame.file)] if package is not None}


def _needs_queue(view: View, agent: Agent, pool: Pool) -> bool:
    """Return whether an agent waits, directly or through others, for a job that is still queued in a pool."""
    way = follow(view, agent)
    several = (*way.edges, *way.cycle, *((way.edge,) if way.edge is not None else ()))
    resources = (view.graph.places.resource(edge.waiter.pid, edge.resource) for edge in several)
    return any(resource is not None and _is_queued_in(resource, pool) for resource in resources)


def _is_queued_in(resource: Resource, pool: Pool) -> bool:
    """Return whether a future's job has not begun, and only workers of a pool are known to complete it."""
    runners = {waker.tid for waker in resource.wakers if waker.role == "runner"}
    others = {w.tid for w in resource.wakers if w.role == "reach" and w.tid is not None and w.grade != "refers"}
    queued = resource.kind in ("future", "async-future") and resource.state != "running"
    return queued and bool(runners) and runners | others <= set(pool.threads)


def workers(process: Process, pool: Pool) -> List[Agent]:
    """Return a pool's worker threads as agents."""
    return [Agent(process.pid, tid) for tid in pool.threads]


def collects_itself(view: View, process: Process, pool: Pool) -> Optional[Tuple[Agent, Edge]]:
    """Return the manager thread of a process pool that waits for a future which it alone completes, and its wait.

    It does so in a callback of another future (``Future.add_done_callback``); None if it does not.
    """
    if pool.kind in OF_THREADS:
        return None
    for agent in workers(process, pool):
        edge = view.graph.blocking(agent) if view.graph.stuck(agent) else None
        resource = view.graph.places.resource(process.pid, edge.resource) if edge is not None else None
        if edge is None or resource is None or resource.kind not in ("future", "async-future"):
            continue
        runners = {waker.tid for waker in resource.wakers if waker.role == "runner"}
        if resource.closed is True and runners == {agent.tid}:
            return agent, edge
    return None


def _reached(start: str, links: Links) -> Set[str]:
    """Return the pools on whose queues a pool depends, directly or through others."""
    found: Set[str] = set()
    wave = [start]
    while wave:
        wave = [link.pool.id for ident in wave for link in links.get(ident, ()) if link.pool.id not in found]
        found.update(wave)
    return found


def _links(view: View, process: Process, pool: Pool, pools: Sequence[Pool]) -> List[Link]:
    """Return the links of a pool's workers to queued jobs."""
    found = (_link(view, agent, pools) for agent in workers(process, pool))
    return [link for link in found if link is not None]


def _link(view: View, worker: Agent, pools: Sequence[Pool]) -> Optional[Link]:
    """Return the nearest queued job that a worker depends on, found breadth-first through agents that owe it something."""
    first = view.graph.blocking(worker)
    ways: List[Tuple[Agent, ...]] = [()]
    seen = {worker}
    while ways and first is not None and len(seen) < _FOLLOWED:
        way = ways.pop(0)
        edge = view.graph.blocking(way[-1] if way else worker)
        resource = view.graph.places.resource(worker.pid, edge.resource) if edge is not None else None
        pool = _queued_in(resource, pools) if resource is not None else None
        if resource is not None and pool is not None:
            return Link(worker, first, way, resource, pool)
        following = [w for w in edge.wakers if w not in seen] if edge is not None and not edge.signals else []
        seen.update(following)
        ways += [(*way, agent) for agent in following]
    return None


def _queued_in(resource: Resource, pools: Sequence[Pool]) -> Optional[Pool]:
    """Return the pool in whose queue the job is that is to end a wait, if only its workers could run that; else None.

    The job of an awaited future, or one that leads to another awaited object.
    """
    if resource.closed is not True or resource.state == "running":
        return None
    runners = {waker.tid for waker in resource.wakers if waker.role == "runner"}
    others = [waker for waker in resource.wakers if waker.role != "runner" and waker.grade != "refers"]
    if any(waker.tid not in {*resource.waiters, *runners} for waker in others):
        return None
    return next((pool for pool in pools if runners and set(pool.threads) <= runners), None)
