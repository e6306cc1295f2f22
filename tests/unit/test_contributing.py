"""CONTRIBUTING's example of a pattern is one: its rule runs, its test holds, its program is fit for the corpus."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, List

import pytest

from postmortem.classify import engine
from postmortem.cli import pages
from postmortem.evidence import Wait
from tests.corpora.cases import culprit_lines

from ..support import make

ROOT = Path(__file__).resolve().parents[2]
NAME = "postmortem.classify.patterns.locks.sleeping_with_lock"


def blocks() -> List[str]:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    found: List[str] = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    return found


@pytest.fixture
def rule() -> Iterator[engine.Rule]:
    """The example's rule, among all others while a test lasts."""
    (source,) = [block for block in blocks() if "PATTERN = Pattern(" in block]
    module = ModuleType(NAME)
    module.__package__ = "postmortem.classify.patterns.locks"
    exec(compile(source, NAME, "exec"), module.__dict__)
    sys.modules[NAME] = module
    before = engine.all_patterns()
    added = engine.Rule(module.PATTERN, module.match, inspect.cleandoc(module.__doc__ or ""))
    engine._rules.append(added)
    yield added
    engine._rules[:] = before
    del sys.modules[NAME]


def test_the_examples_test_holds(rule: engine.Rule) -> None:
    """As it stands there, with the names of make.py."""
    (source,) = [block for block in blocks() if block.startswith("def test_")]
    names: Dict[str, Any] = {**vars(make), "Wait": Wait}
    exec(compile(source, "CONTRIBUTING.md", "exec"), names)
    names["test_a_sleeper_with_a_lock_is_to_blame"]()


def test_the_examples_page_is_complete(rule: engine.Rule) -> None:
    """It has the sections that are asked for, fits a pattern's file, and outranks patterns that there are."""
    assert [section.heading.replace(" it hangs", "") for section in pages.sections(rule.doc)] == list(pages.SECTIONS)
    assert rule.pattern.references
    assert set(rule.pattern.outranks) <= {one.id for one in engine.all_patterns()}


def test_the_examples_program_is_fit_for_the_corpus() -> None:
    """In 3.8's grammar, it says when it is ready, and a line is marked."""
    (source,) = [block for block in blocks() if "CULPRIT" in block]
    ast.parse(source, feature_version=(3, 8))
    assert 'print("ready", flush=True)' in source
    assert culprit_lines(source)
