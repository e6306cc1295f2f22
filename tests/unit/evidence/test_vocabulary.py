"""Kinds, roles and their like are words of a vocabulary: whatever the sources compare them with is one of its words."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Dict, FrozenSet, Iterator, Set, get_args

import pytest

from postmortem.evidence import vocabulary

from ...support.sources import modules

#: Attributes whose values are words of a vocabulary wherever they stand.
FIELDS = {"kind", "role", "basis", "owner_basis", "trust", "doing", "confidence", "verb", "cause"}
#: Fields of these names that hold something else: the class of a backlog, of a loop, of a lock on a file; rows of a JUnit file.
OPEN = {
    "collections.deque",
    "tuple",
    "list",
    "uvloop",
    "trio",
    "twisted",
    "eventlet",
    "POSIX",
    "",
    "_anon",
    "_file",
    "call",
    "exit",
}


def _trees() -> Dict[str, ast.Module]:
    return {name: module.tree for name, module in modules().items()}


def _strings(node: ast.AST) -> Set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def words(tree: ast.AST) -> Set[str]:
    """All words of all Literal types that a module writes."""
    found: Set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
            found |= _strings(node.slice)
    return found


def compared(tree: ast.AST) -> Iterator[str]:
    """Every string that a field of FIELDS is compared with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Attribute) and side.attr in FIELDS for side in sides):
                for side in sides:
                    if isinstance(side, (ast.Constant, ast.Tuple, ast.Set, ast.List)):
                        yield from _strings(side)


def test_no_field_is_compared_with_a_word_outside_the_vocabularies() -> None:
    """A word that nobody produces makes a branch that nobody enters."""
    trees = _trees()
    known = set().union(*map(words, trees.values())) | OPEN
    strange = {name: sorted(set(compared(tree)) - known) for name, tree in trees.items()}
    assert {name: found for name, found in strange.items() if found} == {}


def test_a_strange_word_is_caught() -> None:
    """The check itself works, for comparisons with one word and with several."""
    tree = ast.parse('a.kind == "import"; a.role in ("holder", "owner"); a.name == "x"')
    assert set(compared(tree)) - {"holder"} == {"import", "owner"}


@lru_cache(maxsize=None)
def _written() -> FrozenSet[str]:
    """Every string in the sources outside of the vocabularies of evidence."""
    return frozenset().union(*(_strings(tree) for name, tree in _trees().items() if name != "evidence.vocabulary"))


@pytest.mark.parametrize("name", sorted(n for n in vars(vocabulary) if n[0].isupper() and n != "Literal"))
def test_every_word_of_evidence_is_written_somewhere(name: str) -> None:
    """Each word of each vocabulary of evidence stands in the sources outside of it: it has a producer."""
    assert sorted(set(get_args(getattr(vocabulary, name))) - _written()) == []


def gaps_without_a_code(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that make a Gap and say by no code what could not be read."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in calls:
        is_gap = isinstance(call.func, ast.Name) and call.func.id == "Gap"
        if is_gap and len(call.args) < 5 and not any(keyword.arg == "code" for keyword in call.keywords):
            yield call.lineno


def test_every_gap_has_a_code() -> None:
    """Only evidence that was written before there were codes has none."""
    assert [(name, line) for name, tree in _trees().items() for line in gaps_without_a_code(tree)] == []
    bare = (
        'Gap("core", "a", "b")\nGap("core", "a", "b", None, "core-unread")\nGap("core", "a", "b", code="core-unread")'
    )
    assert list(gaps_without_a_code(ast.parse(bare))) == [1]
