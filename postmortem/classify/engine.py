"""Evaluation of every pattern over the evidence, and ranking of their findings.

Findings are ordered by these rules, the first that decides; the order of modules never matters:

1. findings above *possible* before the others;
2. a pattern before those that it outranks, directly or transitively;
3. the process that is waited for before the one that waits;
4. a finding that names a line to change before one that does not;
5. proven before likely.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Optional, Set, Tuple

from ..evidence import Evidence
from ..findings import CONFIDENCES, Found, Missing, Outcome, Refuted, Template
from . import patterns as _patterns
from .facts.fixed_in import fixes
from .facts.suspended import unless_held
from .facts.view import View
from .pattern import ANYTHING, CannotTell, Match, Matcher, No, Pattern
from .signature import signature

#: Most reasons kept for one pattern that is ruled out.
_RULED_OUT = 3
#: Most matches requested of one pattern; each may cost time linear in the number of threads.
_MOST_MATCHES = 300
#: Most victims of all findings together, the leading findings' first; and least number kept for each finding.
_MOST_VICTIMS, _FEW_VICTIMS = 20_000, 20
_MORE = Template("{count} more {count:v is|are} affected by it")
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
    matches = [(pattern, unless_held(view, pattern.id, match)) for pattern, match in matches]
    findings = _shortened([_finding(evidence, pattern, match, matches) for pattern, match in _ranked(matches)])
    leading = findings[0] if findings else None
    return Outcome(
        verdict=leading.pattern if leading else None,
        signature=signature(evidence, leading),
        findings=tuple(findings),
        abstained=tuple(dict.fromkeys(abstained)),
        ruled_out=_few_of_each(ruled_out),
    )


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
        evidence=match.evidence,
    )


def _ranked(matches: List[Tuple[Pattern, Match]]) -> List[Tuple[Pattern, Match]]:
    """Sort matches: repeatedly take the strongest one that no remaining match beats.

    Matches that are alike in everything ``_beats`` reads are compared once, as one kind.
    """
    beaten_by = _closure([p for p, _m in matches])
    alike: Dict[_Kind, List[Tuple[Pattern, Match]]] = {}
    for item in sorted(matches, key=_strength):
        alike.setdefault(_kind(item), []).append(item)
    beats = {
        one: [other for other, losers in alike.items() if other != one and _beats(winners[0], losers[0], beaten_by)]
        for one, winners in alike.items()
    }
    above = Counter(other for losers in beats.values() for other in losers)
    ranked: List[Tuple[Pattern, Match]] = []
    while alike:
        free = [kind for kind in alike if not above[kind]]
        best = min(free or alike, key=lambda kind: _strength(alike[kind][0]))
        ranked.append(alike[best].pop(0))
        if not alike[best]:
            del alike[best]
            above.subtract(beats[best])
    return ranked


_Kind = Tuple[str, bool, bool, Optional[int], Optional[int]]


def _kind(item: Tuple[Pattern, Match]) -> _Kind:
    """Return everything that ``_beats`` reads."""
    pattern, match = item
    return pattern.id, match.confidence == "possible", bool(match.culprits), match.pid, match.cause_pid


def _strength(item: Tuple[Pattern, Match]) -> Tuple[bool, bool, int, str]:
    """Return the sort key among matches that do not beat each other; less is stronger."""
    pattern, match = item
    return match.confidence == "possible", not match.culprits, CONFIDENCES.index(match.confidence), pattern.id


def _beats(one: Tuple[Pattern, Match], other: Tuple[Pattern, Match], closure: Dict[str, Set[str]]) -> bool:
    """Return whether one match comes before another by rules 1 to 4 of the module."""
    if one[1].confidence == "possible" and other[1].confidence != "possible":
        return False
    if other[1].cause_pid is not None and other[1].cause_pid == one[1].pid and one[1].culprits:
        return True  # across processes the root comes before the processes that wait for it
    if one[1].cause_pid is not None and one[1].cause_pid == other[1].pid and other[1].culprits:
        return False
    if other[0].id not in closure.get(one[0].id, set()):
        return False
    if other[0].yields or set(ANYTHING) & set(one[0].outranks):
        return True
    # a finding without a line to change does not come before one that has it
    return bool(one[1].culprits) or not other[1].culprits


def _closure(patterns: List[Pattern]) -> Dict[str, Set[str]]:
    """Return for each pattern all that it outranks, directly or transitively."""
    every = [rule.pattern for rule in all_patterns()]
    common = {p.id for p in every if not set(ANYTHING) & set(p.outranks)}
    direct = {p.id: set(p.outranks) - set(ANYTHING) for p in every}
    for pattern in every:
        if pattern.id not in common:
            direct[pattern.id] |= common
        if pattern.yields:
            for other in every:
                direct[other.id] |= {pattern.id} - {other.id}
    found: Dict[str, Set[str]] = {}
    for pattern in patterns:
        reached: Set[str] = set()
        wanted = list(direct.get(pattern.id, ()))
        while wanted:
            current = wanted.pop()
            if current not in reached:
                reached.add(current)
                wanted.extend(direct.get(current, ()))
        found[pattern.id] = reached
    return found
