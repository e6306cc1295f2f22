"""Evaluation of every pattern over the evidence; a root that no pattern explains gets a verdict from its kind."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import dataclass, replace
from typing import Dict, Iterable, List, Optional, Set, Tuple

from .. import sourcepaths
from ..evidence import Evidence
from ..findings import Culprit, Found, Missing, Outcome, Refuted, Template
from ..findings.told import RootState
from ..waitgraph import Agent
from . import patterns as _patterns
from .facts.fixed_in import fixes
from .facts.suspended import unless_held
from .facts.view import View
from .order import ranked
from .pattern import ANYTHING, CannotTell, Match, Matcher, No, Pattern, Tier
from .roots.floor import Verdict, floor
from .roots.roots import Root, frame_of, roots
from .roots.told import root_told
from .roots.walk import follow
from .signature import signature

#: Tiers of which a merely *possible* match says no more than the root of a program that is idle, or that progresses.
_SAID_BY_ROOT: Dict[RootState, Tuple[Tier, ...]] = {
    "waiting": (), "idle": ("exit", "wait", "peer", "symptom"), "progressing": ("symptom",),
}  # fmt: skip
#: Most reasons kept for one pattern that is ruled out.
_RULED_OUT = 3
#: Lines of a child process that come before the line of the process that waits for it; lines of the program that follow
#: those of libraries.
_MOST_OWN = 2
#: Most matches requested of one pattern; each may cost time linear in the number of threads.
_MOST_MATCHES = 300
#: Most victims of all findings together, the leading findings' first; and least number kept for each finding.
_MOST_VICTIMS, _FEW_VICTIMS = 20_000, 20
#: Most agents looked at that are to signal the one at a root.
_MOST_SIGNALLING = 60
_MORE = Template("{count} more {count:v is|are} affected by it")
_UNSEEN = Template("one moment only: an observation window would show whether the wait ends")
_LIKEWISE = Template("{count} more like these")


@dataclass(frozen=True)
class Rule:
    """A pattern with its matcher and its page."""

    pattern: Pattern
    match: Matcher
    doc: str

    @property
    def id(self) -> str:
        """Return the pattern's id."""
        return self.pattern.id

    @property
    def title(self) -> str:
        """Return the pattern's title."""
        return self.pattern.title


_rules: List[Rule] = []


def all_patterns() -> List[Rule]:
    """Return every pattern of the package, sorted by id. Modules are imported once."""
    if not _rules:
        found = pkgutil.walk_packages(_patterns.__path__, f"{_patterns.__name__}.")
        names = [module.name for module in found if not module.ispkg]
        loaded = [importlib.import_module(name) for name in names]  # an import error is not suppressed
        rules = [
            Rule(one.PATTERN, one.match, inspect.cleandoc(one.__doc__ or ""))
            for one in loaded
            if hasattr(one, "PATTERN")  # the others are helpers that the patterns of a family share
        ]
        _rules.extend(sorted(rules, key=lambda rule: rule.id))
    return list(_rules)


def classify(evidence: Evidence) -> Outcome:
    """Diagnose evidence. A pure function: equal evidence gives an equal diagnosis."""
    view = View(evidence)
    matches: List[Tuple[Pattern, Match]] = []
    abstained: List[Missing] = []
    ruled_out: List[Refuted] = []
    for rule in all_patterns():
        found = 0
        for answer in rule.match(view):
            if isinstance(answer, Match):
                matches.append((rule.pattern, answer))
                found += 1
                if found == _MOST_MATCHES:
                    break
            elif isinstance(answer, No):
                ruled_out.append(Refuted(rule.id, answer.because))
            elif isinstance(answer, CannotTell):
                abstained.append(Missing(rule.id, answer.missing))
    by_id = {rule.id: rule.pattern for rule in all_patterns()}
    told = list(matches)
    matches += [(by_id[one.pattern], _beside(one, told)) for one in floor(view) if not _is_told(view, one, told)]
    matches = [(pattern, unless_held(view, pattern.id, match)) for pattern, match in matches]
    matches = [(pattern, _unless_passing(view, pattern, match)) for pattern, match in matches]
    matches = [(pattern, match) for pattern, match in matches if not _is_said(view, pattern, match)]
    findings = _shortened(
        [
            _finding(evidence, pattern, match, matches)._replace(
                culprits=_new_lines_first(_with_own_lines(view, match, _with_ancestor(view, match)))
            )
            for pattern, match in ranked(view, matches)
        ]
    )
    leading = findings[0] if findings else None
    return Outcome(
        verdict=leading.pattern if leading else None,
        signature=signature(evidence, leading),
        findings=tuple(findings),
        abstained=tuple(dict.fromkeys(abstained)),
        ruled_out=_few_of_each(ruled_out),
        root=next((root_told(view, root) for root in roots(view)), None),
    )


def _is_told(view: View, verdict: Verdict, matches: List[Tuple[Pattern, Match]]) -> bool:
    """Return whether a pattern has explained the wait at a root already.

    A match names its thread or task, one of a cycle, or one that is to signal it; or it is of the same pattern, and names one
    that waits behind, or none in the same process. A *possible* match does not explain a cycle that is *likely*.
    """
    root = verdict.root
    if root.kind == "cycle" and verdict.match.confidence == "likely":
        matches = [(pattern, match) for pattern, match in matches if match.confidence != "possible"]
    if any(p.id == verdict.pattern and not m.culprits and m.pid == root.agent.pid for p, m in matches):
        return True
    agents = [root.agent, *(edge.waiter for edge in root.way.cycle)]
    ends = {(victim.pid, victim.tid, victim.task) for victim in map(view.victim_of, agents)}
    cited = _cited(match for _pattern, match in matches)
    cited |= {(v.pid, v.tid, v.task) for _pattern, match in matches for v in match.victims}
    if ends & cited or _signaller_is_told(view, root, matches):
        return True
    alike = _cited(match for pattern, match in matches if pattern.id == verdict.pattern)
    behind = view.graph.behind(frozenset((root.agent,))) if alike else ()
    return any((v.pid, v.tid, v.task) in alike for v in map(view.victim_of, behind))


def _cited(matches: Iterable[Match]) -> Set[Tuple[int, Optional[int], Optional[str]]]:
    """Return the threads and tasks that matches blame: (pid, tid, task); a task without the thread that runs it."""
    return {(c.pid, None if c.task else c.tid, c.task) for match in matches for c in match.culprits}


def _unless_passing(view: View, pattern: Pattern, match: Match) -> Match:
    """Lower a likely match of a wait that may end at any moment to *possible* if no thread of it was observed over time."""
    agents = [Agent(c.pid, c.tid) for c in match.culprits if c.tid is not None]
    threads = [thread for agent in agents for thread in [view.graph.places.thread(agent)] if thread is not None]
    seen = any(thread.counters is not None for thread in threads) or any(map(view.graph.stuck, agents))
    if not pattern.passing or match.confidence != "likely" or seen or not threads:
        return match
    return replace(match, confidence="possible", evidence=(*match.evidence, _UNSEEN()))


def _with_ancestor(view: View, match: Match) -> Tuple[Culprit, ...]:
    """Return the culprits of a match in a child process, with the line of its nearest ancestor that waits for that child.

    The child's line may be one of a library's program, and the fault the way in which it was started.
    """
    process = view.by_pid.get(match.pid or 0)
    if process is None or any(c.pid != match.pid for c in match.culprits):
        return match.culprits
    for parent in (view.by_pid[pid] for pid in view.ancestors(process) if pid in view.by_pid):
        main = view.main(parent)
        agent = Agent(parent.pid, main.tid) if main is not None else None
        frame = frame_of(view, agent) if agent is not None and follow(view, agent).end.pid == match.pid else None
        if agent is not None and frame is not None:
            return (*match.culprits[:_MOST_OWN], view.culprit_of(agent, frame), *match.culprits[_MOST_OWN:])
    return match.culprits


def _new_lines_first(culprits: Tuple[Culprit, ...]) -> Tuple[Culprit, ...]:
    """Return the culprits, those at the line of an earlier one, of another thread, task or process, after all others."""
    first: Dict[Tuple[str, Optional[int], str], Culprit] = {}
    again: List[Culprit] = []
    for culprit in culprits:
        if first.setdefault((culprit.file, culprit.line, culprit.function), culprit) is not culprit:
            again.append(culprit)
    return (*first.values(), *again)


def _with_own_lines(view: View, match: Match, culprits: Tuple[Culprit, ...]) -> Tuple[Culprit, ...]:
    """Return culprits that are all lines of libraries, followed by the program's lines that wait because of them."""
    if any(sourcepaths.is_program(culprit.file) for culprit in culprits):
        return culprits
    own: Dict[Tuple[str, int], Culprit] = {}
    for v in match.victims:
        if v.file is not None and v.line is not None and sourcepaths.is_program(v.file):
            source = view.evidence.source(v.file, v.line)
            own.setdefault((v.file, v.line), Culprit(v.pid, v.tid, v.task, v.file, v.line, v.function or "", source))
    several = list(own.values())[:_MOST_OWN] or _where_main_waits(view, match)
    return (*culprits, *several)


def _where_main_waits(view: View, match: Match) -> List[Culprit]:
    """Return the program's line at which the main thread, or the main task of its loop, waits.

    Of the match's process, or of its nearest ancestor with such a line.
    """
    process = view.by_pid.get(match.pid or 0)
    if process is None:
        return []
    for one in (view.by_pid[pid] for pid in (process.pid, *view.ancestors(process)) if pid in view.by_pid):
        main = view.main(one)
        if main is None or main.wait is None:
            continue
        agent = Agent(one.pid, main.tid)
        if main.wait.kind == "event-loop":
            tasks = [loop.main_task for loop in one.loops if loop.tid == main.tid and loop.main_task is not None]
            agent = Agent(one.pid, task=tasks[0]) if tasks else agent
        own = next((f for f in view.graph.places.stack(agent) if sourcepaths.is_program(f.file)), None)
        if own is not None and (agent.task is not None or main.wait.kind != "event-loop"):
            return [view.culprit_of(agent, own)]
    return []


def _is_said(view: View, pattern: Pattern, match: Match) -> bool:
    """Return whether a *possible* match only says at what an idle program rests, or how one that progresses waits now."""
    found = roots(view)
    return bool(found) and match.confidence == "possible" and pattern.tier in _SAID_BY_ROOT[found[0].state]


def _beside(verdict: Verdict, matches: List[Tuple[Pattern, Match]]) -> Match:
    """Return the match of a root: only *possible* where a firm finding names an agent that waits for its end."""
    firm = {
        (c.pid, c.tid) for _pattern, m in matches if m.confidence != "possible" for c in m.culprits if c.tid is not None
    }
    told = any((agent.pid, agent.tid) in firm for agent in verdict.root.way.agents)
    return replace(verdict.match, confidence="possible") if told else verdict.match


def _signaller_is_told(view: View, root: Root, matches: List[Tuple[Pattern, Match]]) -> bool:
    """Return whether a match above *possible* names an agent that is to signal the one at a root, and cannot move itself."""
    edge = root.way.edge
    if edge is None or not edge.signals:
        return False
    stuck = [view.victim_of(agent) for agent in edge.wakers[:_MOST_SIGNALLING] if view.graph.stuck(agent) is not None]
    cited = {(c.pid, c.tid, c.task) for _p, m in matches if m.confidence != "possible" for c in m.culprits}
    return any((one.pid, one.tid, one.task) in cited for one in stuck)


def _shortened(findings: List[Found]) -> List[Found]:
    """Limit the victims of all findings together; those of the leading findings are kept."""
    left, found = _MOST_VICTIMS, []
    for finding in findings:
        most = max(_FEW_VICTIMS, left)
        more = len(finding.victims) - most
        told = (*finding.evidence, *((_MORE(count=more),) if more > 0 else ()))
        found.append(finding._replace(victims=finding.victims[:most], evidence=told) if more > 0 else finding)
        left -= min(most, len(finding.victims))
    return found


def _few_of_each(ruled_out: List[Refuted]) -> Tuple[Refuted, ...]:
    """Limit the reasons kept for each pattern that is ruled out, and count the others."""
    alike: Dict[str, List[Refuted]] = {}
    for item in dict.fromkeys(ruled_out):
        alike.setdefault(item.pattern, []).append(item)
    kept: List[Refuted] = []
    for pattern, items in alike.items():
        shown = items if len(items) <= _RULED_OUT + 1 else items[:_RULED_OUT]
        kept += shown
        if len(shown) < len(items):
            kept.append(Refuted(pattern, _LIKEWISE(count=len(items) - len(shown))))
    return tuple(kept)


def _finding(evidence: Evidence, pattern: Pattern, match: Match, others: List[Tuple[Pattern, Match]]) -> Found:
    """Return a match as a finding, with the pattern's texts and the upgrades that fix it."""
    cause = match.cause_pid if match.cause_pid is not None else match.pid
    present = {p.id for p, m in others if m.pid == cause and m is not match}
    fixed = fixes(evidence, pattern.id, match.culprits, match.victims)
    return Found(
        pattern=pattern.id,
        confidence=match.confidence,
        summary=match.summary,
        explanation=pattern.explanation,
        remedy=(match.remedy or pattern.remedy, *(row.advice for row in fixed)),
        references=(*pattern.references, *(row.reference for row in fixed)),
        because_of=tuple(
            sorted(present) if match.because_of == ANYTHING else (p for p in match.because_of if p in present)
        ),
        culprits=match.culprits,
        victims=match.victims,
        evidence=tuple(dict.fromkeys(match.evidence)),
    )
