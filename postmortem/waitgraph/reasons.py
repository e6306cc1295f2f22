"""Explanations of why agents can never move again, in sentences that can be checked against the evidence."""

from __future__ import annotations

from collections import deque
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..evidence.vocabulary import WakerBasis
from .agents import Agent, Places
from .edges import Edge
from .liveness import Unmet

_STEPS, _NAMED = 12, 4
_BASES = {
    "recorded": "as the lock itself records",
    "with-slot": "as its `with` statement in progress shows",
    "inferred": "inferred from the source code",
    "kernel": "as the kernel records",
    "memory": "found in memory",
}
#: Most agents visited in one call; the text names far fewer, so that the limit never shortens it.
WALKED = 5_000


class Told(NamedTuple):
    """Sentences, and the number of agents visited for them (``walked``)."""

    sentences: Tuple[str, ...]
    walked: int


def reasons(
    start: Iterable[Agent], edges: Mapping[Agent, Sequence[Edge]], places: Places, live: Set[Agent], most: int
) -> Told:
    """Explain why agents cannot move: each of them and all that they depend on, nearest first.

    Agents with the same wait share one sentence. ``most``: number of agents to visit.
    """
    waiting = deque(start)
    seen: Set[Agent] = set(waiting)
    steps: Dict[str, List[Agent]] = {}
    because: Dict[str, Tuple[str, ...]] = {}
    everywhere: Set[int] = set()
    unmet, walked = Unmet(live), 0
    followed: Set[int] = set()
    while waiting and walked < most:
        agent = waiting.popleft()
        walked += 1
        edge = next((e for e in edges.get(agent, ()) if unmet.holds(e)), None)
        if edge is None:
            continue
        step = _step(agent, edge, places)
        steps.setdefault(step, []).append(agent)
        because[step] = edge.because
        if edge.everyone:
            everywhere.add(agent.pid)
        following = [w for w in edge.wakers if w not in seen] if id(edge.wakers) not in followed else []
        followed.add(id(edge.wakers))
        seen.update(following)
        waiting.extend(following)
    told: Dict[str, None] = {}
    for step, agents in list(steps.items())[:_STEPS]:
        told[f"{_names(agents, places)}{': each' if len(agents) > 1 else ''} {step}"] = None
        told.update(dict.fromkeys(because[step]))
    more = sum(map(len, list(steps.values())[_STEPS:])) + len(waiting)
    sentences = (
        *told,
        *((f"and {more} more that these wait for",) if more else ()),
        *(_nobody(pid, places) for pid in sorted(everywhere)),
    )
    return Told(sentences, walked)


def _step(agent: Agent, edge: Edge, places: Places) -> str:
    """Return the part of a sentence after its subject, for one agent or for each of several."""
    if agent.is_process and len(edge.wakers) > 1:
        return f"does nothing before one of its {len(edge.wakers)} threads does"
    text = f"{edge.verb} {edge.what}"
    if edge.gone:
        return f"{text}, whose holder is no more"
    if edge.wakers and edge.resource is not None:
        names = _names(edge.wakers, places)
        if edge.verb == "wants":
            text += f", held by {names} ({known_from(edge.basis)})"
        elif not edge.everyone:
            text += f", which only {names} could end"
    elif not edge.wakers and not edge.everyone:
        text += ", and nobody can end that"
    return text + (", without a time limit" if edge.endless and agent.tid is not None and edge.verb != "runs" else "")


def _names(agents: Sequence[Agent], places: Places) -> str:
    """Return the names of the first few agents, and the number of the others."""
    named = [places.label(agent) for agent in agents[:_NAMED]]
    return ", ".join(named) + (f" and {len(agents) - _NAMED} more" if len(agents) > _NAMED else "")


def _nobody(pid: int, places: Places) -> str:
    """Return the sentence that no agent of a process can run, so that none can signal its waiters."""
    place = places.by_pid[pid]
    threads, tasks = len(place.threads), sum(task.state != "done" for task in place.process.tasks)
    all_threads = f"all its {threads} threads wait" if threads != 1 else "its only thread waits"
    and_tasks = f", and so do its {tasks} tasks" if tasks > 1 else ", and so does its task" if tasks else ""
    handlers = "; the program has set no signal handler" if place.process.signal_handlers == () else ""
    return (
        f"only code of process {pid} could signal these, and none can run: {all_threads} without a time limit{and_tasks}; no "
        f"timer is set, and no descriptor or process outside can wake one{handlers}"
    )


def known_from(basis: Optional[WakerBasis]) -> str:
    """Return in words how the holder of a resource is known."""
    return _BASES.get(basis or "", "it is not known from where")
