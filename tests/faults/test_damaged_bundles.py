"""Bundles, archives, crash reports, journals and compressed cores with damage: a report or one sentence, and nothing else.

The long run is ``make fuzz ARGS=--bundles``; here is a sample of it with the same limits, and tests of the harness itself.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable, List

import pytest

from postmortem.cli import commands
from postmortem.errors import PostmortemError

from ..support.required import lacking
from .fuzz import planted
from .fuzz.foreign import archives, campaign, inputs
from .fuzz.foreign.cases import SECONDS, Limits, run
from .fuzz.foreign.clean import Clean, NotTaken, zip_files
from .fuzz.foreign.inputs import Input, Node
from .fuzz.foreign.mutations import KINDS, damaged

pytestmark = pytest.mark.live

#: Machines differ in speed; what hangs takes longer on any of them.
PATIENCE = Limits(seconds=4 * SECONDS)
SAMPLE = 160
SHARDS = 6  # so that several processors share the sample


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Clean:
    try:
        return Clean(tmp_path_factory.mktemp("clean"))
    except NotTaken as exc:
        lacking(str(exc))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_damage(shard: int, clean: Clean, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No traceback, no undocumented status, nothing left in TMPDIR, every report well-formed, time and memory bounded."""
    monkeypatch.setenv("POSTMORTEM_FUZZ", str(tmp_path))
    failed = []
    for seed in range(shard, SAMPLE, SHARDS):
        given = damaged(clean, seed)
        outcomes = run(given, PATIENCE)
        failed += [f"{campaign.keep(given, seed)}: {one.failure}" for one in outcomes if one.failure is not None]
    assert failed == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_damaged_was_readable(kind: str, clean: Clean, tmp_path: Path) -> None:
    """Undamaged, every kind gives a report: damage is measured against something."""
    given = clean.input(kind, 1)  # of a journal: one that holds the core itself
    if kind == "zip":
        given = _zipped(given)
    assert [(one.status, one.failure) for one in run(given, PATIENCE)] == [(0, None)] * (3 if _is_bundle(kind) else 1)


def _zipped(given: Input) -> Input:
    packed = archives.written([archives.entry(*one) for one in zip_files(given).items()])
    return Input("zip", given.target, {}, []).with_file(given.target, packed)


def _is_bundle(kind: str) -> bool:
    return kind in ("evidence", "raw", "whole", "cores", "zip")


def test_a_seed_is_a_damage(clean: Clean, tmp_path: Path) -> None:
    """The same seed damages the same bytes; a kept case is that input again."""
    for seed in range(40):
        given = damaged(clean, seed)
        assert given == damaged(clean, seed)
        assert inputs.from_json(given.to_json()) == given
    assert len({repr(damaged(clean, seed).nodes) for seed in range(40)}) == 40


def test_kinds_of_files_are_laid_out(tmp_path: Path) -> None:
    """What stands in place of a file is what the case says."""
    made = Input("raw", "x", {}, [])
    for name, node in (
        ("fifo", Node("fifo")),
        ("link", Node("link", b"/dev/zero")),
        ("sparse", Node("sparse", b"1048576")),
        ("folder", Node("folder")),
        ("socket", Node("socket")),
        ("plain", Node("file", b"text")),
    ):
        made = made.with_node(f"x/{name}", node)
    inputs.lay_out(made, tmp_path)
    found = tmp_path / "x"
    assert (found / "fifo").is_fifo()
    assert (found / "socket").is_socket()
    assert (found / "folder").is_dir()
    assert os.readlink(found / "link") == "/dev/zero"
    assert (found / "sparse").stat().st_size == 1 << 20
    assert (found / "plain").read_bytes() == b"text"


def _sleeps(*_words: Any, **_more: Any) -> None:
    time.sleep(600)


def _litters(*_words: Any, **_more: Any) -> Any:
    Path(os.environ["TMPDIR"], "left").touch()
    raise PostmortemError("planted")


@pytest.mark.parametrize(
    ("bug", "failure"),
    [
        (planted.raises, "KeyError: 'planted'"),
        (planted.spins, "too long"),
        (planted.eats, "MemoryError"),
        (_sleeps, "hangs"),
        (_litters, "left"),
    ],
)
def test_the_harness_finds_planted_bugs(
    bug: Callable[..., Any], failure: str, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception, an endless loop, too much memory, a wait for nobody and a file left behind are failures."""
    given = clean.input("evidence", 0)
    with monkeypatch.context() as patch:
        patch.setattr("postmortem.pipeline.analyze_target", bug)
        found: List[str] = [str(one.failure) for one in run(given, Limits(seconds=0.5)) if one.command == "analyze"]
    assert failure in found[0]


def test_a_status_that_no_page_names_is_a_failure(clean: Clean, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statuses are those of the README's table."""
    monkeypatch.setattr(commands, "main", lambda words: 70)
    assert {one.failure for one in run(clean.input("evidence", 0))} > set()
    assert all("ended with 70" in str(one.failure) for one in run(clean.input("evidence", 0)))
