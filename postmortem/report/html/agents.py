"""Threads, tasks and processes as rows of a page's data, each with its waits.

- Row: [shape, id, name, edges, holds, facts]; trailing empty fields are left out.
- Shape, shared by equal rows: [kind, process, stack, state, GIL, wait, doing, flags, loop]. ``kind``: 0 thread, 1 task,
  2 process as a whole. ``loop``: the agent that runs a task's event loop.
- Edge: [shape, what, waker, …]. Its shape: [verb, flags, kind, outside].
- ``holds``: what and where, alternating.

All fields are numbers: an index into a table or into the rows, or a tid or pid.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple

from ...evidence import Evidence, Process, Task, Thread, replace
from ...findings import Diagnosis, Finding
from ...waitgraph import Agent, Edge, WaitGraph
from .. import grouping
from ..phrases import chains, labels
from ..phrases.wording import Wording, facts_in_words
from ..text import details, stacks
from .tables import Tables

Row = List[object]
Shape = Tuple[object, ...]

#: Most threads and tasks on a page; the page states how many are left out.
THREADS, TASKS = 5000, 25_000

CULPRIT, VICTIM, IDLE, MAIN, STUCK, LIKELY_STUCK, GC, DAEMON, CITED = (1 << bit for bit in range(9))
ALL_NEEDED, EVERYONE, SIGNALS, GONE, INFERRED, ENDS = (1 << bit for bit in range(6))

_WAKERS = 50  # most wakers written for one edge
_HELD = 20


class Agents:
    """The rows of a page. ``rows`` is in the order of ``number``: threads, then tasks, then processes."""

    def __init__(self, evidence: Evidence, diagnosis: Diagnosis, graph: WaitGraph, tables: Tables) -> None:
        self._graph, self._tables = graph, tables
        self._wording = Wording(graph.places)
        self._term = labels.Glossary(labels.TERMS)  # a page explains the terms itself
        self.blamed = frozenset(_culprits(graph, causes(diagnosis)))
        self.suffering = _victims(graph, diagnosis)
        self.cited = frozenset(_culprits(graph, diagnosis.findings)) | self.blamed | self.suffering
        self.number: Dict[Agent, int] = {}
        self.left_out = self._numbered(evidence)
        self._process = {process.pid: at for at, process in enumerate(evidence.processes)}
        self._shapes: Dict[Shape, int] = {}
        self.rows: List[Row] = [self._row(agent) for agent in self.number]
        #: Threads that the other reports show as one, too.
        self.alike = [
            [Agent(process.pid, thread.tid) for thread in group.threads]
            for process in evidence.processes
            for group in grouping.threads(process, diagnosis)
            if len(group.threads) > 1
        ]
        self.processes = [self._about(process) for process in evidence.processes]

    def _numbered(self, evidence: Evidence) -> Dict[str, int]:
        """Assign numbers to the agents that are kept, and return how many are left out.

        Agents named by findings are kept first.
        """
        cited = self.cited
        threads = [Agent(p.pid, t.tid) for p in evidence.processes for t in p.threads]
        tasks = [Agent(p.pid, task=t.id) for p in evidence.processes for t in p.tasks if t.state != "done"]
        kept = [*_first(threads, THREADS, cited), *_first(tasks, TASKS, cited)]
        for agent in (*kept, *(Agent(p.pid) for p in evidence.processes)):
            self.number[agent] = len(self.number)
        return {"threads": max(0, len(threads) - THREADS), "tasks": max(0, len(tasks) - TASKS)}

    def _row(self, agent: Agent) -> Row:
        places, string = self._graph.places, self._tables.string
        thread, task, process = places.thread(agent), places.task(agent), places.by_pid[agent.pid].process
        if thread is not None:
            shape, ident, name = self._thread(agent, thread, process), thread.tid, string(thread.name)
        elif task is not None:
            shape, ident, name = self._task(agent, task), -1, string(task.name or task.id)
        else:
            shape, ident, name = (2, self._process[agent.pid], -1, string(process.state), 0, -1, -1), agent.pid, -1
        shape = (*shape, self._flags(agent, thread), self._loop(agent, task))
        edges = [self._edge(edge) for edge in self._graph.edges.get(agent, ()) if not agent.is_process]
        row: Row = [self._shape(shape), ident, name, edges]
        holds, facts = self._holds(agent, thread, task), self._facts(thread)
        if holds or facts:
            row.append(holds)
        if facts:
            row.append(facts)
        return row

    def _shape(self, shape: Shape) -> int:
        """Return the number of a shape, added if new."""
        return self._shapes.setdefault(shape, len(self._shapes))

    @property
    def shapes(self) -> List[Shape]:
        """Return all shapes, in the order of their numbers."""
        return list(self._shapes)

    def _thread(self, agent: Agent, thread: Thread, process: Process) -> Shape:
        string = self._tables.string
        kind = thread.wait.kind if thread.wait is not None else None
        doing = labels.now((thread,), self._lens(agent, thread, process), self._term)
        return (
            0,
            self._process[agent.pid],
            self._tables.stack(thread.stack, thread.left_out),
            string(thread.state),
            _GIL.index(thread.gil) if thread.gil in _GIL else 0,
            string(kind),
            string(doing),
        )

    def _task(self, agent: Agent, task: Task) -> Shape:
        string = self._tables.string
        kind = task.wait.kind if task.wait is not None else None
        doing = None if task.wait is not None else "waits only for its turn" if task.ready else task.awaiting
        stack = self._tables.stack(task.stack)
        return (1, self._process[agent.pid], stack, string(task.state), 0, string(kind), string(doing))

    def _loop(self, agent: Agent, task: Optional[Task]) -> int:
        loop = self._graph.places.by_pid[agent.pid].loops.get(task.loop or "") if task is not None else None
        return self.number.get(Agent(agent.pid, loop.tid), -1) if loop is not None and loop.tid is not None else -1

    def _lens(self, agent: Agent, thread: Thread, process: Process) -> Process:
        """Return the process reduced to what the thread waits for: a search of all of it for each of thousands is slow."""
        if len(process.threads) < 50 and len(process.resources) < 50:
            return process
        wait = thread.wait
        resource = self._graph.places.resource(agent.pid, wait.resource) if wait is not None else None
        if resource is None:
            return replace(process, resources=())
        owner = self._graph.places.thread(Agent(agent.pid, resource.owner_tid))
        return replace(process, resources=(resource,), threads=(owner,) if owner is not None else ())

    def _flags(self, agent: Agent, thread: Optional[Thread]) -> int:
        flags = CULPRIT * (agent in self.blamed) | VICTIM * (agent in self.suffering) | CITED * (agent in self.cited)
        stuck = self._graph.stuck(agent)
        flags |= STUCK * (stuck == "proven") | LIKELY_STUCK * (stuck == "likely")
        if thread is not None:
            flags |= IDLE * (stuck is None and grouping.idle(thread)) | MAIN * thread.is_main | GC * bool(thread.gc)
            flags |= DAEMON * bool(thread.daemon)
        return flags

    def _edge(self, edge: Edge) -> List[int]:
        flags = ALL_NEEDED * edge.all_needed | EVERYONE * edge.everyone | SIGNALS * edge.signals | GONE * edge.gone
        flags |= INFERRED * (edge.basis == "inferred") | ENDS * (edge.endless is False)
        string = self._tables.string
        shape = (
            string(edge.verb),
            flags,
            string(edge.kind),
            tuple(string(what) for what in facts_in_words(edge.outside)),
        )
        wakers = [self.number[waker] for waker in edge.wakers[:_WAKERS] if waker in self.number]
        return [self._shape(shape), string(self._wording.what(edge.what)), *wakers]

    def _holds(self, agent: Agent, thread: Optional[Thread], task: Optional[Task]) -> List[int]:
        held = thread.holds if thread is not None else task.holds if task is not None else ()
        found = []
        for ident, frame in list(dict.fromkeys((one.resource, one.frame) for one in held))[:_HELD]:
            what = self._graph.places.resource(agent.pid, ident)
            where = f"{frame.function} at {labels.short_path(frame.file)}:{frame.line or '?'}"
            found += [self._tables.string(what.description if what is not None else ident), self._tables.string(where)]
        return found

    def _facts(self, thread: Optional[Thread]) -> List[int]:
        """Return sentences on the thread's exceptions, work, native call and recursion."""
        if thread is None:
            return []
        said = [details.exception(raised) for raised in thread.exceptions[:3]]
        work = labels.work((thread,))
        if work:
            said.append(f"Over the window it {work}.")
        called = labels.called(thread)
        if called:
            said.append(f"It is in a call of {called}.")
        if thread.recursion is not None:
            said.append(f"Recursion: {details.turns(thread.recursion)}.")
        return [self._tables.string(one) for one in said]

    def _about(self, process: Process) -> Dict[str, object]:
        said = [details.held_up(process), details.stopped_world(process), details.collecting(process)]
        gil = labels.gil_line(process.gil, process, self._term) if process.gil is not None else ""
        for loop in process.loops[:20]:
            said.append(_loop(loop.id, loop.tid, loop.ready, loop.spins_per_s))
        return {
            "pid": process.pid,
            "ppid": process.ppid,
            "command": self._tables.string(stacks.command(process)),
            "kind": self._tables.string(stacks.kind_of(process)),
            "facts": [self._tables.string(one) for one in (gil, *said) if one],
        }


_GIL = ("unknown", "holds", "waits", "detached")


def _loop(ident: str, tid: Optional[int], ready: Optional[int], spins: Optional[float]) -> str:
    parts = [f"runs in thread {tid}" if tid is not None else "runs in no known thread"]
    if ready is not None:
        parts.append(f"{ready} ready to run")
    if spins is not None:
        parts.append(f"turns per second: {labels.count(spins)}")
    return f"Event loop {ident}: {', '.join(parts)}."


def _first(agents: Sequence[Agent], most: int, cited: FrozenSet[Agent]) -> List[Agent]:
    """Return at most ``most`` agents, those that are cited first, in their own order."""
    if len(agents) <= most:
        return list(agents)
    kept = set([*(a for a in agents if a in cited), *(a for a in agents if a not in cited)][:most])
    return [agent for agent in agents if agent in kept]


def causes(diagnosis: Diagnosis) -> List[Finding]:
    """Return the leading finding and the findings that cause it, transitively."""
    by_id = {finding.pattern: finding for finding in diagnosis.findings}
    found = list(diagnosis.findings[:1])
    for finding in found:
        found += [by_id[one] for one in finding.because_of if one in by_id and by_id[one] not in found]
    return found


def _culprits(graph: WaitGraph, findings: Sequence[Finding]) -> Iterator[Agent]:
    """Yield the agents blamed by findings; for a task, all tasks of its name at the same line."""
    for finding in findings:
        yield from chains.blames(graph, finding)
        named = {(c.pid, c.task) for c in finding.culprits if c.task is not None}
        places = {(c.file, c.line, c.function) for c in finding.culprits}
        for pid in dict.fromkeys(pid for pid, _name in sorted(named)):
            place = graph.places.by_pid.get(pid)
            for task in place.tasks.values() if place is not None else ():
                if {(pid, task.name), (pid, task.id)} & named and any(
                    (f.file, f.line, f.function) in places for f in task.stack
                ):
                    yield Agent(pid, task=task.id)


def _victims(graph: WaitGraph, diagnosis: Diagnosis) -> FrozenSet[Agent]:
    """Return the agents that findings name as victims."""
    found: Set[Agent] = set()
    for victim in (v for finding in diagnosis.findings for v in finding.victims):
        place = graph.places.by_pid.get(victim.pid)
        if place is not None and victim.tid in place.threads:
            found.add(Agent(victim.pid, victim.tid))
        elif place is not None and victim.task is not None:
            found.update(Agent(victim.pid, task=t.id) for t in place.tasks.values() if victim.task in (t.name, t.id))
    return frozenset(found)
