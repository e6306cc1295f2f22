"""CONTRIBUTING's example of a pattern runs, and every path that the documentation names exists."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from postmortem.classify import engine
from postmortem.classify.pattern import TIERS
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
    """It has the sections that are asked for, fits a pattern's file, and explains more than a symptom."""
    assert [section.heading.replace(" it hangs", "") for section in pages.sections(rule.doc)] == list(pages.SECTIONS)
    assert rule.pattern.references
    assert TIERS.index(rule.pattern.tier) < TIERS.index("symptom")


def test_the_examples_program_is_fit_for_the_corpus() -> None:
    """In 3.8's grammar, it says when it is ready, and a line is marked."""
    (source,) = [block for block in blocks() if "CULPRIT" in block]
    ast.parse(source, feature_version=(3, 8))
    assert 'print("ready", flush=True)' in source
    assert culprit_lines(source)


DOCUMENTS = (
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)
#: Files that readers write, of the example of a pattern; the folder that a recipe for CI makes.
_EXAMPLES = ("sleeping-with-lock/", "<pattern>/", "postmortem/publish/")
_FROM_ROOT = re.compile(r"(?<![\w./~-])(?:postmortem|tests|tools|gdb|bench|corpora|docs|ci|man)/[\w./*<>-]*")
_MODULE = re.compile(r"`([\w./*-]+/[\w*-]+\.py)`")


def lost_paths(text: str) -> List[str]:
    """List paths below the root, and modules below the root, the package or tests, that are not there; outputs shown in
    blocks of code are no paths of this repository."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    named: List[Tuple[str, Tuple[Path, ...]]] = [(path.rstrip("."), (ROOT,)) for path in _FROM_ROOT.findall(prose)]
    named += [(path, (ROOT, ROOT / "postmortem", ROOT / "tests")) for path in _MODULE.findall(prose)]
    return sorted(
        {
            path
            for path, folders in named
            if not any(example in f"{path}/" for example in _EXAMPLES)
            and not any((folder / path).exists() or any(folder.glob(path)) for folder in folders)
        }
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_in_the_documentation_exists(name: str) -> None:
    """Modules, tests, folders: none has moved since it was written down."""
    assert lost_paths((ROOT / name).read_text("utf-8")) == []


def test_a_lost_path_is_found() -> None:
    """Below the root or the package; not in blocks of code, nor in a path of somebody's home."""
    text = "`evidence/nothing.py`, see postmortem/nothing/here.py. ~/.cache/postmortem/x\n```\ntests/shown.py\n```\n"
    assert lost_paths(text) == ["evidence/nothing.py", "postmortem/nothing/here.py"]
    assert lost_paths("`evidence/usable.py`, tests/live/test_recipes*.py, corpora/<pattern>/<case>/") == []
