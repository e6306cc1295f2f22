"""Wait chains in words: from the main thread, link by link, to the end of the wait."""

from __future__ import annotations

from typing import FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...evidence import Evidence, Fact, HeldLock, PythonFrame
from ...findings import Finding
from ...waitgraph import Agent, Chain, Edge, WaitGraph, graph_of
from . import bases, labels
from .wording import Wording, facts_in_words

_LINKS = 12
_CHAINS = 2
#: Objects of waits that could not be read.
_UNREAD = ("some-call", "something")


#: Text in place of evidence of which every fact is a link of the wait chain.
_SEE_CHAIN = "the waits of the cycle, as the wait chain lists them"


class Step(NamedTuple):
    """A step of a chain: the first waiter, or the link to the next agent, with that agent's place."""

    text: str
    frame: Optional[PythonFrame]
    pid: Optional[int]


class Way(NamedTuple):
    """A wait chain in words."""

    steps: Tuple[Step, ...]
    left_out: int  # number of its links
    circle: FrozenSet[Agent] = frozenset()  # the agents of a wait-for cycle at its end, told in full


def ways(evidence: Evidence, finding: Optional[Finding]) -> List[Way]:
    """Return the wait chains worth showing; none if a single sentence has said it."""
    graph = graph_of(evidence)
    return [_way(graph, chain) for chain in _chains(graph, evidence, finding)]


def facts(evidence: Evidence, finding: Finding) -> List[str]:
    """Return the facts to list below a finding: without the links of a wait-for cycle that a wait chain tells already."""
    blamed = _blamed(graph_of(evidence), finding) if finding.links else []
    if not any(way.circle & set(blamed) for way in (ways(evidence, finding) if blamed else ())):
        return list(finding.evidence)
    left = [fact for number, fact in enumerate(finding.evidence) if number not in finding.links]
    return left or [_SEE_CHAIN]


def _chains(graph: WaitGraph, evidence: Evidence, finding: Optional[Finding]) -> List[Chain]:
    """Return the chains from the first main thread, and from the agents that the finding blames if that one misses them."""
    starts = [Agent(p.pid, t.tid) for p in evidence.processes[:1] for t in p.threads if t.is_main]
    if finding is None:
        starts = [agent for agent in (*starts, *sorted(graph.stuck_agents, key=str)[:_CHAINS]) if graph.stuck(agent)]
    blamed = list(dict.fromkeys(_blamed(graph, finding))) if finding is not None else []
    found: List[Chain] = []
    seen: Set[Agent] = set()
    for start in [*starts, *blamed]:
        chain = _known(graph, graph.chain(start))
        agents = {edge.waiter for edge in chain.edges} | ({chain.last} if chain.last is not None else set())
        if start in seen or not _tells(graph, chain) or len(found) >= _CHAINS:
            continue
        if start in starts and blamed and not agents & set(blamed) and len(chain.edges) < 2:
            continue
        found.append(chain)
        seen |= agents
    return found


def _known(graph: WaitGraph, chain: Chain) -> Chain:
    """Return a chain without a last link that says nothing: a wait of an unknown kind that anybody may end."""
    edge = chain.edges[-1] if chain.edges else None
    unread = edge is not None and isinstance(edge.what, Fact) and edge.what.code in _UNREAD
    if edge is None or not unread or chain.end not in ("anyone", "outside") or graph.stuck(edge.waiter):
        return chain
    return Chain(chain.edges[:-1], edge.waiter, "runs")


def _blamed(graph: WaitGraph, finding: Finding) -> List[Agent]:
    """Return the culprits of a finding as agents."""
    found = []
    for one in finding.culprits[:8]:
        process = graph.places.by_pid.get(one.pid)
        named = (
            next((t.id for t in process.tasks.values() if one.task in (t.name, t.id)), None)
            if process and one.task
            else None
        )
        if named is not None:
            found.append(Agent(one.pid, task=named))
        elif one.tid is not None:
            found.append(Agent(one.pid, one.tid))
    return found


def _tells(graph: WaitGraph, chain: Chain) -> bool:
    """Return whether a chain is informative: it has several links, or ends where nothing can wake its waiter.

    A wait for the GIL does not count, unless its waiter is stuck: the GIL is handed over a moment later.
    """
    links = [edge for edge in chain.edges if edge.kind != "gil" or graph.stuck(edge.waiter)]
    return len(links) > 1 or (len(links) == 1 and chain.end in ("circle", "gone", "nobody"))


def _way(graph: WaitGraph, chain: Chain) -> Way:
    first = chain.edges[0].waiter
    steps = [_step(graph, first, f"{graph.label(first)}{_where(graph.places.stack(first))}")]
    for number, edge in enumerate(chain.edges[:_LINKS]):
        following = chain.edges[number + 1].waiter if number + 1 < len(chain.edges) else chain.last
        end = _end(graph, chain) if number + 1 == len(chain.edges) else ""
        steps.append(_step(graph, following, _link(graph, edge, following) + end))
    left_out = max(0, len(chain.edges) - _LINKS)
    return Way(tuple(steps), left_out, _circle(chain) if not left_out else frozenset())


def _circle(chain: Chain) -> FrozenSet[Agent]:
    """Return the agents of the cycle that a chain ends in."""
    agents = [edge.waiter for edge in chain.edges]
    if chain.end != "circle" or chain.last not in agents:
        return frozenset()
    return frozenset(agents[agents.index(chain.last) :])


def _step(graph: WaitGraph, agent: Optional[Agent], text: str) -> Step:
    if agent is None:
        return Step(text, None, None)
    return Step(text, labels.own_place(graph.places.stack(agent)), agent.pid)


def _where(frames: Sequence[PythonFrame]) -> str:
    frame = labels.own_place(frames)
    return f", at {_place(frame)}" if frame is not None else ""


def _place(frame: PythonFrame) -> str:
    return f"{labels.short_path(frame.file).rsplit('/', 1)[-1]}:{frame.line or '?'} in {frame.function}"


def _link(graph: WaitGraph, edge: Edge, following: Optional[Agent]) -> str:
    """Return a link: ``wants Lock cache.lock, held by worker-1 (101) since cache.py:30 in put, at db.py:12 in query``."""
    text = f"{edge.verb} {Wording(graph.places).what(edge.what)}"
    if following is None:
        return text
    where = _where(graph.places.stack(following))
    if edge.waiter.is_process:
        return f"in which {graph.label(following)} waits{where}"
    if edge.kind == "process":
        return text
    if edge.kind in ("thread", "turn", "task"):
        return f"{text}{where}"
    if edge.signals:
        more = f" or {len(edge.wakers) - 1} more" if len(edge.wakers) > 1 else ""
        return f"{text}, which only {graph.label(following)}{more} could signal{where.replace(', at', ', now at', 1)}"
    others = len(edge.wakers) - 1
    more = f" (or {others} more)" if others else ""
    if edge.verb != "wants":
        return f"{text}, for which it needs {graph.label(following)}{where}{more}"
    held = _held(graph, edge, following)
    since = f" since {_place(held.frame)}" if held is not None else ""
    basis = bases.in_chain(edge.basis)
    now = where.replace(", at", ", now at", 1)
    return f"{text}, held by {graph.label(following)}{since}{basis}{more}{now}"


def _held(graph: WaitGraph, edge: Edge, owner: Agent) -> Optional[HeldLock]:
    thread, task = graph.places.thread(owner), graph.places.task(owner)
    holds: Tuple[HeldLock, ...] = thread.holds if thread is not None else task.holds if task is not None else ()
    return next((h for h in holds if h.resource == edge.resource), None) if owner.pid == edge.waiter.pid else None


def _end(graph: WaitGraph, chain: Chain) -> str:
    """Return the phrase that ends a chain; "" if there is nothing to add."""
    edge = chain.edges[-1]
    if chain.end == "circle":
        return ": back to the start, a wait-for cycle"
    if chain.end == "gone":
        process = graph.places.process(edge.waiter)
        behind = process is not None and process.forked
        return ", whose holder stayed behind in the parent process" if behind else ", whose holder has ended"
    if chain.end == "nobody":
        return ", and nothing can end it"
    if chain.end == "anyone":
        return ", and no code in the process can run to end it" if graph.stuck(edge.waiter) else ""
    if chain.end == "outside" and edge.outside and edge.outside[0] != edge.what:
        return f" ({', '.join(facts_in_words(edge.outside[:2]))})"
    return ""


def telling(graph: WaitGraph, evidence: Evidence, finding: Optional[Finding]) -> List[Chain]:
    """Return the chains described by :func:`ways`, as the graph has them."""
    return _chains(graph, evidence, finding)


def blames(graph: WaitGraph, finding: Finding) -> List[Agent]:
    """Return a finding's culprits as agents, if they are threads or tasks of the evidence."""
    return _blamed(graph, finding)
