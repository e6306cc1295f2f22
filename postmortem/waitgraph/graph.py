"""The wait-for graph: built once from an evidence document, then queried."""

from __future__ import annotations

from itertools import islice
from typing import Dict, FrozenSet, List, Literal, Mapping, Optional, Set, Tuple

from ..evidence import Evidence, Process
from .agents import Agent, Places
from .chains import Chain, follow
from .cycles import Cycle, find_cycles
from .doubts import handles, interrupted, is_far, weakened, without_bystanders
from .edges import Edge, edges_of
from .liveness import Unmet, movers
from .reasons import WALKED, Reason, reasons

#: Voluntary switches a second from which a thread counts as woken again and again. A stuck thread has none in the window,
#: or one in all if it blocked during it.
WAKES = 1.5
#: From so many a second it goes on, whatever it was found waiting for: no interruption by signals is as frequent.
GOES_ON = 20.0
#: Most agents visited by one query of `needs`.
_FOLLOWED = 300
#: Agents visited for all reasons together; after that each call visits only as many as its sentences can name.
MOST_REASONS, FEW_REASONS = 50_000, 50
#: A deadline this many times later than the capture's own, and at least so many seconds away, ends a wait only in theory.
FAR, FAR_S = 10, 600.0

#: System calls that block in the read itself. A pipe that signals write to is polled, and read only when it has data.
_READS = ("read", "readv", "recvfrom", "recvmsg")

#: How certain it is that nothing can wake an agent.
Stuck = Literal["proven", "likely"]


class WaitGraph:
    """All agents of all processes, with their waits. Costs are linear in the size of the evidence."""

    def __init__(self, evidence: Evidence) -> None:
        self.places = Places(evidence)
        self.edges: Dict[Agent, Tuple[Edge, ...]] = {}
        self._cycles: Optional[Tuple[Cycle, ...]] = None
        agents: List[Agent] = []
        for place in self.places.by_pid.values():
            agents += [Agent(place.pid, t.tid) for t in place.process.threads]
            agents += [Agent(place.pid, task=t.id) for t in place.process.tasks if t.state != "done"]
            agents.append(Agent(place.pid))
            found: Dict[Agent, List[Edge]] = {}
            for edge in edges_of(self.places, place):
                found.setdefault(edge.waiter, []).append(edge)
            self.edges.update({agent: tuple(several) for agent, several in found.items()})
        self.agents = tuple(agents)
        self._order = {agent: at for at, agent in enumerate(agents)}
        self.walked = 0  # agents visited for reasons so far
        self._waiters: Dict[Agent, List[Agent]] = {}
        for waiter, edges in self.edges.items():
            for edge in edges:
                for needed in edge.named if edge.kind != "gil" else ():
                    self._waiters.setdefault(needed, []).append(waiter)
        self._quiet = frozenset(Agent(pid, tid) for pid, place in self.places.by_pid.items() for tid in place.quiet)
        self._moving = self._movers(self.edges)
        self._unmet = Unmet(self._moving)
        far = FAR * (evidence.trigger.seconds or 0.0)
        self._far_s = max(FAR_S, far)
        self._strict = without_bystanders(self.edges)
        self._named = self._movers(self._strict) if self._strict is not self.edges else self._moving
        self._unnamed = Unmet(self._named)
        doubted = weakened(self.edges, self.places, self._moving)
        self._perhaps_moving = movers(agents, doubted, lambda e: self._may_open(e) or not self._is_sure(e), self._quiet)

    def _movers(self, edges: Mapping[Agent, Tuple[Edge, ...]]) -> Set[Agent]:
        return movers(self.agents, edges, self._may_open, self._quiet)

    # ------------------------------------------------------------------ liveness

    def stuck(self, agent: Agent) -> Optional[Stuck]:
        """Return how certain it is that no agent, timer, descriptor or outside process can ever wake an agent.

        "likely": a doubt remains, such as an inferred fact, a signal handler, or agents that refer to what is awaited
        although no code of theirs ends the wait; None: the agent can move, or nothing shows that it cannot.
        """
        if agent in self._named or agent not in self.edges:
            return None
        return "likely" if agent in self._moving or agent in self._perhaps_moving else "proven"

    @property
    def stuck_agents(self) -> FrozenSet[Agent]:
        """Return the threads and tasks that cannot move, likely or proven."""
        return frozenset(a for a in self.agents if not a.is_process and a not in self._named)

    def is_limited(self, edge: Edge) -> bool:
        """Return whether a time limit ends a wait in practice: one that is not long after the capture."""
        return edge.endless is False and not is_far(edge, self._far_s)

    def blocking(self, agent: Agent) -> Optional[Edge]:
        """Return the edge of an agent that can never be ended; None if there is none."""
        if agent in self._moving:
            return next((edge for edge in self._strict.get(agent, ()) if self._unnamed.holds(edge)), None)
        return next((edge for edge in self.edges.get(agent, ()) if self._unmet.holds(edge)), None)

    def late(self, seconds: float) -> Dict[Agent, Edge]:
        """Return the agents that can move only after a sleep of at least ``seconds`` elsewhere, each with its edge."""
        asleep: Dict[Agent, Tuple[Edge, ...]] = {}
        for agent in self.agents:
            thread, task = self.places.thread(agent), self.places.task(agent)
            wait = thread.wait if thread is not None else task.wait if task is not None else None
            if wait is not None and wait.kind == "sleep" and (wait.timeout_s or 0.0) >= seconds:
                asleep[agent] = (Edge(agent, "sleeps", "", "sleep"),)
        moving = self._movers({**self.edges, **asleep}) if asleep else self._moving
        found = {}
        for agent in self.agents:
            closed = (e for e in self.edges.get(agent, ()) if not self._may_open(e))
            edge = next((e for e in closed if not any(waker in moving for waker in e.wakers)), None)
            if agent in self._moving and agent not in moving and agent not in asleep and edge is not None:
                found[agent] = edge
        return found

    def roots(self) -> Tuple[Agent, ...]:
        """Return the agents that cannot move for a reason of their own rather than because of another stuck agent.

        No agent can wake them, or their lock's holder has ended. Members of cycles are not roots.
        """
        found = []
        for agent in self.agents:
            edge = self.blocking(agent) if not agent.is_process and self.stuck(agent) else None
            if edge is not None and (edge.signals or not any(waker not in self._named for waker in edge.wakers)):
                found.append(agent)
        return tuple(found)

    def _may_open(self, edge: Edge) -> bool:
        """Return whether an event other than an agent of the graph may end the edge."""
        if edge.outside or edge.endless is False:
            return True
        if edge.kind != "gil" and self._rate(edge.waiter) >= (WAKES if edge.everyone or edge.signals else GOES_ON):
            return True  # the switch timer wakes a waiter for the GIL 200 times a second, whoever has it
        if edge.everyone:
            return handles(self.places.process(edge.waiter)) is True
        return self.heeds_signals(edge)

    def heeds_signals(self, edge: Edge) -> bool:
        """Return whether an agent polls a pipe that only its own process has, and to which signals may write.

        The program has set handlers, and ``signal.set_wakeup_fd``, or a handler, makes its signals readable there.
        """
        thread = self.places.thread(edge.waiter)
        polls = thread is not None and thread.wait is not None and thread.wait.syscall not in _READS
        if edge.kind != "pipe" or edge.verb != "reads" or not polls:
            return False
        pipe = self.places.resource(edge.waiter.pid, edge.resource)
        alone = pipe is not None and {end.pid for end in pipe.ends} == {edge.waiter.pid}
        return alone and handles(self.places.process(edge.waiter)) is True

    def _is_sure(self, edge: Edge) -> bool:
        """Return whether the edge was read rather than inferred, and nothing unknown, such as a signal handler, may end it."""
        place = self.places.by_pid.get(edge.waiter.pid)
        if not edge.sure or (place is not None and interrupted(place, edge, place.pid in self.places.children)):
            return False
        return not edge.everyone or (place is not None and handles(place.process) is False)

    def _rate(self, agent: Agent) -> float:
        """Return how often a second the agent woke over the window, which shows that something ends its waits.

        0 if that is unknown, or if it only polls.
        """
        thread = self.places.thread(agent)
        if thread is None or thread.counters is None or (thread.wait is not None and thread.wait.polls_s is not None):
            return 0.0
        return thread.counters.switches_per_s or 0.0

    # ------------------------------------------------------------------ paths

    @property
    def cycles(self) -> Tuple[Cycle, ...]:
        """Return one wait-for cycle of each group of agents that all need each other."""
        if self._cycles is None:
            self._cycles = find_cycles(self.edges)
        return self._cycles

    def proves(self, cycle: Cycle) -> bool:
        """Return whether every edge of the cycle was read rather than inferred, and nothing else might end one."""
        return cycle.sure and all(self.stuck(agent) == "proven" for agent in cycle.agents)

    def chain(self, start: Agent) -> Chain:
        """Return the path from a waiter to the end of its wait."""
        return follow(start, self._strict, self._named.__contains__)

    def behind(self, agents: FrozenSet[Agent]) -> Tuple[Agent, ...]:
        """Return the threads and tasks that wait, directly or through others, for one of these agents.

        Waits for the GIL do not count: the GIL is handed over a moment later, unless nothing moves.
        """
        found: Set[Agent] = set(agents)
        wave = list(agents)
        while wave:
            following = {waiter for needed in wave for waiter in self._waiters.get(needed, ())} - found
            found |= following
            wave = list(following)
        order = self._order
        known = sorted(order[a] for a in found - agents if a in order)
        return tuple(self.agents[at] for at in known if not self.agents[at].is_process)

    def is_awaited(self, agent: Agent) -> bool:
        """Return whether an agent depends on this very one."""
        return agent in self._waiters

    def waiters(self, agent: Agent) -> Tuple[Agent, ...]:
        """Return the agents that depend directly on this one."""
        return tuple(self._waiters.get(agent, ()))

    def goes_on(self, pid: int) -> bool:
        """Return whether any thread or task of a process can move that is not quiet; True if the process is unknown."""
        place = self.places.by_pid.get(pid)
        if place is None:
            return True
        tasks = (Agent(pid, task=t.id) for t in place.process.tasks if t.state != "done")
        threads = (Agent(pid, t.tid) for t in place.process.threads if t.tid not in place.quiet)
        return any(a in self._named for a in (*threads, *tasks))

    def needs(self, agent: Agent, resource: str) -> bool:
        """Return whether a stuck agent waits for a resource of its process, directly or through the agents it depends on."""
        waiting, seen = [agent], {agent}
        followed: Set[int] = set()  # ids of tuples of wakers: waiters of the same resource share one
        while waiting and len(seen) < _FOLLOWED:
            edge = self.blocking(waiting.pop())
            if edge is None or id(edge.wakers) in followed:
                continue
            if edge.resource == resource and edge.waiter.pid == agent.pid:
                return True
            followed.add(id(edge.wakers))
            following = list(islice((w for w in edge.wakers if w not in seen), _FOLLOWED))
            seen.update(following)
            waiting += following
        return False

    def reasons(self, *start: Agent) -> Tuple[Reason, ...]:
        """Return why these agents cannot move, step by step."""
        most = max(FEW_REASONS, min(WALKED, MOST_REASONS - self.walked))
        strict = any(agent in self._moving for agent in start)
        edges, moving = (self._strict, self._named) if strict else (self.edges, self._moving)
        told = reasons(start, edges, self.places, moving, most)
        self.walked += told.walked
        return told.reasons

    def label(self, agent: Agent) -> str:
        """Return the agent's name for the reader."""
        return self.places.label(agent)


_last: List[Tuple[Tuple[Process, ...], WaitGraph]] = []


def graph_of(evidence: Evidence) -> WaitGraph:
    """Return the graph of an evidence document; that of the last one is cached.

    Classification and each report ask for the same one. Only the processes are compared, because timings are filled in
    in between.
    """
    if not _last or _last[0][0] is not evidence.processes:
        _last[:] = [(evidence.processes, WaitGraph(evidence))]
    return _last[0][1]
