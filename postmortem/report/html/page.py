"""The HTML document: one report, or the reports of several targets behind an index."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from ...evidence import Evidence
from ...findings import Diagnosis
from ..text import stacks
from . import assets, data, verdict
from .markup import Markup, el, join, name

Result = Tuple[str, Evidence, Diagnosis]

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; script-src {}"
)
_PARTS = (
    ("lines", "Lines"),
    ("evidence", "Evidence"),
    ("picture", "Who waits"),
    ("agents", "Threads"),
    ("timeline", "Time"),
    ("flame", "Flame graph"),
    ("gaps", "Gaps"),
)


def render(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """Render a report as a whole document that ends in a newline; equal input gives equal bytes."""
    return _document(_title(evidence, diagnosis), _report(evidence, diagnosis, 0))


def render_many(results: Sequence[Result]) -> str:
    """Render the reports of several targets as one document, the index first."""
    if not results:
        return _document("postmortem: no target", el("p", "No target could be read."))
    rows = [
        el("li", el("a", name(target), href=f"#report-{at}", data_target=at), " ", _answer(found))
        for at, (target, _evidence, found) in enumerate(results)
    ]
    index = el("nav", el("h2", "Targets"), el("ol", *rows), class_="targets", aria_label="Targets")
    reports = [_report(evidence, found, at, target) for at, (target, evidence, found) in enumerate(results)]
    return _document(f"postmortem: {len(results)} targets", index, *reports)


def _title(evidence: Evidence, diagnosis: Diagnosis) -> str:
    command = stacks.command(evidence.processes[0]) if evidence.processes else ""
    return (
        f"{diagnosis.verdict or 'nothing recognised'}: {command[:80]}" if command else diagnosis.verdict or "postmortem"
    )


def _answer(diagnosis: Diagnosis) -> Markup:
    if not diagnosis.findings:
        return el("span", "nothing recognised", class_="chip calm")
    lead = diagnosis.findings[0]
    return join((el("code", name(lead.pattern)), f" {lead.confidence}: ", name(lead.summary)))


def _report(evidence: Evidence, diagnosis: Diagnosis, number: int, target: Optional[str] = None) -> Markup:
    found = data.collected(evidence, diagnosis)
    return el(
        "article",
        el("p", "Target ", name(target), class_="target") if target is not None else None,
        verdict.head(evidence, diagnosis),
        _contents(number, diagnosis),
        el("div", verdict.answer(evidence, diagnosis, number), class_="answer"),
        _explorers(evidence, diagnosis, number),
        verdict.beside(evidence, diagnosis, number),
        verdict.limits(evidence, diagnosis, number),
        verdict.closing(evidence, diagnosis),
        Markup(f'<script type="application/json" class="data">{data.embedded(found)}</script>'),
        class_="report",
        id=f"report-{number}",
        data_number=number,
    )


def _contents(number: int, diagnosis: Diagnosis) -> Markup:
    """Return links to the parts."""
    there = {"picture", "agents", "timeline", "flame", "gaps"}
    if diagnosis.findings:
        there |= {"evidence"} | ({"lines"} if diagnosis.findings[0].culprits else set())
    links = [el("li", el("a", title, href=f"#{part}-{number}")) for part, title in _PARTS if part in there]
    return el("nav", el("ul", *links), class_="contents", aria_label="Parts of this report")


def _explorers(evidence: Evidence, diagnosis: Diagnosis, number: int) -> Markup:
    """Return the parts that scripts fill; without scripts, the wait chain in words and a notice."""
    said = (
        "The picture, the threads, time and the flame graph need JavaScript; the text and JSON reports have all of it."
    )
    needs = el("noscript", el("p", said, class_="notice"))
    section = verdict.section
    return join(
        (
            section(
                number,
                "picture",
                "Who waits for whom",
                verdict.chain(evidence, diagnosis),
                needs,
                hint="An arrow leads from a waiter to what could end its wait.",
            ),
            section(
                number,
                "agents",
                "Threads, tasks and processes",
                hint="A task is a coroutine that an event loop runs. Those with the same stack are grouped.",
            ),
            section(
                number,
                "timeline",
                "What each thread did",
                hint="Over the observation window: the time before the capture during which postmortem only watched.",
            ),
            section(
                number,
                "flame",
                "Flame graph",
                hint="Merged stacks: the wider a frame, the more often it was seen. The outermost call is at "
                "the top; each frame is below its caller.",
            ),
        )
    )


def _document(title: str, *body: Markup) -> str:
    elements, hashes = assets.scripts()
    head = join(
        (
            el("meta", charset="utf-8"),
            el("meta", http_equiv="Content-Security-Policy", content=_POLICY.format(hashes)),
            el("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name_="color-scheme", content="light dark"),
            el("meta", name_="referrer", content="no-referrer"),
            el("title", title),
            assets.styles(),
        )
    )
    bar = el("div", el("span", "postmortem", class_="brand"), el("div", class_="controls"), class_="bar")
    page = el("main", *body, id="top")
    rest = f"{assets.licenses()}\n{elements}"
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>{bar}\n{page}\n{rest}\n</body>\n</html>\n'
