"""The thread of an event loop waits, blocked, for work that only that loop could do.

**What it looks like.** The loop's thread is in `Future.result()`, `Event.wait()`, `queue.get()` or the like, called from a
coroutine or a callback, at 0 % CPU; the coroutine or callback that it waits for is in the ready queue of that very loop,
or among its tasks. No task of the loop moves.

**Easily mistaken for** `blocking-call-in-coroutine`, where the call does return eventually; `missed-wakeup`, where the waiting
thread runs no loop.

**Why it hangs.** A loop runs one callback at a time on its thread. As long as one blocks there, nothing that it waits for
can begin: not the coroutine given to `run_coroutine_threadsafe`, not the callback given to `call_soon_threadsafe`, not the
acceptance of a connection, if the thread waits for an answer of its own server.

**Remedy.** Await it (`await coroutine`, `await asyncio.wrap_future(future)`), or do the waiting on another thread
(`asyncio.to_thread`). Code that may be called on either thread has to check which one it is on. A server that sends requests
to itself should call its own function instead, or send them from another thread, with a time limit.
"""

from __future__ import annotations

import itertools
from typing import FrozenSet, Iterator, Optional, Tuple

from ....evidence import Loop, Process, PythonFrame, Resource, Thread
from ....evidence.vocabulary import ResourceKind
from ....findings import Slot, Template
from ....findings.found import Said
from ....waitgraph import Agent, Cycle
from ...facts import clauses
from ...facts.knowledge import BRIDGES, in_table, is_library, is_stdlib, own_frame
from ...facts.peers import is_other_end
from ...facts.view import View
from ...pattern import Answer, Match, Pattern
from .toolkits import blocked_toolkits

PATTERN = Pattern(
    id="loop-self-wait",
    tier="specific",
    title="the loop's own thread waits for work that only that loop could do",
    explanation=(
        "An event loop runs one callback at a time on its thread. This thread blocks inside such a callback until something "
        "is done that the same loop would have to do later, so it is never done."
    ),
    remedy=(
        "Await instead of blocking: `await` the coroutine itself, or `asyncio.wrap_future(future)`; move a call that must "
        "block to another thread with `asyncio.to_thread` or `run_in_executor`."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/asyncio-task.html#asyncio.run_coroutine_threadsafe",
        "https://docs.python.org/3/library/asyncio-dev.html#running-blocking-code",
    ),
)  # fmt: skip

#: Hosts of a listening socket that accepts on every address of the machine.
_ANY = ("0.0.0.0", "::", "[::]")  # noqa: S104 - compared with, not bound to
#: Kinds of resources that code on the same loop might have signalled.
_SIGNALLED: FrozenSet[ResourceKind] = frozenset(("event", "condition", "queue", "semaphore", "barrier", "future"))

_BLOCKS = Template(
    "{thread} runs an event loop and blocks it{at}: it waits for {what}, and only that loop could end the wait"
)
_AN_ANSWER = Template("an answer over {socket}")
_WAITS = Template("{thread} waits for {what}")
_WITHOUT_LIMIT = Template("{thread} waits for {what}, without a time limit")
_WATCHES = Template("{thread} runs an event loop: it watches {socket}, the other end of that connection")
_ACCEPTS = Template(
    "{thread} runs an event loop: it accepts the connections to {address}, and no other process has that socket{queue}"
)
_IN_QUEUE = Template(" ({count:n connection} {count:v wait} to be accepted)")
_STANDS_STILL = Template("{thread} is the thread of that event loop, so nothing in its ready queue can run")
_CALLBACKS = Template("its ready queue has {ready:n callback}: {frames: and }, of the very code that waits")
#: Seconds: a shorter time limit ends the wait soon. A longer one ends it with an error, not with what is waited for.
_LONG_S = 5.0
#: Functions in which a thread waits for what it has handed to a loop.
_ASKS = (*BRIDGES, ("twisted/internet/threads.py", "blockingCallFromThread"))
#: Most callbacks named.
_NAMED = 3
_JOINS = Template("{thread} joins {joined} inside a callback of its event loop, without a time limit")
_BRIDGE = Template("{joined} waits for work that it has handed to a loop")
_WORK = Template("its event loop has {ready:n ready callback} and {tasks:n waiting task}")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each loop thread that waits for work of its own loop, without a time limit or with a long one."""
    for process in view.pythons:
        yield from blocked_toolkits(view, process)
        for loop in process.loops:
            thread = view.thread(process, loop.tid)
            wait = thread.wait if thread is not None else None
            if thread is None or wait is None or wait.kind in ("event-loop", "sleep", "gil"):
                continue
            resource = next((r for r in process.resources if r.id == wait.resource), None)
            if resource is not None and resource.kind == "socket":
                if wait.endless is not False:
                    yield from _own_server(view, process, loop, thread, resource)
            elif wait.endless is not False or (wait.timeout_s or 0.0) >= _LONG_S:
                yield from _judge(view, process, loop, thread, resource)


def _own_server(view: View, process: Process, loop: Loop, thread: Thread, socket: Resource) -> Iterator[Answer]:
    """Yield a match if the thread waits for the answer of a server whose connections this loop accepts or reads."""
    who = clauses.named(thread)
    watched = [r for r in process.resources if r.id in loop.sockets]
    for other in watched:
        if is_other_end(socket, other):
            serves, proven = _WATCHES(thread=who, socket=other.description), False
        elif other.listening and _listens_for(other, socket) and {end.pid for end in other.ends} == {process.pid}:
            queue = _IN_QUEUE(count=other.received) if other.received else None
            serves = _ACCEPTS(thread=who, address=other.local, queue=queue)
            proven = socket.peer_in_tree is False and bool(other.received) and _is_alone(process, loop, thread, other)
        else:
            continue
        facts = (_WITHOUT_LIMIT(thread=who, what=socket.description), serves)
        yield _match(view, process, thread, _AN_ANSWER(socket=socket.description), facts, proven)
        return


def _is_alone(process: Process, loop: Loop, thread: Thread, listener: Resource) -> bool:
    """Return whether only the loop that its thread blocks could accept a connection, and no signal handler ends the wait."""
    others = any(listener.id in other.sockets for other in process.loops if other.id != loop.id)
    endless = thread.wait is not None and thread.wait.endless is True
    return endless and not others and not listener.waiters and process.signal_handlers == ()


def _listens_for(listener: Resource, socket: Resource) -> bool:
    """Return whether a listener accepts connections to the address that a socket is connected to."""
    (host, _, port), (at, _, number) = ((r or "").rpartition(":") for r in (listener.local, socket.remote))
    return bool(port) and port == number and (host == at or host in _ANY)


def _judge(view: View, process: Process, loop: Loop, thread: Thread, resource: Optional[Resource]) -> Iterator[Answer]:
    """Yield a match if the thread waits for its own loop: through a cycle, a callback of the loop, or a signal from its tasks."""
    agent = Agent(process.pid, thread.tid)
    cycle = next((c for c in view.graph.cycles if agent in c.agents and _through(process, loop, c)), None)
    endless = thread.wait is not None and thread.wait.endless is True
    if cycle is not None:
        facts: Tuple[Said, ...] = view.graph.reasons(*cycle.agents)
        yield _match(
            view, process, thread, cycle.edges[cycle.agents.index(agent)].what, facts, view.graph.proves(cycle)
        )
    elif resource is not None and resource.closed and any(w.tid == thread.tid for w in resource.wakers):
        facts = (
            _WAITS(thread=clauses.named(thread), what=resource.description),
            *resource.because,
            _STANDS_STILL(thread=clauses.named(thread)),
        )
        yield _match(view, process, thread, resource.description, facts, endless)
    elif resource is not None and resource.kind in _SIGNALLED and endless and _queued(loop, thread):
        facts = (
            _WITHOUT_LIMIT(thread=clauses.named(thread), what=resource.description),
            _CALLBACKS(ready=loop.ready or 0, frames=loop.ready_callbacks[:_NAMED]),
            _STANDS_STILL(thread=clauses.named(thread)),
        )
        yield _match(view, process, thread, resource.description, facts, False)
    elif view.graph.stuck(agent) and _has_work(process, loop):
        awaited = _signalled(view, agent) or _signalled_by(view, process, loop, agent)
        if awaited is not None:
            tasks = sum(t.loop == loop.id and t.state == "pending" for t in process.tasks)
            facts = (*view.graph.reasons(agent), _WORK(ready=loop.ready or 0, tasks=tasks))
            proven = awaited.closed is True and view.graph.stuck(agent) == "proven"
            yield _match(view, process, thread, awaited.description, facts, proven)
    else:
        joined = _joined_bridge(view, process, thread)
        if endless and joined is not None and (loop.kind == "twisted" or _has_work(process, loop)):
            who = clauses.named(thread)
            facts = (
                _JOINS(thread=who, joined=clauses.named(joined)),
                _BRIDGE(joined=clauses.named(joined)),
                _STANDS_STILL(thread=who),
            )
            yield _match(view, process, thread, clauses.named(joined), facts, False)


def _joined_bridge(view: View, process: Process, thread: Thread) -> Optional[Thread]:
    """Return the thread that a loop's thread joins if that waits for a coroutine which it has handed to a loop."""
    edges = (edge for edge in view.edges(process, thread) if edge.kind == "thread")
    joined = (view.thread(process, agent.tid) for edge in edges for agent in edge.wakers)
    return next((t for t in joined if t is not None and any(in_table(f, _ASKS) for f in t.python)), None)


def _queued(loop: Loop, thread: Thread) -> bool:
    """Return whether a library's function that waits on the loop's thread has a callback of its own in the ready queue.

    It was written for other threads: Twisted's ``blockingCallFromThread``.
    """
    inner = itertools.takewhile(is_library, thread.python)
    files = {frame.file for frame in inner if not is_stdlib(frame)}
    return any(callback.file in files for callback in loop.ready_callbacks)


def _signalled(view: View, agent: Agent) -> Optional[Resource]:
    """Return the resource that code of the loop might signal: awaited by the thread itself or by an agent it waits for."""
    places = view.graph.places
    found = (
        places.resource(edge.waiter.pid, edge.resource) for edge in view.graph.chain(agent).edges if not edge.outside
    )
    return next((r for r in found if r is not None and r.kind in _SIGNALLED and not r.closed), None)


def _signalled_by(view: View, process: Process, loop: Loop, agent: Agent) -> Optional[Resource]:
    """Return the resource of those that the loop's thread waits for which only tasks of that loop could signal."""
    own = {task.id for task in process.tasks if task.loop == loop.id}
    for edge in view.graph.chain(agent).edges:
        known = view.graph.places.resource(edge.waiter.pid, edge.resource)
        if known is None or known.kind not in _SIGNALLED or edge.outside:
            continue
        able = [waker for waker in known.wakers if waker.grade != "refers"]
        if able and all(waker.task in own for waker in able):
            return known
    return None


def _through(process: Process, loop: Loop, cycle: Cycle) -> bool:
    """Return whether a cycle leads through a task that needs its turn on this loop."""
    own = {t.id for t in process.tasks if t.loop == loop.id}
    return any(edge.kind == "turn" and edge.waiter.task in own for edge in cycle.edges)


def _has_work(process: Process, loop: Loop) -> bool:
    """Return whether the loop would have something to do if its thread were free."""
    others = [t for t in process.tasks if t.loop == loop.id and t.state == "pending"]
    return bool(loop.ready) or any(t.ready or (t.wait is not None and t.wait.endless is False) for t in others)


def _match(view: View, process: Process, thread: Thread, what: Slot, facts: Tuple[Said, ...], proven: bool) -> Match:
    agent = Agent(process.pid, thread.tid)
    frame: Optional[PythonFrame] = own_frame(thread.python)
    behind = [a for a in view.graph.behind(frozenset((agent,))) if a != agent]
    return Match(
        confidence="proven" if proven else "likely",
        summary=_BLOCKS(thread=clauses.named(thread), at=clauses.at(frame), what=what),
        evidence=facts,
        culprits=(view.culprit_of(agent, frame),) if frame else (),
        victims=tuple(view.victim_of(a) for a in behind[:50]),
        pid=process.pid,
    )
