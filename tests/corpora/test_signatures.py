"""Signatures over the whole corpus: what moves in a file system or a file changes none, and causes are told apart."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any, Dict, FrozenSet, List, Set, Tuple

import pytest

from postmortem import evidence as ev
from ..support.diagnosed import classify
from postmortem.classify.signature import stable_file
from postmortem.findings import Diagnosis

from .cases import Case, all_cases

RECORDED = [case for case in all_cases() if case.evidence.exists()]
SHIFT = 1000


@pytest.fixture(scope="module")
def diagnoses() -> Dict[str, Diagnosis]:
    return {case.name: classify(ev.decode(case.evidence.read_bytes())) for case in RECORDED}


def shifted(value: Any) -> Any:
    """The same evidence with every line of every Python file so many lines further down."""
    if isinstance(value, list):
        return [shifted(item) for item in value]
    if not isinstance(value, dict):
        return value
    python = isinstance(value.get("file"), str) and value.get("kind") != "native"
    lines = {key: value[key] + SHIFT for key in ("line", "end_line") if python and isinstance(value.get(key), int)}
    return {key: shifted(item) for key, item in {**value, **lines}.items()}


def with_shifted_lines(case: Case) -> ev.Evidence:
    known = shifted(json.loads(case.evidence.read_text("utf-8")))
    for key in {"sources", "loops", "branches"} & set(known):  # file → line → text, or other lines
        known[key] = {
            file: {str(int(line) + SHIFT): _also(here) for line, here in lines.items()} for file, lines in known[key].items()
        }
    return ev.decode(json.dumps(known).encode())


def _also(here: Any) -> Any:
    return [line + SHIFT for line in here] if isinstance(here, list) else here


def elsewhere(case: Case) -> ev.Evidence:
    """The same evidence from another checkout, another environment, and another installation of Python."""
    text = case.evidence.read_text("utf-8").replace('"/app/', '"/srv/releases/current/')
    text = re.sub(r"/venv/lib/python3\.\d+t?/site-packages/", "/usr/local/lib/python3/dist-packages/", text)
    return ev.decode(re.sub(r"/python/lib/python3\.\d+t?/", "/opt/lib64/python3.99/", text).encode())


@pytest.mark.parametrize("changed", [with_shifted_lines, elsewhere])
def test_what_moves_keeps_its_signature(changed: Any, diagnoses: Dict[str, Diagnosis]) -> None:
    """Lines shift with every commit, folders differ on every machine."""
    differ = [
        (case.name, before.verdict, after.verdict)
        for case in RECORDED
        for before, after in [(diagnoses[case.name], classify(changed(case)))]
        if before.signature != after.signature
    ]
    assert differ == []


def test_causes_are_told_apart(diagnoses: Dict[str, Diagnosis]) -> None:
    """Two programs share one only when both are to be changed in functions of the same names, in files of the same names."""
    groups: Dict[str, List[Tuple[str, Diagnosis]]] = defaultdict(list)
    for name, diagnosis in diagnoses.items():
        if diagnosis.findings:
            groups[diagnosis.signature].append((name, diagnosis))
    for members in groups.values():
        assert len({diagnosis.verdict for _name, diagnosis in members}) == 1
        assert len({bool(_places(diagnosis)) for _name, diagnosis in members}) == 1
        common = frozenset.intersection(*(_places(diagnosis) for _name, diagnosis in members))
        assert common or not _places(members[0][1]), [name for name, _diagnosis in members]


def test_few_hangs_look_alike(diagnoses: Dict[str, Diagnosis]) -> None:
    """Nearly all recognised hangs have a signature of their own, though all programs have the same file name."""
    seen: Dict[str, Set[str]] = defaultdict(set)
    firm = [case for case in RECORDED if case.kind == "hang" and _firm(case, diagnoses[case.name])]
    for case in firm:
        seen[diagnoses[case.name].signature].add(case.name)
    shared = [names for names in seen.values() if len(names) > 1]
    assert sum(map(len, shared)) <= 0.06 * len(firm), shared


def _firm(case: Case, diagnosis: Diagnosis) -> bool:
    leading = diagnosis.findings[0] if diagnosis.findings else None
    return leading is not None and leading.pattern in case.verdict and leading.confidence != "possible"


def _places(diagnosis: Diagnosis) -> FrozenSet[Tuple[str, str]]:
    culprits = diagnosis.findings[0].culprits
    return frozenset((stable_file(culprit.file), culprit.function) for culprit in culprits)
