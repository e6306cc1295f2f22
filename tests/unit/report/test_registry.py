"""Formats by name and by suffix; what does not exist is refused with what does."""

from __future__ import annotations

import pytest

from postmortem import report

from .samples import sleeper


@pytest.mark.parametrize(("path", "name"), [("out.json", "json"), ("a/b.txt", "text"), ("x.tar.json", "json")])
def test_the_suffix_decides(path: str, name: str) -> None:
    """`--report FILE` needs no second option."""
    assert report.format_for(path).name == name


@pytest.mark.parametrize("path", ["report.html", "report", "report.sarif", ".json"])
def test_an_unknown_suffix_names_the_known_ones(path: str) -> None:
    """The sentence says what would work."""
    with pytest.raises(ValueError, match=r"\.txt \(text\), \.json \(json\)"):
        report.format_for(path)


def test_an_unknown_name_names_the_known_ones() -> None:
    """Formats of later versions are refused, not stubbed."""
    with pytest.raises(ValueError, match="'html'; there are: text, json"):
        report.format_named("html")


def test_both_render() -> None:
    """The table leads to renderers that work."""
    assert report.render("text", *sleeper()).startswith("Verdict")
    assert report.render("json", *sleeper()).startswith("{")
