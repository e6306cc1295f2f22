"""Queries on the evidence that several patterns share."""

from __future__ import annotations

from functools import cached_property
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Sequence, Tuple

from ...evidence import Evidence, Process, PythonFrame, Thread
from ...evidence.vocabulary import WaitKind
from ...findings import Confidence, Culprit, Template, Text, Victim
from ...waitgraph import WAKES, Agent, Cycle, Edge, WaitGraph, graph_of
from . import clauses, knowledge

#: In cores: a thread that used more over the window was not waiting.
BUSY_SHARE = 0.3
#: Share of a core wanted, or of the observations: above it a thread computes continuously.
COMPUTING_SHARE = 0.8
#: Waits that something outside of the process ends; wake-ups that each run into their time limit may cause.
_OUTSIDE: FrozenSet[WaitKind] = frozenset(("socket", "pipe", "process", "other"))
_A_LIMIT = 2.0
#: CPU in cores, and wake-ups per second: above either a thread makes progress; neither idling nor a heartbeat uses as much.
WORKS_SHARE, WORKS_WAKES = 0.01, 20

#: Waits of one cycle that a finding tells at least; a reader learns nothing from the thousandth.
MOST_CITED = 64

_LEFT_OUT = Template("{count:n more wait} of the cycle, at the same lines, {count:v is|are} not told here")
_GIVES_UP = Template("the cycle opens when the time limit of {agents: or } is over")
_WORKS = Template("meanwhile {thread}{of} used {share:.1%} of a core and woke {wakes:.0f} times a second{more}")
_OF_PROCESS = Template(" of process {pid}")
_MORE_WORK = Template(", and {count} more {count:v is|are} at work")

#: Generations of processes, at most.
_DEEPEST = 10


class View:
    """Evidence with indices. Cheap to create; its caches depend on the evidence alone."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.processes = evidence.processes
        self.by_pid: Dict[int, Process] = {p.pid: p for p in evidence.processes}
        self.window = evidence.window_s
        self._tables: Dict[int, Dict[int, int]] = {}  # by id of the process, which the evidence keeps alive
        #: Cache of results that several patterns need, keyed by the query.
        self.remembered: Dict[object, object] = {}

    @cached_property
    def graph(self) -> WaitGraph:
        """Return the wait-for graph over all processes."""
        return graph_of(self.evidence)

    @property
    def pythons(self) -> List[Process]:
        """Return the processes that run Python."""
        return [p for p in self.processes if p.python is not None or any(t.python for t in p.threads)]

    # ------------------------------------------------------------------ CPU over the window

    def cpu(self, process: Process) -> Optional[float]:
        """Return the CPU used by a process over the window, in cores; None without counters."""
        return _sum(self.cpu_share(t) for t in process.threads)

    def demand(self, process: Process) -> Optional[float]:
        """Return the CPU that a process wanted over the window, in cores: used, or waited for while runnable.

        On a busy machine this, not the CPU used, distinguishes spinning from idling.
        """
        return _sum(self.wanted_share(t) for t in process.threads)

    @classmethod
    def wanted_share(cls, thread: Thread) -> Optional[float]:
        """Return the share of a core that a thread used or waited for while runnable, at most 1; None without counters."""
        share = cls.cpu_share(thread)
        counters = thread.counters
        if share is None or counters is None:
            return None
        return min(1.0, share + (counters.run_delay_s or 0.0) / counters.seconds)

    @staticmethod
    def cpu_share(thread: Thread) -> Optional[float]:
        """Return the share of a core that a thread used over the window; None without counters."""
        counters = thread.counters
        if counters is None or counters.cpu_s is None or counters.seconds <= 0:
            return None
        return counters.cpu_s / counters.seconds

    @classmethod
    def computes(cls, thread: Thread) -> Optional[bool]:
        """Return whether a thread uses all the CPU it can get; None without counters.

        On a busy or virtual machine that may be little; then most observations show it running.
        """
        wanted, looks = cls.wanted_share(thread), thread.counters.states if thread.counters is not None else {}
        if wanted is None and not looks:
            return None
        running = bool(looks) and looks.get("R", 0) >= COMPUTING_SHARE * sum(looks.values())
        return running or (wanted or 0.0) >= COMPUTING_SHARE

    @classmethod
    def rests(cls, thread: Thread) -> bool:
        """Return whether a thread spends its time in the wait that it was found in; a computing thread only passes through."""
        share = cls.cpu_share(thread)
        return share is None or share < BUSY_SHARE

    @classmethod
    def moves(cls, thread: Thread) -> bool:
        """Return whether a thread wakes repeatedly and goes on, so that its waits are fulfilled.

        False if it only polls, or if nothing but the time limit of its wait for a descriptor or process wakes it.
        """
        wait, switches = thread.wait, cls.switches(thread)
        if switches is None or (wait is not None and wait.polls_s is not None):
            return False
        if wait is not None and wait.kind in _OUTSIDE and wait.endless is False and wait.timeout_s:
            return switches > _A_LIMIT / wait.timeout_s + WAKES
        return switches >= WAKES

    @staticmethod
    def switches(thread: Thread) -> Optional[float]:
        """Return the voluntary context switches per second; None without counters."""
        return thread.counters.switches_per_s if thread.counters is not None else None

    # ------------------------------------------------------------------ threads

    def thread(self, process: Process, tid: Optional[int]) -> Optional[Thread]:
        """Return the thread of a tid; None if there is none."""
        found = self._rows(process).get(tid) if tid is not None else None
        return process.threads[found] if found is not None else None

    def threads(self, process: Process, tids: Iterable[int]) -> List[Thread]:
        """Return the threads of these tids, in the process's order; unknown tids are skipped."""
        rows = self._rows(process)
        return [process.threads[row] for row in sorted({rows[tid] for tid in tids if tid in rows})]

    def _rows(self, process: Process) -> Dict[int, int]:
        """Return the index of each tid in the process's list of threads."""
        rows = self._tables.get(id(process))
        if rows is None:
            rows = {}
            for row, thread in enumerate(process.threads):
                rows.setdefault(thread.tid, row)
            self._tables[id(process)] = rows
        return rows

    @staticmethod
    def main(process: Process) -> Optional[Thread]:
        """Return the main thread; None if unknown."""
        return next((t for t in process.threads if t.is_main), None)

    @staticmethod
    def idle(thread: Thread) -> bool:
        """Return whether a thread waits where idle threads of a healthy program wait."""
        frames = thread.python
        if any(knowledge.in_table(f, knowledge.IDLE) for f in frames[:4]):
            depth = _idle_depth(frames)
            if any(knowledge.in_table(f, (knowledge.RUNS_ITEM,)) for f in frames[:depth]):
                return False  # a job that is a function in C has no frame of its own
            pool = frames[depth].file.rpartition("/")[0]
            above = [f for f in frames[:depth] if f.file.rpartition("/")[0] != pool]
            return knowledge.own_frame(above) is None
        return False

    def in_loop(self, thread: Thread) -> bool:
        """Return whether an event loop runs on this thread."""
        return any(knowledge.in_table(f, knowledge.LOOP_RUN) for f in thread.python)

    # ------------------------------------------------------------------ waits

    def edges(self, process: Process, thread: Thread) -> Tuple[Edge, ...]:
        """Return the waits of a thread."""
        return self.graph.edges.get(Agent(process.pid, thread.tid), ())

    def certainty(self, cycle: Cycle) -> Confidence:
        """Return the confidence that a cycle is a deadlock; only *possible* if one wait in it has a timeout, which opens it."""
        if any(self.graph.is_limited(edge) for edge in cycle.edges):
            return "possible"
        return "proven" if self.graph.proves(cycle) else "likely"

    def limits(self, cycle: Cycle, told: Optional[int] = None) -> List[Text]:
        """Return texts on the waits of a cycle beyond those ``told``, and on agents whose waits have a timeout, if any."""
        left = len(cycle.edges) - told if told is not None else 0
        limited = [edge.waiter for edge in cycle.edges if self.graph.is_limited(edge)]
        return ([_LEFT_OUT(count=left)] if left else []) + ([_GIVES_UP(agents=tuple(limited[:3]))] if limited else [])

    def cited(self, cycle: Cycle) -> List[Tuple[Edge, Edge]]:
        """Return the waits of a cycle that a finding tells, each with the wait of the agent that could end it.

        Of a cycle of more than ``MOST_CITED`` these are the first, and the first at each further line of the program.
        """
        pairs = list(zip(cycle.edges, [*cycle.edges[1:], cycle.edges[0]]))
        found, rest = pairs[:MOST_CITED], pairs[MOST_CITED:]
        lines = {self._waits_at(edge) for edge, _after in found} if rest else set()
        for edge, after in rest:
            line = self._waits_at(edge)
            if line not in lines and len(found) < 2 * MOST_CITED:
                lines.add(line)
                found.append((edge, after))
        return found

    def _waits_at(self, edge: Edge) -> Optional[Tuple[str, Optional[int]]]:
        frame = knowledge.own_frame(self.graph.places.stack(edge.waiter))
        return (frame.file, frame.line) if frame else None

    def kept(self, agent: Agent) -> List[PythonFrame]:
        """Return the frames in which a thread acquired locks that others wait for."""
        thread = self.graph.places.thread(agent)
        held = ((h, self.graph.places.resource(agent.pid, h.resource)) for h in (thread.holds if thread else ()))
        return [h.frame for h, resource in held if resource is not None and resource.waiters]

    def waits_on(self, process: Process, tid: int) -> List[Thread]:
        """Return the threads that wait, directly or through others, for this one."""
        behind = self.graph.behind(frozenset((Agent(process.pid, tid),)))
        found = [self.graph.places.thread(agent) for agent in behind if agent.pid == process.pid]
        return [thread for thread in found if thread is not None]

    def matters(self, process: Process, thread: Thread) -> bool:
        """Return whether a thread is the main thread, or one that it waits for, directly or as a worker."""
        main = self.main(process)
        if thread.is_main or main is None:
            return thread.is_main
        collects = any(knowledge.in_table(f, knowledge.COLLECTS) for f in main.python)
        return collects or main in self.waits_on(process, thread.tid)

    def others_move(self, process: Process) -> bool:
        """Return whether another process of the tree makes progress."""
        return any(self.moves(t) for p in self.processes if p is not process for t in p.threads)

    def work_beside(self, process: Process, thread: Thread) -> Tuple[Text, ...]:
        """Return a text on the busiest other thread of all processes over the window; () if all others are idle."""
        found = [
            (self.cpu_share(t) or 0.0, self.switches(t) or 0.0, p, t)
            for p in self.processes
            for t in p.threads
            if t is not thread
        ]
        working = [one for one in found if one[0] > WORKS_SHARE or one[1] > WORKS_WAKES]
        if not working:
            return ()
        share, wakes, where, who = max(working, key=lambda one: one[:2])
        of = _OF_PROCESS(pid=where.pid) if where is not process else None
        more = _MORE_WORK(count=len(working) - 1) if len(working) > 1 else None
        return (_WORKS(thread=clauses.named(who), of=of, share=share, wakes=wakes, more=more),)

    def children(self, process: Process) -> List[Process]:
        """Return the child processes."""
        return [p for p in self.processes if p.ppid == process.pid]

    def ancestors(self, process: Process) -> Tuple[int, ...]:
        """Return the pids of the parent, grandparent, …, up to and including the first that was not captured."""
        found: List[int] = []
        current: Optional[Process] = process
        while current is not None and current.ppid is not None and current.ppid not in found and len(found) < _DEEPEST:
            found.append(current.ppid)
            current = self.by_pid.get(current.ppid)
        return tuple(found)

    # ------------------------------------------------------------------ citing

    def culprit(
        self, process: Process, frame: PythonFrame, thread: Optional[Thread] = None, task: Optional[str] = None
    ) -> Culprit:
        """Return a frame as a culprit, with its source line."""
        return Culprit(
            process.pid,
            thread.tid if thread else None,
            task,
            frame.file,
            frame.line,
            frame.function,
            self.evidence.source(frame.file, frame.line),
            frame.end_line,
            frame.column,
            frame.end_column,
        )

    def loops_around(self, frames: Sequence[PythonFrame]) -> List[PythonFrame]:
        """Return the frames, each followed by the headers of the loops around its line, innermost first."""
        found: List[PythonFrame] = []
        for frame in frames:
            around = self.evidence.loops.get(frame.file, {}).get(frame.line or 0, ())
            found += [frame, *(frame.at(line) for line in around)]
        return list(dict.fromkeys(found))

    @staticmethod
    def victim(process: Process, thread: Thread) -> Victim:
        """Return a thread as a victim, at the program's innermost frame."""
        frame = knowledge.own_frame(thread.python) or next(iter(thread.python), None)
        if frame is None:
            return Victim(process.pid, thread.tid)
        return Victim(process.pid, thread.tid, frame.file, frame.line, frame.function)

    def victim_of(self, agent: Agent) -> Victim:
        """Return a thread, task or process of the wait-for graph as a victim."""
        frames, task = self.graph.places.stack(agent), self.graph.places.task(agent)
        frame = knowledge.own_frame(frames) or next(iter(frames), None)
        name = (task.name or task.id) if task is not None else None
        if frame is None:
            return Victim(agent.pid, agent.tid, task=name)
        return Victim(agent.pid, agent.tid, frame.file, frame.line, frame.function, name)

    def culprit_of(self, agent: Agent, frame: PythonFrame) -> Culprit:
        """Return a frame of an agent of the wait-for graph as a culprit."""
        task = self.graph.places.task(agent)
        name = (task.name or task.id) if task is not None else None
        return self.culprit(self.by_pid[agent.pid], frame, self.graph.places.thread(agent), name)

    def hot_frame(self, thread: Thread) -> Optional[PythonFrame]:
        """Return the program's innermost frame in most samples; without samples, at the moment of capture."""
        seen: Dict[PythonFrame, int] = {}
        for count, frames in self.samples(thread):
            frame = knowledge.own_frame(frames)
            if frame is not None:
                seen[frame] = seen.get(frame, 0) + count
        if not seen:
            return knowledge.own_frame(thread.python)
        return max(seen, key=lambda f: (seen[f], f.file, f.line or 0))

    def sampled_share(self, thread: Thread, shows: Callable[[Tuple[PythonFrame, ...]], bool]) -> float:
        """Return the share of a thread's py-spy samples whose frames show something; 0 without samples."""
        counted = [(count, shows(frames)) for count, frames in self.samples(thread)]
        return sum(count for count, shown in counted if shown) / max(1, sum(count for count, _shown in counted))

    def samples(self, thread: Thread) -> Iterator[Tuple[int, Tuple[PythonFrame, ...]]]:
        """Yield (count, frames) of the thread's py-spy samples."""
        for sample in thread.samples:
            yield sample.count, sample.frames


def _sum(shares: Iterable[Optional[float]]) -> Optional[float]:
    """Return the sum of the known values; None if none is known."""
    known = [share for share in shares if share is not None]
    return sum(known) if known else None


def _idle_depth(frames: Sequence[PythonFrame]) -> int:
    """Return the number of frames above the idle one."""
    return next((i for i, f in enumerate(frames) if knowledge.in_table(f, knowledge.IDLE)), 0)


def is_python(process: Process) -> bool:
    """Return whether a process is a Python interpreter, even if its state could not be read."""
    program = (process.exe or (process.argv[0] if process.argv else "")).rsplit("/", 1)[-1]
    return (
        process.python is not None or program.startswith(("python", "pypy")) or any(t.python for t in process.threads)
    )
