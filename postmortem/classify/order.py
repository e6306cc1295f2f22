"""The order of findings: from causes to consequences.

Findings are ordered by these rules, the first that decides; the order of modules never matters:

1. what is above *possible* before what is not; there, a match that only says how the process ended comes last;
2. a cause before its consequence: the process that another waits for (``cause_pid``), and the end of a wait before those
   who wait for it, along the wait graph and across processes; what is *proven* follows only from what is proven, and
   nothing but another symptom from a symptom;
3. of two that name the same thread or task, the one of the tier that explains more;
4. *proven* before *likely*;
5. the tier of the pattern;
6. a finding that names a line to change before one that does not;
7. a wait that the code of none of those who refer to its object is known to end before another one.
"""

from __future__ import annotations

import heapq
from typing import Dict, FrozenSet, List, Set, Tuple

from ..findings import CONFIDENCES
from ..waitgraph import Agent
from .facts.view import View
from .pattern import TIERS, Match, Pattern
from .roots.walk import follow

Item = Tuple[Pattern, Match]
#: Most agents of a match whose waits are followed.
_FOLLOWED = 4
_Strength = Tuple[bool, bool, int, int, bool, bool, str, int]


def ranked(view: View, matches: List[Item]) -> List[Item]:
    """Return the matches in order: repeatedly the strongest one whose causes have all been taken."""
    order = sorted(range(len(matches)), key=lambda at: _strength(matches[at], at))
    after = _consequences(view, matches)
    missing = [0] * len(matches)
    for consequences in after:
        for one in consequences:
            missing[one] += 1
    place = {at: number for number, at in enumerate(order)}
    free = [place[at] for at in order if not missing[at]]
    heapq.heapify(free)
    left = dict.fromkeys(order)
    found: List[Item] = []
    while left:
        at = order[heapq.heappop(free)] if free else next(iter(left))
        if at not in left:
            continue
        del left[at]
        found.append(matches[at])
        for one in after[at]:
            missing[one] -= 1
            if not missing[one]:
                heapq.heappush(free, place[one])
    return found


def _strength(item: Item, at: int) -> _Strength:
    """Return the sort key of a match among those that neither cause it nor follow from it; less is stronger."""
    pattern, match = item
    certain = CONFIDENCES.index(match.confidence)
    possible = match.confidence == "possible"
    tier = TIERS.index(pattern.tier)
    return possible, pattern.yields, certain, tier, not match.culprits, not match.unnamed, pattern.id, at


def _consequences(view: View, matches: List[Item]) -> List[Set[int]]:
    """Return for each match the numbers of those that follow from it."""
    after: List[Set[int]] = [set() for _match in matches]
    by_agent: Dict[Agent, List[int]] = {}
    by_pid: Dict[int, List[int]] = {}
    named = [_agents(view, match) for _pattern, match in matches]
    for at, (_pattern, match) in enumerate(matches):
        by_pid.setdefault(match.pid or 0, []).append(at)
        for agent in named[at]:
            by_agent.setdefault(agent, []).append(at)
    for at, item in enumerate(matches):
        for agent in named[at][:_FOLLOWED]:
            later = _beyond(view, agent).difference(named[at])
            beyond = {cause for one in later for cause in by_agent.get(one, ())}
            after_these = {cause for cause in beyond if _causes(matches[cause], item)}
            more = {other for other in by_agent[agent] if _explains_more(matches[other], item)}
            for cause in (after_these | more) - {at}:
                after[cause].add(at)
        for cause in by_pid.get(item[1].cause_pid or 0, ()):
            if cause != at and _causes(matches[cause], item):
                after[cause].add(at)
    # where each seems to cause the other, neither comes first
    return [{at for at in consequences if cause not in after[at]} for cause, consequences in enumerate(after)]


def _causes(cause: Item, consequence: Item) -> bool:
    """Return whether a match at the end of another's wait is certain and telling enough to come before it."""
    if not cause[1].culprits and consequence[1].culprits:
        return False
    if cause[0].tier == "symptom" and consequence[0].tier != "symptom":
        return False
    if consequence[1].confidence == "proven" and not consequence[0].yields:
        return cause[1].confidence == "proven"
    return cause[1].confidence != "possible" or consequence[1].confidence == "possible"


def _explains_more(one: Item, other: Item) -> bool:
    """Return whether a match explains more than another about the same thread: both above *possible*, or neither."""
    alike = (one[1].confidence == "possible") == (other[1].confidence == "possible")
    return alike and not one[0].yields and TIERS.index(one[0].tier) < TIERS.index(other[0].tier)


def _agents(view: View, match: Match) -> List[Agent]:
    """Return the threads and tasks whose lines a match names, the first first."""
    places = dict.fromkeys((c.pid, None if c.task is not None else c.tid, c.task) for c in match.culprits)
    return [
        Agent(pid, tid, _task_ids(view, pid).get(task, task) if task is not None else None)
        for pid, tid, task in places
        if tid is not None or task is not None
    ]


def _task_ids(view: View, pid: int) -> Dict[str, str]:
    """Return the ids of a process's tasks by name; a culprit has the name."""
    key = ("task ids", pid)
    if key not in view.remembered:
        process = view.by_pid.get(pid)
        view.remembered[key] = {t.name or t.id: t.id for t in reversed(process.tasks if process is not None else ())}
    return view.remembered[key]  # type: ignore[return-value]


def _beyond(view: View, agent: Agent) -> FrozenSet[Agent]:
    """Return the agents that an agent waits for, directly or through others."""
    key = ("beyond", agent)
    if key not in view.remembered:
        way = follow(view, agent)
        view.remembered[key] = frozenset() if way.cycle else frozenset(way.agents[1:])
    return view.remembered[key]  # type: ignore[return-value]
