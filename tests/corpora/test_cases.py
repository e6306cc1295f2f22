"""The corpus is well-formed: labels, markers, both sides of every pattern, and nothing that gives an answer away."""

from __future__ import annotations

import ast
import re
import signal
from pathlib import Path
from typing import List

import pytest

from postmortem.classify.engine import Rule, all_patterns

from .cases import GUISES, KINDS, MARKER, RECORDS, Case, all_cases, culprit_lines, load
from .completeness import missing
from .staging import STAGED

CASES = all_cases()
PATTERNS = [rule.id for rule in all_patterns()]
HEALTHY_KINDS = 8

# Words by which a program would tell what is wrong with it. `serve_forever`, `run_forever` and a terminal's
# hang-up are other people's names.
GIVEAWAY = re.compile(
    r"dead_?lock|(?<!c)hang(?!_?up)|hung|stuck|culprit|starv|thrash|content(?:ion|d)|contend|livelock|orphan|leak|infinite"
    r"|(?<!serve_)(?<!run_)forever|spin(?!e|al|ach|dle)|busy|freeze|frozen|wake_?up|race_?condition|\bbug|faulty|postmortem",
    re.I,
)
# Places of the machine where a case was recorded; /tmp/build is where wheels were compiled, as their debug information says.
PRIVATE = re.compile(r"/(?:root|home|Users|tmp(?!/build/)|var/tmp)/")

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def python_files(case: Case) -> List[Path]:
    """Return the program's files. ``evidence.py`` writes the evidence by hand and is no part of the program."""
    return sorted(path for path in case.folder.glob("*.py") if path.name != "evidence.py")


@each_case
def test_the_label_is_complete(case: Case) -> None:
    """Kind, verdict and folder agree; every text that a person reads is there, on one line."""
    assert case.kind in KINDS
    assert bool(case.verdict) == (case.kind == "hang")
    assert case.folder.parent.name in (case.verdict if case.kind == "hang" else (case.kind,))
    for text in (case.title, case.source, case.note):
        assert text.strip() == text != "" and "\n" not in text
    assert len(case.title) <= 120
    assert 0 < case.timeout <= (30 if case.record == "core" else 10)
    assert case.recorded_with in case.pythons
    assert case.program.exists()
    assert case.peer is None or (case.folder / case.peer).exists()


@each_case
def test_the_label_says_how_it_is_recorded(case: Case) -> None:
    """Under capture, as the core that a signal left, or written by hand; in surroundings that somebody knows how to stage.
    A hang says in which guise it shows its fault."""
    assert case.record in RECORDS
    assert (case.record == "synthesised") == (case.folder / "evidence.py").exists()
    assert case.signal is None or (case.record == "core" and hasattr(signal, f"SIG{case.signal}"))
    assert {one.partition(" ")[0] for one in case.within} <= set(STAGED)
    assert case.record != "synthesised" or not case.within
    assert case.guise in GUISES if case.kind == "hang" else case.guise is None or case.guise in GUISES


@each_case
def test_the_label_names_patterns_that_exist(case: Case) -> None:
    """Every id is one that the engine runs, and no pattern is both wanted and forbidden."""
    named = {*case.verdict, *case.also, *case.must_not, *case.confusable_with}
    assert named <= set(PATTERNS)
    true = {*case.verdict, *case.also}
    assert not true & set(case.must_not)
    assert not set(case.verdict) & set(case.confusable_with)
    assert case.kind == "hang" or not case.proven


@each_case
def test_the_culprit_is_marked(case: Case) -> None:
    """A hang has a line to change; a program without fault has none."""
    if case.kind == "hang":
        assert case.culprits()
    else:
        assert not case.culprits()


@each_case
def test_the_program_is_written_for_every_python(case: Case) -> None:
    """The grammar is 3.8's, and the copy without markers has the same code on the same lines."""
    for path in python_files(case):
        source = path.read_text("utf-8")
        with_marks = ast.parse(source, str(path), feature_version=(3, 8))
        without = ast.parse(MARKER.sub("", source), feature_version=(3, 8))
        assert ast.dump(with_marks, include_attributes=True) == ast.dump(without, include_attributes=True)


@each_case
def test_the_program_does_not_give_the_answer_away(case: Case) -> None:
    """No word in it names what is wrong."""
    for path in python_files(case):
        found = GIVEAWAY.findall(MARKER.sub("", path.read_text("utf-8")))
        assert not found, (path.name, found)


@each_case
def test_the_program_says_when_it_is_ready(case: Case) -> None:
    """It prints `ready`, and flushes: a capture can wait for that."""
    assert 'print("ready", flush=True)' in case.program.read_text("utf-8")


@each_case
def test_the_recording_is_fit_to_be_published(case: Case) -> None:
    """Evidence is there, free of the labels and of the folders of whoever recorded it."""
    assert case.evidence.exists(), f"no evidence.json yet: make corpora ARGS='--cases {case.name}'"
    text = case.evidence.read_text("utf-8")
    assert "CULPRIT" not in text
    assert not PRIVATE.findall(text)


@pytest.mark.parametrize("rule", all_patterns(), ids=lambda rule: rule.id)
def test_nothing_is_missing(rule: Rule) -> None:
    """A pattern has its page, a line in the README, references, a test, code before and after, and programs that have it, in
    every guise, and that only look like it. What it lacks is said in a sentence each."""
    lacks = missing(rule, CASES)
    if lacks:
        pytest.fail("\n".join([f"{rule.id} lacks", *(f"  - {sentence}" for sentence in lacks)]), pytrace=False)


def test_health_has_many_faces() -> None:
    """False alarms are looked for on many kinds of programs; silence on hangs without a pattern, too."""
    assert sum(case.kind == "healthy" for case in CASES) >= HEALTHY_KINDS
    assert any(case.kind == "unknown" for case in CASES)


def test_a_marker_covers_its_statement() -> None:
    """A statement over several lines is one place, a loop includes its body, a `with` does not."""
    source = "\n".join(
        [
            "call(",  # 1
            "    1,  # CULPRIT",
            ")",
            "while x:  # CULPRIT",  # 4
            "    y()",
            "with lock:  # CULPRIT",  # 6
            "    z()",
            "def f(  # CULPRIT",  # 8
            "    a,",
            "):",
            "    return a",
        ]
    )
    assert culprit_lines(source) == {1, 2, 3, 4, 5, 6, 8, 9, 10}
    assert culprit_lines("call()\n") == frozenset()


def test_a_culprit_is_recognised_by_the_end_of_its_path(tmp_path: Path) -> None:
    """/app/program.py:2 is program.py's marked line; another file's line 2 is not."""
    (tmp_path / "program.py").write_text("x = 1\ny = 2  # CULPRIT\n", "utf-8")
    case = Case(tmp_path, "t", "hang", "s", "n", ("3.12",), culprit_elsewhere=("lib/client.py:7",))
    assert case.is_culprit("/app/program.py", 2)
    assert case.is_culprit("/venv/site-packages/lib/client.py", 7)
    assert not case.is_culprit("/app/program.py", 1)
    assert not case.is_culprit("/app/myprogram.py", 2)
    assert not case.is_culprit("/app/program.py", None)


@pytest.mark.parametrize("line", ["timout = 2.0", "verdict = 'gil-thrash'", "proven = 1"])
def test_a_slip_in_a_label_is_refused(line: str, tmp_path: Path) -> None:
    """An unknown key or a value of another type raises: a label never counts for less than it says."""
    path = tmp_path / "case.toml"
    head = '[case]\ntitle = "t"\nkind = "hang"\nsource = "s"\nnote = "n"\npythons = ["3.12"]\n'
    path.write_text(head, "utf-8")
    assert load(path).title == "t"
    path.write_text(head + line + "\n", "utf-8")
    with pytest.raises(ValueError, match=r"case\.toml"):
        load(path)


def test_a_copy_carries_no_answers(tmp_path: Path) -> None:
    """What the tool sees: the program without markers, neither label nor evidence nor peer."""
    case = next(case for case in CASES if case.peer)
    case.copy_to(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]
    assert "CULPRIT" not in (tmp_path / "program.py").read_text("utf-8")
