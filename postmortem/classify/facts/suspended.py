"""Processes that do not run whatever their code says, because somebody outside holds them: stopped, frozen, waiting for a
device. Who waits for such a process, where it stands, and how often it was seen so."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...evidence import Process, PythonFrame, Thread
from ...findings import Culprit, Victim
from ...waitgraph import Agent
from ...waitgraph import program as program_name
from ..pattern import Match
from .knowledge import is_library, own_frame, short
from .view import View, label

#: Whoever is found in one of these is no reason for anything: it waits, or is stopped itself, for what this finding tells.
VICTIMS = (
    "child-wait", "sleeping", "network-wait", "stdin-wait", "pipe-never-closed", "pipe-deadlock", "file-lock-wait",
    "missed-wakeup", "future-never-resolved", "shutdown-join", "mp-join-before-drain", "python-busy-loop", "gil-contention",
    "gil-held-by-native", "blocking-call-in-coroutine", "event-loop-starvation", "pool-exhausted", "lock-contention",
    "slow-import", "async-deadlock", "semaphore-orphan", "unbounded-queue", "traceback-cycle-leak",
)  # fmt: skip
#: Patterns of processes that are held.
HOLDS = ("stopped", "frozen")
#: Of the looks at a process.
HELD = 0.6
_MOST, _CALLERS = 6, 3


class Looks(NamedTuple):
    """Of so many looks at a process's threads, ``found`` showed what was asked for."""

    found: int
    all: int

    @property
    def share(self) -> float:
        return self.found / self.all if self.all else 0.0

    def __str__(self) -> str:
        return f"{self.found} of {self.all} looks"


def states(threads: Sequence[Thread], letters: str) -> Looks:
    """How often they were in one of these states, over the window."""
    counts = [t.counters.states for t in threads if t.counters is not None]
    found = sum(count for states in counts for letter, count in states.items() if letter in letters)
    return Looks(found, sum(sum(states.values()) for states in counts))


def outermost(several: Mapping[int, Process]) -> Iterator[Tuple[Process, List[Process]]]:
    """Those of the processes whose parents are not among them, each with its descendants that are."""
    below: Dict[int, List[Process]] = {}
    for process in several.values():
        top, seen = process, {process.pid}
        while top.ppid is not None and top.ppid in several and top.ppid not in seen:
            top = several[top.ppid]
            seen.add(top.pid)
        below.setdefault(top.pid, []).append(process)
    for pid, family in below.items():
        yield several[pid], [process for process in family if process.pid != pid]


def waiting(view: View, pids: Set[int]) -> List[Agent]:
    """Threads and tasks of other processes that wait, directly or through others, for one of these."""
    ends = [Agent(pid) for pid in pids]
    ends += [Agent(pid, thread.tid) for pid in pids if pid in view.by_pid for thread in view.by_pid[pid].threads]
    return [agent for agent in view.graph.behind(frozenset(ends)) if agent.pid not in pids]


def waiting_lines(view: View, agents: Sequence[Agent]) -> Tuple[Culprit, ...]:
    """Where they wait."""
    frames = [(agent, own_frame(view.graph.places.stack(agent))) for agent in agents]
    return tuple(dict.fromkeys(view.culprit_of(a, f) for a, f in frames if f is not None))[:_MOST]


def standing(view: View, process: Process) -> Tuple[Culprit, ...]:
    """Where it is in its code: the main thread, else the others."""
    threads = sorted(process.threads, key=lambda t: not t.is_main)
    found = [(thread, _place(thread)) for thread in threads if not view.idle(thread)]
    known = [(thread, frame) for thread, frame in found if frame is not None]
    mine = [(t, f) for t, f in known if t.is_main] or known[:1]
    return tuple(view.culprit(process, frame, thread) for thread, frame in mine)


def callers(view: View, process: Process) -> Tuple[Culprit, ...]:
    """The same with those who called it: of a computation, which line it is at is chance."""
    main = next((t for t in process.threads if t.is_main), None)
    own = [frame for frame in main.python if not is_library(frame)][:_CALLERS] if main is not None else []
    return tuple(view.culprit(process, frame, main) for frame in own) or standing(view, process)


def _place(thread: Thread) -> Optional[PythonFrame]:
    """Of a process without a core the samples tell."""
    frames = thread.python or next((sample.frames for sample in thread.samples), ())
    return own_frame(frames)


def victims(view: View, agents: Sequence[Agent]) -> Tuple[Victim, ...]:
    return tuple(dict.fromkeys(view.victim_of(agent) for agent in agents))[:_MOST]


def matters(view: View, process: Process, agents: Sequence[Agent]) -> bool:
    """Is it the root of the tree, does somebody wait for it, or does nobody else get anything done?"""
    if agents or process.ppid not in view.by_pid:
        return True
    others = [other for other in view.processes if other is not process]
    return not any(_goes_on(view, other) for other in others)


def _goes_on(view: View, process: Process) -> bool:
    """Does it serve, or use a tenth of a core? One that only looks after another process does not."""
    used = view.cpu(process)
    return bool(process.listening) or (used is not None and used >= _WORKS)


#: Of a core: a supervisor in Python that stops and continues a child 20 times a second used 0.1 to 0.2 %, one that looks whether
#: it has ended every 10 ms 0.5 %.
_WORKS = 0.1


def stands_at(process: Process) -> List[str]:
    """A fact that keeps its system call from being taken for the reason."""
    main = next((t for t in process.threads if t.is_main), None)
    if main is None:
        return []
    frame, call = _place(main), main.wait.syscall if main.wait is not None else None
    where = f" at {short(frame)}" if frame is not None else ""
    inside = f", in the system call {call}" if call else ""
    return [f"{label(main)} stands{where}{inside}: that is where it was held, not why"] if where or inside else []


def unless_held(view: View, pattern: str, match: Match) -> Match:
    """What a process waits for that is held most of the time is only where it was held: not above *possible*. What is
    proven of it is true all the same."""
    process = view.by_pid.get(match.pid) if match.pid is not None else None
    if pattern in HOLDS or match.confidence != "likely" or process is None or not is_held(process):
        return match
    because = f"{named(process)} was held from outside nearly all the time, so this is no more than where it stands"
    return replace(match, confidence="possible", evidence=(*match.evidence, because))


def is_held(process: Process) -> bool:
    """Stopped in most looks, or frozen."""
    held = states(process.threads, "Tt").share >= HELD
    return held or bool(process.cgroup is not None and process.cgroup.frozen)


def named(process: Process) -> str:
    return f"{program_name(process) or 'process'} (PID {process.pid})"
