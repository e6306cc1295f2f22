"""Markdown for ``$GITHUB_STEP_SUMMARY`` and comments on merge requests: the text report in that form.

A comment is limited to 65,536 characters and a step's summary to 1 MiB: a report stays well below both, and states what
it left out.
"""

from __future__ import annotations

import re
from typing import Iterator, List, NamedTuple, Optional, Sequence

from ...evidence import Evidence
from ...findings import Diagnosis, Finding, Victim
from .. import grouping
from ..phrases import chains, labels, origins, roles, roots
from ..phrases.culprits import by_place, labelled, sufferers, who
from ..result import Result
from . import highlight, stacks, textreport, waitchain
from .markup import code, fenced, prose
from .page import Page

_LONGEST = 60_000  # characters of the whole text
_LEAST = 2_000  # characters of one of several reports: with less room it is only listed
_WIDTH = 100
_CULPRITS = 4
_VICTIMS = 4
_FACTS = 12
_OTHERS = 5
_GAPS = 8
_LISTED = 100  # most targets listed


class _Part(NamedTuple):
    """A part with its heading; ``blocks`` are separated by blank lines."""

    title: str
    blocks: Sequence[str]


def render(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """Render a report."""
    return _report(evidence, diagnosis, "", _LONGEST)


def render_many(results: Sequence[Result]) -> str:
    """Render a list of the verdicts, then the reports, each within its share of the room."""
    rows = [f"- {code(target)}: {_verdict(diagnosis)}" for target, _, diagnosis in results[:_LISTED]]
    if len(results) > _LISTED:
        rows.append(f"- {len(results) - _LISTED} more")
    parts = [f"# postmortem: {labels.plural(len(results), 'target')}\n\n" + "\n".join(rows) + "\n"]
    room = _LONGEST - len(parts[0])
    for number, (target, evidence, diagnosis) in enumerate(results):
        share = max(_LEAST, room // (len(results) - number))
        if share > room:
            left = labels.plural(len(results) - number, "more report")
            parts.append(f"\nLeft out for lack of space: {left}; name fewer targets at once.\n")
            break
        parts.append("\n" + _report(evidence, diagnosis, target, share - 1))
        room -= len(parts[-1])
    return "".join(parts)


def _verdict(diagnosis: Diagnosis) -> str:
    if not diagnosis.findings:
        return "no known pattern was recognised"
    leading = diagnosis.findings[0]
    return f"{prose(leading.pattern)}, {prose(leading.confidence)}. {prose(leading.summary, 300)}"


def _report(evidence: Evidence, diagnosis: Diagnosis, target: str, room: int) -> str:
    head = "\n\n".join([f"## {_title(diagnosis, target)}", *_opening(evidence, diagnosis)])
    foot = _closing(evidence, diagnosis)
    room -= len(head) + len(foot) + 400  # room for the note on what is left out
    said, left = [head], []
    for part in _parts(evidence, diagnosis):
        shown = "\n\n".join([f"### {part.title}", *part.blocks])
        if len(shown) + 2 <= room:
            said.append(shown)
            room -= len(shown) + 2
        else:
            left.append(part.title)
    terms = _terms("\n".join(said))
    if terms and len(terms) + 2 <= room:
        said.append(terms)
        room -= len(terms) + 2
    threads = _threads(evidence, diagnosis, room)
    if threads:
        said.append(threads)
    if left:
        said.append(f"Left out for lack of space: {', '.join(left)}; `-f text` and `-f json` show all.")
    return "\n\n".join([*said, foot]) + "\n"


def _title(diagnosis: Diagnosis, target: str) -> str:
    of = f"{code(target)}: " if target else "postmortem: "
    if not diagnosis.findings:
        return f"{of}no verdict"
    leading = diagnosis.findings[0]
    return f"{of}{prose(leading.pattern, 200)}, {prose(leading.confidence, 100)}"


def _opening(evidence: Evidence, diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.findings:
        leading = diagnosis.findings[0]
        yield f"**{prose(leading.summary)}**"
        meaning = labels.CONFIDENCES.get(leading.confidence, "unknown")
        yield f"{prose(leading.confidence.capitalize(), 100)}: {meaning}."
        root = roots.line(evidence, diagnosis)
        if root is not None:
            yield prose(root)
        return
    yield f"{prose(origins.why(evidence))} No known pattern was recognised."
    page = Page(_WIDTH, False)
    textreport.summary(page, evidence, diagnosis, labels.Glossary())
    yield fenced(str(page))


def _parts(evidence: Evidence, diagnosis: Diagnosis) -> Iterator[_Part]:
    if diagnosis.findings:
        yield from _leading(evidence, diagnosis.findings[0])
        others = list(_others(diagnosis.findings[1:]))
        if others:
            yield _Part("Also found", ["\n".join(others)])
    if diagnosis.abstained:
        rows = [f"- {prose(a.pattern)}: needs {prose(', '.join(a.missing))}" for a in diagnosis.abstained[:_OTHERS]]
        yield _Part("Could not be decided", ["\n".join(_more(rows, len(diagnosis.abstained)))])
    gaps = list(_gaps(evidence))
    if gaps:
        yield _Part("What could not be read", ["\n".join(gaps)])


def _leading(evidence: Evidence, finding: Finding) -> Iterator[_Part]:
    ways = Page(_WIDTH, False)
    waitchain.show(ways, evidence, finding)
    shown = str(ways).partition("\n")[2].strip("\n")
    if shown:
        yield _Part("Who waits for whom", [fenced(shown)])
    if finding.culprits:
        yield _Part("Where to change the code", list(_culprits(evidence, finding)))
    yield _Part("What to do", [prose(finding.remedy)])
    yield _Part("Why", [prose(finding.explanation), *_causes(finding)])
    said = chains.facts(evidence, finding)
    facts = [f"- {prose(fact)}" for fact in said[:_FACTS]]
    see = [
        f"- See <{link}>" if _is_plain_link(link) else f"- See {prose(link)}" for link in finding.references[:_FACTS]
    ]
    yield _Part("Evidence", ["\n".join([*_more(facts, len(said)), *see]) or "None."])
    victims = sufferers(finding)
    if victims:
        yield _Part("Also affected", ["\n".join(_victims(evidence, victims))])


def _causes(finding: Finding) -> List[str]:
    return [f"Caused by: {prose(', '.join(finding.because_of))} (below)."] if finding.because_of else []


def _culprits(evidence: Evidence, finding: Finding) -> Iterator[str]:
    places = by_place(finding.culprits)
    for members in places[:_CULPRITS]:
        culprit = members[0]
        number = "" if culprit.line is None else f":{culprit.line}"
        role = prose(roles.of(evidence, members), 500)
        where = f"{code(culprit.file + number)} in {code(culprit.function)}, {prose(who(members), 500)}"
        yield f"{where}. {role}" if role else where
        page = Page(_WIDTH, False)
        lines, span = highlight.of_culprit(evidence, culprit)
        highlight.show(page, lines, culprit.line or 0, 0, span)
        if lines:
            yield fenced(str(page), "python")
    if len(places) > _CULPRITS:
        yield labels.more(len(places) - _CULPRITS, "such lines")


def _victims(evidence: Evidence, victims: Sequence[Victim]) -> List[str]:
    rows = []
    for label, victim in labelled(evidence, victims[:_VICTIMS]):
        where = _at(victim.file, victim.line, victim.function) if victim.file else ""
        rows.append(f"- {prose(label, 500)} of process {victim.pid}{where}")
    return _more(rows, len(victims))


def _at(file: str, line: Optional[int], function: Optional[str]) -> str:
    return f", in {code(function or '?')} at {code(f'{labels.short_path(file)}:{line or chr(63)}')}"


def _others(findings: Sequence[Finding]) -> Iterator[str]:
    rows = []
    for finding in findings[:_OTHERS]:
        first = finding.culprits[:1]
        told = any(f"{c.file.rsplit('/', 1)[-1]}:{c.line}" in finding.summary for c in first)
        where = "" if told else "".join(_at(c.file, c.line, c.function) for c in first)
        rows.append(f"- {prose(finding.pattern)}, {prose(finding.confidence)}: {prose(finding.summary, 1000)}{where}")
    yield from _more(rows, len(findings))


def _gaps(evidence: Evidence) -> Iterator[str]:
    alike = grouping.gaps(evidence.gaps)
    rows = []
    for members in alike[:_GAPS]:
        gap = members[0]
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        remedy = f" Next time: {prose(gap.remedy, 1000)}" if gap.remedy else ""
        rows.append(f"- {prose(f'{gap.source}, {gap.subject}{more}: {gap.reason}', 1000)}.{remedy}")
    yield from _more(rows, len(alike))


def _more(rows: List[str], total: int) -> List[str]:
    return [*rows, f"- {labels.more(total - len(rows))}"] if total > len(rows) else rows


def _is_plain_link(link: str) -> bool:
    return re.fullmatch(r"https?://[\w.-]+(?:/[\w./?=&%#~+,;:@!$'()*-]*)?", link, re.ASCII) is not None


def _terms(said: str) -> str:
    """Return explanations of the terms that occur in the report."""
    rows = [
        f"- *{term}*: {prose(meaning)}"
        for term, meaning in labels.TERMS.items()
        if re.search(rf"\b{re.escape(term)}(?:s|es)?\b", said, re.IGNORECASE if term.islower() else 0)
    ]
    return "\n\n".join(["### Terms", "\n".join(rows)]) if rows else ""


def _threads(evidence: Evidence, diagnosis: Diagnosis, room: int) -> str:
    """Return the processes as in the text report, folded, as far as there is room."""
    if not evidence.processes:
        return ""
    page = Page(_WIDTH, False)
    stacks.show(page, evidence, diagnosis, labels.Glossary())
    lines = str(page).strip("\n").split("\n")
    total = sum(len(process.threads) for process in evidence.processes)
    of = f"{labels.plural(total, 'thread')} of {labels.plural(len(evidence.processes), 'process')}"
    opened = f"<details>\n<summary>{of}, with their stacks</summary>"
    room -= len(opened) + 200
    kept: List[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept:
        return ""
    left = len(lines) - len(kept)
    rest = [f"{labels.plural(left, 'more line')}: `-f text` shows them."] if left else []
    return "\n\n".join([opened, fenced("\n".join(kept)), *rest, "</details>"])


def _closing(evidence: Evidence, diagnosis: Diagnosis) -> str:
    why = prose(origins.why(evidence), 300)
    return f"{why} Signature {code(diagnosis.signature)}: the same hang has the same signature elsewhere."
