"""A thread or task waits for a peer on the network, without a timeout.

**What it looks like.** The main thread (or one that it waits for) is in `recv`, `connect` or a read of a socket; there is
no timeout; the other end does not answer. Servers that take one request at a time may wait for each other's answers. A client
that gets its answers, but waits nearly all the time, round by round, is *possible*.

**Easily mistaken for** an idle server: a server's listening socket and its clients' connections wait for the next request
by design. They differ by the port: a connection whose local port this program listens on was accepted.

**Why it hangs.** Without a timeout, a lost answer, a firewall or a peer that itself waits means waiting forever.

**Remedy.** Give the socket or the client library a timeout, and find out why the peer is silent.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, List, Optional, Set, Tuple

from ....evidence import Pool, Process, Resource, Thread
from ....findings import Template
from ....findings.found import Said
from ....waitgraph import Agent, Edge
from ...facts import clauses
from ...facts.alike import TASKS_WAIT, THREADS_WAIT, Alike, told_once
from ...facts.knowledge import SELECT_CALLS, awaits_network, own_frame
from ...facts.peers import answers_later, by_network, goes_on_soon, is_with_itself, kept_out, lasts
from ...facts.sessions import is_unasked
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from ...roots.rest import asks_for_lock, in_request
from ...roots.walk import follow
from ..asyncio.wakers import peers_only, set_by_protocols
from ..locks.queuedwork import is_full
from .pipes import awaits_orders
from .silentpeers import all_by_network, caught, circles, told

PATTERN = Pattern(
    id="network-wait",
    tier="peer",
    title="waits for a network peer, without a timeout",
    explanation="The program waits for data from another program and has set no limit on how long.",
    remedy=(
        "Set a timeout (socket.settimeout, the client library's timeout argument, asyncio.timeout) and look at the peer: "
        "did it get the request, does it wait for more?"
    ),
    references=("https://docs.python.org/3/library/socket.html#socket.socket.settimeout",),
)

_SUMMARY = Template("{thread} waits for {peer}{at}, {limit}")
_PEER = Template("a network peer")
_NO_TIMEOUT = Template("without a timeout")
_LONG_TIMEOUT = Template("with a timeout that ends in {seconds:.0f} s")
_TIMEOUT_UNKNOWN = Template("with no known timeout")
_CALL = Template("{thread} is in the system call {call}, {limit}")
_WANTS_LOCK = Template("{thread} waits for a lock that a server keeps: the server answers when it is free")
_PEER_IN_TREE = Template("the other end is in the same process tree: look at the process that should answer there")
_KEPT_OUT = Template(
    "it is a client of its own, and nobody accepts connections meanwhile: {count:n other client} {count:v waits|wait} for that"
)
_PEER_UNKNOWN = Template("which peer it is was not recorded: only a capture of the running process shows that")
_SERVED_HERE = Template(
    "requests of the same process are at work, or wait for what comes soon: the answer may only be slow"
)
_PEER_SIGNALLED = Template(
    "code of the peer waits until another thread there gives it something: its answer may come then"
)
_MAY_BE_IDLE = Template("nothing shows that the main thread waits for it: it may be idle by design")
_TASK_WAITS = Template("{task} waits for a peer at {frame}{limit}")
_NO_LIMIT = Template(", and nothing limits how long")
_SUSPENDED = Template("{task} is suspended in {function}, awaited at {frame}")
_LOOP_SLEEPS = Template("its event loop ({thread}) sleeps in {call}{limit}")
_NO_TIMER = Template(", without a timer")

_OCCUPIED = Template(
    "{count:n worker} of {pool} {count:v waits|wait} for {count:v its client|their clients} to send something{at}, and "
    "{queued:n job} {queued:v wait} in its queue"
)
_OCCUPIED_REMEDY = Template(
    "Give reads from clients a time limit (socket.settimeout, the server's timeout option), keep idle connections out of the "
    "workers, and read a request's whole body, or close the connection, before it is answered."
)
#: System calls in which a client waits for an answer; least looks, and least share of them in such a call.
_RECEIVES = SELECT_CALLS | {"recvfrom", "recvmsg", "read"}
_LOOKS, _MOSTLY = 10, 0.8
_ROUNDS = Template("{thread} gets its answers from {peer}, but waits for them {share:.0%} of the time{at}")
_WOKE = Template("{thread} gave up the CPU {often:.0f} times a second: that many answers came, or fewer")
_ROUNDS_REMEDY = Template(
    "Ask for more at a time, or ask again before the answer is there (pipelining, several connections). If each round takes "
    "about 40 ms, set TCP_NODELAY, or write a request in one piece: of two small segments the second waits until the first is "
    "confirmed."
)

_IN_TURN = Template(
    "{agents: and } wait for each other's answers: each is at work for the other, and takes no other request meanwhile"
)
_NEXT = Template("{agent}{at} waits for {what}")
_IN_TURN_REMEDY = Template(
    "Do not ask a server that answers one request at a time from inside of a request that it waits for: pass on what the "
    "caller knows, ask afterwards, or serve each request in a thread of its own. Set a timeout on every request between servers."
)

_PIPE_DEADLOCK = Template("{thread} waits for a process that itself waits to read: nobody sends first")
_WAKES = Template("{thread} wakes again and again from its waits for a peer")
_AWAITS_CONNECTIONS = Template("{thread} acts as a server: it waits for connections")
_AWAITS_CLIENT = Template("{thread} acts as a server: it waits for its client to send something")
_HAS_TIMEOUT = Template("{thread} waits for a peer with a timeout")
_NOTHING_ASKED = Template(
    "{waiter} is connected to a session of a database that is idle: it waits for a notification, not for an answer"
)
_TASK_SERVES = Template("{task} waits for the network in a program that acts as a server")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread and task that waits for a network peer."""
    talking = caught(view)
    yield from (told(view, circle) for circle in circles(view) if all_by_network(circle))
    yield from (_asked_in_turn(view, cycle) for cycle in _circles_of_requests(view, talking))
    for process in view.processes:
        resources, found = {r.id: r for r in process.resources}, []
        for thread in process.threads:
            if thread.wait is None or thread.wait.kind != "socket" or view.idle(thread) or not view.rests(thread):
                continue
            resource, who = resources.get(thread.wait.resource or ""), clauses.named(thread)
            if Agent(process.pid, thread.tid) in talking:
                yield No(_PIPE_DEADLOCK(thread=who))
            elif view.moves(thread):
                yield _in_rounds(view, process, thread, resource) or No(_WAKES(thread=who))
            elif _serves(thread, resource):
                others = kept_out(view, process) if resource is not None and resource.accepted else []
                if resource is not None and others and (thread.wait.endless is None or lasts(thread.wait)):
                    yield _keeps_out(view, process, thread, resource, others)
                    continue
                serves = _AWAITS_CONNECTIONS if resource and resource.listening else _AWAITS_CLIENT
                yield No(serves(thread=who))
            elif is_unasked(view, resource):
                yield No(_NOTHING_ASKED(waiter=who))
            elif asks_for_lock(thread.python, asleep=False) is not None:
                yield No(_WANTS_LOCK(thread=who))
            elif thread.wait.endless is False:
                yield No(_HAS_TIMEOUT(thread=who))
            else:
                where = own_frame(thread.python), resource.remote if resource else None
                found.append(Alike(where, who, _thread(view, process, thread, resource)))
        yield from told_once(found, THREADS_WAIT)
        yield from (one for pool in process.pools for one in [_occupied(view, process, pool)] if one is not None)
        yield from _tasks(view, process)


def _circles_of_requests(view: View, talking: FrozenSet[Agent]) -> Iterator[Tuple[Edge, ...]]:
    """Yield cycles of agents each of which, at work for a client, waits for the answer of the next; processes are left out.

    In each process of a cycle no other thread could answer meanwhile. ``talking``: peers none of which sends first.
    """
    known: Set[FrozenSet[Agent]] = set()
    for process in view.pythons:
        for thread in process.threads:
            if thread.wait is None or thread.wait.kind != "socket" or not view.window:
                continue
            cycle = follow(view, Agent(process.pid, thread.tid)).cycle
            asks = tuple(edge for edge in cycle if not edge.waiter.is_process)
            agents = frozenset(edge.waiter for edge in asks)
            if (
                agents
                and agents not in known
                and agents.isdisjoint(talking)
                and all(_asks(view, edge) for edge in asks)
            ):
                known.add(agents)
                if len(agents) > 1 and all(_answers_alone(view, edge, agents) for edge in asks):
                    yield asks


def _answers_alone(view: View, edge: Edge, agents: FrozenSet[Agent]) -> bool:
    """Return whether nobody but the agents of a cycle could answer a request: no other thread of the process that was asked."""
    (waker, *more) = edge.wakers or (None,)
    place = view.graph.places.by_pid.get(waker.pid) if waker is not None and not more else None
    if waker is None or place is None or not waker.is_process:
        return waker in agents
    others = (t.tid for t in place.process.threads if t.python and t.tid not in place.quiet)
    return all(Agent(waker.pid, tid) in agents for tid in others)


def _asks(view: View, edge: Edge) -> bool:
    """Return whether a thread waits for its peer on the network, without an end, and did not go on during the window."""
    thread = view.graph.places.thread(edge.waiter)
    if thread is None or thread.wait is None or view.moves(thread):
        return False
    return by_network(view.graph.places.resource(edge.waiter.pid, edge.resource)) and lasts(thread.wait)


def _asked_in_turn(view: View, cycle: Tuple[Edge, ...]) -> Match:
    """Return the match of servers that wait for each other's answers."""
    agents = [edge.waiter for edge in cycle]
    places = {agent: own_frame(view.graph.places.stack(agent)) for agent in agents}
    return Match(
        confidence="likely",
        summary=_IN_TURN(agents=tuple(agents)),
        evidence=tuple(_NEXT(agent=e.waiter, at=clauses.at(places[e.waiter]), what=e.what) for e in cycle),
        culprits=tuple(view.culprit_of(agent, frame) for agent, frame in places.items() if frame is not None),
        victims=tuple(view.victim_of(one) for one in view.graph.behind(frozenset(agents)) if not one.is_process)[:20],
        remedy=_IN_TURN_REMEDY(),
        pid=agents[0].pid,
    )


def _serves(thread: Thread, resource: Optional[Resource]) -> bool:
    """Return whether the thread waits as a server: for a connection, or on an accepted one."""
    if thread.wait is not None and thread.wait.syscall in ("accept", "accept4"):
        return True
    return resource is not None and (resource.listening is True or resource.accepted is True)


def _is_served_here(view: View, process: Process, resource: Optional[Resource]) -> bool:
    """Return whether a connection leads to the process itself, and a request is at work there, or about to go on.

    So is one that waits for another agent, such as a child process, that is.
    """
    if resource is None or not is_with_itself(process, resource):
        return False
    at_work = (Agent(process.pid, one.tid) for one in process.threads if in_request(one))
    return any(goes_on_soon(view, follow(view, agent).end) for agent in at_work)


def _thread(view: View, process: Process, thread: Thread, resource: Optional[Resource]) -> Match:
    frame = own_frame(thread.python)
    matters = view.matters(process, thread)
    who, call = clauses.named(thread), thread.wait.syscall if thread.wait else None
    peer = resource.remote if resource and resource.remote else _PEER()
    endless = thread.wait is not None and thread.wait.endless is True
    limit = _NO_TIMEOUT() if endless else _TIMEOUT_UNKNOWN()
    facts: List[Said] = [_CALL(thread=who, call=call, limit=limit)]
    peer_moves = resource is not None and resource.peer_in_tree is True and view.others_move(process)
    later, served = answers_later(view, process, resource), _is_served_here(view, process, resource)
    if resource is not None:
        facts.append(resource.description)
        if resource.peer_in_tree:
            facts.append(_PEER_IN_TREE())
    else:
        facts.append(_PEER_UNKNOWN())
    orders = awaits_orders(view, process, thread, resource)
    agent, end = Agent(process.pid, thread.tid), follow(view, Agent(process.pid, thread.tid)).end
    # the peer's own wait is the answer, or it is only slow
    elsewhere = end.pid != process.pid or (end != agent and goes_on_soon(view, end))
    facts += [orders] if orders else []
    facts += [_PEER_SIGNALLED()] if later else [_SERVED_HERE()] if served else []
    if not matters:
        facts.append(_MAY_BE_IDLE())
    return Match(
        confidence="likely"
        if matters and endless and frame is not None and not (peer_moves or later or served or orders or elsewhere)
        else "possible",
        summary=_SUMMARY(thread=who, peer=peer, at=clauses.at(frame), limit=limit),
        evidence=tuple(facts),
        culprits=(view.culprit(process, frame, thread),) if frame is not None else (),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        pid=process.pid,
    )


def _in_rounds(view: View, process: Process, thread: Thread, resource: Optional[Resource]) -> Optional[Match]:
    """Return the match of a client that gets its answers, but waits for them nearly all the time; None for any other thread."""
    frame, seen = own_frame(thread.python), thread.counters.syscalls if thread.counters is not None else {}
    looks, idle = sum(seen.values()), sum(seen.get(call, 0) for call in _RECEIVES)
    if frame is None or resource is None or _serves(thread, resource) or not view.matters(process, thread):
        return None
    if looks < _LOOKS or idle < _MOSTLY * looks or (view.cpu_share(thread) or 0.0) > 1 - _MOSTLY:
        return None
    place = frame.file, frame.function
    if view.sampled_share(thread, lambda frames: any((f.file, f.function) == place for f in frames)) < _MOSTLY:
        return None
    return Match(
        confidence="possible",
        summary=_ROUNDS(
            thread=clauses.named(thread), peer=resource.remote or _PEER(), at=clauses.at(frame), share=idle / looks
        ),
        evidence=(resource.description, _WOKE(thread=clauses.named(thread), often=view.switches(thread) or 0.0)),
        culprits=(view.culprit(process, frame, thread),),
        remedy=_ROUNDS_REMEDY(),
        pid=process.pid,
    )


def _keeps_out(view: View, process: Process, thread: Thread, resource: Resource, others: List[Process]) -> Match:
    """Return the match of a server's only thread that waits for one client, while others wait to be accepted."""
    frame, who = own_frame(thread.python), clauses.named(thread)
    wait = thread.wait
    call, lasting = (wait.syscall, lasts(wait)) if wait is not None else (None, False)
    left = wait.remaining_s if wait is not None and wait.endless is False else None
    limit = _LONG_TIMEOUT(seconds=left) if left is not None else _NO_TIMEOUT() if lasting else _TIMEOUT_UNKNOWN()
    return Match(
        confidence="likely" if lasting and frame is not None else "possible",
        summary=_SUMMARY(thread=who, peer=resource.remote or _PEER(), at=clauses.at(frame), limit=limit),
        evidence=(
            _CALL(thread=who, call=call, limit=limit),
            resource.description,
            _KEPT_OUT(count=len(others)),
        ),
        culprits=(view.culprit(process, frame, thread),) if frame is not None else (),
        victims=tuple(view.victim(one, main) for one in others for main in [view.main(one)] if main is not None),
        pid=process.pid,
    )


def _occupied(view: View, process: Process, pool: Pool) -> Optional[Match]:
    """Return the match of a server's pool with queued jobs, all of whose workers wait, without an end, for silent clients."""
    resources = {r.id: r for r in process.resources}
    workers = [thread for tid in pool.threads for thread in [view.thread(process, tid)] if thread is not None]
    links = [resources.get(thread.wait.resource or "") if thread.wait is not None else None for thread in workers]
    kept = [link for thread, link in zip(workers, links) if link is not None and _is_kept(view, thread, link)]
    if not view.window or not is_full(pool) or len(kept) < len(pool.threads):
        return None
    places = [(thread, frame) for thread in workers for frame in [own_frame(thread.python)] if frame is not None]
    at = clauses.at(places[0][1]) if places else None
    behind = view.graph.behind(frozenset(Agent(process.pid, thread.tid) for thread in workers))
    return Match(
        confidence="likely",
        summary=_OCCUPIED(count=len(workers), pool=pool.description, at=at, queued=pool.queued),
        evidence=tuple(dict.fromkeys(link.description for link in kept)),
        culprits=tuple(dict.fromkeys(view.culprit(process, frame, thread) for thread, frame in places)),
        victims=tuple(view.victim_of(agent) for agent in behind if not agent.is_process)[:20],
        remedy=_OCCUPIED_REMEDY(),
        pid=process.pid,
    )


def _is_kept(view: View, thread: Thread, link: Resource) -> bool:
    """Return whether a thread waits on a connection that its server has accepted, and did not go on during the window."""
    return link.accepted is True and thread.wait is not None and lasts(thread.wait) and not view.moves(thread)


def _tasks(view: View, process: Process) -> Iterator[Answer]:
    """Yield answers for tasks that wait for the network on an idle loop: clients, unless the program listens."""
    loops = {loop.id: view.thread(process, loop.tid) for loop in process.loops}
    resources = {r.id: r for r in process.resources}
    alone, found = peers_only(process), []
    for task in process.tasks:
        thread = loops.get(task.loop or "")
        if task.state != "pending" or thread is None or not (awaits_network(task.stack) or task.id in alone):
            continue
        wait, asks = thread.wait, set_by_protocols(resources, task)
        moves = task.moved if asks and task.moved is not None else view.moves(thread)
        if wait is None or wait.kind != "event-loop" or moves:
            continue  # what else its loop does sets no future of a protocol
        endless = task.wait.endless is True if asks and task.wait is not None else wait.endless is True
        frame = own_frame(task.stack)
        resource = resources.get(task.resource or alone.get(task.id, ""))
        if resource is not None and resource.kind != "socket":
            continue  # pipes and terminals have patterns of their own
        serves = resource.accepted if resource is not None else bool(process.listening)
        who = clauses.task(task)
        if serves or frame is None:
            yield No(_TASK_SERVES(task=who))
            continue
        if is_unasked(view, resource):
            yield No(_NOTHING_ASKED(waiter=who))
            continue
        known = resource is not None or process.listening is not None
        peer_moves = resource is not None and resource.peer_in_tree is True and view.others_move(process)
        sure = (
            known
            and not (peer_moves or answers_later(view, process, resource))
            and endless
            and view.matters(process, thread)
        )
        match = Match(
            confidence="likely" if sure else "possible",
            summary=_TASK_WAITS(task=who, frame=frame, limit=_NO_LIMIT() if sure else None),
            evidence=(
                _SUSPENDED(task=who, function=task.stack[0].function, frame=frame),
                _LOOP_SLEEPS(
                    thread=clauses.named(thread), call=wait.syscall, limit=_NO_TIMER() if wait.endless else None
                ),
                *((resource.description,) if resource is not None else ()),
            ),
            culprits=(view.culprit(process, frame, thread, task.name),),
            pid=process.pid,
        )
        found.append(Alike((frame, resource.remote if resource else None), who, match))
    yield from told_once(found, TASKS_WAIT)
