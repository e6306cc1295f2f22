"""The report for people: the verdict first, then the lines to change, then the evidence.

Laid out for 80 columns without colour, as in a CI log, and of bounded length for any number of threads.
"""

from __future__ import annotations

from collections import Counter
from typing import List, Optional, Sequence, Tuple

from ...evidence import Evidence, Gap, Process
from ...findings import Culprit, Diagnosis, Finding, Victim
from .. import grouping
from ..phrases import chains, labels, origins, roles, roots
from ..phrases.culprits import by_place, labelled, sufferers, who
from . import highlight, stacks, waitchain
from .page import Page

_CULPRITS = 4
_VICTIMS = 4
_DOINGS = 6
_FACTS = 12
_OTHERS = 5
_GAPS = 8
_RULED_OUT = 12

_COLORS = {"proven": "red", "likely": "yellow", "possible": "cyan"}


def render(evidence: Evidence, diagnosis: Diagnosis, *, color: bool, width: int = 80) -> str:
    """Render the whole report, ending in a newline. ``width`` is in columns; only long words such as paths exceed it."""
    page = Page(width, color)
    term = labels.Glossary()
    if diagnosis.findings:
        _verdict(page, evidence, diagnosis.findings[0], roots.line(evidence, diagnosis))
        _others(page, diagnosis.findings[1:])
    else:
        _nothing(page, evidence, diagnosis, term)
    stacks.show(page, evidence, diagnosis, term)
    _undecided(page, diagnosis)
    _gaps(page, evidence.gaps)
    _closing(page, evidence, diagnosis)
    return str(page)


def render_many(results: Sequence[Tuple[str, Evidence, Diagnosis]], *, color: bool, width: int = 80) -> str:
    """Render several reports, each under a line with its target's name."""
    parts: List[str] = []
    for target, evidence, diagnosis in results:
        page = Page(width, color)
        page.line(f"=== {target} ===", 0, "bold")
        parts.append(f"{page}\n{render(evidence, diagnosis, color=color, width=width)}")
    return "\n".join(parts)


def _verdict(page: Page, evidence: Evidence, finding: Finding, root: Optional[str]) -> None:
    page.line(f"Verdict: {finding.pattern}, {finding.confidence}", 0, "bold", _COLORS.get(finding.confidence, "cyan"))
    page.text(f"{finding.confidence.capitalize()}: {labels.CONFIDENCES.get(finding.confidence, 'unknown')}.", 0, "dim")
    page.blank()
    page.text(finding.summary)
    if root is not None:
        page.text(root)
    waitchain.show(page, evidence, finding)
    if finding.culprits:
        page.heading("Where to change the code")
        _culprits(page, evidence, finding.culprits)
    page.heading("What to do")
    page.text(finding.remedy, 2)
    page.heading("Why")
    page.text(finding.explanation, 2)
    if finding.because_of:
        page.text(f"Caused by: {', '.join(finding.because_of)} (below).", 2)
    page.heading("Evidence")
    facts = chains.facts(evidence, finding)
    for fact in facts[:_FACTS]:
        page.text(fact, 2, first="- ")
    if len(facts) > _FACTS:
        page.text(labels.more(len(facts) - _FACTS), 2, first="- ")
    for reference in finding.references:
        page.text(f"See {reference}", 2, "dim")
    victims = sufferers(finding)
    if victims:
        page.heading("Also affected")
        _victims(page, evidence, victims)


def _victims(page: Page, evidence: Evidence, victims: Tuple[Victim, ...]) -> None:
    for label, victim in labelled(evidence, victims[:_VICTIMS]):
        place = (
            f", in {victim.function or '?'} at {labels.short_path(victim.file)}:{victim.line}" if victim.file else ""
        )
        page.text(f"{label} of process {victim.pid}{place}", 2, first="- ")
    if len(victims) > _VICTIMS:
        page.text(labels.more(len(victims) - _VICTIMS), 2, first="- ")


def _culprits(page: Page, evidence: Evidence, culprits: Tuple[Culprit, ...]) -> None:
    places = by_place(culprits)
    for members in places[:_CULPRITS]:
        culprit = members[0]
        number = "" if culprit.line is None else f":{culprit.line}"
        page.text(f"{culprit.file}{number}", 2, "bold")
        page.text(f"in {culprit.function}, {who(members)}", 4)
        page.text(roles.of(evidence, members), 4)
        lines, span = highlight.of_culprit(evidence, culprit)
        highlight.show(page, lines, culprit.line or 0, 4, span)
    if len(places) > _CULPRITS:
        page.text(labels.more(len(places) - _CULPRITS, "such lines"), 2)


def _others(page: Page, findings: Tuple[Finding, ...]) -> None:
    if not findings:
        return
    page.heading("Also found")
    for finding in findings[:_OTHERS]:
        page.text(f"{finding.pattern}, {finding.confidence}: {finding.summary}", 2, first="- ")
        for culprit in finding.culprits[:1]:
            if f"{culprit.file.rsplit('/', 1)[-1]}:{culprit.line}" not in finding.summary:
                page.text(f"at {culprit.file}:{culprit.line} in {culprit.function}", 4)
    if len(findings) > _OTHERS:
        page.text(labels.more(len(findings) - _OTHERS), 2, first="- ")


def _nothing(page: Page, evidence: Evidence, diagnosis: Diagnosis, term: labels.Glossary) -> None:
    page.line("Verdict: none. No known pattern was recognised.", 0, "bold", "green")
    page.blank()
    summary(page, evidence, diagnosis, term)


def summary(page: Page, evidence: Evidence, diagnosis: Diagnosis, term: labels.Glossary) -> None:
    """Print what is known if nothing was recognised."""
    if not evidence.processes:
        page.text("No process could be read; the gaps below say why.")
        return
    if diagnosis.root is not None:
        page.text(roots.sentences(evidence, diagnosis.root))
        page.blank()
    _summary(page, evidence.processes[0], term)
    waitchain.show(page, evidence, None)
    if diagnosis.abstained:
        page.text(f"{labels.plural(len(diagnosis.abstained), 'pattern')} could not be decided; see below.")


def _summary(page: Page, process: Process, term: labels.Glossary) -> None:
    """Print what the threads of a process do."""
    what = "" if process.python is not None else f" is {stacks.kind_of(process)}; it"
    subject = f"Process {process.pid} ({stacks.command(process)[:200]}){what}"
    if not process.threads:
        page.text(f"{subject} has no thread that could be read.")
        return
    if len(process.threads) == 1:
        page.text(f"{subject} {labels.now(process.threads, process, term)}.")
        return
    page.text(f"{subject} has {labels.plural(len(process.threads), 'thread')}:")
    known = labels.Glossary(labels.TERMS)  # none is explained here, but where the threads are shown
    doings = Counter(labels.now((thread,), process, known) for thread in process.threads)
    for text, number in doings.most_common(_DOINGS):
        page.text(text, 2, first=f"{number:>4} × ")
    rest = sum(number for _, number in doings.most_common()[_DOINGS:])
    if rest:
        page.text("something else", 2, first=f"{rest:>4} × ")


def _undecided(page: Page, diagnosis: Diagnosis) -> None:
    if diagnosis.ruled_out:
        page.heading("Ruled out")
        for item in diagnosis.ruled_out[:_RULED_OUT]:
            page.text(f"{item.pattern}: {item.because}", 2, first="- ")
        if len(diagnosis.ruled_out) > _RULED_OUT:
            page.text(labels.more(len(diagnosis.ruled_out) - _RULED_OUT), 2, first="- ")
    if diagnosis.abstained:
        page.heading("Could not be decided")
        for absent in diagnosis.abstained:
            page.text(f"{absent.pattern}: needs {', '.join(absent.missing)}", 2, first="- ")


def _gaps(page: Page, gaps: Tuple[Gap, ...]) -> None:
    if not gaps:
        return
    page.heading("What could not be read")
    alike = grouping.gaps(gaps)
    for members in alike[:_GAPS]:
        gap = members[0]
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        page.text(f"{gap.source}, {gap.subject}{more}: {gap.reason}", 2, first="- ")
        if gap.remedy:
            page.text(f"next time: {gap.remedy}", 4)
    if len(alike) > _GAPS:
        page.text(labels.more(len(alike) - _GAPS), 2, first="- ")


def _closing(page: Page, evidence: Evidence, diagnosis: Diagnosis) -> None:
    page.blank()
    page.text(f"{origins.why(evidence)} {labels.took(evidence.timings)}", 0, "dim")
    page.text(f"Signature of this diagnosis: {diagnosis.signature}", 0, "dim")
