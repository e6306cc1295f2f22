"""Waits for a lock on a file (flock, fcntl, lockf) that another process holds.

**What it looks like.** A thread is in `flock` or `fcntl(F_SETLKW)`, without a time limit and at 0 % CPU; or it requests the
lock repeatedly and sleeps in between, as filelock, portalocker and SQLite do. The kernel's table of locks shows the holder.

**Easily mistaken for** `disk-wait`: the file is not slow, it is locked; servers whose workers take turns to accept.

**Why it hangs.** The holder keeps the lock: it waits itself, was left behind by an earlier run, or is this very process, which
opened the file twice (a flock belongs to an open file, not to a process).

**Remedy.** Find out what the holder does; hold the lock for less time, and request it with LOCK_NB and a time limit.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Fact, Process
from ....findings import Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.deeds import later, who_comes_to
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from ...roots.rest import serves
from ...roots.works import works
from .pipes import Waiter, waiters

PATTERN = Pattern(
    id="file-lock-wait",
    tier="resource",
    passing=True,
    title="waits for a lock on a file that another process holds",
    explanation="The kernel grants the lock to one process at a time, and the one that holds it does not release it.",
    remedy=(
        "Find out what the holder does, and hold the lock for as short a time as possible; request it with LOCK_NB in a loop "
        "with a time limit, and log which process it waits for."
    ),
    references=(
        "https://docs.python.org/3/library/fcntl.html#fcntl.flock",
        "https://man7.org/linux/man-pages/man5/proc_locks.5.html",
    ),
)

_ACCEPTS = ("accept", "accept4")
#: Code of the fact that the process which acquired a lock has ended, so that another one has it by inheritance.
_INHERITED = "taker-is-no-more"
_CAUSES = (
    "lock-order-deadlock", "self-deadlock", "pipe-deadlock", "pipe-never-closed", "child-wait", "network-wait",
    "stdin-wait", "python-busy-loop", "file-lock-wait",
)  # fmt: skip

_SUMMARY = Template("{waiter} waits{at} for the {lock}, held by {holders: and }")
_UNKNOWN = Template(
    "which file it is, and which process has locked it: only a capture of the running process shows that"
)
_TURN = Template("{waiter} waits for its turn: {holder} holds the {lock} while it waits for connections")
_FOUND = Template("{waiter}{at} {doing}: {lock}")
_WAITS = Template("waits")
_SAME_TREE = Template("{holder} is in the same process tree{doing}")
_DOING = Template(", and is in {call}{at}")
_ITSELF = Template("that process itself")
_SOMEBODY = Template("an unknown process")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread that waits for a file lock, blocked or polling."""
    for process in view.processes:
        for thread in process.threads:
            wait = thread.wait
            if (
                wait is not None
                and wait.syscall in ("flock", "fcntl")
                and wait.resource is None
                and not view.moves(thread)
            ):
                yield CannotTell((_UNKNOWN(),))
        for waiter in (*waiters(view, process), *_polls(view, process)):
            if waiter.resource.kind == "file-lock":
                yield _judge(view, waiter)


def _polls(view: View, process: Process) -> Iterator[Waiter]:
    """Yield threads that poll for the resource, with a timeout."""
    resources = {r.id: r for r in process.resources}
    for thread in process.threads:
        wait = thread.wait
        if wait is not None and wait.polls_s is not None and wait.endless is False and wait.resource in resources:
            yield Waiter(process, thread, None, resources[wait.resource])


def _judge(view: View, waiter: Waiter) -> Answer:
    """Return the answer for one waiter."""
    lock, process = waiter.resource, waiter.process
    owner = view.by_pid.get(lock.owner_pid) if lock.owner_pid is not None else None
    if owner is not None and _takes_turns(view, process, owner):
        return No(_TURN(waiter=waiter.who, holder=clauses.process(owner), lock=lock.description))
    frame = own_frame(waiter.frames)
    who, at, wait = waiter.who, clauses.at(frame), waiter.thread.wait
    asks = wait.phrase if wait is not None and wait.polls_s is not None else None
    facts: List[Said] = [_FOUND(waiter=who, at=at, doing=asks or _WAITS(), lock=lock.description), *lock.because]
    if owner is not None and owner is not process:
        facts.append(_SAME_TREE(holder=clauses.process(owner), doing=_doing(view, owner)))
    stuck = view.graph.stuck(waiter.agent)
    if stuck == "proven":
        facts += [text for text in view.graph.reasons(waiter.agent) if text not in facts]
    holders = [view.by_pid[w.pid] for w in lock.wakers if w.pid in view.by_pid] or ([owner] if owner else [])
    beside = {
        agent.pid
        for agent in view.graph.behind(frozenset((waiter.agent, Agent(process.pid))))
        if agent.tid == agent.pid
    }
    releasing = [t for h in holders if h is not process for t in who_comes_to(view, h, "releases")]
    facts += later("releases", releasing)
    # a process whose main thread waits for this one is not the cause, whatever its other threads do
    holders = [h for h in holders if h.pid not in beside]
    # who only inherited the descriptor, and serves its clients, has no end of its work at which it would release the lock
    inherited = any(isinstance(one, Fact) and one.code == _INHERITED for one in lock.because)
    holders = [h for h in holders if not (inherited and _serves(view, h))]
    at_work = bool(releasing) or any(h is not process and _may_release(view, h) for h in holders)
    # if its own process holds the lock, and the other threads work or there are none, the polling thread may hold it
    # itself while it sleeps
    others = [t for t in process.threads if t is not waiter.thread and t.python]
    holds = asks is not None and lock.owner_pid == process.pid and (not others or any(map(view.moves, others)))
    wanted = frame is not None and view.matters(process, waiter.thread)
    wanted = wanted or (process.python is None and _is_awaited(view, process))
    sure = wanted and not at_work and not holds
    elsewhere = owner is not None and owner is not process and owner.pid not in beside and not _sleeps(view, owner)
    root = owner.pid if owner is not None and elsewhere else -1
    return Match(
        confidence="proven" if stuck == "proven" else "likely" if sure else "possible",
        summary=_SUMMARY(waiter=who, at=at, lock=lock.description, holders=_holders(waiter, owner)),
        evidence=tuple(facts),
        culprits=waiter.culprits(view),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, waiter.thread.tid)),
        pid=process.pid,
        because_of=_CAUSES if root > 0 else (),
        cause_pid=root,
    )


def _is_awaited(view: View, process: Process) -> bool:
    """Return whether a Python program waits for the end of a process, a command such as ``flock``."""
    return any(view.graph.is_awaited(agent) for agent in (Agent(process.pid), Agent(process.pid, process.pid)))


def _may_release(view: View, holder: Process) -> bool:
    """Return whether a holder is about to release the lock: its main thread goes on, or another one works.

    Threads that now and then look after something, as heartbeats do, are in any program.
    """
    main = view.main(holder)
    if main is not None and (view.moves(main) or not view.rests(main)):
        return True
    return any(works(view, thread) for thread in holder.threads)


def _serves(view: View, holder: Process) -> bool:
    """Return whether the main thread of a holder waits for clients."""
    main = view.main(holder)
    return main is not None and serves(view, holder, main)


def _sleeps(view: View, owner: Process) -> bool:
    """Return whether the holder only sleeps: sleeping while it holds the lock is this very finding."""
    main = view.main(owner)
    return main is not None and main.wait is not None and main.wait.kind == "sleep"


def _takes_turns(view: View, process: Process, owner: Process) -> bool:
    """Return whether the holder is a sibling worker of a server that holds the lock while it waits for a connection."""
    kin = owner.ppid == process.ppid and owner is not process
    return kin and any(
        t.wait is not None and (t.wait.syscall in _ACCEPTS or t.wait.kind == "event-loop") for t in owner.threads
    )


def _doing(view: View, owner: Process) -> Optional[Text]:
    main = view.main(owner)
    if main is None or main.wait is None:
        return None
    return _DOING(call=main.wait.syscall, at=clauses.at(own_frame(main.python)))


def _holders(waiter: Waiter, owner: Optional[Process]) -> Tuple[Text, ...]:
    if owner is waiter.process:
        return (_ITSELF(),)
    if owner is not None:
        return (clauses.process(owner),)
    named = tuple(clauses.numbered(w.name, w.pid) for w in waiter.resource.wakers if w.role == "holder")
    return named[:3] or (_SOMEBODY(),)
