"""The parts of a page that need no script: verdict, lines to change, remedy, evidence and gaps."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Optional, Sequence

from ...evidence import Evidence, Gap
from ...findings import Culprit, Diagnosis, Finding, Victim
from .. import grouping
from ..phrases import chains, labels, origins, roles, roots
from ..phrases.culprits import by_place, labelled, sufferers, who
from ..text import crashes, details, highlight, stacks
from . import source
from .markup import Child, Markup, block, el, join, link, name, prose

_PLACES = 6
_VICTIMS = 8
_HELD = 4
_FACTS = 40
_FEW = 6  # items of a list before the rest is folded
_RULED = 2  # reasons of one pattern before the rest is folded
_GAPS = 30
_CHIP = 40  # characters


def head(evidence: Evidence, diagnosis: Diagnosis) -> Markup:
    """Return the header: the verdict, its confidence, and what was examined."""
    if not diagnosis.findings:
        return el(
            "header",
            el("p", el("span", "nothing recognised", class_="chip calm"), class_="eyebrow"),
            el("h1", "No known pattern was recognised"),
            _unrecognised(evidence, diagnosis),
            *_held_up(evidence),
            _about(evidence),
            class_="verdict none",
        )
    finding = diagnosis.findings[0]
    return el(
        "header",
        _eyebrow(finding),
        _headline(finding.summary),
        el(
            "p",
            f"{finding.confidence[:_CHIP]}: {labels.CONFIDENCES.get(finding.confidence, 'unknown')}.",
            class_="sure",
        ),
        words(finding.summary),
        _root(evidence, diagnosis),
        *_held_up(evidence),
        _about(evidence),
        class_="verdict",
    )


def _root(evidence: Evidence, diagnosis: Diagnosis) -> Optional[Markup]:
    """Return the root where it tells more than the verdict."""
    root = roots.line(evidence, diagnosis)
    return block("p", root, "root") if root is not None else None


def _held_up(evidence: Evidence) -> List[Markup]:
    """Return the reasons that keep whole processes from running."""
    said = [one for p in evidence.processes for one in (details.held_up(p), details.stopped_world(p)) if one]
    return [block("p", one, "notice") for one in list(dict.fromkeys(said))[:_HELD]]


def _headline(summary: str) -> Markup:
    """Return the summary as a heading; a long one is set smaller."""
    size = "long" if len(summary) > 150 else None
    return block("h1", summary, size)


def _eyebrow(finding: Finding) -> Markup:
    pattern = el("code", name(finding.pattern), class_="pattern")
    sure = finding.confidence if finding.confidence in labels.CONFIDENCES else "possible"
    return el(
        "p",
        el("span", "Verdict", class_="label"),
        pattern,
        el("span", finding.confidence[:_CHIP], class_=f"chip {sure}"),
        class_="eyebrow",
    )


def words(said: str, before: str = "") -> Optional[Markup]:
    """Return a glossary of the terms in ``said`` that are not in ``before``; None if there are none."""
    known = [term for term in labels.TERMS if _has(said, term) and not _has(before, term)]
    if not known:
        return None
    return el("dl", *(el("div", el("dt", term), el("dd", labels.TERMS[term])) for term in known), class_="words")


def _has(said: str, term: str) -> bool:
    """Return whether a term occurs in a text without an explanation in brackets."""
    return re.search(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])(?! \()", said, 0 if term.isupper() else re.I) is not None


def _about(evidence: Evidence) -> Markup:
    processes = evidence.processes
    threads, tasks = sum(len(p.threads) for p in processes), sum(len(p.tasks) for p in processes)
    parts = [labels.plural(len(processes), "process"), labels.plural(threads, "thread")]
    if tasks:
        parts.append(labels.plural(tasks, "task"))
    command = block("div", stacks.command(processes[0]), "command") if processes else None
    return el("div", command, el("p", f"{origins.why(evidence)} {', '.join(parts)} examined."), class_="about")


def _unrecognised(evidence: Evidence, diagnosis: Diagnosis) -> Markup:
    if not evidence.processes:
        return el("p", "No process could be read; the gaps below say why.")
    process = evidence.processes[0]
    said = [f"Process {process.pid} has {labels.plural(len(process.threads), 'thread')}."]
    if len(process.threads) == 1:
        said = [f"Process {process.pid} {labels.now(process.threads, process, labels.Glossary())}."]
    if diagnosis.root is not None:
        said.insert(0, roots.sentences(evidence, diagnosis.root))
    if diagnosis.abstained:
        said.append(f"{labels.plural(len(diagnosis.abstained), 'pattern')} could not be decided; see below.")
    return block("p", " ".join(said))


# ---------------------------------------------------------------------- what to do


def answer(evidence: Evidence, diagnosis: Diagnosis, number: int) -> Markup:
    """Return the lines to change, the remedy and the explanation. ``number``: of the report on its page."""
    if not diagnosis.findings:
        return join(_crashed(evidence, number))
    finding = diagnosis.findings[0]
    lines = places(evidence, finding.culprits)
    because = None
    if finding.because_of:
        because = el("p", "Caused by ", el("code", name(", ".join(finding.because_of))), ", below.")
    explained = words(f"{finding.remedy} {finding.explanation}", finding.summary)
    left = join(
        (
            section(number, "lines", "Where to change the code", *lines) if lines else None,
            _facts(evidence, finding, number),
        )
    )
    right = join(
        (
            section(number, "remedy", "What to do", block("p", finding.remedy, "remedy")),
            section(number, "why", "Why", block("p", finding.explanation), because, explained),
            *_crashed(evidence, number),
        )
    )
    return join((el("div", left, class_="column"), el("div", right, class_="column")))


def section(number: int, part: str, title: str, *children: Child, hint: Optional[str] = None) -> Markup:
    """Return a part of a report, with an id for links and scripts."""
    explained = el("p", prose(hint), class_="hint") if hint else None
    return el("section", el("h2", title), explained, *children, class_=f"part {part}", id=f"{part}-{number}")


def places(evidence: Evidence, culprits: Sequence[Culprit]) -> List[Markup]:
    """Return each place once, with its source, however many threads are there."""
    found = by_place(culprits)
    shown = [_place(evidence, members) for members in found[:_PLACES]]
    if len(found) > _PLACES:
        shown.append(el("p", prose(labels.more(len(found) - _PLACES, "such lines"))))
    return shown


def _place(evidence: Evidence, members: List[Culprit]) -> Markup:
    first = members[0]
    number = "" if first.line is None else f":{first.line}"
    short = labels.short_path(first.file)
    where = join(
        (
            el("span", name(f"{short}{number}"), class_="file", title=f"{first.file}{number}"),
            el("span", " in ", el("code", name(first.function)), class_="in"),
        )
    )
    lines, span = highlight.of_culprit(evidence, first)
    code = (
        source.listing(lines, first.line or 0, span)
        if lines
        else el("p", "The source was not available.", class_="hint")
    )
    whole = el("p", name(f"{first.file}{number}"), class_="path") if short != first.file else None
    doing = roles.of(evidence, members)
    caption = el(
        "figcaption",
        where,
        el("span", name(who(members)), class_="doers"),
        el("span", name(doing), class_="doing") if doing else None,
    )
    return el("figure", caption, code, whole, class_="place")


def _crashed(evidence: Evidence, number: int) -> List[Markup]:
    """Return the crashes of processes, with their places."""
    found = []
    for process in evidence.processes[:4]:
        said = crashes.sentences(process)
        if said:
            title = "The crash" if len(evidence.processes) == 1 else f"The crash of process {process.pid}"
            found.append(section(number, "crash", title, *(block("p", sentence) for sentence in said)))
    return found


# ---------------------------------------------------------------------- evidence


def _facts(evidence: Evidence, finding: Finding, number: int) -> Markup:
    facts = chains.facts(evidence, finding)
    items = [block("li", fact) for fact in facts[:_FACTS]]
    if len(facts) > _FACTS:
        items.append(el("li", prose(labels.more(len(facts) - _FACTS))))
    references = [el("li", link(address)) for address in finding.references]
    return section(number, "evidence", "Evidence", _folded(items, _FEW), _list(references, "See also", "references"))


def beside(evidence: Evidence, diagnosis: Diagnosis, number: int) -> Markup:
    """Return the victims and the other findings."""
    if not diagnosis.findings:
        return Markup("")
    suffering = sufferers(diagnosis.findings[0])
    return join(
        (
            section(number, "victims", "Also affected", _list(_victims(evidence, suffering))) if suffering else None,
            section(number, "others", "Also found", *(_other(evidence, one) for one in diagnosis.findings[1:]))
            if diagnosis.findings[1:]
            else None,
        )
    )


def _list(items: Iterable[Markup], title: Optional[str] = None, class_: Optional[str] = None) -> Optional[Markup]:
    made = list(items)
    if not made:
        return None
    head = el("h3", title) if title else None
    return join((head, el("ul", *made, class_=class_)))


def _folded(items: Sequence[Markup], most: int) -> Optional[Markup]:
    """Return a list whose items after the first ``most`` open on request."""
    if len(items) <= most + 1:
        return _list(items)
    rest = el("details", el("summary", f"{len(items) - most} more"), el("ul", *items[most:]))
    return join((el("ul", *items[:most]), rest))


def _victims(evidence: Evidence, victims: Sequence[Victim]) -> List[Markup]:
    shown = []
    for label, victim in labelled(evidence, victims[:_VICTIMS]):
        at = f"{labels.short_path(victim.file)}:{victim.line}" if victim.file else None
        where = join((", in ", el("code", name(victim.function or "?")), " at ", name(at))) if at else None
        shown.append(el("li", name(label), f" of process {victim.pid}", where))
    if len(victims) > _VICTIMS:
        shown.append(el("li", prose(labels.more(len(victims) - _VICTIMS))))
    return shown


def _other(evidence: Evidence, finding: Finding) -> Markup:
    return el(
        "details",
        el("summary", _eyebrow_inline(finding), " ", name(finding.summary)),
        *places(evidence, finding.culprits),
        el("h3", "What to do"),
        block("p", finding.remedy),
        el("h3", "Why"),
        block("p", finding.explanation),
        _list((block("li", fact) for fact in finding.evidence[:_FACTS]), "Evidence"),
        class_="other",
    )


def _eyebrow_inline(finding: Finding) -> Markup:
    sure = finding.confidence if finding.confidence in labels.CONFIDENCES else "possible"
    return join((el("code", name(finding.pattern)), " ", el("span", finding.confidence[:_CHIP], class_=f"chip {sure}")))


# ---------------------------------------------------------------------- wait chains, as sentences


def chain(evidence: Evidence, diagnosis: Diagnosis) -> Optional[Markup]:
    """Return the wait chains from the main thread to their ends: the picture in words."""
    lead = diagnosis.findings[0] if diagnosis.findings else None
    return join(_links(way) for way in chains.ways(evidence, lead)) or None


def _links(way: chains.Way) -> Markup:
    items = [block("li", step.text) for step in way.steps]
    if way.left_out:
        items.append(el("li", prose(labels.more(way.left_out, "links"))))
    return el("ol", *items, class_="chain")


# ---------------------------------------------------------------------- limits


def limits(evidence: Evidence, diagnosis: Diagnosis, number: int) -> Markup:
    """Return what was ruled out, could not be decided, and could not be read."""
    ruled: Dict[str, List[str]] = {}
    for one in diagnosis.ruled_out:
        ruled.setdefault(one.pattern, []).append(one.because)
    negatives = [_negative(pattern, because) for pattern, because in ruled.items()]
    undecided = [
        el("li", el("code", name(a.pattern)), ": needs ", name(", ".join(a.missing))) for a in diagnosis.abstained
    ]
    gaps = [_gap(members) for members in grouping.gaps(evidence.gaps)]
    if len(gaps) > _GAPS:
        gaps = [*gaps[:_GAPS], el("li", prose(labels.more(len(gaps) - _GAPS)))]
    quiet = el("p", "Everything that was looked for could be read.")
    return join(
        (
            section(
                number, "ruled", "Ruled out", _list(negatives), hint="Similar patterns, and why each does not apply."
            )
            if ruled
            else None,
            section(
                number,
                "undecided",
                "Could not be decided",
                _list(undecided),
                hint="Patterns for which evidence was missing.",
            )
            if undecided
            else None,
            section(number, "gaps", "What could not be read", _list(gaps) or quiet),
        )
    )


def _negative(pattern: str, because: Sequence[str]) -> Markup:
    if len(because) == 1:
        short = because[0] if len(because[0]) < 300 else None
        return el("li", el("code", name(pattern)), *((": ", prose(short)) if short else (block("div", because[0]),)))
    return el("li", el("code", name(pattern)), _folded([block("li", one) for one in because], _RULED))


def _gap(members: Sequence[Gap]) -> Markup:
    gap = members[0]
    more = f" and {len(members) - 1} more" if len(members) > 1 else ""
    remedy = block("div", f"Next time: {gap.remedy}", "remedy") if gap.remedy else None
    return el("li", block("div", f"{gap.source}, {gap.subject}{more}: {gap.reason}"), remedy)


def closing(evidence: Evidence, diagnosis: Diagnosis) -> Markup:
    """Return the footer: the origin of the report, and the signature of the hang."""
    signature = el(
        "p", "Signature ", el("code", name(diagnosis.signature)), ": the same hang has the same signature elsewhere."
    )
    version = f"postmortem {evidence.tool_version}. " if evidence.tool_version else ""
    said = f"{version}{origins.why(evidence)} {labels.took(evidence.timings)}"
    return el("footer", signature, el("p", name(said)), class_="closing")
