"""Runs every pattern over the evidence and ranks what they find.

Order: findings above *possible* first; a pattern before those that it outranks, directly or through others; the
process that is waited for before the one that waits; one that names a line to change before one that does not; then
proven before likely. Never the order of the list.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Optional, Set, Tuple

from ..evidence import Evidence, replace
from ..findings import CONFIDENCES, Abstained, Diagnosis, Finding, RuledOut
from . import patterns as _patterns
from .facts.fixed_in import fixes
from .facts.suspended import unless_held
from .facts.view import View
from .pattern import ANYTHING, CannotTell, Match, Matcher, No, Pattern
from .signature import signature

#: Reasons kept of one pattern that is ruled out.
_RULED_OUT = 3
#: Matches of one pattern that are asked for: nobody reads more, and each may cost as much as there are threads.
_MOST_MATCHES = 300
#: Victims of all findings together, the first findings' first; and of one in any case.
_MOST_VICTIMS, _FEW_VICTIMS = 20_000, 20


@dataclass(frozen=True)
class Rule:
    """A pattern with its matcher and its page."""

    pattern: Pattern
    match: Matcher
    doc: str

    @property
    def id(self) -> str:
        return self.pattern.id

    @property
    def title(self) -> str:
        return self.pattern.title


_rules: List[Rule] = []


def all_patterns() -> List[Rule]:
    """Every pattern of the folder, by id, so that nothing depends on an order of files. Imported once."""
    if not _rules:
        found = pkgutil.walk_packages(_patterns.__path__, f"{_patterns.__name__}.")
        names = [module.name for module in found if not module.ispkg]
        loaded = [importlib.import_module(name) for name in names]  # one that fails is not left out silently
        shared = [one for one in loaded if not hasattr(one, "PATTERN")]  # facts that the patterns of a family share
        rules = [
            Rule(one.PATTERN, one.match, inspect.cleandoc(one.__doc__ or "")) for one in loaded if one not in shared
        ]
        _rules.extend(sorted(rules, key=lambda rule: rule.id))
    return list(_rules)


def classify(evidence: Evidence) -> Diagnosis:
    """What the evidence means. A pure function: equal evidence gives an equal diagnosis."""
    view = View(evidence)
    matches: List[Tuple[Pattern, Match]] = []
    abstained: List[Abstained] = []
    ruled_out: List[RuledOut] = []
    for rule in all_patterns():
        found = 0
        for answer in rule.match(view):
            if isinstance(answer, Match):
                matches.append((rule.pattern, answer))
                found += 1
                if found == _MOST_MATCHES:
                    break
            elif isinstance(answer, No):
                ruled_out.append(RuledOut(rule.id, answer.because))
            elif isinstance(answer, CannotTell):
                abstained.append(Abstained(rule.id, answer.missing))
    matches = [(pattern, unless_held(view, pattern.id, match)) for pattern, match in matches]
    findings = _shortened([_finding(evidence, pattern, match, matches) for pattern, match in _ranked(matches)])
    leading = findings[0] if findings else None
    return Diagnosis(
        verdict=leading.pattern if leading else None,
        signature=signature(evidence, leading),
        findings=tuple(findings),
        abstained=tuple(dict.fromkeys(abstained)),
        ruled_out=_few_of_each(ruled_out),
    )


def _shortened(findings: List[Finding]) -> List[Finding]:
    """Where everybody waits for everybody, each finding names all the others: those of the first findings are kept."""
    left, found = _MOST_VICTIMS, []
    for finding in findings:
        most = max(_FEW_VICTIMS, left)
        more = len(finding.victims) - most
        told = (*finding.evidence, *((f"{more} more suffer from it",) if more > 0 else ()))
        found.append(replace(finding, victims=finding.victims[:most], evidence=told) if more > 0 else finding)
        left -= min(most, len(finding.victims))
    return found


def _few_of_each(ruled_out: List[RuledOut]) -> Tuple[RuledOut, ...]:
    """A process with a hundred pools rules the same out a hundred times: who reads that no longer sees the rest."""
    alike: Dict[str, List[RuledOut]] = {}
    for item in dict.fromkeys(ruled_out):
        alike.setdefault(item.pattern, []).append(item)
    kept: List[RuledOut] = []
    for pattern, items in alike.items():
        shown = items if len(items) <= _RULED_OUT + 1 else items[:_RULED_OUT]
        kept += shown
        if len(shown) < len(items):
            kept.append(RuledOut(pattern, f"likewise {len(items) - len(shown)} times more"))
    return tuple(kept)


def _finding(evidence: Evidence, pattern: Pattern, match: Match, others: List[Tuple[Pattern, Match]]) -> Finding:
    cause = match.cause_pid if match.cause_pid is not None else match.pid
    present = {p.id for p, m in others if m.pid == cause and m is not match}
    fixed = fixes(evidence, pattern.id, match.culprits, match.victims)
    return Finding(
        pattern=pattern.id,
        confidence=match.confidence,
        summary=match.summary,
        explanation=pattern.explanation,
        remedy=" ".join([match.remedy or pattern.remedy, *(row.advice for row in fixed)]),
        references=(*pattern.references, *(row.reference for row in fixed)),
        because_of=tuple(
            sorted(present) if match.because_of == ANYTHING else (p for p in match.because_of if p in present)
        ),
        culprits=match.culprits,
        victims=match.victims,
        evidence=match.evidence,
    )


def _ranked(matches: List[Tuple[Pattern, Match]]) -> List[Tuple[Pattern, Match]]:
    """Takes, again and again, the best of those that nothing left outranks. Hundreds of processes may have the same: who
    beats whom is asked once for all that are alike in what decides it."""
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
    """All that ``_beats`` looks at."""
    pattern, match = item
    return pattern.id, match.confidence == "possible", bool(match.culprits), match.pid, match.cause_pid


def _strength(item: Tuple[Pattern, Match]) -> Tuple[bool, bool, int, str]:
    pattern, match = item
    return match.confidence == "possible", not match.culprits, CONFIDENCES.index(match.confidence), pattern.id


def _beats(one: Tuple[Pattern, Match], other: Tuple[Pattern, Match], closure: Dict[str, Set[str]]) -> bool:
    if one[1].confidence == "possible" and other[1].confidence != "possible":
        return False
    if other[1].cause_pid is not None and other[1].cause_pid == one[1].pid and one[1].culprits:
        return True  # across processes the root stands before whoever waits for that process
    if one[1].cause_pid is not None and one[1].cause_pid == other[1].pid and other[1].culprits:
        return False
    if other[0].id not in closure.get(one[0].id, set()):
        return False
    if other[0].yields or set(ANYTHING) & set(one[0].outranks):
        return True
    # a finding without a line to change does not stand before one that has it
    return bool(one[1].culprits) or not other[1].culprits


def _closure(patterns: List[Pattern]) -> Dict[str, Set[str]]:
    """pattern → all that it outranks, through others too."""
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
