"""Threads, tasks and processes as rows of a page's data, each with what it waits for.

A row: [kind, process, id, name, stack, state, GIL, wait, doing, flags, edges, more]; kind 0 is a thread, 1 a task, 2 a process
as a whole. Numbers at places 2 to 8 are those of the tables, but for a thread's tid. An edge: [verb, what, wakers, flags,
kind, outside].
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple

from ...evidence import Evidence, Process, Task, Thread, replace
from ...findings import Diagnosis
from ...waitgraph import Agent, Edge, WaitGraph
from .. import chains, details, grouping, stacks, wording
from .tables import Tables

Row = List[object]

#: Beyond that a page says how many it leaves out.
THREADS, TASKS = 5000, 25_000

CULPRIT, VICTIM, IDLE, MAIN, STUCK, LIKELY_STUCK, GC, DAEMON = (1 << bit for bit in range(8))
ALL_NEEDED, EVERYONE, SIGNALS, GONE, INFERRED, ENDS = (1 << bit for bit in range(6))

_WAKERS = 50  # of one edge that are written down
_HELD = 20


class Agents:
    """``rows`` in the order of ``number``: threads, then tasks, then processes."""

    def __init__(self, evidence: Evidence, diagnosis: Diagnosis, graph: WaitGraph, tables: Tables) -> None:
        self._graph, self._tables = graph, tables
        self._term = wording.Glossary(wording.TERMS)  # a page explains the terms itself
        self.blamed = frozenset(_culprits(graph, diagnosis))
        self.suffering = _victims(graph, diagnosis)
        self.number: Dict[Agent, int] = {}
        self.left_out = self._numbered(evidence)
        self._process = {process.pid: at for at, process in enumerate(evidence.processes)}
        self.rows: List[Row] = [self._row(agent) for agent in self.number]
        self.processes = [self._about(process) for process in evidence.processes]

    def _numbered(self, evidence: Evidence) -> Dict[str, int]:
        """Those that findings name first: they are never left out."""
        cited = self.blamed | self.suffering
        threads = [Agent(p.pid, t.tid) for p in evidence.processes for t in p.threads]
        tasks = [Agent(p.pid, task=t.id) for p in evidence.processes for t in p.tasks if t.state != "done"]
        kept = [*_first(threads, THREADS, cited), *_first(tasks, TASKS, cited)]
        for agent in (*kept, *(Agent(p.pid) for p in evidence.processes)):
            self.number[agent] = len(self.number)
        return {"threads": max(0, len(threads) - THREADS), "tasks": max(0, len(tasks) - TASKS)}

    def _row(self, agent: Agent) -> Row:
        places = self._graph.places
        thread, task, process = places.thread(agent), places.task(agent), places.by_pid[agent.pid].process
        if thread is not None:
            row = self._thread(agent, thread, process)
        elif task is not None:
            row = self._task(agent, task)
        else:
            row = [2, self._process[agent.pid], agent.pid, -1, -1, self._tables.string(process.state), 0, -1, -1]
        row.append(self._flags(agent, thread))
        row.append([self._edge(edge) for edge in self._graph.edges.get(agent, ()) if not agent.is_process])
        more = self._more(agent, thread, task, process)
        return [*row, more] if more else row

    def _thread(self, agent: Agent, thread: Thread, process: Process) -> Row:
        string = self._tables.string
        gil = ("unknown", "holds", "waits", "detached").index(thread.gil) if thread.gil in _GIL else 0
        kind = thread.wait.kind if thread.wait is not None else None
        doing = wording.doing(thread, self._lens(agent, thread, process), self._term)
        stack = self._tables.stack(thread.stack, thread.left_out)
        return [0, self._process[agent.pid], thread.tid, string(thread.name), stack, string(thread.state), gil, string(kind),
                string(doing)]  # fmt: skip

    def _task(self, agent: Agent, task: Task) -> Row:
        string = self._tables.string
        kind = task.wait.kind if task.wait is not None else None
        doing = None if task.wait is not None else "waits for nothing but its turn" if task.ready else task.awaiting
        return [1, self._process[agent.pid], string(task.id if task.name != task.id else None), string(task.name or task.id),
                self._tables.stack(task.stack), string(task.state), 0, string(kind), string(doing)]  # fmt: skip

    def _lens(self, agent: Agent, thread: Thread, process: Process) -> Process:
        """The process with nothing but what this thread waits for: searching all of it for each of thousands takes long."""
        if len(process.threads) < 50 and len(process.resources) < 50:
            return process
        wait = thread.wait
        resource = self._graph.places.resource(agent.pid, wait.resource) if wait is not None else None
        if resource is None:
            return replace(process, resources=())
        owner = self._graph.places.thread(Agent(agent.pid, resource.owner_tid))
        return replace(process, resources=(resource,), threads=(owner,) if owner is not None else ())

    def _flags(self, agent: Agent, thread: Optional[Thread]) -> int:
        flags = CULPRIT * (agent in self.blamed) | VICTIM * (agent in self.suffering)
        stuck = self._graph.stuck(agent)
        flags |= STUCK * (stuck == "proven") | LIKELY_STUCK * (stuck == "likely")
        if thread is not None:
            flags |= IDLE * grouping.idle(thread) | MAIN * thread.is_main | GC * bool(thread.gc)
            flags |= DAEMON * bool(thread.daemon)
        return flags

    def _edge(self, edge: Edge) -> List[object]:
        flags = ALL_NEEDED * edge.all_needed | EVERYONE * edge.everyone | SIGNALS * edge.signals | GONE * edge.gone
        flags |= INFERRED * (edge.basis == "inferred") | ENDS * (edge.endless is False)
        wakers = [self.number[waker] for waker in edge.wakers[:_WAKERS] if waker in self.number]
        string = self._tables.string
        row = [string(edge.verb), string(edge.what), wakers, flags, string(edge.kind)]
        return [*row, [string(what) for what in edge.outside]] if edge.outside else row

    def _more(
        self, agent: Agent, thread: Optional[Thread], task: Optional[Task], process: Process
    ) -> Optional[Dict[str, object]]:
        """What only some have; the keys stand for headings of the page."""
        found: Dict[str, object] = {}
        holds = [f"{what}, taken in {where}" for what, where in self._holds(agent, thread, task)]
        if holds:
            found["holds"] = [self._tables.string(said) for said in holds]
        if thread is not None:
            said = [details.exception(raised) for raised in thread.exceptions[:3]]
            work = wording.work((thread,))
            if work:
                said.append(f"Over the window it {work}.")
            if thread.calling is not None:
                detail = f" ({thread.calling.detail})" if thread.calling.detail else ""
                said.append(f"It is in a call of {thread.calling.function}{detail}.")
            if thread.recursion is not None:
                said.append(f"Recursion: {details.turns(thread.recursion)}.")
            if said:
                found["facts"] = [self._tables.string(one) for one in said]
        if task is not None and task.loop is not None:
            loop = self._graph.places.by_pid[agent.pid].loops.get(task.loop)
            runner = self.number.get(Agent(agent.pid, loop.tid)) if loop is not None and loop.tid is not None else None
            if runner is not None:
                found["loop"] = runner
        return found or None

    def _holds(self, agent: Agent, thread: Optional[Thread], task: Optional[Task]) -> Iterator[Tuple[str, str]]:
        held = thread.holds if thread is not None else task.holds if task is not None else ()
        for ident, frame in list(dict.fromkeys((one.resource, one.frame) for one in held))[:_HELD]:
            what = self._graph.places.resource(agent.pid, ident)
            yield (
                what.description if what is not None else ident,
                f"{frame.function} at {wording.short_path(frame.file)}:{frame.line or '?'}",
            )

    def _about(self, process: Process) -> Dict[str, object]:
        said = [details.held_up(process), details.stopped_world(process), details.collecting(process)]
        gil = wording.gil_line(process.gil, process, self._term) if process.gil is not None else ""
        for loop in process.loops[:20]:
            said.append(_loop(loop.id, loop.tid, loop.ready, loop.spins_per_s))
        return {
            "pid": process.pid,
            "ppid": process.ppid,
            "command": self._tables.string(stacks.command(process)),
            "kind": self._tables.string(stacks.kind_of(process)),
            "facts": [self._tables.string(one) for one in (gil, *said) if one],
        }


_GIL = frozenset(("holds", "waits", "detached"))


def _loop(ident: str, tid: Optional[int], ready: Optional[int], spins: Optional[float]) -> str:
    parts = [f"runs in thread {tid}" if tid is not None else "runs in no known thread"]
    if ready is not None:
        parts.append(f"{ready} ready to run")
    if spins is not None:
        parts.append(f"{wording.count(spins)} turns a second")
    return f"Event loop {ident}: {', '.join(parts)}."


def _first(agents: Sequence[Agent], most: int, cited: FrozenSet[Agent]) -> List[Agent]:
    if len(agents) <= most:
        return list(agents)
    kept = set([*(a for a in agents if a in cited), *(a for a in agents if a not in cited)][:most])
    return [agent for agent in agents if agent in kept]


def _culprits(graph: WaitGraph, diagnosis: Diagnosis) -> Iterator[Agent]:
    """All tasks of a culprit's name that stand where it stands: in a crowd they share their name."""
    for finding in diagnosis.findings:
        yield from chains.blames(graph, finding)
        named = {(c.pid, c.task) for c in finding.culprits if c.task is not None}
        places = {(c.file, c.line, c.function) for c in finding.culprits}
        for pid in dict.fromkeys(pid for pid, _name in sorted(named)):
            place = graph.places.by_pid.get(pid)
            for task in place.tasks.values() if place is not None else ():
                if {(pid, task.name), (pid, task.id)} & named and any((f.file, f.line, f.function) in places for f in task.stack):
                    yield Agent(pid, task=task.id)


def _victims(graph: WaitGraph, diagnosis: Diagnosis) -> FrozenSet[Agent]:
    found: Set[Agent] = set()
    for victim in (v for finding in diagnosis.findings for v in finding.victims):
        place = graph.places.by_pid.get(victim.pid)
        if place is not None and victim.tid in place.threads:
            found.add(Agent(victim.pid, victim.tid))
        elif place is not None and victim.task is not None:
            found.update(Agent(victim.pid, task=t.id) for t in place.tasks.values() if victim.task in (t.name, t.id))
    return frozenset(found)
