"""The page of a pattern, for a terminal and as Markdown.

It consists of the pattern's docstring and of table entries: code before and after, releases with a fix, its tier among
the patterns, required evidence, references.
"""

from __future__ import annotations

import difflib
import re
from typing import Dict, Iterable, List, NamedTuple, Tuple

from ..classify.engine import Rule, all_patterns
from ..classify.facts.fixed_in import TABLE
from ..classify.pattern import TIERS, Tier
from ..classify.snippets import SNIPPETS
from ..errors import UsageError
from ..report.escape import clean, cut
from ..report.phrases.findings import words
from ..report.text.page import Page

#: The headings of a docstring, in this order; the text before them is its introduction.
SECTIONS = ("What it looks like", "Easily mistaken for", "Why", "Remedy")

_SECTION = re.compile(r"^\*\*([^*]+?)\.?\*\*\s*", re.M)
_NEEDS = {
    "window": "an observation window: a capture has one, a single core does not",
    "python": "a Python interpreter that can be read",
    "cores": "a core",
}
#: What a pattern of each tier explains.
TIER_WORDS: Dict[Tier, str] = {
    "corruption": "memory that was overwritten",
    "crash": "how the process crashed",
    "outside": "a process that is held up from outside",
    "specific": "a cause that names its mechanism",
    "resource": "a resource that is gone, exhausted or overloaded",
    "group": "agents that hold each other up",
    "exit": "a join at exit",
    "wait": "one wait that nothing ends",
    "computation": "a computation, or input that does not come",
    "peer": "a peer that does not answer",
    "symptom": "a symptom, whose cause is another finding",
}


class Section(NamedTuple):
    """A part of a pattern's docstring."""

    heading: str
    text: str


def introduction(doc: str) -> str:
    """Return the part of a docstring before its first heading."""
    return _SECTION.split(doc, maxsplit=1)[0].strip()


def sections(doc: str) -> List[Section]:
    """Return the parts of a docstring under their headings."""
    parts = _SECTION.split(doc)[1:]
    return [Section(heading, text.strip()) for heading, text in zip(parts[::2], parts[1::2])]


def _paragraphs(text: str) -> List[str]:
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]


def _lists(rule: Rule) -> List[Tuple[str, List[str]]]:
    """Return the lists below the text, each with its heading; empty ones are left out."""
    pattern = rule.pattern
    found = [
        ("Fixed in", [f"{words(row.advice)} {row.reference}" for row in TABLE if rule.id in row.patterns]),
        ("Order", [_order(rule)]),
        ("Needs", [_NEEDS.get(need, need) for need in pattern.needs]),
        ("References", list(pattern.references)),
    ]
    return [(heading, [item for item in items if item]) for heading, items in found if any(items)]


def _order(rule: Rule) -> str:
    """Return the pattern's place among findings that name the same thread, or do not concern each other."""
    pattern = rule.pattern
    if pattern.yields:
        return "It says how the process ended, not why: every other finding above *possible* comes before it."
    place = f"tier {TIERS.index(pattern.tier) + 1} of {len(TIERS)}, {TIER_WORDS[pattern.tier]}"
    return f"A cause comes before its consequences; where neither causes the other, it has {place}."


def text(rule: Rule, width: int) -> str:
    """Return the page for a terminal."""
    page = Page(width, color=False)
    page.text(f"{rule.id}: {rule.title}")
    page.blank()
    page.text(introduction(rule.doc))
    for heading, body in sections(rule.doc):
        page.heading(heading)
        for number, paragraph in enumerate(_paragraphs(body)):
            if number:
                page.blank()
            page.text(paragraph, 2)
        if heading == "Remedy" and rule.id in SNIPPETS:
            for said, code in zip(("Instead of", "write"), SNIPPETS[rule.id]):
                page.blank()
                page.text(said, 2)
                page.blank()
                for line in code.splitlines():
                    page.rendered(line, 4)
    for heading, items in _lists(rule):
        page.heading(heading)
        for item in items:
            page.text(item, 2, first="- " if len(items) > 1 else "")
    return str(page)


def markdown(rule: Rule, known: Iterable[str]) -> str:
    """Return the page for ``docs/patterns/``; ``known``: the ids that it may link to."""
    links = {id_: f"[`{id_}`]({id_}.md)" for id_ in known if id_ != rule.id}
    lines = [f"# {rule.id}", "", _linked(introduction(rule.doc), links), ""]
    for heading, body in sections(rule.doc):
        lines += [f"## {heading}", "", _linked(body, links), ""]
        if heading == "Remedy" and rule.id in SNIPPETS:
            before, after = SNIPPETS[rule.id]
            lines += ["Instead of", "", "```python", before, "```", "", "write", "", "```python", after, "```", ""]
    for heading, items in _lists(rule):
        lines += [f"## {heading}", "", *(f"- {_listed(item, links)}" for item in items), ""]
    lines += [f"Labelled programs that have it: [corpora/{rule.id}](../../corpora/{rule.id}).", ""]
    return "\n".join(lines)


def index(rules: Iterable[Rule]) -> str:
    """Return ``docs/patterns/README.md``."""
    return "\n".join(
        [
            "# The patterns",
            "",
            "Written by `make docs` from `postmortem/classify/patterns/`; `postmortem patterns ID` prints the same page.",
            "What is said of a hang that none of them recognises, and in which order findings stand: [roots](../roots.md).",
            "",
            "| pattern | what |",
            "|---|---|",
            *(f"| [`{rule.id}`]({rule.id}.md) | {rule.title} |" for rule in rules),
            "",
        ]
    )


def _linked(body: str, links: Dict[str, str]) -> str:
    """Replace ids of patterns in backticks by links."""
    return re.sub(r"`([a-z-]+)`", lambda found: links.get(found[1], found[0]), body)


def _listed(item: str, links: Dict[str, str]) -> str:
    """Replace web addresses and ids of patterns by links."""
    words = item.split(", ")
    if all(word in links for word in words):
        return ", ".join(links[word] for word in words)
    return re.sub(r"https?://\S+", lambda found: f"<{found[0]}>", item)


def listing(width: int) -> str:
    """Return all patterns, one per line."""
    rules = all_patterns()
    longest = max((len(rule.id) for rule in rules), default=0)
    return "".join(cut(f"{rule.id:<{longest}}  {rule.title}", width) + "\n" for rule in rules)


def explained(id: str, width: int) -> str:
    """Return the page of one pattern; raise UsageError, with the closest id, if there is none."""
    known = {rule.id: rule for rule in all_patterns()}
    if id not in known:
        near = difflib.get_close_matches(id, known, n=1)
        raise UsageError(
            f"no pattern {clean(id)!r}", f"did you mean {near[0]}?" if near else "`postmortem patterns` lists them"
        )
    return text(known[id], width)
