"""Processes held from outside, whatever their code does: stopped, frozen, or waiting for a device.

For the patterns ``stopped`` and ``frozen``: who waits for such a process, where it stands, and in which share of the
observations it was held. For all others, ``unless_held`` lowers the confidence of a match about a held process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...evidence import Process, PythonFrame, Thread
from ...findings import Culprit, Template, Text, Victim
from ...waitgraph import Agent
from ..pattern import Match
from . import clauses
from .knowledge import is_library, own_frame
from .view import View

#: Patterns that a held process may seem to match: what they find is a consequence of being held.
VICTIMS = (
    "child-wait", "sleeping", "network-wait", "stdin-wait", "pipe-never-closed", "pipe-deadlock", "file-lock-wait",
    "missed-wakeup", "future-never-resolved", "shutdown-join", "mp-join-before-drain", "python-busy-loop", "gil-contention",
    "gil-held-by-native", "blocking-call-in-coroutine", "event-loop-starvation", "pool-exhausted", "lock-contention",
    "slow-import", "async-deadlock", "semaphore-orphan", "unbounded-queue", "traceback-cycle-leak",
)  # fmt: skip
#: Patterns of held processes.
HOLDS = ("stopped", "frozen")
#: Least share of the observations of a process.
HELD = 0.6
_MOST, _CALLERS = 6, 3
_AWAITED = 4

_BELOW = Template("its descendants are held, too: {processes}{more}")
_AWAITS = Template("{agent} of process {pid} waits for it")
_STANDS = Template("{thread} was held{at}{call:+, in the system call @}: that is the place, not the cause")
_WAS_HELD = Template("{process} was held from outside most of the time, so this only shows where it was held, not why")


class Looks(NamedTuple):
    """The number of observations of a process's threads that match, out of all."""

    found: int
    all: int

    @property
    def share(self) -> float:
        """Return the matching share, 0 without observations."""
        return self.found / self.all if self.all else 0.0


def states(threads: Sequence[Thread], letters: str) -> Looks:
    """Return how many observations over the window show the threads in one of these states."""
    counts = [t.counters.states for t in threads if t.counters is not None]
    found = sum(count for states in counts for letter, count in states.items() if letter in letters)
    return Looks(found, sum(sum(states.values()) for states in counts))


def outermost(several: Mapping[int, Process]) -> Iterator[Tuple[Process, List[Process]]]:
    """Yield the processes whose parents are not among them, each with its descendants that are."""
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
    """Return the threads and tasks of other processes that wait, directly or through others, for one of these."""
    ends = [Agent(pid) for pid in pids]
    ends += [Agent(pid, thread.tid) for pid in pids if pid in view.by_pid for thread in view.by_pid[pid].threads]
    return [agent for agent in view.graph.behind(frozenset(ends)) if agent.pid not in pids]


def waiting_lines(view: View, agents: Sequence[Agent]) -> Tuple[Culprit, ...]:
    """Return the lines at which these agents wait, as culprits."""
    frames = [(agent, own_frame(view.graph.places.stack(agent))) for agent in agents]
    return tuple(dict.fromkeys(view.culprit_of(a, f) for a, f in frames if f is not None))[:_MOST]


def standing(view: View, process: Process) -> Tuple[Culprit, ...]:
    """Return the current line of a process: of its main thread, or of another one."""
    threads = sorted(process.threads, key=lambda t: not t.is_main)
    found = [(thread, _place(thread)) for thread in threads if not view.idle(thread)]
    known = [(thread, frame) for thread, frame in found if frame is not None]
    mine = [(t, f) for t, f in known if t.is_main] or known[:1]
    return tuple(view.culprit(process, frame, thread) for thread, frame in mine)


def callers(view: View, process: Process) -> Tuple[Culprit, ...]:
    """Return the current lines of the main thread with its callers: the innermost line of a computation is arbitrary."""
    main = next((t for t in process.threads if t.is_main), None)
    own = [frame for frame in main.python if not is_library(frame)][:_CALLERS] if main is not None else []
    return tuple(view.culprit(process, frame, main) for frame in own) or standing(view, process)


def _place(thread: Thread) -> Optional[PythonFrame]:
    """Return a thread's current line of the program; without a core, from its samples."""
    frames = thread.python or next((sample.frames for sample in thread.samples), ())
    return own_frame(frames)


def victims(view: View, agents: Sequence[Agent]) -> Tuple[Victim, ...]:
    """Return the agents as victims, at most ``_MOST``."""
    return tuple(dict.fromkeys(view.victim_of(agent) for agent in agents))[:_MOST]


def matters(view: View, process: Process, agents: Sequence[Agent]) -> bool:
    """Return whether a process is the root of the tree or awaited by an agent, or no other process makes progress."""
    if agents or process.ppid not in view.by_pid:
        return True
    others = [other for other in view.processes if other is not process]
    return not any(_goes_on(view, other) for other in others)


def _goes_on(view: View, process: Process) -> bool:
    """Return whether a process serves clients, or works rather than only supervising another process."""
    used = view.cpu(process)
    return bool(process.listening) or (used is not None and used >= _WORKS)


#: In cores. Measured: a Python supervisor that stops and continues a child 20 times a second used 0.1 to 0.2 %, one that
#: checks every 10 ms whether the child has ended 0.5 %.
_WORKS = 0.1


def below(others: Sequence[Process]) -> List[Text]:
    """Return a text on the descendants of a held process that are held like it, if there are any."""
    more = " …" if len(others) > _MOST else None
    return [_BELOW(processes=tuple(map(clauses.process, others[:_MOST])), more=more)] if others else []


def awaited(agents: Sequence[Agent]) -> List[Text]:
    """Return a text for each of the first agents that wait for a held process."""
    return [_AWAITS(agent=agent, pid=agent.pid) for agent in agents[:_AWAITED]]


def stands_at(process: Process) -> List[Text]:
    """Return a text on the process's current line and system call: where it was held, which is not the cause."""
    main = next((t for t in process.threads if t.is_main), None)
    if main is None:
        return []
    at, call = clauses.at(_place(main)), main.wait.syscall if main.wait is not None else None
    return [_STANDS(thread=clauses.named(main), at=at, call=call)] if at or call else []


def unless_held(view: View, pattern: str, match: Match) -> Match:
    """Lower the confidence of a match about a process that was held most of the time from *likely* to *possible*.

    Its wait is only where it was held. A *proven* match holds regardless.
    """
    process = view.by_pid.get(match.pid) if match.pid is not None else None
    if pattern in HOLDS or match.confidence != "likely" or process is None or not is_held(process):
        return match
    because = _WAS_HELD(process=clauses.process(process))
    return replace(match, confidence="possible", evidence=(*match.evidence, because))


def is_held(process: Process) -> bool:
    """Return whether a process is frozen, or was stopped in most observations."""
    held = states(process.threads, "Tt").share >= HELD
    return held or bool(process.cgroup is not None and process.cgroup.frozen)
