"""Bundles that earlier releases wrote are read by every later one: tests/releases has some of each."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from postmortem import evidence as ev
from postmortem import pipeline
from postmortem.report import FORMATS, NothingToShow

FOLDER = Path(__file__).resolve().parents[1] / "releases"
BUNDLES = sorted(FOLDER.glob("*/*.zip"))


def lost(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """What an old report says and a new one says otherwise, or not at all; new keys are no loss."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            yield from lost(value, new.get(key), f"{where}/{key}") if key in new else (f"{where}/{key}: gone",)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new)):
            yield from lost(one, other, f"{where}/{number}")
    elif old != new:
        yield f"{where}: {old!r} became {new!r}"


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_old_bundle_is_read(bundle: Path) -> None:
    """All facts of its report are there today, word for word, and every format shows it. (What is concluded may change.)"""
    with zipfile.ZipFile(bundle) as archive:
        recorded = json.loads(archive.read(f"{bundle.stem}/report.json"))
    found, diagnosis = pipeline.analyze_target(str(bundle))
    assert found.schema == ev.SCHEMA
    today = json.loads(FORMATS["json"].render(found, diagnosis, False, 80))
    for part in ("trigger", "processes", "gaps", "window_s", "machine"):
        assert list(lost(recorded[part], today[part], part)) == []
    for known in FORMATS.values():
        try:
            assert known.render(found, diagnosis, False, 80)
        except NothingToShow:
            pass


def test_there_are_bundles_of_the_first_release() -> None:
    """Some twenty, so that the test above cannot pass by having nothing to read."""
    assert len([path for path in BUNDLES if path.parent.name == "0.1.0"]) >= 20


def test_a_loss_is_found() -> None:
    """A value that changed, one that is gone, a list that is shorter; a new key is none."""
    assert list(lost({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2, "c": 3}]})) == []
    assert list(lost({"a": 1, "b": 2}, {"a": 2})) == ["/a: 1 became 2", "/b: gone"]
    assert list(lost([1, 2], [1])) == [": [1, 2] became [1]"]
