"""The verdict that follows from the kind of a root alone, for programs that no pattern recognises.

Its confidence is *possible*; *likely* only if nothing can end the wait, as far as the wait graph knows, and what waits is
the program's own work. Each match says what would decide it.
"""

from __future__ import annotations

from functools import partial
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ...evidence import Fact, Process, PythonFrame, Thread
from ...evidence.vocabulary import Deed
from ...findings import Confidence, Culprit, Slot, Template
from ...findings.found import Said
from ...findings.told import RootKind
from ...waitgraph import Agent, Edge
from ..facts import clauses, knowledge
from ..facts.deeds import who_comes_to
from ..facts.peers import by_network
from ..facts.view import View
from ..pattern import Match
from .rest import asks_for_lock
from .roots import Root, blocked_loop, frame_of, waiting
from .walk import Way, only_able
from .works import nobody_works

_MOST = 3
_SHOWN = 5

_WAITS = Template("{agent} {verb} {what}{at}{others}; nothing shows what would end that wait")
_UNREAD = Template("{agent} waits in {call}{at}{others}; what for could not be read")
_STOPS = Template("{agent} {doing}{at}{others}; nothing else that holds the program up was found")
_CYCLE = Template("{count:n agent} {count:v wait} for each other: {agents: → } → back")
_THREADS_CYCLE = Template("{count:n thread} {count:v wait} for each other: {agents: → } → back")
_TASKS_CYCLE = Template("{count:n task} {count:v wait} for each other: {agents: → } → back")
_OTHERS = Template("; {count:n other} {count:v end} there, too")
_LINK = Template("{waiter}{at} {verb} {what}", link=True)
_END = Template("{agent}{at} {verb} {what}")
_DECIDES = Template("what would decide it: {what}")
_SLEEPS = Template("sleeps")
_RUNS = Template("runs")

#: What would decide whether the wait is the fault, by the kind of the root.
_DECIDING: Dict[RootKind, Template] = {
    "lock": Template("who acquired the lock and left without releasing it: look at every acquire() without `with`"),
    "signal": Template("which code was to signal it, and whether that has ended, failed, or signalled before the wait began"),
    "queue": Template("which code was to put the item, and whether it has ended, failed, or filled another queue"),
    "permits": Template("who has the permits, and on which way they are not given back"),
    "pool": Template("who has the parts of the pool, and on which way they are not given back"),
    "future": Template("which code was to set the result, and whether it failed or was dropped before it did"),
    "socket": Template("what the peer does: whether it got the request, and whether it waits, too"),
    "pipe": Template("which processes still have the other end open, and what they wait for"),
    "process": Template("what the child waits for: capture the whole tree, or look at its own stacks"),
    "shared-lock": Template("which process took the lock, and whether it was killed while it held it"),
    "file-lock": Template("which process has the file locked (/proc/locks)"),
    "native-lock": Template("which thread is inside the library that owns the lock; native symbols would name it"),
    "gil": Template("what the thread that has the GIL does in native code"),
    "sleep": Template("whether anything is to happen before the sleep is over"),
    "thread": Template("what the joined thread waits for"),
    "task": Template("what the task awaits: its innermost awaitable could not be read"),
    "cycle": Template("whether another way out of these waits exists: some of them could be ended by more than one agent"),
}  # fmt: skip
#: Kinds of roots that record no holder, so that the cause is unknown even where nothing can end the wait, and children, which
#: have causes of their own, or have ended and will be collected.
_UNTOLD = frozenset(("shared-lock", "permits", "native-lock", "process"))
#: Kinds of roots that only code of the same process can end.
_INSIDE = frozenset(("signal", "queue", "future", "pool", "lock"))
_ANOTHER_CAPTURE = Template("a capture of the running program with a window, for what moves")


#: Kinds of waits that say what a cycle is, whichever of its threads runs a loop.
_TELLING = frozenset(
    ("lock", "rlock", "mutex", "import-lock", "async-lock", "pipe", "socket", "process", "descriptors", "pool")
)


#: Functions whose native code waits for the answer of a peer (grpc/_channel.py of 1.30 to 1.80).
_CLIENTS = (("grpc/_channel.py", "_blocking"), ("grpc/_channel.py", "_next"), ("grpc/_channel.py", "channel_spin"))


#: Waits for signals and items, which nobody holds.
_SIGNALLED = frozenset(("condition", "event", "queue", "barrier", "async-condition", "async-event", "async-queue"))


class Verdict(NamedTuple):
    """The match of a root, under the id of the pattern that its kind belongs to."""

    pattern: str
    match: Match
    root: Root


def floor(view: View) -> Iterator[Verdict]:
    """Yield a verdict for each of the first roots at which a process waits, whatever other patterns say."""
    told: Set[object] = set()
    for process in (one for one in view.processes if one.crash is None):
        for root in waiting(view, process)[:_MOST]:
            pattern, end = pattern_of(view, root), _end(view, root)
            if pattern is not None and end not in told:
                told.add(end)
                yield Verdict(pattern, _match(view, process, root), root)


def _is_unnamed(view: View, root: Root) -> bool:
    """Return whether a root is a wait inside its process that the code of nobody who refers to it is known to end."""
    edge = root.way.edge
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource) if edge is not None else None
    wakers = resource.wakers if resource is not None and root.kind in _INSIDE else ()
    return bool(wakers) and all(waker.grade == "refers" for waker in wakers)


def _end(view: View, root: Root) -> object:
    """Return what roots of several processes have in common that are one: a cycle, an object, or the last agent."""
    edge = root.way.edge
    if root.way.cycle:
        return frozenset(one.waiter for one in root.way.cycle)
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource) if edge is not None else None
    return (resource.key if resource is not None else None) or root.agent


def pattern_of(view: View, root: Root) -> Optional[str]:
    """Return the id of the pattern that the kind of a root belongs to; None if there is none."""
    if _joins_in_loop(view, root.way):
        return "loop-self-wait"
    if root.kind == "cycle":
        return _of_cycle(view, root.way.cycle)
    if blocked_loop(view, root.way) is not None:
        return "blocking-call-in-coroutine"
    thread, process = view.graph.places.thread(root.agent), view.by_pid.get(root.agent.pid)
    if root.kind in ("lock", "native-lock"):
        return _of_lock(view, root)
    if thread is not None and knowledge.resolves(thread):
        return "dns-wait"
    if root.kind in ("signal", "queue", "future"):
        lost = process is not None and process.forked and (process.left_behind or _is_left_behind(view, root))
        notified = root.way.edge is not None and root.way.edge.kind == "async-condition"
        missed = "future-never-resolved" if root.agent.task is not None and not notified else "missed-wakeup"
        return "fork-lost-thread" if lost else missed
    stack = view.graph.places.stack(root.agent)
    if root.kind in ("socket", "sleep") and asks_for_lock(stack, asleep=root.kind == "sleep") is not None:
        return "database-lock-wait"
    return _of_outside(root, thread) if root.kind in ("unknown", "pipe", "sleep") else _PATTERNS.get(root.kind)


def _of_outside(root: Root, thread: Optional[Thread]) -> Optional[str]:
    """Return the id of the pattern for a pipe, a sleep or an unknown wait."""
    if root.kind == "unknown":
        polls = thread is not None and thread.wait is not None and thread.wait.syscall in _POLLS
        return "future-never-resolved" if root.agent.task is not None else "network-wait" if polls else None
    if root.kind == "pipe" and root.way.edge is not None and root.way.edge.verb == "writes to":
        return "pipe-deadlock"
    if root.kind == "pipe" and thread is not None and knowledge.gets_item(thread.python):
        return "missed-wakeup"
    if root.kind == "sleep" and thread is not None and _asks_for_part(thread):
        return "pool-exhausted"
    if root.kind == "sleep" and root.agent.task is not None:
        return "future-never-resolved"  # a library asks for it, and sleeps in between
    return _PATTERNS.get(root.kind)


def _joins_in_loop(view: View, way: Way) -> bool:
    """Return whether the thread of an event loop joins, inside a callback of it, a thread that waits for that loop."""
    wanted = way.edge.wakers if way.edge is not None else ()
    joins = [edge for edge in way.cycle if edge.kind == "thread"]
    joins += [edge for edge in way.edges if edge.kind == "thread" and edge.waiter in wanted]
    threads = [view.graph.places.thread(edge.waiter) for edge in joins]
    return any(
        thread is not None and any(knowledge.in_table(f, knowledge.LOOPS) for f in thread.python) for thread in threads
    )


def _asks_for_part(thread: Thread) -> bool:
    """Return whether a thread sleeps between two attempts of a library to get a part of a pool, which its module's name says."""
    inside = thread.python[0] if thread.python else None
    return inside is not None and knowledge.is_library(inside) and "pool" in inside.file.rpartition("/")[2].lower()


def _of_lock(view: View, root: Root) -> Optional[str]:
    """Return the id of the pattern for a lock: held by who waits for it, left behind by a fork, or held by nobody."""
    process, edge = view.by_pid.get(root.agent.pid), root.way.edge
    by_itself = edge is not None and edge.kind != "rlock" and root.agent in edge.named
    if root.kind == "lock" and view.graph.places.thread(root.agent) is not None and by_itself:
        return "self-deadlock"
    if process is not None and process.forked:
        return "fork-inherited-lock"
    thread = view.graph.places.thread(root.agent)
    if root.kind == "native-lock" and thread is not None and any(map(_asks_a_peer, thread.python[:1])):
        return "network-wait"
    return "dns-wait" if thread is not None and knowledge.resolves(thread) else _PATTERNS.get(root.kind)


def _asks_a_peer(frame: PythonFrame) -> bool:
    """Return whether a function's native code waits for the answer of a peer, on a lock of its own."""
    return knowledge.in_table(frame, _CLIENTS)


#: System calls on descriptors that a lone core says nothing about.
_POLLS = knowledge.SELECT_CALLS | {"recvfrom", "recvmsg", "connect"}
_PATTERNS: Dict[RootKind, str] = {
    "lock": "orphaned-lock",
    "permits": "pool-exhausted",
    "pool": "pool-exhausted",
    "task": "future-never-resolved",
    "socket": "network-wait",
    "pipe": "pipe-never-closed",
    "process": "child-wait",
    "shared-lock": "semaphore-orphan",
    "file-lock": "file-lock-wait",
    "native-lock": "orphaned-lock",
    "gil": "gil-held-by-native",
    "sleep": "sleeping",
}


def _of_cycle(view: View, cycle: Tuple[Edge, ...]) -> str:
    kinds = {edge.kind for edge in cycle}
    if kinds.isdisjoint(_TELLING) and any(_runs_loop(view, edge) for edge in cycle):
        return "loop-self-wait"
    if kinds & {"pipe", "socket", "process", "descriptors"}:
        return _between_ends(view, cycle)
    if "pool" in kinds and kinds <= {"pool", "thread"}:
        return "pool-exhausted"
    if "import-lock" in kinds:
        return "import-deadlock"
    if any(edge.kind == "turn" for edge in cycle):
        return "loop-self-wait"
    held = any(edge.verb == "wants" for edge in cycle)
    if not held and (any(edge.signals for edge in cycle) or kinds <= _SIGNALLED):
        return "future-never-resolved" if any(edge.waiter.task is not None for edge in cycle) else "missed-wakeup"
    return "async-deadlock" if any(edge.waiter.task is not None for edge in cycle) else "lock-order-deadlock"


def _between_ends(view: View, cycle: Tuple[Edge, ...]) -> str:
    """Return the id for a cycle of waits for processes, or for the other ends of pipes and sockets."""
    kinds = {edge.kind for edge in cycle}
    if {"process", "pipe"} <= kinds and not any(edge.verb == "writes to" for edge in cycle):
        return "pipe-never-closed"  # a child is to end, which reads until all have closed their ends
    sockets = [view.graph.places.resource(edge.waiter.pid, edge.resource) for edge in cycle if edge.verb == "reads"]
    if kinds == {"socket"} and len(sockets) == len(cycle) and all(map(by_network, sockets)):
        return "network-wait"  # nobody sends first
    return "pipe-deadlock"


def _runs_loop(view: View, edge: Edge) -> bool:
    """Return whether a thread of a cycle runs an event loop, and waits inside one of its callbacks or tasks."""
    thread, place = view.graph.places.thread(edge.waiter), view.graph.places.by_pid.get(edge.waiter.pid)
    loop = place.loop_of.get(edge.waiter.tid or 0) if place is not None and thread is not None else None
    return loop is not None and thread is not None and thread.wait is not None and thread.wait.kind != "event-loop"


def _match(view: View, process: Process, root: Root) -> Match:
    way = root.way
    told = [edge for edge in (*way.edges, *((way.edge,) if way.edge is not None else ()))]
    facts: List[Said] = [_link(view, edge) for edge in told[-_SHOWN:]]
    facts.append(_DECIDES(what=_DECIDING.get(root.kind, _ANOTHER_CAPTURE)()))
    agents = [edge.waiter for edge in way.cycle] or [way.end, *reversed(way.agents[:-1])]
    places = [(agent, frame) for agent in agents for frame in [frame_of(view, agent)] if frame is not None]
    return Match(
        confidence=_confidence(view, root),
        summary=_summary(view, root, agents),
        evidence=tuple(dict.fromkeys(facts)),
        culprits=tuple(_culprits(view, root, places)),
        victims=tuple(view.victim_of(agent) for agent in way.agents[:-1]),
        pid=way.end.pid,
        unnamed=_is_unnamed(view, root),
    )


def _confidence(view: View, root: Root) -> Confidence:
    """Return *likely* if the main thread or a job waits for what nothing can end, else *possible*."""
    if root.rank < 2:
        return "possible"
    if root.kind in ("lock", "native-lock") and _is_alone(view, root):
        return "likely"
    if root.kind in _UNTOLD:
        return "possible"
    if root.kind == "cycle":
        return (
            "likely"
            if all(map(partial(_has_no_other, view), root.way.cycle, _following(root.way.cycle)))
            else "possible"
        )
    if view.graph.stuck(root.agent) is not None or _is_left_behind(view, root):
        return "likely"
    edge, process = root.way.edge, view.by_pid.get(root.agent.pid)
    inside = root.rank == 3 and root.kind in _INSIDE and edge is not None and process is not None
    if inside and edge is not None and process is not None and nobody_works(view, process, root.way.agents, edge):
        return "likely"
    return "possible"


def _is_left_behind(view: View, root: Root) -> bool:
    """Return whether a thread that fork left behind served what is waited for, and no code that is left is known to end it."""
    edge = root.way.edge
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource) if edge is not None else None
    return resource is not None and resource.left_behind is True and all(w.grade != "names" for w in resource.wakers)


def _is_alone(view: View, root: Root) -> bool:
    """Return whether a forked process has only the thread that waits for the lock, which therefore nobody can release."""
    process = view.by_pid.get(root.agent.pid)
    return process is not None and process.forked is True and len(process.threads) == 1


def _following(cycle: Tuple[Edge, ...]) -> Tuple[Agent, ...]:
    """Return the agent that each wait of a cycle is followed to."""
    waiters = [edge.waiter for edge in cycle]
    return (*waiters[1:], waiters[0])


def _has_no_other(view: View, edge: Edge, following: Agent) -> bool:
    """Return whether nothing but the next agent of a cycle is known to end a wait.

    A forked process that has a pipe's end by inheritance, and the waiter's own process, do not count.
    """
    if edge.kind == "lock" and _may_be_released(view, edge):
        return False
    if edge.signals or edge.kind in ("lock", "rlock"):  # of a lock without a known holder, whose code alone releases it
        named = not view.graph.is_limited(edge) and only_able(view, edge, named=True) == following
        if edge.signals or named:
            return named
    if _awaits_a_client(view, edge, following):
        return False
    others = [agent for agent in edge.wakers if agent not in (following, Agent(following.pid), Agent(edge.waiter.pid))]
    inherited = [agent for agent in others if agent.is_process and _is_forked(view, agent.pid)]
    if view.graph.is_limited(edge) or edge.everyone or edge.outside or len(others) > len(inherited):
        return False
    return edge.kind == "process" or not any(
        _has_user(view, one.pid, edge, following) for one in edge.wakers if one.is_process
    )


def _may_be_released(view: View, edge: Edge) -> bool:
    """Return whether a thread that goes on may come to release a plain lock, which no `with` statement is known to have."""
    process = view.by_pid.get(edge.waiter.pid)
    lock = view.graph.places.resource(edge.waiter.pid, edge.resource)
    if process is None or lock is None or lock.owner_basis not in (None, "inferred"):
        return False
    return bool(who_comes_to(view, process, "unlocks"))


def _awaits_a_client(view: View, edge: Edge, following: Agent) -> bool:
    """Return whether a server waits for what its client may never want to send: the client is not at a socket itself."""
    resource = view.graph.places.resource(edge.waiter.pid, edge.resource)
    if resource is None or not (resource.accepted or resource.listening):
        return False
    return not any(one.kind in ("socket", "descriptors") for one in view.graph.edges.get(following, ()))


def _has_user(view: View, pid: int, edge: Edge, following: Agent) -> bool:
    """Return whether another thread of a process than the one that is followed may use its end of a pipe or socket.

    It waits at the end, or for something else without a limit, after which it may come back to it; or it goes on, and its
    code reads, or releases a lock on a file.
    """
    process = view.by_pid.get(pid)
    others = [one for one in process.threads if Agent(pid, one.tid) not in (following, edge.waiter)] if process else []
    deed: Optional[Deed] = "releases" if edge.kind == "file-lock" else "reads" if edge.verb == "writes to" else None
    if process is not None and deed is not None and any(one in others for one in who_comes_to(view, process, deed)):
        return True
    return any(one.python and one.wait is not None and one.wait.endless and not view.idle(one) for one in others)


def _is_forked(view: View, pid: int) -> bool:
    process = view.by_pid.get(pid)
    return process is not None and process.forked is True


def _summary(view: View, root: Root, agents: List[Agent]) -> Said:
    others = _OTHERS(count=root.others) if root.others else None
    if root.kind == "cycle":
        threads, tasks = all(one.tid is not None for one in agents), all(one.task is not None for one in agents)
        cycle = _THREADS_CYCLE if threads else _TASKS_CYCLE if tasks else _CYCLE
        return cycle(count=len(agents), agents=tuple(agents[:6]))
    at, edge = clauses.at(frame_of(view, root.agent)), root.way.edge
    if edge is None:
        return _STOPS(agent=root.agent, doing=_doing(view, root), at=at, others=others)
    if isinstance(edge.what, Fact) and edge.what.code == "some-call":
        return _UNREAD(agent=root.agent, at=at, call=edge.what.slots.get("call"), others=others)
    return _WAITS(agent=root.agent, verb=edge.verb, at=at, what=edge.what, others=others)


def _doing(view: View, root: Root) -> Slot:
    thread = view.graph.places.thread(root.agent)
    if thread is not None and thread.wait is not None and thread.wait.phrase:
        return thread.wait.phrase
    return _SLEEPS() if root.kind == "sleep" else _RUNS()


def _link(view: View, edge: Edge) -> Said:
    return _LINK(waiter=edge.waiter, at=clauses.at(frame_of(view, edge.waiter)), verb=edge.verb, what=edge.what)


def _culprits(view: View, root: Root, places: List[Tuple[Agent, PythonFrame]]) -> Iterator[Culprit]:
    """Yield the program's lines, the one at the root first, each once."""
    seen = set()
    for agent, frame in places:
        if frame not in seen:
            seen.add(frame)
            yield view.culprit_of(agent, frame)
