"""All connections, tokens or permits are taken, and each holder of one waits for another.

**What it looks like.** Threads or tasks wait for a pool, limiter or semaphore with no part left, or for an item in an empty
queue that is used as a pool. Those that hold a part each wait for a second one, or for something that cannot happen; or they
took one, did not give it back, and rest elsewhere.

**Easily mistaken for** an idle consumer, whose queue is empty because there is nothing to do; `network-wait`, where the holders
wait for a server; `executor-self-deadlock`, where the workers themselves ran out.

**Why it hangs.** A request takes one item from the pool and, while it holds it, asks for a second one. As many simultaneous
requests as the pool has items take them all, and none gets its second.

**Remedy.** Pass on the item instead of taking another; take all that are needed at once; return it before asking for another.
A larger pool only postpones the hang; a time limit on the second one turns it into an error.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Dict, FrozenSet, Iterator, List, Set, Tuple

from ....evidence import Process, PythonFrame, Resource, Task, Thread, Waker
from ....evidence.vocabulary import ResourceKind, TaskWaitKind, WaitKind
from ....findings import Culprit, Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import is_library, is_stdlib, own_frame
from ...facts.permits import is_spent
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.rest import serves
from ...roots.walk import follow, telling
from ...roots.works import has_timers
from ..asyncio.wakers import set_by_protocols
from .occupied import crowded, crowded_processes, occupied

PATTERN = Pattern(
    id="pool-exhausted",
    tier="resource",
    title="all connections, tokens or permits are in use, and their holders wait for more",
    explanation=(
        "Everything in the pool has been taken, by threads or tasks that wait for another item before they return theirs. "
        "None of them gets it."
    ),
    remedy=(
        "Pass on the connection (token, permit) that the caller already has, or return it before asking for another; put a "
        "time limit on the wait, so that a shortage raises an error."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/threading.html#semaphore-objects",
        "https://github.com/nsidnev/fastapi-realworld-example-app/issues/64",
        "https://github.com/brettwooldridge/HikariCP/wiki/About-Pool-Sizing",
    ),
)

Holder = Tuple[Agent, Waker]
_NAMED = 40  # most holders listed in a finding
_POOLS: FrozenSet[ResourceKind] = frozenset(("pool", "semaphore", "queue", "condition", "async-semaphore"))
#: What a pool keeps its parts in, or counts them with.
_PARTS_IN: FrozenSet[ResourceKind] = frozenset(("queue", "semaphore"))

#: Waits for something outside of the process.
_OUTSIDE: FrozenSet[WaitKind] = frozenset(("socket", "pipe"))
#: Seconds: whoever gives up later than that rather keeps what it has.
_LONG_S = 60.0
#: Waits in which a holder neither works nor waits for something outside of the process.
_RESTS: FrozenSet[WaitKind] = frozenset(
    ("sleep", "condition", "event", "semaphore", "lock", "rlock", "futex", "signal")
)
_TASK_RESTS: FrozenSet[TaskWaitKind] = frozenset(
    ("sleep", "event", "condition", "semaphore", "queue", "lock", "barrier")
)

#: How functions of libraries begin in which a consumer waits for one message after the other, and keeps its connection.
_CONSUMES = ("listen", "consume", "subscribe", "receive", "watch", "stream")

#: Libraries whose ``receive`` takes what comes on a connection: an answer as well as a message.
_TRANSPORTS = ("/anyio/", "/trio/", "/asyncio/")

_SUMMARY = Template(
    "{pool} is exhausted: {holders} that {count:v has|have} taken from it {count:v wait}{at} for more before "
    "{count:v it returns its own|they return theirs}"
)
_KEPT = Template(
    "{pool} is exhausted: {holders} {count:v keeps|keep} what {count:v it has|they have} taken from it and "
    "{count:v rests|rest}{at}"
)
_CROWDED = Template(
    "{pool} is exhausted: {holders} {count:v keeps|keep} what {count:v it has|they have} taken from it while {count:v it "
    "waits|they wait}{at}, and {waiting:n other} {waiting:v wait} for a part"
)
_UNMOVED = Template("{count} of the {waiting} that wait did not go on in {window:.1f} s")
#: One in so many waiters may get its turn in a window.
_FEW = 4
#: Number of waiters that is a queue for a pool of more than twice as many parts.
_QUEUE = 10
_UNHELD = Template("{pool} is exhausted: {count:v one waits|@ wait}{at} for a part, and none was given back")
_NOBODY = Template("all {limit} are in use by its own count; no stack of a thread or task leads to one alone")
_ITS_COUNT = Template("its count is 0; no stack of a thread or task leads to a permit")
_GIVE_BACK = Template(
    "Give back what was taken on every way out: `with` or `async with` around its use, or a release in a `finally` clause. Look "
    "for an early return, an exception or a cancellation between the two, and for what stays open: responses, sessions, cursors."
)
_TAKEN = Template("permits are taken at {frame}")
_ALL = Template("{count:n holder}")
_THREADS = Template("{count:n thread}")
_TASKS = Template("{count:n task}")
_GOES_ON = Template("{pool} is empty, but {holder}, which holds part of it, can go on")
_USED = Template("who waits inside {pool} is the only one that has it: nobody wants a part of it")
_STUCK_OTHERWISE = Template("the holders of {pool} cannot go on for another reason")
_PARTS = Template("{pool}: {parts:n part} of it found in use, by {holders}")
_HAS_ONE = Template("{holder} holds one{since} ({basis:known}), and waits{at} for {what}")
_SINCE = Template(", taken at {frame}")
_ANOTHER = Template("another")
_WHO_WANT_ONE = Template("others that want one")
_ELSE = Template("something else")
_MORE = Template("{count} more {count:v does|do} the same")
_WAITING = Template("{count:n other} {count:v wait} for it: {agents}")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each empty pool: whether one of its holders can go on."""
    for process in view.pythons:
        yield from occupied(view, process)
        yield from crowded(view, process)
        yield from crowded_processes(view, process)
        inner = _inside_gates(process)
        for resource in process.resources:
            if resource.id in inner or not _is_empty(resource):
                continue
            holders = [(Agent(process.pid, w.tid, w.task), w) for w in resource.wakers if w.role == "holder"]
            if not holders:
                if (resource.kind == "pool" and resource.limit) or is_spent(resource):
                    yield from _unheld(view, process, resource)
                continue
            yield from _judged(view, process, resource, holders)


def _judged(view: View, process: Process, resource: Resource, holders: List[Holder]) -> Iterator[Answer]:
    """Yield the answer for an empty pool by what those do that have its parts."""
    if resource.kind == "pool" and not resource.limit and _only_uses_it(process, resource, holders):
        yield No(_USED(pool=resource.description))
        return
    if resource.limit and len(holders) > resource.limit:  # an agent that waits for a part has none
        waits = {agent for agent, _waker in holders if _wants(view, agent, resource)}
        holders = [one for one in holders if one[0] not in waits] or holders
    free = [a for a, _w in holders if not _starves(view, process, resource, a)]
    keep = free or _parked(view, resource, holders)
    if keep and _is_kept(view, process, resource, keep):
        yield _kept(view, process, resource, holders, keep)
    elif free and _is_crowded(view, process, resource, free):
        yield _crowded(view, process, resource, holders)
    elif free:
        yield No(_GOES_ON(pool=resource.description, holder=free[0]))
    elif not any(
        (view.graph.needs(a, resource.id) or _wants(view, a, resource) or _waits_for_one_who_wants(view, a, resource))
        for a, _w in holders
    ) or _in_other_circle(view, resource, holders):
        yield No(_STUCK_OTHERWISE(pool=resource.description))
    elif not resource.limit or len(holders) >= resource.limit:  # an unknown capacity counts as reached
        yield _match(view, process, resource, holders)


def _is_empty(resource: Resource) -> bool:
    """Return whether a resource is a pool without a part left, for which somebody waits."""
    waited_for = resource.waiters or resource.waiting_tasks
    return resource.kind in _POOLS and not resource.value and bool(waited_for)


def _only_uses_it(process: Process, resource: Resource, holders: List[Holder]) -> bool:
    """Return whether the only one that waits inside an object of unknown size has it, as a connection that waits for its peer."""
    waiting = _waiters(process, resource)
    return len(waiting) == 1 and waiting == [agent for agent, _waker in holders]


def _inside_gates(process: Process) -> Set[str]:
    """Return what agents sleep on that wait for a pool: the pool is what they want."""
    found = {t.wait.resource for t in process.threads if t.wait is not None and t.wait.gate is not None}
    found |= {t.wait.resource for t in process.tasks if t.wait is not None and t.wait.gate is not None}
    return {resource for resource in found if resource is not None}


def _starves(view: View, process: Process, resource: Resource, agent: Agent) -> bool:
    """Return whether a holder waits for another part, or can never move again.

    It waits without a time limit. That of a wait for a pool only turns the hang into an error, which is seldom caught.
    """
    one = view.graph.places.thread(agent) or view.graph.places.task(agent)
    wait = one.wait if one is not None else None
    endless = wait is not None and (wait.endless is True or resource.kind == "pool")
    more = _wants(view, agent, resource) and endless
    if resource.kind == "pool" and _waits_for_one_who_wants(view, agent, resource):
        return True
    return (more and not _moves(view, agent)) or view.graph.stuck(agent) is not None


def _waits_for_one_who_wants(view: View, agent: Agent, resource: Resource) -> bool:
    """Return whether a holder waits, without a limit, for the work of another agent that wants a part."""
    way = follow(view, agent)
    edges = (*way.edges, *way.cycle, *((way.edge,) if way.edge is not None else ()))
    at = next((i for i, e in enumerate(edges) if e.resource == resource.id and e.waiter.pid == agent.pid), 0)
    return at > 0 and not any(edge.signals or view.graph.is_limited(edge) for edge in edges[:at])


def _is_kept(view: View, process: Process, resource: Resource, keep: List[Agent]) -> bool:
    """Return whether these holders rest elsewhere, while nobody who waits gets a part."""
    full = resource.limit is not None and sum(w.role == "holder" for w in resource.wakers) >= resource.limit
    if resource.kind != "pool" or not full:
        return False
    return not any(_moves(view, agent) for agent in _waiters(process, resource)) and all(
        _rests(view, agent) for agent in keep
    )


def _wants_a_lost_lock(view: View, agent: Agent) -> bool:
    """Return whether a holder waits for a lock that is locked, and nobody is known to hold."""
    edge = telling(view, agent)
    lock = view.graph.places.resource(agent.pid, edge.resource) if edge is not None else None
    lost = lock is not None and lock.locked is True and lock.owner_tid is None and lock.owner_task is None
    return lost and edge is not None and edge.verb == "wants"


def _parked(view: View, resource: Resource, holders: List[Holder]) -> List[Agent]:
    """Return the holders if all of them wait for an item of a queue: consumers, which keep a part while nothing comes.

    None of them if what they wait for has to come from one that wants a part.
    """
    who = list(dict.fromkeys(agent for agent, _waker in holders))
    edges = [telling(view, agent) for agent in who]
    parked = len(who) > 1 and all(edge is not None and edge.kind in ("queue", "async-queue") for edge in edges)
    bound = any(view.graph.needs(a, resource.id) or _waits_for_one_who_wants(view, a, resource) for a in who)
    return who if parked and not bound else []


def _is_crowded(view: View, process: Process, resource: Resource, free: List[Agent]) -> bool:
    """Return whether as many wait as the pool has parts, of a large one half as many, and no holder computes: they wait, too."""
    limit, waiters = resource.limit or 0, _waiters(process, resource)
    full = resource.kind == "pool" and 0 < limit <= sum(w.role == "holder" for w in resource.wakers)
    if not full or not view.window or len(waiters) < max(limit // 2, min(limit, _QUEUE)) or _turns_over(view, waiters):
        return False
    threads = [view.graph.places.thread(agent) for agent in free]
    return all(thread is None or (thread.wait is not None and view.rests(thread)) for thread in threads)


def _turns_over(view: View, waiters: List[Agent]) -> bool:
    """Return whether those who wait for a part soon get one: many threads did in the window, or all tasks."""
    moved = sum(_moves(view, agent) for agent in waiters)
    if moved * _FEW <= len(waiters):
        return False
    return moved == len(waiters) or any(agent.task is None for agent in waiters)


def _crowded(view: View, process: Process, resource: Resource, holders: List[Holder]) -> Match:
    """Return the match of a pool whose holders go on, each after a wait that is long for those who queue."""
    who = list(dict.fromkeys(agent for agent, _waker in holders))
    pool, behind = resource.description, _waiters(process, resource)
    told = (_TASKS if who[0].task is not None else _THREADS)(count=len(who))
    places = {own_frame(view.graph.places.stack(agent)): agent for agent in who}
    facts: List[Said] = [_PARTS(pool=pool, parts=len(holders), holders=told)]
    facts += [_has_one(view, agent, waker, resource) for agent, waker in holders[:_NAMED]]
    facts += [
        *resource.because,
        _UNMOVED(count=sum(not _moves(view, a) for a in behind), waiting=len(behind), window=view.window or 0.0),
    ]
    moved = sum(_moves(view, agent) for agent in who)  # a pool that is only small lends to one after the other
    gone = sum(_moves(view, agent) for agent in behind)
    nested = any(_wants_of_another(view, agent, resource) for agent in who)  # else what they wait for may come
    queue = len(behind) >= max(resource.limit or 0, _QUEUE) and all(_is_request(view, agent) for agent in behind)
    slow = moved * 2 <= len(who) and gone * _FEW <= len(behind)
    return Match(
        confidence="likely" if slow and (nested or queue) else "possible",
        summary=_CROWDED(
            pool=pool, holders=told, count=len(who), at=clauses.at(next(iter(places))), waiting=len(behind)
        ),
        evidence=tuple(facts),
        culprits=tuple(
            dict.fromkeys(
                (
                    *_at_work(view, who),
                    *(view.culprit_of(agent, frame) for frame, agent in places.items() if frame is not None),
                    *_culprits(view, holders),
                )
            )
        ),
        victims=tuple(view.victim_of(agent) for agent in behind),
        pid=process.pid,
    )


def _is_request(view: View, agent: Agent) -> bool:
    """Return whether a task was begun by a library, as a server does for each request, and not by the program itself."""
    task = view.graph.places.task(agent)
    return task is not None and bool(task.stack) and is_library(task.stack[-1]) and not is_stdlib(task.stack[-1])


def _at_work(view: View, holders: List[Agent]) -> List[Culprit]:
    """Return the program's lines at which those wait that holders in a library's code alone wait for, most frequent first."""
    seen: Counter[PythonFrame] = Counter()
    at: Dict[PythonFrame, Agent] = {}
    for holder in holders:
        way = follow(view, holder)
        edge = way.edge if way.end == holder else None
        for agent in (*way.agents, *(edge.wakers if edge is not None else ())):
            frame = own_frame(view.graph.places.stack(agent))
            if frame is not None and is_library(frame):
                continue
            if frame is not None and agent != holder:
                seen[frame] += 1
                at.setdefault(frame, agent)
            break
    return [view.culprit_of(at[frame], frame) for frame, _count in seen.most_common(2)]


def _wants_of_another(view: View, agent: Agent, pool: Resource) -> bool:
    """Return whether an agent waits, directly or through others, for a part of another pool."""
    way = follow(view, agent)
    edges = (*way.edges, *((way.edge,) if way.edge is not None else ()))
    wanted = (view.graph.places.resource(edge.waiter.pid, edge.resource) for edge in edges)
    return any(one is not None and one.kind in _POOLS and one.id != pool.id for one in wanted)


def _moves(view: View, agent: Agent) -> bool:
    """Return whether an agent went on during the window."""
    thread, task = view.graph.places.thread(agent), view.graph.places.task(agent)
    return view.moves(thread) if thread is not None else task is not None and task.moved is True


def _rests(view: View, agent: Agent) -> bool:
    """Return whether an agent sleeps, or waits for something of its own process, and did not go on during the window.

    It rests in a wait for a peer, too, if that has no time limit, or in a lone core none that is known.
    """
    thread, task = view.graph.places.thread(agent), view.graph.places.task(agent)
    if thread is not None:
        wait = thread.wait
        unlimited = wait is not None and (wait.endless is True or (wait.endless is None and not view.window))
        silent = wait is not None and wait.kind in _OUTSIDE and unlimited
        return wait is not None and (wait.kind in _RESTS or silent) and not view.moves(thread)
    if task is None or task.wait is None or task.moved is True:
        return False
    return task.wait.kind in _TASK_RESTS or (task.wait.kind == "descriptor" and task.wait.endless is True)


def _stays(view: View, agent: Agent) -> bool:
    """Return whether an agent is seen to rest without an end: no time limit, or one of a minute or more.

    Not for a lock that nobody is known to hold, which may be the cause.
    """
    thread, task = view.graph.places.thread(agent), view.graph.places.task(agent)
    wait = thread.wait if thread is not None else task.wait if task is not None else None
    if wait is None or not view.window or not _rests(view, agent) or _wants_a_lost_lock(view, agent):
        return False
    by_peer = task is not None and set_by_protocols(view.graph.places.by_pid[agent.pid].resources, task)
    if by_peer or wait.kind in _OUTSIDE or wait.kind == "descriptor":  # an answer may be slow, a message may never come
        frames = thread.python if thread is not None else task.stack if task is not None else ()
        above = (frame for frame in frames if is_library(frame) and not any(part in frame.file for part in _TRANSPORTS))
        return any(frame.function.startswith(_CONSUMES) for frame in above)
    return wait.endless is True or max(wait.remaining_s or 0.0, wait.timeout_s or 0.0) >= _LONG_S


def _unheld(view: View, process: Process, resource: Resource) -> Iterator[Match]:
    """Yield the match of a pool all of which is out, although nobody is known to have a part; none if a waiter moved."""
    waiters = _waiters(process, resource)
    if any(_moves(view, agent) for agent in waiters):
        return
    others = [t for t in process.threads if t.tid not in resource.waiters]
    at_rest = all(map(partial(_is_at_rest, view, process), others)) and all(
        map(_may_not_return, _other_tasks(process, resource))
    )
    at_rest = at_rest and not any(has_timers(process, loop) for loop in process.loops)  # one may give back a part
    at_rest = at_rest and not _may_be_given_back(view, process, resource, waiters)
    stacks = [view.graph.places.stack(agent) for agent in waiters]
    own = [[f for f in stack if not is_library(f) and not f.file.startswith("<")][:2] for stack in stacks]
    places = {frame: agent for several, agent in zip(own, waiters) for frame in several}
    stuck = {view.graph.stuck(agent) for agent in waiters}
    counted = _NOBODY(limit=resource.limit) if resource.limit else _ITS_COUNT()
    sure = at_rest or None not in stuck or _is_never_filled(view, process, waiters)
    yield Match(
        confidence="proven" if stuck == {"proven"} else "likely" if sure else "possible",
        summary=_UNHELD(pool=resource.description, count=len(waiters), at=clauses.at(own_frame(stacks[0]))),
        evidence=(counted, *(_TAKEN(frame=frame) for frame in resource.taken_at), *resource.because),
        culprits=(
            *(view.culprit_of(agent, frame) for frame, agent in places.items()),
            *(view.culprit(process, frame) for frame in resource.taken_at),
        ),
        remedy=_GIVE_BACK(),
        victims=tuple(view.victim_of(agent) for agent in waiters),
        pid=process.pid,
    )


def _may_be_given_back(view: View, process: Process, resource: Resource, waiters: List[Agent]) -> bool:
    """Return whether code that gives back a part can still run: of an agent that does not wait behind those who want one."""
    behind = {*waiters, *view.graph.behind(frozenset(waiters))}
    able = [
        waker
        for waker in resource.wakers
        if waker.grade == "names" and (waker.tid is not None or waker.task is not None)
    ]
    return any(Agent(process.pid, waker.tid, waker.task) not in behind for waker in able)


def _is_never_filled(view: View, process: Process, waiters: List[Agent]) -> bool:
    """Return whether all code that can still put a part where the waiters wait for it runs behind one of them."""
    behind, slept_on = {*waiters, *view.graph.behind(frozenset(waiters))}, set()
    for agent in waiters:
        one = view.graph.places.thread(agent) or view.graph.places.task(agent)
        slept_on.add(one.wait.resource if one is not None and one.wait is not None else None)
    inner = [view.graph.places.resource(process.pid, ident) for ident in slept_on]
    return all(resource is not None and resource.wakers for resource in inner) and not any(
        waker.grade != "refers" and (waker.grade is None or Agent(process.pid, waker.tid, waker.task) not in behind)
        for resource in inner
        if resource is not None
        for waker in resource.wakers
    )


def _is_at_rest(view: View, process: Process, thread: Thread) -> bool:
    """Return whether a thread has nothing in hand: it rests, serves, or waits for the events of its loop, whose tasks tell more.

    A client of the process itself waits for those who want a part.
    """
    wait = thread.wait
    if wait is None or not view.rests(thread):
        return False
    resource = view.graph.places.resource(process.pid, wait.resource)
    ends = {end.pid for end in resource.ends} if resource is not None and resource.kind == "socket" else set()
    within = ends == {process.pid} and not view.moves(thread)
    return wait.kind in _RESTS or wait.kind == "event-loop" or within or serves(view, process, thread)


def _other_tasks(process: Process, resource: Resource) -> List[Task]:
    return [t for t in process.tasks if t.state != "done" and t.id not in resource.waiting_tasks]


def _may_not_return(task: Task) -> bool:
    """Return whether a task is in a wait after which it will hardly give back a part: for other tasks, or in its own rounds."""
    return task.wait is not None and not task.ready and (task.wait.kind in _TASK_RESTS or bool(task.wait.tasks))


def _waiters(process: Process, resource: Resource) -> List[Agent]:
    """Return the agents that wait for a resource."""
    threads = [Agent(process.pid, tid) for tid in resource.waiters]
    return threads + [Agent(process.pid, task=task) for task in resource.waiting_tasks]


def _kept(view: View, process: Process, resource: Resource, holders: List[Holder], keep: List[Agent]) -> Match:
    """Return the match of a pool whose parts are kept by agents that rest elsewhere."""
    who = list(dict.fromkeys(keep))
    keeping = [(agent, waker) for agent, waker in holders if agent in who]
    pool, told = resource.description, (_TASKS if who[0].task is not None else _THREADS)(count=len(who))
    at = clauses.at(own_frame(view.graph.places.stack(who[0])))
    facts: List[Said] = [_PARTS(pool=pool, parts=len(holders), holders=_ALL(count=len({a for a, _w in holders})))]
    facts += [_has_one(view, agent, waker, resource) for agent, waker in holders[:_NAMED]]
    facts += resource.because
    behind = _waiters(process, resource)
    places = {waker.frame: agent for agent, waker in keeping if waker.frame is not None}
    stay = all(_stays(view, agent) for agent in who) and any(_demands(view, agent) for agent in behind)
    # each waits for another part before it returns its own: a time limit ends that with an error, not with a part
    circular = (
        bool(resource.closed) and {a for a, _w in holders} <= set(behind) and not any(_moves(view, a) for a in who)
    )
    return Match(
        confidence="likely" if stay or circular else "possible",
        summary=_KEPT(pool=pool, holders=told, count=len(who), at=at),
        evidence=tuple(facts),
        culprits=tuple(view.culprit_of(agent, frame) for frame, agent in places.items()),
        victims=tuple(view.victim_of(agent) for agent in behind if agent not in who),
        pid=process.pid,
    )


def _demands(view: View, agent: Agent) -> bool:
    """Return whether an agent waits without a time limit, or with one that is far away, and did not go on."""
    thread, task = view.graph.places.thread(agent), view.graph.places.task(agent)
    wait = thread.wait if thread is not None else task.wait if task is not None else None
    endless = wait is not None and (wait.endless is True or (wait.remaining_s or 0.0) >= _LONG_S)
    return endless and not _moves(view, agent)


def _in_other_circle(view: View, resource: Resource, holders: List[Holder]) -> bool:
    """Return whether a holder is in a wait-for cycle of other resources, which is then the cause."""
    agents = {agent for agent, _waker in holders}
    return any(
        not agents.isdisjoint(cycle.agents) and resource.id not in {edge.resource for edge in cycle.edges}
        for cycle in view.graph.cycles
    )


def _match(view: View, process: Process, resource: Resource, holders: List[Holder]) -> Match:
    graph, who = view.graph, list(dict.fromkeys(a for a, _w in holders))
    pool, told = resource.description, (_TASKS if who[0].task is not None else _THREADS)(count=len(who))
    facts: List[Said] = [_PARTS(pool=pool, parts=len(holders), holders=told)]
    facts += [_has_one(view, agent, waker, resource) for agent, waker in holders[:_NAMED]]
    facts += [_MORE(count=len(holders) - _NAMED)] if len(holders) > _NAMED else []
    facts += resource.because
    behind = _waiters(process, resource)
    waiting = [agent for agent in behind if agent not in who]
    if waiting:
        facts.append(_WAITING(count=len(waiting), agents=tuple(waiting[:5])))
    at = clauses.at(own_frame(graph.places.stack(who[0])))
    proven = _are_read(process, resource) and {graph.stuck(a) for a in who} == {"proven"}
    given_back = _may_be_given_back(view, process, resource, behind)
    return Match(
        confidence="proven" if proven else "possible" if given_back else "likely",
        summary=_SUMMARY(pool=pool, holders=told, count=len(who), at=at),
        evidence=tuple(facts),
        culprits=tuple(_culprits(view, holders)),
        victims=tuple(view.victim_of(agent) for agent in waiting),
        pid=process.pid,
    )


def _are_read(process: Process, resource: Resource) -> bool:
    """Return whether the holders of a pool are known for certain: nobody else has a way to it, or two searches agree.

    They agree if each holder is in a `with` body of the pool, and has to put back what it took out of the queue, or
    acquired of the semaphore, on which those who wait for the pool sleep.
    """
    if resource.closed:
        return True
    slept_on = {t.wait.resource for t in process.threads if t.wait is not None and t.wait.gate == resource.id}
    inner = [r for r in process.resources if r.id in slept_on]
    held = {w.tid for w in resource.wakers if w.role == "holder" and w.basis == "with-slot"}
    found = {w.tid for w in resource.wakers if w.role == "holder"}
    return (
        bool(inner)
        and found == held
        and all(r.kind in _PARTS_IN and held == {w.tid for w in r.wakers if w.role == "holder"} for r in inner)
    )


def _has_one(view: View, agent: Agent, waker: Waker, resource: Resource) -> Text:
    """Return the text on one holder: since when it has its part, and what it waits for."""
    what = (
        _ANOTHER
        if _wants(view, agent, resource)
        else _WHO_WANT_ONE
        if view.graph.needs(agent, resource.id) or _waits_for_one_who_wants(view, agent, resource)
        else _ELSE
    )
    since = _SINCE(frame=waker.frame) if waker.frame is not None else None
    at = clauses.at(own_frame(view.graph.places.stack(agent)))
    return _HAS_ONE(holder=agent, since=since, basis=waker.basis, at=at, what=what())


def _culprits(view: View, holders: List[Holder]) -> Iterator[Culprit]:
    """Return the lines where holders ask for more, with a caller each, then where they took their part; each line once."""
    own = [[f for f in view.graph.places.stack(agent) if not is_library(f)][:2] for agent, _waker in holders]
    wanted = [(frame, agent) for frames, (agent, _waker) in zip(own, holders) for frame in frames]
    places: Dict[PythonFrame, Agent] = {}
    for frame, agent in (*wanted, *((waker.frame, agent) for agent, waker in holders)):
        if frame is not None:
            places.setdefault(frame, agent)
    return (view.culprit_of(agent, frame) for frame, agent in places.items())


def _wants(view: View, agent: Agent, resource: Resource) -> bool:
    """Return whether an agent waits for the resource itself."""
    places = view.graph.places
    thread, task = places.thread(agent), places.task(agent)
    wait = thread.wait if thread is not None else task.wait if task is not None else None
    return wait is not None and resource.id in (wait.resource, wait.gate)
