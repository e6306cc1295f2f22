"""The root of each process: whether it is idle, progresses or waits, and what it waits for in the end."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

from ... import sourcepaths
from ...evidence import SIGNALLED, Process, PythonFrame, Task, Thread
from ...findings.told import RootKind, RootState
from ...waitgraph import Agent, Edge
from ...waitgraph.edges import EdgeKind
from ..facts import native
from ..facts.knowledge import COLLECTS, in_table, is_library, is_typed, own_frame, receives_signals
from ..facts.peers import is_with_itself
from ..facts.sessions import is_unasked
from ..facts.view import WORKS_WAKES, View, is_python
from .calls import calls_for_a_result, calls_native, collects, is_inside_call, wants_an_answer
from .rest import (
    asks_for_a_result,
    awaits_request,
    has_company,
    in_request,
    is_asleep,
    is_native,
    is_parked,
    is_servers,
    serves,
)
from .walk import RESULTS, Way, follow

#: Waits that name their kind by themselves; the others depend on more than the edge.
_KINDS: Dict[EdgeKind, RootKind] = {
    "lock": "lock", "rlock": "lock", "import-lock": "lock", "async-lock": "lock",
    "condition": "signal", "event": "signal", "barrier": "signal", "async-event": "signal", "async-condition": "signal",
    "async-barrier": "signal", "signal": "signal",
    "queue": "queue", "async-queue": "queue", "semaphore": "permits", "async-semaphore": "permits",
    "future": "future", "async-future": "future", "pool-result": "future",
    "mutex": "native-lock", "rwlock": "native-lock", "futex": "native-lock", "gil": "gil",
    "shared-semaphore": "shared-lock", "file-lock": "file-lock", "process": "process", "thread": "thread", "pipe": "pipe",
    "socket": "socket", "terminal": "terminal", "file": "file", "event-loop": "loop", "turn": "loop", "stopped": "stopped",
    "sleep": "sleep", "task": "task", "tasks": "task", "pool": "pool",
}  # fmt: skip
#: Waits of a thread or task that nobody waits for which are never idle: it wants something that it cannot do without.
_DEMANDS: FrozenSet[RootKind] = frozenset(
    ("lock", "permits", "pool", "future", "native-lock", "shared-lock", "file-lock", "cycle", "thread")
)
#: Waits of a request or a job for what code of the same process gives.
_GIVEN: FrozenSet[RootKind] = frozenset(("lock", "signal", "queue", "permits", "pool", "future", "cycle"))
#: Waits for a result, or an item, that somebody is to provide.
_RESULTS: FrozenSet[EdgeKind] = RESULTS | {"queue"}
_MOST = 2_000
#: Threads that may signal a waiter, of which is asked whether they receive what comes from the process itself.
_MOST_ABLE = 4
#: Seconds: a shorter sleep paces a loop.
_PACE_S = 2.0


class Root(NamedTuple):
    """The end of the waits of a process: a thread or task, its state, and the kind of its wait."""

    state: RootState
    kind: RootKind
    way: Way  # from the thread or task where the search began to the end of its wait
    rank: int = 0  # 3: of the main thread; 2: of a job, a request or a task; 1: of another thread that cannot go on
    others: int = 0  # how many other threads and tasks end there, too

    @property
    def agent(self) -> Agent:
        """Return the agent at the root."""
        return self.way.end


#: Functions of libraries that end something, and return once it has ended.
_ENDING = frozenset(("shutdown", "close", "stop", "terminate", "disconnect", "dispose", "flush"))


def roots(view: View) -> Tuple[Root, ...]:
    """Return the root of each process with threads: the most telling first."""
    key = ("roots",)
    if key not in view.remembered:
        found = [root for p in view.processes if p.crash is None for root in [_of_process(view, p)] if root is not None]
        view.remembered[key] = tuple(sorted(found, key=lambda root: _order(view, root)))
    return view.remembered[key]  # type: ignore[return-value]


def waiting(view: View, process: Process) -> List[Root]:
    """Return every root of a process at which something waits that should not, the most telling first."""
    found: Dict[object, List[Root]] = {}
    for root in _candidates(view, process):
        if root.state == "waiting":
            at = root.way.edge.resource if root.way.edge is not None and root.way.edge.resource else root.way.end
            found.setdefault((root.way.end.pid, at, root.kind), []).append(root)
    merged = [
        max(same, key=lambda root: root.rank)._replace(others=max(len(same), _queue(view, same[0])) - 1)
        for same in found.values()
    ]
    jobs = [root for root in merged if root.rank == 2 and root.kind in _GIVEN]
    return sorted(merged, key=lambda root: (bool(jobs) and _asks_itself(view, root), -root.rank, -root.others))


def _asks_itself(view: View, root: Root) -> bool:
    """Return whether a root is a wait for what comes through a connection of the process with itself: a request's answer.

    A library's thread may receive it for the one that waits.
    """
    edge = root.way.edge
    if root.rank != 3 or edge is None or edge.waiter.pid != root.way.start.pid:
        return False
    receivers = [waker for waker in edge.wakers[:_MOST_ABLE] if waker not in edge.bystanders and waker.tid is not None]
    edges = [edge, *(one for receiver in receivers for one in view.graph.edges.get(receiver, ()))]
    process = view.by_pid[edge.waiter.pid]
    wanted = {one.resource for one in edges if one.kind in ("socket", "descriptors")} - {None}
    task = view.graph.places.task(root.way.end)
    called = task is not None and edge.kind == "async-future" and is_inside_call(task)  # its loop receives the answer
    sockets = [r for r in process.resources if r.kind == "socket" and (called or r.id in wanted or r.part_of in wanted)]
    return any(socket.remote and not socket.accepted and is_with_itself(process, socket) for socket in sockets)


def _queue(view: View, root: Root) -> int:
    """Return how many threads and tasks wait for what the one at a root waits for; 1 if that is unknown."""
    edge = root.way.edge
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource) if edge is not None else None
    return len(resource.waiters) + len(resource.waiting_tasks) if resource is not None else 1


def _order(view: View, root: Root) -> Tuple[int, bool, int, int]:
    order = ("waiting", "progressing", "idle").index(root.state)
    process = view.by_pid.get(root.way.start.pid)
    return order, process is not None and process.ppid in view.by_pid, -root.rank, root.way.start.pid


def _of_process(view: View, process: Process) -> Optional[Root]:
    """Return the root of a process; None without threads."""
    stuck = waiting(view, process)
    if stuck:
        return stuck[0]
    candidates = list(_candidates(view, process))
    moving = next((root for root in candidates if root.state == "progressing"), None)
    return moving or next(iter(candidates), None)


def _candidates(view: View, process: Process) -> Iterator[Root]:
    """Yield a root for the main thread, and for each thread and task that is at work or wants what it cannot get."""
    key = ("root candidates", process.pid)
    if key not in view.remembered:
        view.remembered[key] = tuple(_found(view, process))
    yield from view.remembered[key]  # type: ignore[misc]


def _found(view: View, process: Process) -> Iterator[Root]:
    if process.state in ("Z", "X"):
        return  # it has ended: nothing in it runs or waits
    main, company = view.main(process), has_company(view, process)
    if main is not None:
        yield _root(view, process, Agent(process.pid, main.tid), 3, company)
    for thread in process.threads[:_MOST]:
        if thread is main or is_native(thread) or serves(view, process, thread):
            continue
        rank = 2 if in_request(thread) else 1
        root = _root(view, process, Agent(process.pid, thread.tid), rank, company)
        wants = root.kind == "signal" and (_ends_something(thread) or calls_native(thread))
        if rank == 1 and root.kind == "native-lock" and _is_helper(thread, root):
            continue
        if rank == 2 or root.kind in _DEMANDS or wants or root.state == "progressing":
            yield root
    for task in process.tasks[:_MOST]:
        if task.state == "pending" and not task.ready:
            agent = Agent(process.pid, task=task.id)
            root = _root(view, process, agent, 2, company)
            if root.kind == "future" and (awaits_request(view, process, task) or _is_delayed(view, process, task)):
                continue
            wants = root.kind == "signal" and is_inside_call(task) and not view.graph.is_awaited(agent)
            wants = wants or (root.kind == "queue" and collects(task))
            if root.kind in _DEMANDS or wants or (len(root.way.agents) > 1 and root.kind in ("signal", "pool")):
                yield root


def _is_helper(thread: Thread, root: Root) -> bool:
    """Return whether a thread without code of the program waits natively for something that was not read, as a library's rest."""
    edge = root.way.edge
    return all(map(is_library, thread.python)) and (edge is None or (edge.resource is None and not edge.named))


def _is_delayed(view: View, process: Process, task: Task) -> bool:
    """Return whether the thread of a task's loop computes, so that what the task awaits had no turn yet."""
    tid = next((loop.tid for loop in process.loops if loop.id == task.loop), None)
    thread = view.thread(process, tid)
    return thread is not None and thread.wait is None and bool(view.computes(thread))


def _root(view: View, process: Process, start: Agent, rank: int, company: bool) -> Root:
    way = follow(view, start)
    kind = kind_of(view, way)
    if _rests(view, way, rank, company):
        return Root("idle", kind, way, rank)
    return Root("progressing" if _moved(view, way, kind) else "waiting", kind, way, rank)


def kind_of(view: View, way: Way) -> RootKind:
    """Return the kind of a path's end."""
    if way.cycle:
        return "cycle"
    if way.edge is not None:
        return _kind_of_edge(view, way.edge)
    thread = view.graph.places.thread(way.end)
    if thread is None:
        return "task" if way.end.task is not None else "process"
    if thread.wait is not None and view.computes(thread):
        return "python"
    if thread.wait is not None and thread.wait.kind == "sleep":
        return "sleep"
    if thread.wait is not None and not thread.wait.over:
        return "unknown"
    return "native" if native.called(thread) or not thread.python else "python"


def _kind_of_edge(view: View, edge: Edge) -> RootKind:
    if edge.kind == "descriptors":
        place = view.graph.places.by_pid[edge.waiter.pid]
        kinds = {r.kind for r in place.resources.values() if r.part_of == edge.resource}
        return "socket" if "socket" in kinds else "pipe"
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource)
    if edge.kind == "shared-semaphore" and resource is not None and resource.state == SIGNALLED:
        return "signal"
    return _KINDS.get(edge.kind, "unknown")


# ---------------------------------------------------------------------- rest and motion


def _rests(view: View, way: Way, rank: int, company: bool) -> bool:
    """Return whether the end of a path waits by design."""
    process, thread = view.by_pid.get(way.end.pid), view.graph.places.thread(way.end)
    task = view.graph.places.task(way.end)
    if process is None:
        return False
    if way.cycle:
        return all(_serves(view, edge.waiter) for edge in way.cycle)
    if thread is not None and way.end.task is None and serves(view, process, thread):
        return not any(edge.kind in _RESULTS for edge in way.edges)  # one that wants a result does not rest
    kind = kind_of(view, way)
    signalled = way.edge is not None and view.graph.heeds_signals(way.edge)
    if (
        signalled
        or kind in ("loop", "terminal")
        or is_parked(view, way.end, way.edge)
        or (task is not None and receives_signals(task.stack))
        or _is_native_server(process, way)
    ):
        return True
    if kind == "socket" and way.edge is not None:
        socket = view.graph.places.resource(way.edge.waiter.pid, way.edge.resource)
        return is_unasked(view, socket) or (socket is not None and is_servers(socket))
    if kind == "sleep" and task is not None:
        return rank != 3 or not wants_an_answer(task)
    inside = [agent for agent in way.agents if agent.pid == process.pid]
    alone = len(inside) == 1 or (len(inside) == 2 and inside[1].task is not None)
    if rank == 3 and alone and kind in ("sleep", "signal", "queue") and _is_free(view, way, process):
        company = company if way.start.pid == process.pid else has_company(view, process)
        collecting = thread is not None and any(in_table(frame, COLLECTS) for frame in thread.python)
        at_work = kind == "sleep" and any(not view.rests(one) for one in process.threads)
        short = way.edge is not None and way.edge.kind in ("barrier", "async-barrier")  # others have to come
        return (company or at_work or (kind == "signal" and _may_handle(view, process, way.edge))) and not (
            collecting
            or short
            or (kind == "signal" and thread is not None and _ends_something(thread))
            or (thread is not None and asks_for_a_result(thread) and not _serves_beside(view, process, thread))
            or (kind != "sleep" and thread is not None and calls_for_a_result(thread))
            or (task is not None and wants_an_answer(task))
        )
    ends = thread is not None and (_ends_something(thread) or calls_native(thread))
    parks = kind in ("sleep", "queue") or (kind == "signal" and not ends)
    return rank < 2 and parks and len(way.agents) == 1


def _ends_something(thread: Thread) -> bool:
    """Return whether the program has called a function of a library that ends something, and waits: no thread parks in one."""
    at = next((number for number, frame in enumerate(thread.python) if not is_library(frame)), 0)
    return at > 0 and thread.python[at - 1].function in _ENDING


def _is_native_server(process: Process, way: Way) -> bool:
    """Return whether a path ends in a wait that was not read, in a server that is no Python program: its threads park so."""
    unread = way.edge is not None and way.edge.resource is None and not way.edge.named
    return unread and not is_python(process) and any(resource.listening for resource in process.resources)


def _is_free(view: View, way: Way, process: Process) -> bool:
    """Return whether no other process waits for the one at the end of a path, unless it supervises that server."""
    across = all(edge.kind == "process" for edge in way.edges if edge.waiter.pid != process.pid)
    return across and (bool(process.listening) or not view.graph.is_awaited(Agent(process.pid)))


def _may_handle(view: View, process: Process, edge: Optional[Edge]) -> bool:
    """Return whether a signal handler of the program may end a wait: one does, or it was not examined."""
    resource = view.graph.places.resource(process.pid, edge.resource) if edge is not None else None
    if not process.signal_handlers or resource is None or all(waker.grade is None for waker in resource.wakers):
        return bool(process.signal_handlers)
    return any(w.tid is None and w.task is None and w.grade == "names" for w in resource.wakers)


def _serves(view: View, agent: Agent) -> bool:
    process, thread = view.by_pid.get(agent.pid), view.graph.places.thread(agent)
    return process is not None and thread is not None and serves(view, process, thread)


def _serves_beside(view: View, process: Process, thread: Thread) -> bool:
    """Return whether the library in which a thread sleeps serves on another thread: it watches over its server."""
    library = sourcepaths.package(thread.python[0].file)
    others = [one for one in process.threads if one is not thread and any(map(is_library, one.python))]
    return library is not None and any(
        any(sourcepaths.package(frame.file) == library for frame in one.python) and serves(view, process, one)
        for one in others
    )


def _is_short(thread: Thread) -> bool:
    """Return whether a thread's sleep paces a loop of the program."""
    length = thread.wait.timeout_s if thread.wait is not None else None
    return bool(thread.python) and length is not None and length < _PACE_S


def _moved(view: View, way: Way, kind: RootKind) -> bool:
    """Return whether an agent of the path made progress over the window; False without one.

    A sleep inside a library's call is no progress, however often it ends: the call has not returned.
    """
    process, thread = view.by_pid.get(way.end.pid), view.graph.places.thread(way.end)
    task = view.graph.places.task(way.end)
    if kind in ("python", "native"):
        return process is None or is_python(process) or thread is None or not view.rests(thread)
    if kind == "sleep" and task is not None and wants_an_answer(task):
        return False
    if kind == "sleep" and process is not None and thread is not None and is_asleep(thread) and view.rests(thread):
        if asks_for_a_result(thread) and not _serves_beside(view, process, thread):
            return False
        if _is_short(thread) and view.work_beside(process, thread):
            return True
    moving: Dict[Agent, bool] = view.remembered.setdefault("moving", {})  # type: ignore[assignment]
    for agent in way.agents:
        if agent not in moving:
            moving[agent] = _moves(view, agent)
    return any(moving[agent] for agent in way.agents)


#: CPU in cores that a wait's time limits cost at most when they pass, a few times a second.
_TIMING_OUT_SHARE = 0.002
#: Waits that a program which is not Python, such as a shell, ends and begins again without getting further.
_PACED = ("process", "sleep")


def _polls_inside_call(task: Task) -> bool:
    """Return whether a task waits again and again for short times inside one call of a library: the call has not returned."""
    wait = task.wait
    short = wait is not None and wait.endless is False and (wait.timeout_s or _PACE_S) < _PACE_S
    return short and wait is not None and wait.kind != "sleep" and is_inside_call(task)


def _moves(view: View, agent: Agent) -> bool:
    thread, task = view.graph.places.thread(agent), view.graph.places.task(agent)
    if task is not None:
        return bool(task.moved) and not _polls_inside_call(task)
    if thread is None or (thread.wait is not None and thread.wait.kind == "event-loop"):
        return False  # a loop's timers wake it, whatever its main task waits for
    process = view.by_pid.get(agent.pid)
    if process is not None and not is_python(process) and thread.wait is not None and thread.wait.kind in _PACED:
        return not view.rests(thread)
    return (view.moves(thread) and not _only_times_out(view, thread)) or not view.rests(thread)


def _only_times_out(view: View, thread: Thread) -> bool:
    """Return whether a thread waits again and again for short times on a futex inside one call of native code.

    So gRPC's blocking calls do, five times a second. What such a wait is for takes more CPU when it comes.
    """
    wait, share, switches = thread.wait, view.cpu_share(thread), view.switches(thread)
    timed = wait is not None and wait.kind == "futex" and wait.resource is None and wait.endless is False
    little = share is not None and share < _TIMING_OUT_SHARE and (switches or 0.0) < WORKS_WAKES
    return timed and little and bool(native.called(thread))


# ---------------------------------------------------------------------- what to show


def frame_of(view: View, agent: Agent) -> Optional[PythonFrame]:
    """Return the program's innermost line of an agent; None if there is none."""
    return own_frame(view.graph.places.stack(agent))


def blocked_loop(view: View, way: Way) -> Optional[Thread]:
    """Return the end of a path if it is the thread of an event loop that waits inside a callback, outside its selector."""
    place, thread = view.graph.places.by_pid.get(way.end.pid), view.graph.places.thread(way.end)
    if place is None or thread is None or thread.wait is None or thread.wait.kind in ("event-loop", "gil"):
        return None
    if is_typed(thread.python) or view.idle(thread):
        return None  # a shell runs it on its own loop on purpose; a worker of gevent's thread pool waits for a job
    loop = place.loop_of.get(thread.tid)
    return thread if loop is not None and _runs_task(place.process.tasks, loop.id) else None


def _runs_task(tasks: Tuple[Task, ...], loop: str) -> bool:
    return any(task.loop == loop and task.state == "running" for task in tasks)
