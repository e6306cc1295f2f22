"""`make new-pattern`: files that compile, abstain and load, and nothing that exists is touched."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Iterator

import pytest

from postmortem.classify.engine import Rule
from postmortem.classify.facts.view import View
from postmortem.classify.pattern import CannotTell
from tests.corpora import completeness
from tests.corpora.cases import load
from tools import new_pattern

from ..support.make import evidence, process, stack, thread

README = "| `core` | x |\n## What it recognises\n| `sleeping` | a sleep |\n\n## Which interpreters\n| `other` | y |\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "README.md").write_text(README, "utf-8")
    for module in (new_pattern, completeness):
        monkeypatch.setattr(module, "REPOSITORY", tmp_path)
        monkeypatch.setattr(module, "PATTERNS", tmp_path / "patterns")
        monkeypatch.setattr(module, "TESTS", tmp_path / "tests")
    yield tmp_path
    sys.modules.pop("postmortem.classify.patterns.io.too_slow", None)


def rule(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("postmortem.classify.patterns.io.too_slow", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_rule_abstains_until_it_is_written(tree: Path) -> None:
    """It is imported as it is, names the pattern, and answers that it cannot tell."""
    new_pattern.lay_out("too-slow", "io")
    module = rule(tree / "patterns" / "io" / "too_slow.py")
    assert module.PATTERN.id == "too-slow"
    (answer,) = module.match(View(evidence(process([thread(1, stack("main"))]))))
    assert isinstance(answer, CannotTell)
    assert not list(module.match(View(evidence())))


def test_cases_and_test_are_in_order(tree: Path) -> None:
    """The labels load, the programs are Python, say when they are ready and carry a marker; the README has a line."""
    new_pattern.lay_out("too-slow", "io")
    cases = [load(path) for path in sorted(tree.glob("corpora/too-slow/*/case.toml"))]
    assert [case.guise for case in cases] == ["plain", "buried"]
    for case in cases:
        ast.parse(case.program.read_text("utf-8"), feature_version=(3, 8))
        assert 'print("ready", flush=True)' in case.program.read_text("utf-8")
        assert case.culprits()
    ast.parse((tree / "tests" / "patterns" / "io" / "test_too_slow.py").read_text("utf-8"))
    rows = (tree / "README.md").read_text("utf-8").splitlines()
    assert rows.index("| `too-slow` | TODO |") == rows.index("| `sleeping` | a sleep |") + 1


def test_what_exists_is_left_alone(tree: Path) -> None:
    """A second time nothing is written, whatever the files say by now."""
    new_pattern.lay_out("too-slow", "io")
    (tree / "patterns" / "io" / "too_slow.py").write_text("mine", "utf-8")
    assert new_pattern.lay_out("too-slow", "io") == []
    assert (tree / "patterns" / "io" / "too_slow.py").read_text("utf-8") == "mine"


def test_each_lack_is_a_sentence(tree: Path) -> None:
    """What was just laid out lacks all that is to be written, and each is said by its file."""
    new_pattern.lay_out("too-slow", "io")
    module = rule(tree / "patterns" / "io" / "too_slow.py")
    cases = [load(path) for path in sorted(tree.glob("corpora/too-slow/*/case.toml"))]
    said = completeness.missing(Rule(module.PATTERN, module.match, module.__doc__ or ""), cases)
    for part in (
        "patterns/io/too_slow.py still says TODO",
        "no references",
        "no code before and after",
        "docs/patterns/too-slow.md",
        "test_too_slow.py still says TODO",
        "2 of 3 programs",
        'guise = "library"',
        "0 of 2 programs",
        "no evidence.json",
        "first-program still says TODO",
    ):
        assert any(part in sentence for sentence in said), part
    assert len(said) == len(set(said))


def test_an_id_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage, and nothing is written."""
    for bad in ([], ["Too_Slow"], ["a", "nowhere"], ["a"], ["a", "io", "b"], ["../x", "io"]):
        assert new_pattern.main(bad) == 2
    assert "ID=my-pattern" in capsys.readouterr().err
