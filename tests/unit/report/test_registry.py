"""Formats by name and by suffix; what does not exist is refused with what does."""

from __future__ import annotations

import re

import pytest

from postmortem import report
from postmortem.report import FORMATS, NothingToShow

from ...support.samples import sleeper, thrash


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("out.json", "json"),
        ("a/b.txt", "text"),
        ("x.tar.json", "json"),
        ("summary.md", "markdown"),
        ("hang.sarif", "sarif"),
        ("hang.sarif.json", "sarif"),
        ("junit.xml", "junit"),
        ("x.speedscope.json", "speedscope"),
        ("speedscope.json", "json"),
        ("x.collapsed", "collapsed"),
        ("x.folded", "collapsed"),
    ],
)
def test_the_suffix_decides(path: str, name: str) -> None:
    """`--report FILE` needs no second option; the longest suffix that fits is meant."""
    assert report.format_for(path).name == name


@pytest.mark.parametrize(
    "path", ["report.pdf", "report", "report.machine.github", ".json", ".speedscope.json", "a/.md"]
)
def test_an_unknown_suffix_names_the_known_ones(path: str) -> None:
    """The sentence says what would work."""
    with pytest.raises(ValueError, match=r"\.txt \(text\), \.json \(json\).*\.collapsed or \.folded \(collapsed\)"):
        report.format_for(path)


def test_an_unknown_name_names_the_known_ones() -> None:
    """Formats of later versions are refused, not stubbed."""
    with pytest.raises(ValueError, match=f"'pdf'; there are: {', '.join(FORMATS)}"):
        report.format_named("pdf")


def test_no_two_formats_share_a_suffix() -> None:
    """Else the second would never be written."""
    suffixes = [suffix for known in FORMATS.values() for suffix in known.suffixes]
    assert len(suffixes) == len(set(suffixes))


def test_a_bundle_keeps_what_people_open() -> None:
    """What CI servers and viewers read is made on request, from the bundle."""
    kept = {name for name, known in FORMATS.items() if known.kept}
    assert {"text", "json", "markdown"} <= kept
    assert not kept & {"sarif", "junit", "speedscope", "collapsed", "github"}


@pytest.mark.parametrize("name", FORMATS)
def test_all_render(name: str) -> None:
    """The table leads to renderers that work, for one and for several; what has nothing to show says why."""
    for sample in (thrash, sleeper):
        try:
            one = report.render(name, *sample())
            several = FORMATS[name].render_many([("a", *sample()), ("b", *sample())], False, 80)
        except NothingToShow as exc:
            assert name in ("speedscope", "collapsed")
            assert re.match("there are no samples to draw: ", str(exc))
        else:
            assert one.endswith("\n") and several.endswith("\n")
