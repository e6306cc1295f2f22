"""Markdown: what a person reads in a step's summary or a comment, within the room that there is."""

from __future__ import annotations

from typing import List

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report.text import markdown, markup
from tests.support.samples import Sample

from ....support.samples import detailed, py, sleeper, thrash
from ..validators import check, markdown_tokens


def headings(text: str) -> List[str]:
    tokens = list(markdown_tokens(text))
    return [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]


def test_the_verdict_comes_first_and_the_threads_are_folded() -> None:
    """In the order in which one reads: what, where, what to do, why; then what it rests on."""
    text = markdown.render(*thrash())
    check("markdown", text)
    assert headings(text) == [
        "postmortem: gil-thrash, likely",
        "Where to change the code",
        "What to do",
        "Why",
        "Evidence",
        "Also affected",
        "Also found",
        "Could not be decided",
        "What could not be read",
        "Terms",
    ]
    assert "> 153      await anyio.sleep(0)" in text
    assert "- *GIL*: global interpreter lock: only the thread that holds it runs Python code" in text
    folded = text.partition("<details>")[2]
    assert "<summary>73 threads of 1 process, with their stacks</summary>" in folded
    assert "_asgi_receive" in folded and folded.rstrip().endswith("has the same signature elsewhere.")


def test_nothing_recognised_says_what_the_threads_do() -> None:
    """And that it was a timeout all the same."""
    text = markdown.render(*sleeper())
    assert text.startswith("## postmortem: no verdict\n\nThe command had not ended after 1 s. No known pattern")
    assert "sleeps in clock_nanosleep" in text


def test_marks_under_the_expression_survive() -> None:
    """The source stands in a fence, where spaces count."""
    assert "                     ^^^^" in markdown.render(*detailed()) or "~" in markdown.render(*detailed())


def huge(names: str) -> Sample:
    threads = tuple(
        ev.Thread(n, f"{names}-{n}", stack=tuple(py(f"{names}_{n}_{k}", n, f"/app/{names}.py") for k in range(40)))
        for n in range(200)
    )
    evidence = ev.Evidence(
        ev.Trigger("timeout", 9.0),
        (ev.Process(1, argv=("x",), threads=threads),),
        tuple(ev.Gap("core", f"{names} {n}", f"reason {n}, {names}", names) for n in range(500)),
    )
    culprits = tuple(fi.Culprit(1, n, names, f"/app/{names}.py", n, names) for n in range(500))
    facts = tuple(f"{names} {n}" for n in range(500))
    finding = fi.Finding("p", "likely", names, names, names, (), (), culprits, (), facts)
    return evidence, fi.Diagnosis("p", "s", (finding,) * 50)


@pytest.mark.parametrize("names", ["worker", "w" * 10_000, "`` " * 3_000])
def test_it_fits_a_comment(names: str) -> None:
    """Below 65,536 characters, whatever there is; what is left out is said, and all is well-formed."""
    text = markdown.render(*huge(names))
    check("markdown", text)
    assert "`-f json`" in text
    assert "Signature `s`" in text


@pytest.mark.parametrize("number", [2, 30, 400])
def test_several_reports_share_the_room(number: int) -> None:
    """Each target is listed with its verdict, up to a hundred; reports get an equal share; when that is too little
    the first ones are shown, and how many are left out is said."""
    text = markdown.render_many([(f"core.{n}", *thrash()) for n in range(number)])
    check("markdown", text)
    assert headings(text)[0] == f"postmortem: {number} targets"
    assert text.count("- `core.") == min(number, 100)
    assert ("; name fewer targets at once" in text) == (number == 400)
    assert "## `core.0`: gil-thrash, likely" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It waits for a lock, 1,234 times (or 2.5 s): why?", "It waits for a lock, 1,234 times (or 2.5 s): why?"),
        ("at db.py:12 in load_all(x).", "at `db.py:12` in `load_all(x)`."),
        ("Leave the `with` block", "Leave the `with` block"),
        ("a re-entrant lock isn't", "a re-entrant lock isn't"),
        ("1. one", "1\\. one"),
        ("12) two", "12\\) two"),
        ("- x", "`-` x"),
        ("# x", "`#` x"),
        ("a`b``c", "```` a`b``c ````".replace("````", "```")),
        ("see www.x.y, @me, #12, :smile:", "see `www.x.y`, `@me`, `#12`, `:smile`:"),
        ("e.g. an i.e. word", "e.g. an i.e. word"),
        ('"(x)"', '"(x)"'),
        ("*", "`*`"),
        ("…", "…"),
        ("größe 日本", "größe 日本"),
        ("a\tb\nc", "a b c"),
        ("", ""),
    ],
)
def test_prose(text: str, shown: str) -> None:
    """Words of letters and digits stay; whatever could mean something stands in code spans."""
    assert markup.prose(text) == shown


def test_prose_is_cut() -> None:
    """At about the length that is asked for, between words."""
    assert markup.prose("word " * 100, 21) == "word word word word …"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", "`a`"),
        ("a`", "`` a` ``"),
        ("``", "``` `` ```"),
        (" a ", "`  a  `"),
        ("", "`?`"),
        ("x" * 9, "`xxxx…`"),
    ],
)
def test_code(text: str, shown: str) -> None:
    """CommonMark 6.1: as many backticks as it takes, and one space on each side that is not shown."""
    assert markup.code(text, 5) == shown
