"""Escaping and measuring of text that a diagnosed program chose."""

from __future__ import annotations

import pytest

from postmortem.report import escape


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain ascii", "plain ascii"),
        ("größe 日本", "größe 日本"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\udcff", "\\udcff"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("\U000e0001", "\\U000e0001"),
        ("::error::x", "\\::error::x"),
        ("std::move", "std::move"),
        ("##[group]", "#\\#[group]"),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    """Printable text stays; the rest becomes an escape that shows which character it was."""
    assert escape.clean(raw) == shown


def test_wide_and_combining_characters_are_measured() -> None:
    """A terminal gives two columns to wide characters and none to accents of their own."""
    assert escape.columns("abc") == 3
    assert escape.columns("日本") == 4
    assert escape.columns("e\u0301") == 1


def test_cut_and_tail_keep_to_their_width() -> None:
    """Both mark what they drop, at the end or at the beginning."""
    assert escape.cut("abcdef", 6) == "abcdef"
    assert escape.cut("abcdef", 4) == "abc…"
    assert escape.tail("abcdef", 4) == "…def"
    assert escape.columns(escape.cut("日本語日本語", 5)) <= 5


def test_wrap_breaks_at_spaces_only() -> None:
    """A path longer than the width stays one word, so that it can be copied."""
    path = "/" + "x" * 30
    assert escape.wrap(f"see {path} and more", 20) == ["see", path, "and more"]
    assert escape.wrap("", 20) == []


def test_wrap_bounds_a_word_that_is_no_path() -> None:
    """A name of a megabyte does not fill the log."""
    assert max(map(len, escape.wrap("x" * 1_000_000, 80))) <= 400
