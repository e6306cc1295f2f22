"""Waits for a lock on a file (flock, fcntl, lockf) that another process holds.

**What it looks like.** A thread is in `flock` or `fcntl(F_SETLKW)`, without a time limit and at 0 % CPU; or it requests the
lock repeatedly and sleeps in between, as filelock, portalocker and SQLite do. The kernel's table of locks shows the holder.

**Easily mistaken for** `disk-wait`: the file is not slow, it is locked; servers whose workers take turns to accept.

**Why it hangs.** The holder keeps the lock: it waits itself, was left behind by an earlier run, or is this very process, which
opened the file twice (a flock belongs to an open file, not to a process).

**Remedy.** Look at what the holder does; hold the lock for less time, and request it with LOCK_NB and a time limit.
"""

from __future__ import annotations

from typing import Iterator, List, Optional

from ....evidence import Process
from ....waitgraph import Agent
from ...facts.knowledge import own_frame, short
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .pipes import Waiter, program, waiters

PATTERN = Pattern(
    id="file-lock-wait",
    title="waits for a lock on a file that another process holds",
    explanation="The kernel gives the lock to one process at a time, and the one that has it does not give it back.",
    remedy=(
        "Look at what the holder does, and keep the lock for as short as possible; ask for it with LOCK_NB in a loop that "
        "ends, and say whom it waits for."
    ),
    outranks=("child-wait", "sleeping"),
    references=(
        "https://docs.python.org/3/library/fcntl.html#fcntl.flock",
        "https://man7.org/linux/man-pages/man5/proc_locks.5.html",
    ),
)

_ACCEPTS = ("accept", "accept4")
_CAUSES = (
    "lock-order-deadlock", "self-deadlock", "pipe-deadlock", "pipe-never-closed", "child-wait", "network-wait",
    "stdin-wait", "python-busy-loop", "file-lock-wait",
)  # fmt: skip


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
                yield CannotTell(
                    ("which file it is, and who has locked it: only a capture of the running process knows",)
                )
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
        return No(
            f"{waiter.who} waits for its turn: {program(owner)} has {lock.description} while it waits for connections"
        )
    frame = own_frame(waiter.frames)
    at = f" at {short(frame)}" if frame else ""
    wait = waiter.thread.wait
    asks = wait.phrase if wait is not None and wait.polls_s is not None else None
    facts: List[str] = [f"{waiter.who}{at} {asks or 'waits'}: {lock.description}", *lock.because]
    if owner is not None and owner is not process:
        facts.append(f"{program(owner)} is of the same process tree{_doing(view, owner)}")
    stuck = view.graph.stuck(waiter.agent)
    if stuck == "proven":
        facts += [text for text in view.graph.reasons(waiter.agent) if text not in facts]
    holders = [view.by_pid[w.pid] for w in lock.wakers if w.pid in view.by_pid] or ([owner] if owner else [])
    beside = {
        agent.pid
        for agent in view.graph.behind(frozenset((waiter.agent, Agent(process.pid))))
        if agent.tid == agent.pid
    }
    holders = [
        h for h in holders if h.pid not in beside
    ]  # a process whose main thread waits for this one is no root, whatever its other threads do
    works = any(h is not process and any(view.moves(t) or not view.rests(t) for t in h.threads) for h in holders)
    # a polling thread whose own process holds the lock, and otherwise works or has no other thread,
    # may itself hold it while it sleeps
    beside_him = [t for t in process.threads if t is not waiter.thread and t.python]
    holds = asks is not None and lock.owner_pid == process.pid and (not beside_him or any(map(view.moves, beside_him)))
    sure = frame is not None and view.matters(process, waiter.thread) and not works and not holds
    elsewhere = owner is not None and owner is not process and owner.pid not in beside and not _sleeps(view, owner)
    root = owner.pid if owner is not None and elsewhere else -1
    return Match(
        confidence="proven" if stuck == "proven" else "likely" if sure else "possible",
        summary=f"{waiter.who} waits{at} for the {lock.description}, which {_holder(waiter, owner)} holds",
        evidence=tuple(facts),
        culprits=waiter.culprits(view),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, waiter.thread.tid)),
        pid=process.pid,
        because_of=_CAUSES if root > 0 else (),
        cause_pid=root,
    )


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


def _doing(view: View, owner: Process) -> str:
    main = view.main(owner)
    frame = own_frame(main.python) if main is not None else None
    if main is None or main.wait is None:
        return ""
    return f", and is in {main.wait.syscall}" + (f" at {short(frame)}" if frame else "")


def _holder(waiter: Waiter, owner: Optional[Process]) -> str:
    lock = waiter.resource
    if owner is waiter.process:
        return "that process itself"
    if owner is not None:
        return program(owner)
    names = [f"{w.name} (PID {w.pid})" if w.name else f"PID {w.pid}" for w in lock.wakers if w.role == "holder"]
    return " and ".join(names[:3]) or "somebody"
