"""Gaps in words: each code has words, each gap is made with the slots of its templates, old gaps keep their own."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Set, Tuple, get_args

import pytest

from postmortem.evidence import Gap
from postmortem.evidence.facts import Value
from postmortem.evidence.vocabulary import GapCode
from postmortem.report.phrases.gaps import WORDS, in_words

from ....support.sources import ROOT

#: Codes that are chosen by a table or passed through a variable, with the slots that are given then.
CHOSEN = {
    "no-object-lists", "no-time-for-references", "no-reference-count", "weak-reference-unread", "references-overcounted",
    "too-many-referrers", "referrers-too-deep", "references-unfound", "references-uncounted", "frames-guessed",
    "frames-guessed-unread", "evidence-unusable", "evidence-too-large", "stack-incomplete", "no-native-frame",
    "thread-unseen", "no-locals", "no-locals-in-report", "locals-stripped", "no-siginfo", "instruction-unread",
    "no-native-stacks", "core-unread", "crash-stack-unknown", "abort-message-unread", "fatal-error-unread",
    "stack-bounds-unknown",
}  # fmt: skip
ITS_OWN = {"remedy", "reason", "code"}


def calls() -> Iterator[Tuple[str, Set[str], bool]]:
    """Yield the code, the slots and whether a text of its own is given, of every gap whose code is written out."""
    for path in sorted((ROOT / "postmortem").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = _name(node.func)
            keywords = {str(keyword.arg): keyword.value for keyword in node.keywords}
            code = keywords.get("code")
            if name == "Gap.of" and len(node.args) > 2:
                code = node.args[2]
            elif name == "_gap" and node.args:
                code = node.args[0]
            elif name != "Gap":
                continue
            if isinstance(code, ast.Constant):
                yield str(code.value), set(keywords) - ITS_OWN, len(node.args) > 2 and name == "Gap"


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_each_code_has_words() -> None:
    """The vocabulary and the table list the same codes."""
    assert set(WORDS) == set(get_args(GapCode))


def test_each_gap_fills_its_template() -> None:
    """A reason that the code has no words for is given with the gap, and the slots of those it has are all there."""
    found = list(calls())
    assert len({code for code, _slots, _own in found}) > 40
    for code, slots, own in found:
        words = WORDS[code]  # type: ignore[index]
        assert own or words.reason is not None, code
        wanted = set(words.reason.names) if words.reason is not None else set()
        assert own or wanted <= slots, code


def test_each_code_is_made() -> None:
    """A code that nothing makes is dead."""
    assert {code for code, _slots, _own in calls()} | CHOSEN == set(get_args(GapCode))


@pytest.mark.parametrize("value", [None, True, -1, 2.5, "x", (), ("a", 1)])
def test_damaged_slots_have_words(value: Value) -> None:
    """Evidence from elsewhere may lack slots, or have values of any other type in them."""
    for code, words in WORDS.items():
        names = {name for template in words if template is not None for name in template.names}
        damaged: List[Dict[str, Value]] = [{}, dict.fromkeys(names, value), {"path": value}]
        assert all(in_words(Gap("core", "x", None, None, code, slots)).reason for slots in damaged)


@pytest.mark.parametrize(
    ("gap", "reason", "remedy"),
    [
        (Gap.of("gdb", "x", "gdb-stopped", remedy="again", seconds=1.24, why="of memory"),
         "gdb stopped after 1.2 s: of memory", "again"),
        (Gap.of("files", "x", "sources-unread", file="/a.py", more=0, why="gone"), "/a.py: gone", None),
        (Gap.of("files", "x", "sources-unread", file="/a.py", more=2, why="gone"), "/a.py and 2 more: gone", None),
        (Gap.of("cpython", "x", "references-uncounted", what="the Queue", references=1, found=1),
         "the Queue counts 1 reference, of which 1 was found",
         "a core with every page (--core sparse) shows more, unless C code is in the way"),
        (Gap.of("cpython", "x", "references-unfound", remedy="", what="the Queue", references=3),
         "the Queue counts 3 references, of which none was found", None),
        (Gap("proc", "x", "Permission denied", "run as root"), "Permission denied", "run as root"),
        (Gap("core", "x", "not an ELF file", code="file-unusable"), "not an ELF file",
         "pass --sysroot, or copy the file from the machine that wrote the core"),
    ],
)  # fmt: skip
def test_words(gap: Gap, reason: str, remedy: object) -> None:
    """Slots are filled, optional clauses left out; a text of the gap's own comes before the code's."""
    told = in_words(gap)
    assert (told.reason, told.remedy) == (reason, remedy)
