"""The waits of each agent as edges, derived from the waits and resources of evidence alone."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, Iterator, List, Literal, NamedTuple, Optional, Tuple, Union

from ..evidence import SIGNALLED, Because, Loop, Resource, Task, TaskWait, Thread, Wait, Waker, fact
from ..evidence.vocabulary import ResourceKind, TaskWaitKind, WaitKind, WakerBasis
from .agents import Agent, Place, Places

#: Resources of one process: their wakers run in that process.
IN_PROCESS: FrozenSet[ResourceKind] = frozenset((
    "lock", "rlock", "condition", "event", "semaphore", "barrier", "queue", "future", "thread", "import-lock",
    "async-lock", "async-event", "async-condition", "async-semaphore", "async-queue", "async-barrier", "async-future",
    "mutex", "rwlock", "gil", "pool",
))  # fmt: skip
#: Waits without a known resource that only the same process can end: the waker of a private futex is in it.
_IN_PROCESS_WAITS: FrozenSet[WaitKind] = frozenset(("lock", "rlock", "condition", "futex", "mutex", "gil"))
#: Resources with one holder, released only by that holder.
_HELD: FrozenSet[ResourceKind] = frozenset(
    ("lock", "rlock", "import-lock", "async-lock", "mutex", "rwlock", "gil", "file-lock")
)
#: Roles of wakers that could signal the resource but do not owe it.
_REACHES = ("reach", "callback")
#: Roles of wakers that end a wait only by code that they run: signals, writes, the end of a descriptor.
_BY_CODE = (*_REACHES, "end")
#: Up to this number of wakers, the waiter is removed from its own; beyond it, all waiters share one tuple, in which the
#: waiter itself does no harm: a waiting agent cannot wake itself.
_FEW = 64
#: Most agents that can make a loop's watched descriptors ready; beyond it they count as unknown.
_MOST_ENDS = 10_000
_VERBS: Dict[ResourceKind, EdgeVerb] = {
    "lock": "wants", "rlock": "wants", "import-lock": "wants", "async-lock": "wants", "mutex": "wants", "rwlock": "wants",
    "gil": "wants", "file-lock": "wants", "shared-semaphore": "wants", "thread": "joins", "process": "waits for",
    "async-future": "awaits",
}  # fmt: skip


#: turn: a task's turn on its event loop; stopped: by a signal or a tracer.
EdgeKind = Union[ResourceKind, WaitKind, TaskWaitKind, Literal["turn", "stopped"]]


EdgeVerb = Literal[
    "asks", "awaits", "does nothing before", "has ended", "is stopped", "joins", "needs", "needs its turn on", "reads", "runs",
    "runs on", "sleeps", "waits", "waits for", "wants", "writes to",
]  # fmt: skip
#: What an agent waits for: a resource or wait by its name, a fact, or another agent.
What = Union[Because, Agent]


class Edge(NamedTuple):
    """A wait of an agent: one thing that ``waiter`` needs before it can go on."""

    waiter: Agent
    verb: EdgeVerb
    what: What
    kind: EdgeKind  # kind of the resource, or of the wait
    resource: Optional[str] = None  # id in the waiter's process
    wakers: Tuple[Agent, ...] = ()  # agents known to be able to end the wait
    all_needed: bool = False  # True: every one of `wakers` has to end; False: any of them is enough
    everyone: bool = False  # True: any other agent of the process may end it, as far as known
    outside: Tuple[Because, ...] = ()  # other events that may end it, such as a timer
    basis: WakerBasis = "recorded"  # how the wakers are known
    endless: Optional[bool] = True
    gone: bool = False  # True: the holder has ended
    because: Tuple[Because, ...] = ()  # why no other agent can end it
    signals: bool = False  # True: `wakers` could signal it, but hold nothing and owe no work: none of them is to blame
    bystanders: Tuple[Agent, ...] = ()  # of `wakers`, those that only refer to the resource
    remaining_s: Optional[float] = None  # until the wait gives up; negative: overdue; None: no limit, or unknown
    only_named: bool = False  # True: without bystanders, `wakers` are all that could end it, whatever `everyone` says

    @property
    def named(self) -> Tuple[Agent, ...]:
        """Return the wakers each of which the waiter depends on; () if any one of several is enough."""
        return self.wakers if (self.all_needed or len(self.wakers) == 1) and not self.signals else ()

    @property
    def necessary(self) -> Tuple[Agent, ...]:
        """Return the wakers without which the waiter cannot go on, apart from its own timeout."""
        return () if self.everyone or self.outside else self.named

    @property
    def sure(self) -> bool:
        """Return whether every fact of the edge was read rather than inferred, and the wait has no timeout."""
        return self.basis != "inferred" and self.endless is True


def edges_of(places: Places, place: Place) -> Iterator[Edge]:
    """Yield the edges of every thread and task of a process, and of the process as a whole."""
    for thread in place.process.threads:
        for edge in _thread_edges(places, place, thread):
            yield _limited(edge, thread.wait) if edge.kind != "stopped" else edge
    for task in place.process.tasks:
        for edge in _task_edges(place, task):
            yield _limited(edge, task.wait) if edge.kind != "turn" else edge
    yield from _process_edges(place)


def _limited(edge: Edge, wait: Union[Wait, TaskWait, None]) -> Edge:
    """Return an edge with what remains of its wait's limit."""
    return edge if wait is None or wait.remaining_s is None else edge._replace(remaining_s=wait.remaining_s)


def _process_edges(place: Place) -> Iterator[Edge]:
    """Yield the edge of a process as a whole: it can move as long as one of its threads can that is not quiet."""
    process = place.process
    if process.threads:
        threads = tuple(Agent(place.pid, t.tid) for t in process.threads if t.tid not in place.quiet)
        yield Edge(Agent(place.pid), "does nothing before", fact("one-thread-moves"), "process", wakers=threads)
    elif process.state in ("Z", "X"):
        yield Edge(Agent(place.pid), "has ended", fact("status-uncollected"), "process", gone=True)


# ---------------------------------------------------------------------- threads


def _thread_edges(places: Places, place: Place, thread: Thread) -> Iterator[Edge]:
    """Yield the edge of a waiting thread; none if it runs, sleeps or has been notified."""
    wait, agent = thread.wait, Agent(place.pid, thread.tid)
    if wait is None or wait.kind == "sleep" or wait.over:
        return
    if thread.state in ("T", "t"):
        yield Edge(agent, "is stopped", fact("until-continued"), "stopped", outside=(fact("stopper"),))
        return
    resource = _awaited(place, wait)
    loop = place.loop_of.get(thread.tid)
    if wait.kind == "event-loop" and loop is not None:
        yield _loop_edge(place, agent, wait)
    elif resource is not None and not (thread.joins is not None and not _ended_by(place, resource)):
        yield _resource_edge(place, agent, resource, wait.endless)
    elif thread.joins is not None:
        joined = Agent(place.pid, thread.joins)
        yield Edge(agent, "joins", joined, "thread", None, (joined,), endless=wait.endless is not False)
    elif wait.kind == "process":
        yield _child_edge(places, place, agent, wait)
    else:
        yield _plain_edge(place, agent, wait)


def _ended_by(place: Place, resource: Resource) -> bool:
    """Return whether the resource records the agents that could end a wait for it."""
    return bool(resource.wakers or resource.closed or _owner(place, resource) or resource.owner_gone)


def _loop_edge(place: Place, agent: Agent, wait: Wait) -> Edge:
    """Return the edge of a loop's thread in its selector: woken by a timer, a descriptor, or call_soon from another thread."""
    loop = place.loop_of[agent.tid or 0]
    outside: List[Because] = []
    if wait.endless is not True:
        outside.append(fact("selector-timeout"))
    if loop.scheduled != 0:
        outside.append(fact("timer" if loop.scheduled else "perhaps-timer"))
    ends = _watched_ends(place, loop)
    if ends is None:
        watched = loop.watched
        outside.append(fact("watched-descriptors", count=watched) if watched else fact("perhaps-descriptor"))
    if loop.ready:
        outside.append(fact("ready-callbacks", count=loop.ready))
    if loop.signals:
        outside.append(fact("handled-signal"))
    return Edge(
        agent,
        "runs",
        fact("idle-loop"),
        "event-loop",
        wakers=ends or (),
        everyone=True,
        outside=tuple(outside),
    )


def _watched_ends(place: Place, loop: Loop) -> Optional[Tuple[Agent, ...]]:
    """Return the agents that could make a descriptor watched by the loop ready; None unless all are known."""
    if loop.watched == 0:
        return ()
    resources = [place.resources.get(ident) for ident in loop.descriptors]
    if loop.watched is None or len(resources) < loop.watched or not all(r is not None and r.closed for r in resources):
        return None
    ends = [_wakers(place, r) for r in resources if r is not None]
    if any(end.others for end in ends) or sum(len(end.agents) for end in ends) > _MOST_ENDS:
        return None
    return tuple(dict.fromkeys(who for end in ends for who in end.agents))


def _agent(place: Place, waker: Waker) -> Optional[Agent]:
    """Return the agent of a waker; None if it is neither a thread, a task nor a process."""
    if waker.tid is None and waker.task is None and waker.pid is None:
        return None
    return Agent(waker.pid if waker.pid is not None else place.pid, waker.tid, waker.task)


def _child_edge(places: Places, place: Place, agent: Agent, wait: Wait) -> Edge:
    """Return the edge of a thread that waits for a child process, or for any of its children."""
    if wait.pid is not None:
        child = Agent(wait.pid)
        known = wait.pid in places.by_pid
        outside = () if known else (fact("process-not-captured", pid=wait.pid),)
        return Edge(
            agent,
            "waits for",
            child,
            "process",
            None,
            (child,) if known else (),
            outside=outside,
            endless=wait.endless,
        )
    children = tuple(Agent(pid) for pid in places.children.get(place.pid, ()))
    outside = () if children else (fact("child-not-captured"),)
    what: What = fact("any-child") if len(children) != 1 else children[0]
    return Edge(agent, "waits for", what, "process", None, children, outside=outside, endless=wait.endless)


def _plain_edge(place: Place, agent: Agent, wait: Wait) -> Edge:
    """Return the edge of a wait whose resource is unknown."""
    what: Because = wait.phrase or fact("some-call", call=wait.syscall or wait.kind)
    if wait.kind == "gil":
        gil = place.process.gil
        holder = gil.holder_tid if gil is not None else None
        wakers = (Agent(place.pid, holder),) if holder is not None and holder != agent.tid else ()
        return Edge(agent, "wants", fact("gil"), "gil", None, wakers, everyone=not wakers)
    inside = wait.kind in _IN_PROCESS_WAITS
    outside = () if inside else (what,)
    verb: EdgeVerb = "waits for"
    if wait.verb == "waits" and wait.detail:
        verb, what = "waits", wait.detail
    return Edge(agent, verb, what, wait.kind, everyone=inside, outside=outside, endless=wait.endless)


# ---------------------------------------------------------------------- tasks


def _task_edges(place: Place, task: Task) -> Iterator[Edge]:
    """Yield the edges of a task: its turn on the event loop, and the operation that it awaits."""
    if task.state == "done":
        return
    agent = Agent(place.pid, task=task.id)
    loop = place.loops.get(task.loop or "")
    thread = place.threads.get(loop.tid) if loop is not None and loop.tid is not None else None
    if loop is not None and thread is None:
        yield Edge(agent, "needs", fact("loop-runner"), "turn", everyone=True, basis="memory")
    elif thread is not None and not (thread.wait is not None and thread.wait.kind == "event-loop"):
        verb: EdgeVerb = "runs on" if task.state == "running" else "needs its turn on"
        runs = Agent(place.pid, thread.tid)
        yield Edge(
            agent,
            verb,
            fact("loop-of-thread", thread=f"{thread.name or 'thread'} ({thread.tid})"),
            "turn",
            None,
            (runs,),
        )
    if task.state == "running" or task.ready:
        return
    wait = task.wait
    if wait is None:
        yield Edge(
            agent,
            "awaits",
            task.awaiting or fact("something"),
            "other",
            outside=(fact("awaits-unknown"),),
            endless=None,
        )
        return
    if wait.tasks:
        names = tuple(place.tasks[t].name or t for t in wait.tasks if t in place.tasks)
        more = len(names) > 3
        what = (
            fact("tasks-of", what=wait.detail, names=names[:3], more=more)
            if wait.detail
            else fact("tasks", names=names[:3], more=more)
        )
        wakers = tuple(Agent(place.pid, task=t) for t in wait.tasks)
        yield Edge(agent, "awaits", what, "task", wait.resource, wakers, not wait.any, endless=wait.endless)
        return
    resource = _awaited(place, wait)
    if resource is not None:
        yield _resource_edge(place, agent, resource, wait.endless)
        return
    outside = (wait.detail or wait.kind,) if wait.kind in ("sleep", "descriptor", "process", "thread", "other") else ()
    yield Edge(
        agent,
        "awaits",
        wait.detail or wait.kind,
        wait.kind,
        everyone=not outside,
        outside=outside,
        endless=wait.endless,
    )


# ---------------------------------------------------------------------- resources


def _awaited(place: Place, wait: Union[Wait, TaskWait]) -> Optional[Resource]:
    """Return what an agent waits for: the gate of which it wants a part, else the object that it sleeps on."""
    gate = place.resources.get(wait.gate or "")
    return gate if gate is not None else place.resources.get(wait.resource or "")


def _owner(place: Place, resource: Resource) -> Optional[Agent]:
    """Return the task, thread or process that holds a resource; None if no holder is known."""
    if resource.owner_task is not None:
        return Agent(place.pid, task=resource.owner_task)
    if resource.owner_tid is not None:
        return Agent(resource.owner_pid or place.pid, resource.owner_tid)
    return Agent(resource.owner_pid) if resource.owner_pid is not None else None


def _resource_edge(place: Place, agent: Agent, resource: Resource, endless: Optional[bool]) -> Edge:
    """Return the edge of an agent that waits for a known resource."""
    verb: EdgeVerb = _VERBS.get(resource.kind, "waits for") if resource.state != SIGNALLED else "waits for"
    waiter = place.threads.get(agent.tid or 0)
    wait = waiter.wait if waiter is not None else None
    if resource.kind in ("pipe", "socket") and waiter is not None:
        writes = wait is not None and wait.syscall in ("write", "writev", "send", "sendto", "sendmsg")
        verb = "writes to" if writes else "reads"
    elif resource.kind == "thread" and wait is not None and wait.polls_s is not None:
        verb = "waits for"  # it asks whether the thread has got further
    owner = _owner(place, resource)
    if owner is not None or resource.owner_gone:
        return Edge(
            agent,
            verb,
            resource.description,
            resource.kind,
            resource.id,
            (owner,) if owner is not None else (),
            basis=resource.owner_basis or "recorded",
            endless=endless,
            gone=owner is None,
            because=resource.because,
        )
    known = _wakers(place, resource)
    wakers = known.agents
    if resource.kind not in _HELD and len(wakers) <= _FEW and agent in wakers:
        wakers = tuple(who for who in wakers if who != agent)
    inside = resource.kind in IN_PROCESS
    everyone = inside and (resource.closed is not True or known.others)
    outside = () if inside or resource.closed is True else (resource.description,)
    return Edge(
        agent,
        verb,
        resource.description,
        resource.kind,
        resource.id,
        wakers,
        everyone=everyone,
        outside=outside,
        basis="inferred" if known.guessed else "memory",
        endless=endless,
        because=resource.because,
        signals=inside and resource.kind not in _HELD and known.reach and not _is_owed(resource),
        bystanders=known.bystanders,
        only_named=inside and True in (resource.closed, resource.unnamed) and not known.others_named,
    )


def _is_owed(resource: Resource) -> bool:
    """Return whether a single agent is left whose code resolves a future: the result is its to give."""
    if resource.kind not in ("future", "async-future") or resource.closed is not True or len(resource.wakers) != 1:
        return False
    waker = resource.wakers[0]
    return waker.role == "reach" and waker.grade == "names" and (waker.tid is not None or waker.task is not None)


class _Wakers(NamedTuple):
    """The agents that could end a wait for a resource; holders and runners before those that only refer to it."""

    agents: Tuple[Agent, ...]
    others: bool  # True: another waker, such as a global or a timer, is no agent: any running code may use it
    guessed: bool  # True: one of them is inferred
    reach: bool  # True: none of them holds it or owes work
    bystanders: Tuple[Agent, ...] = ()  # agents none of whose code ends the wait
    others_named: bool = False  # True: of the wakers that are no agents, one may be used by code that ends the wait


def _bystanders(several: Iterable[Tuple[Waker, Optional[Agent]]]) -> Tuple[Agent, ...]:
    """Return the agents that only refer to a resource, on every path to it."""
    graded: Dict[Agent, bool] = {}
    for waker, who in several:
        if who is not None:
            graded[who] = graded.get(who, True) and waker.grade == "refers"
    return tuple(who for who, refers in graded.items() if refers)


def _is_quiet(place: Place, waker: Waker) -> bool:
    """Return whether a waker is a thread that only sleeps and counts: that it refers to a resource means nothing."""
    return waker.tid in place.quiet and waker.pid in (None, place.pid) and waker.task is None


def _owes_nothing(waker: Waker) -> bool:
    """Return whether a waker could signal a resource but owes no work; nor does a queued job that only refers to it."""
    return waker.role in _REACHES or (waker.role == "runner" and waker.grade == "refers")


def _wakers(place: Place, resource: Resource) -> _Wakers:
    """Return the wakers of a resource, as one tuple shared by all its waiters.

    ``liveness`` relies on the sharing: a thousand waiters with a thousand wakers are two thousand links, not a million.
    """
    known = place.kept.get(resource.id)
    if not isinstance(known, _Wakers):
        several = [w for w in resource.wakers if w.role not in _BY_CODE or not _is_quiet(place, w)]
        several.sort(key=_owes_nothing)
        found = [_agent(place, waker) for waker in several]
        known = place.kept[resource.id] = _Wakers(
            tuple(dict.fromkeys(who for who in found if who is not None)),
            None in found,
            any(w.basis == "inferred" for w in several),
            all(map(_owes_nothing, several)),
            _bystanders(zip(several, found)),
            any(who is None and w.grade != "refers" for w, who in zip(several, found)),
        )
    return known
