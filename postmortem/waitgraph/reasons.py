"""Why somebody can never move again, step by step, in sentences that a reader can check against the evidence."""

from __future__ import annotations

from typing import Dict, Iterable, Mapping, Sequence, Set, Tuple

from .agents import Agent, Places
from .edges import Edge

_STEPS, _NAMED = 12, 4


def reasons(
    start: Iterable[Agent], edges: Mapping[Agent, Sequence[Edge]], places: Places, live: Set[Agent]
) -> Tuple[str, ...]:
    """Of agents that cannot move: each of them and all that they depend on, nearest first."""
    waiting = list(start)
    seen: Set[Agent] = set(waiting)
    told: Dict[str, None] = {}
    everywhere: Set[int] = set()
    while waiting:
        agent = waiting.pop(0)
        edge = next((e for e in edges.get(agent, ()) if _stuck(e, live)), None)
        if edge is None:
            continue
        if len(told) < _STEPS:
            told[_step(agent, edge, places)] = None
            told.update(dict.fromkeys(edge.because))
        if edge.everyone:
            everywhere.add(agent.pid)
        following = [w for w in edge.wakers if w not in seen]
        seen.update(following)
        waiting += following
    more = len(seen) - _STEPS
    found = list(told)
    if more > 0:
        found.append(f"and {more} more that wait for these")
    return (*found, *(_nobody(pid, places) for pid in sorted(everywhere)))


def _stuck(edge: Edge, live: Set[Agent]) -> bool:
    if edge.outside or edge.endless is False:
        return False
    return not all(w in live for w in edge.wakers) if edge.all_needed else not any(w in live for w in edge.wakers)


def _step(agent: Agent, edge: Edge, places: Places) -> str:
    who = places.label(agent)
    if agent.is_process and len(edge.wakers) > 1:
        return f"{who} does nothing before one of its {len(edge.wakers)} threads does"
    if edge.gone:
        return f"{who} {edge.verb} {edge.what}, whose holder is no more"
    text = f"{who} {edge.verb} {edge.what}"
    if edge.wakers and edge.resource is not None:
        names = _names(edge.wakers, places)
        if edge.verb == "wants":
            text += f", held by {names} (known: {edge.basis})"
        elif not edge.everyone:
            text += f", which only {names} could end"
    elif not edge.wakers and not edge.everyone:
        text += ", and nobody can end that"
    return text + (", without a time limit" if edge.endless and agent.tid is not None and edge.verb != "runs" else "")


def _names(agents: Sequence[Agent], places: Places) -> str:
    named = [places.label(agent) for agent in agents[:_NAMED]]
    return ", ".join(named) + (f" and {len(agents) - _NAMED} more" if len(agents) > _NAMED else "")


def _nobody(pid: int, places: Places) -> str:
    place = places.by_pid[pid]
    threads, tasks = len(place.threads), sum(task.state != "done" for task in place.process.tasks)
    all_threads = f"all its {threads} threads wait" if threads != 1 else "its only thread waits"
    and_tasks = f", and so do its {tasks} tasks" if tasks > 1 else ", and so does its task" if tasks else ""
    return (
        f"only code of process {pid} could signal these, and none can run: {all_threads} without a time limit{and_tasks}; no "
        "timer is set, and no descriptor or process outside can wake one"
    )
