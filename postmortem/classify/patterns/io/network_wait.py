"""A thread or task waits for a peer on the network, without a timeout.

**What it looks like.** The main thread (or one that it waits for) is in `recv`, `connect` or a read of a socket; there is
no timeout; the other end does not answer.

**Easily mistaken for** an idle server: a server's listening socket and its clients' connections wait for the next request
by design. They differ by the port: a connection whose local port this program listens on was accepted.

**Why it hangs.** Without a timeout, a lost answer, a firewall or a peer that itself waits means waiting for ever.

**Remedy.** Give the socket or the client library a timeout, and find out why the peer is silent.
"""

from __future__ import annotations

from typing import Iterator, Optional

from ....evidence import Process, Resource, Thread
from ....waitgraph import Agent
from ...facts.alike import Alike, told_once
from ...facts.knowledge import awaits_network, own_frame, short
from ...facts.view import View, label
from ...pattern import Answer, Match, No, Pattern
from ..asyncio.wakers import peers_only
from .pipes import awaits_orders
from .silentpeers import caught

PATTERN = Pattern(
    id="network-wait",
    title="waits for a network peer, without a timeout",
    explanation="The program waits for data from another program and has set no limit on how long.",
    remedy=(
        "Set a timeout (socket.settimeout, the client library's timeout argument, asyncio.timeout) and look at the peer: "
        "did it get the request, does it wait for more?"
    ),
    outranks=("sleeping", "child-wait"),
    references=("https://docs.python.org/3/library/socket.html#socket.socket.settimeout",),
)


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread and task that waits for a network peer."""
    talking = caught(view)
    for process in view.processes:
        resources, found = {r.id: r for r in process.resources}, []
        for thread in process.threads:
            if thread.wait is None or thread.wait.kind != "socket" or view.idle(thread) or not view.rests(thread):
                continue
            resource = resources.get(thread.wait.resource or "")
            if Agent(process.pid, thread.tid) in talking:
                yield No(f"{label(thread)} waits for a process that waits itself to read: see pipe-deadlock")
            elif view.moves(thread):
                yield No(f"{label(thread)} waits for a peer again and again: answers come")
            elif _serves(thread, resource):
                what = "connections" if resource and resource.listening else "what its client sends"
                yield No(f"{label(thread)} serves: it waits for {what}")
            elif thread.wait.endless is False:
                yield No(f"{label(thread)} waits for a peer with a timeout")
            else:
                where = own_frame(thread.python), resource.remote if resource else None
                found.append(Alike(where, label(thread), _thread(view, process, thread, resource)))
        yield from told_once(found, "thread")
        yield from _tasks(view, process)


def _serves(thread: Thread, resource: Optional[Resource]) -> bool:
    """Return whether the thread waits as a server: for a connection, or on an accepted one."""
    if thread.wait is not None and thread.wait.syscall in ("accept", "accept4"):
        return True
    return resource is not None and (resource.listening is True or resource.accepted is True)


def _thread(view: View, process: Process, thread: Thread, resource: Optional[Resource]) -> Match:
    frame = own_frame(thread.python)
    matters = view.matters(process, thread)
    peer = resource.remote if resource and resource.remote else "a peer"
    call = thread.wait.syscall if thread.wait else None
    at = f" at {short(frame)}" if frame else ""
    limit = "has no timeout" if thread.wait is not None and thread.wait.endless else "no timeout of it is known"
    facts = [f"{label(thread)} is in the system call {call}, and {limit}"]
    peer_moves = resource is not None and resource.peer_in_tree is True and view.others_move(process)
    if resource is not None:
        facts.append(resource.description)
        if resource.peer_in_tree:
            facts.append("the other end is held by the same process tree: look at who should answer there")
    else:
        facts.append("which peer it is was not recorded: only a capture of the running process knows")
    orders = awaits_orders(view, process, thread, resource)
    facts += [orders] if orders else []
    if not matters:
        facts.append("nothing shows that the main thread waits for it: it may be idle by design")
    return Match(
        confidence="likely" if matters and frame is not None and not (peer_moves or orders) else "possible",
        summary=f"{label(thread)} waits for {peer}{at}, and {limit}",
        evidence=tuple(facts),
        culprits=(view.culprit(process, frame, thread),) if frame is not None else (),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        pid=process.pid,
    )


def _tasks(view: View, process: Process) -> Iterator[Answer]:
    """Yield answers for tasks that wait for the network on an idle loop: clients, unless the program listens."""
    loops = {loop.id: view.thread(process, loop.tid) for loop in process.loops}
    resources = {r.id: r for r in process.resources}
    alone, found = peers_only(process), []
    for task in process.tasks:
        thread = loops.get(task.loop or "")
        if task.state != "pending" or thread is None or not (awaits_network(task.stack) or task.id in alone):
            continue
        wait = thread.wait
        if wait is None or wait.kind != "event-loop" or view.moves(thread):
            continue
        frame = own_frame(task.stack)
        resource = resources.get(task.resource or alone.get(task.id, ""))
        if resource is not None and resource.kind != "socket":
            continue  # pipes and terminals have patterns of their own
        serves = resource.accepted if resource is not None else bool(process.listening)
        if serves or frame is None:
            yield No(f"task {task.name} waits for the network in a program that serves")
            continue
        known = resource is not None or process.listening is not None
        peer_moves = resource is not None and resource.peer_in_tree is True and view.others_move(process)
        sure = known and not peer_moves and wait.endless is True and view.matters(process, thread)
        match = Match(
            confidence="likely" if sure else "possible",
            summary=f"task {task.name} waits for a peer at {short(frame)}"
            + (", and nothing limits how long" if sure else ""),
            evidence=(
                f"task {task.name} is suspended in {task.stack[0].function}, awaited at {short(frame)}",
                f"its event loop ({label(thread)}) sleeps in {wait.syscall}"
                + (", without a timer" if wait.endless else ""),
                *((resource.description,) if resource is not None else ()),
            ),
            culprits=(view.culprit(process, frame, thread, task.name),),
            pid=process.pid,
        )
        who = f"task {task.name}"
        found.append(Alike((frame, resource.remote if resource else None), who, match))
    yield from told_once(found, "task")
