"""Peers that communicate over pipes or sockets and all read first: a cycle without a writer."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ....evidence import Process, Resource
from ....findings import Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ....waitgraph.edges import IN_PROCESS
from ...facts import clauses
from ...facts.ended import near
from ...facts.knowledge import own_frame
from ...facts.peers import by_network
from ...facts.view import View
from ...pattern import Match
from ...roots.walk import telling
from .pipes import WRITES, Waiter, inherited, waiters

#: Most processes of a cycle; larger ones are not searched for.
_MOST = 64
#: Most of its readers that the summary names.
_NAMED = 3

_REMEDY = Template(
    "Define which side sends first, and document it with the protocol: if every side reads before it writes, none starts. "
    "Give each receive a time limit (Connection.poll(timeout), socket.settimeout), so that a peer that also waits is noticed."
)
_SUMMARY = Template("{readers}{more} each wait to read what another one of them would send: none of them sends first")
_READER = Template("{who}{at}")
_READER_AT = Template(" (at {frame})")
_MORE = Template(" and {count} more")
_READS = Template("{reader} waits{at} to read {what}, which {writers: and } could write to")
_HANDLED = Template("a signal handler of one of them may send something")


class Side(NamedTuple):
    """A waiter that reads, and the processes that alone could write what it waits for."""

    waiter: Waiter
    others: Tuple[int, ...]  # pids


def circles(view: View) -> List[Tuple[Side, ...]]:
    """Return groups of processes each of which waits for a message that only another one of the group could send."""
    sides: Dict[int, List[Side]] = {}
    for process in view.processes:
        found = [side for waiter in waiters(view, process) for side in [_side(view, waiter)] if side is not None]
        stuck = [side for side in found if view.graph.stuck(side.waiter.agent) is not None]
        if stuck:
            sides[process.pid] = stuck
    needs = {pid: frozenset(other for side in several for other in side.others) for pid, several in sides.items()}
    known: Set[FrozenSet[int]] = set()
    groups = []
    for pid in sides:
        group = _reached(pid, needs)
        if group is None or pid not in group or group in known:
            continue
        if all(member in sides and _reached(member, needs) == group for member in group):
            known.add(group)
            members = tuple(side for member in sorted(group) for side in sides[member])
            if any(_held_up_elsewhere(view, view.by_pid[member], members) for member in group):
                continue
            if not any(_wants_the_end(view, side) or _bereft(view, side) for side in members):
                groups.append(members)
    return groups


def _held_up_elsewhere(view: View, process: Process, members: Sequence[Side]) -> bool:
    """Return whether a process's main thread, which might send, waits for something of its own process that no reader owes.

    The readers are then a library's, which receive while others send, and wait because of that.
    """
    main, readers = view.main(process), {side.waiter.agent for side in members}
    if main is None or Agent(process.pid, main.tid) in readers:
        return False
    edge = telling(view, Agent(process.pid, main.tid))
    return (
        edge is not None and edge.kind in IN_PROCESS and edge.resource is not None and readers.isdisjoint(edge.wakers)
    )


def all_by_network(circle: Sequence[Side]) -> bool:
    """Return whether all sides of a cycle read from connections over the network: see network-wait."""
    return all(by_network(side.waiter.resource) for side in circle)


def caught(view: View) -> FrozenSet[Agent]:
    """Return the agents in such cycles, and those that wait for one of them.

    None of these waits for an end of file, or for a peer that is merely slow.
    """
    inside = frozenset(side.waiter.agent for circle in circles(view) for side in circle)
    whole = frozenset(Agent(agent.pid) for agent in inside)
    return inside | frozenset(view.graph.behind(inside | whole)) if inside else inside


def told(view: View, circle: Sequence[Side]) -> Match:
    """Return one match for a whole cycle."""
    first = circle[0].waiter
    several = any(len(side.others) > 1 for side in circle)  # some of them have the end by inheritance
    sure = not several and all(view.graph.stuck(side.waiter.agent) == "proven" for side in circle)
    handled = any(side.waiter.process.signal_handlers or side.waiter.process.catches for side in circle)
    facts: List[Said] = []
    for waiter, others in circle:
        at, writers = clauses.at(own_frame(waiter.frames)), tuple(clauses.process(view.by_pid[pid]) for pid in others)
        facts.append(_READS(reader=waiter.who, at=at, what=waiter.resource.description, writers=writers))
        facts += waiter.resource.because
    facts += view.graph.reasons(first.agent) if sure else ()
    facts += [_HANDLED()] if handled else []
    readers = tuple(_reader(side.waiter) for side in circle[:_NAMED])
    more = _MORE(count=len(circle) - _NAMED) if len(circle) > _NAMED else None
    return Match(
        confidence="proven" if sure else "possible" if handled or several else "likely",
        summary=_SUMMARY(readers=readers, more=more),
        evidence=tuple(dict.fromkeys(facts)),
        culprits=tuple(dict.fromkeys(c for side in circle for c in side.waiter.culprits(view))),
        remedy=_REMEDY(),
        pid=first.process.pid,
    )


def _reader(waiter: Waiter) -> Text:
    frame = own_frame(waiter.frames)
    return _READER(who=waiter.who, at=_READER_AT(frame=frame) if frame is not None else None)


def _side(view: View, waiter: Waiter) -> Optional[Side]:
    """Return the waiter with its peers; None unless it reads from a pipe or connection of another process."""
    resource, wait = waiter.resource, waiter.thread.wait
    if resource.kind not in ("pipe", "socket") or waiter.task is not None or wait is None or wait.syscall in WRITES:
        return None
    if wait.kind == "event-loop" or resource.listening or (resource.received or 0) > 0:
        return None
    pids = tuple(dict.fromkeys(waker.pid for waker in resource.wakers if waker.pid is not None))
    reader = waiter.process.pid
    others = tuple(pid for pid in pids if pid != reader and not inherited(view, resource, reader, pid))
    return Side(waiter, others) if others else None


def _reached(start: int, needs: Mapping[int, FrozenSet[int]]) -> Optional[FrozenSet[int]]:
    """Return all processes that a process waits for, directly or through others; None if there are too many."""
    found: Set[int] = set()
    wanted = list(needs[start])
    while wanted:
        pid = wanted.pop()
        if pid not in found:
            found.add(pid)
            wanted += needs.get(pid, ())
        if len(found) > _MOST:
            return None
    return frozenset(found)


def _wants_the_end(view: View, side: Side) -> bool:
    """Return whether the waiter may wait for the end of the file rather than for a message.

    So do filters, readers of standard input, and loops over a pipe of which the others have both ends by inheritance.
    """
    waiter = side.waiter
    frame = own_frame(waiter.frames)
    if frame is None or any(end.pid == waiter.process.pid and end.fd == 0 for end in waiter.resource.ends):
        return True
    others_inherited = all(_has_both_ends(waiter.resource, pid) for pid in side.others)
    frames = [f for f in waiter.frames if f.file == frame.file]
    return others_inherited and len(view.loops_around(frames)) > len(set(frames))


def _bereft(view: View, side: Side) -> bool:
    """Return whether the intended writer may be a process that has ended, and the others only inherited its end.

    A child or sibling of the reader has ended, and none of the others reads from the very connection that it writes to.
    """
    ends = {(end.pid, end.fd) for end in side.waiter.resource.ends}
    answers = (
        (pid, thread.wait.fd)
        for pid in side.others
        for thread in view.by_pid[pid].threads
        if pid in view.by_pid and thread.wait is not None
    )
    direct = side.waiter.resource.kind == "socket" and any(place in ends for place in answers)
    return not direct and bool(near(view, side.waiter.process))


def _has_both_ends(resource: Resource, pid: int) -> bool:
    return resource.kind == "pipe" and {"r", "w"} <= {end.mode for end in resource.ends if end.pid == pid}
