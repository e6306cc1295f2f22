"""The pages of patterns: every section, on a terminal and as Markdown; and docs/patterns as it would be written now."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from postmortem.classify.engine import Rule, all_patterns
from postmortem.classify.snippets import SNIPPETS
from postmortem.cli import pages
from tools import docs

RULES = {rule.id: rule for rule in all_patterns()}

each_rule = pytest.mark.parametrize("rule", list(RULES.values()), ids=list(RULES))


@each_rule
def test_a_page_has_every_section(rule: Rule) -> None:
    """In the order of `pages.SECTIONS`, each with something to read, after an introduction; the terminal has them all."""
    found = pages.sections(rule.doc)
    assert [heading.split(" it ")[0] if heading.startswith("Why") else heading for heading, _text in found] == list(
        pages.SECTIONS
    )
    assert all(text for _heading, text in found)
    assert pages.introduction(rule.doc)
    shown = pages.text(rule, 80)
    assert all(re.search(rf"^{heading}$", shown, re.M) for heading, _text in found)
    code = {line.strip() for snippet in SNIPPETS.get(rule.id, ()) for line in snippet.splitlines()}
    wide = [line for line in shown.splitlines() if len(line) > 80 and "https://" not in line]
    assert {line.strip() for line in wide} <= code


def test_code_is_shown_before_and_after() -> None:
    """Both pieces stand under the remedy, unwrapped, indented."""
    before, after = SNIPPETS["pipe-deadlock"]
    shown = pages.text(RULES["pipe-deadlock"], 60)
    assert shown.index("Instead of") < shown.index(before.splitlines()[1]) < shown.index(after.splitlines()[1])
    assert f"\n    {after.splitlines()[0]}\n" in shown
    written = pages.markdown(RULES["pipe-deadlock"], RULES)
    assert f"```python\n{before}\n```" in written


def test_pages_lead_to_each_other() -> None:
    """What another pattern is called by is a link to its page; a releases' page is named where one mends it."""
    written = pages.markdown(RULES["gil-thrash"], RULES)
    assert "[`gil-contention`](gil-contention.md)" in written
    assert "starlette 0.38.0" in written
    assert "<https://github.com/encode/starlette/pull/2597>" in written
    assert "(gil-thrash.md)" not in written


@pytest.mark.parametrize("name", sorted(SNIPPETS))
def test_snippets_are_python(name: str) -> None:
    """Snippets belong to an existing pattern, parse as 3.8, are short, and differ before and after."""
    assert name in RULES
    before, after = SNIPPETS[name]
    assert before != after
    for code in (before, after):
        ast.parse(code, feature_version=(3, 8))
        assert code == code.strip("\n")
        assert len(code.splitlines()) <= 16
        assert max(map(len, code.splitlines())) <= 120


def test_the_documentation_is_of_today() -> None:
    """docs/patterns is what `make docs` would write: no page is missing, old, or left of a pattern that is gone."""
    wanted, present = docs.wanted(), docs.present()
    differ = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    assert differ == [], "run: make docs"


def test_documentation_is_written_and_cleared(tmp_path: Path) -> None:
    """What is gone is removed; a second run changes nothing."""
    (tmp_path / "long-gone.md").write_text("x", "utf-8")
    docs.main(tmp_path)
    assert docs.present(tmp_path) == docs.wanted()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    docs.main(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
