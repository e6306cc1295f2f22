"""Names that a program chose break no format: of threads, files, functions, tasks, locks; arguments, lines, messages."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, List, Tuple

import pytest

from postmortem import report
from postmortem.report import FORMATS
from postmortem.report.text.markdown import render as markdown

from ...support.obeying import obeyed
from ...support.samples import MARKER, NAMES, hostile
from .validators import check, markdown_tokens

_CUT = ("long", "long words")


@pytest.mark.parametrize("bad", NAMES)
@pytest.mark.parametrize("name", FORMATS)
def test_no_name_breaks_a_format(name: str, bad: str) -> None:
    """Valid UTF-8 and valid in its own format, for one target and for several; nothing in it moves a terminal or gives a CI
    runner orders; and the names are still to be read."""
    found = hostile(NAMES[bad])
    several = FORMATS[name].render_many([(NAMES[bad], *found), ("b", *found)], False, 80)
    for text in (report.render(name, *found), several):
        check(name, text)
        assert MARKER in text
        unseen = {ch for ch in text if unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")} - {"\n"}
        assert not unseen, unseen
        ours = text.replace("\n::", "\n").lstrip(":") if name == "github" else text
        assert obeyed(ours) == []


@pytest.mark.parametrize("bad", NAMES)
@pytest.mark.parametrize("name", ["html", "markdown", "junit"])
def test_no_name_becomes_markup(name: str, bad: str) -> None:
    """In formats that have tags, none is a name's."""
    if name not in FORMATS:
        return
    text = report.render(name, *hostile(NAMES[bad]))
    if name == "markdown":
        text = "".join(token.content for token in markdown_tokens(text) if token.type.startswith("html"))
        assert MARKER not in text
    assert "<hostile" not in text.lower()


@pytest.mark.parametrize("bad", [bad for bad in NAMES if bad not in _CUT])
def test_no_name_changes_the_build_of_markdown(bad: str) -> None:
    """Blocks are the same as with a harmless name: the same headings, lists, paragraphs and fences, in the same order; and
    nothing is a link."""
    assert _blocks(markdown(*hostile(NAMES[bad]))) == _blocks(markdown(*hostile(MARKER)))
    kinds = {token.type for token in markdown_tokens(markdown(*hostile(NAMES[bad])))}
    assert not kinds & {"link_open", "image", "html_inline"}


def _blocks(text: str) -> List[Tuple[Any, ...]]:
    return [(t.type, t.tag, t.level, t.info) for t in markdown_tokens(text) if t.block]


@pytest.mark.parametrize("bad", NAMES)
def test_json_holds_names_as_they_are(bad: str) -> None:
    """JSON is data: nothing is lost, but for lone surrogates, which stand as escapes."""
    text = NAMES[bad].encode("utf-8", "backslashreplace").decode()
    document = json.loads(report.render("json", *hostile(NAMES[bad])))
    assert document["processes"][0]["threads"][0]["name"] == text
    assert document["verdict"] == text


@pytest.mark.parametrize("bad", NAMES)
def test_a_name_adds_no_annotation_and_no_stack(bad: str) -> None:
    """As many lines as there are findings, and samples, and as many frames."""
    found = hostile(NAMES[bad])
    assert report.render("github", *found).count("\n") == 2
    (line,) = report.render("collapsed", *found).splitlines()
    assert line.count(";") == 3 and line.endswith(" 3")
