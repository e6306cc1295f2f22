"""Cores with random damage, flipped bytes and an early end: whatever is left is read, and nothing else happens.

The long runs are ``make fuzz``; here are samples of them over the same interpreters and with the same bounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from ..support.interpreters import matrix
from ..support.required import lacking, needs_gdb
from .fuzz import campaign, flips, planted
from .fuzz.bases import Base, NotTaken, base
from .fuzz.cases import SECONDS, Prepared, prepare, run, seeded
from .fuzz.damage import Damage, write_damaged

pytestmark = pytest.mark.live

#: Machines differ in speed; what hangs takes longer on any of them.
PATIENCE = 5 * SECONDS
SAMPLE = 5  # random cases an interpreter
TRIALS = 20  # with flipped bytes
#: Of each way to build an interpreter one: old and new frames, shared and static, stripped, free-threaded.
SOME = ("3.8", "3.10", "3.11-stripped", "3.12", "3.14", "3.13t")
HANG_S = 120.0

Bases = Callable[[str, str], Prepared]


def some(*ids: str) -> List[Any]:
    return [one for one in matrix() if one.id in (ids or SOME)]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    """A clean core of an interpreter, by who wrote it; each taken once."""
    folder = tmp_path_factory.mktemp("bases")
    known: Dict[Tuple[str, str], Prepared] = {}

    def taken(python: str, kind: str) -> Prepared:
        if (python, kind) not in known:
            try:
                known[python, kind] = prepare(base(python, kind, folder))
            except NotTaken as exc:
                lacking(str(exc))
        return known[python, kind]

    return taken


@pytest.mark.parametrize("kind", ["own", "kernel"])
@pytest.mark.parametrize("python", some("3.9", "3.12", "3.14"))
def test_the_clean_core_has_a_proven_verdict(python: Any, kind: str, bases: Bases) -> None:
    """What is damaged below is a core that says something: a lock cycle among nine threads."""
    clean = bases(python.id, kind).clean
    assert (clean["verdict"], clean["confidence"], clean["threads"]) == ("lock-order-deadlock", "proven", 9)
    assert clean["frames"] > 280


# the one on musl is read by the code of 3.11
@pytest.mark.parametrize("python", [one for one in matrix() if one.id != "3.11-musl"])  # type: ignore[attr-defined]
def test_random_damage(python: Any, bases: Bases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No exception, no hang, no memory above the limit, in any report; a core that cannot be read is one sentence."""
    monkeypatch.setenv("POSTMORTEM_FUZZ", str(tmp_path))
    ready = bases(python.id, "kernel")
    for seed in range(SAMPLE):
        outcome = seeded(ready, seed, seconds=PATIENCE)
        done = campaign.Done(campaign.Case(ready.base, seed), outcome, False)
        assert outcome.failure is None, f"{campaign.keep(done, ready)}\n{outcome.failure}"


@needs_gdb
@pytest.mark.parametrize("python", some("3.8", "3.12"))
def test_random_damage_with_gdb(python: Any, bases: Bases) -> None:
    """The same when gdb reads the core too."""
    ready = bases(python.id, "own")
    for seed in range(1000, 1003):
        outcome = seeded(ready, seed, gdb=True)
        assert outcome.failure is None, f"seed {seed}: {ready.mutator.damage(seed).said}\n{outcome.failure}"


@pytest.mark.parametrize("python", some("3.9", "3.12", "3.14"))
def test_flipped_bytes_leave_the_verdict(python: Any, bases: Bases) -> None:
    """Twenty bytes of memory changed: the same verdict, as sure, in 95 % of the trials."""
    ready = bases(python.id, "own")
    outcomes = [flips.trial(ready, seed, PATIENCE) for seed in range(TRIALS)]
    assert [outcome.failure for outcome in outcomes if outcome.failure] == []
    assert sum(flips.same(ready, outcome) for outcome in outcomes) >= flips.WANTED * TRIALS


# ---------------------------------------------------------------------- cut short


def analyze(core: Path) -> Dict[str, Any]:
    """The report of `postmortem analyze`, which ends with 0."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "analyze", str(core), "-f", "json"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    report: Dict[str, Any] = json.loads(done.stdout)
    return report


def threads(report: Dict[str, Any]) -> Dict[int, Dict[str, Any]]:
    return {thread["tid"]: thread for thread in report["processes"][0]["threads"]}


@pytest.fixture(scope="module")
def whole(bases: Bases) -> Callable[[str, str], Tuple[Base, Dict[str, Any]]]:
    """A clean core and its report."""
    known: Dict[Tuple[str, str], Tuple[Base, Dict[str, Any]]] = {}

    def report(python: str, kind: str) -> Tuple[Base, Dict[str, Any]]:
        if (python, kind) not in known:
            found = bases(python, kind).base
            known[python, kind] = found, analyze(found.core)
        return known[python, kind]

    return report


@needs_gdb
@pytest.mark.parametrize("percent", [10, 50, 90])
@pytest.mark.parametrize("kind", ["own", "kernel"])
@pytest.mark.parametrize("python", some())
def test_a_core_cut_short(python: Any, kind: str, percent: int, whole: Any, tmp_path: Path) -> None:
    """Every thread is there; every frame that is shown is the whole core's at the same place; where a stack ends
    early, or something of a frame is unknown, a gap says so; nothing is proven that was not."""
    clean, full = whole(python.id, kind)
    path = tmp_path / "core"
    write_damaged(clean.core, Damage(end=clean.core.stat().st_size * percent // 100), path)
    cut = analyze(path)
    expected = threads(full)
    assert set(threads(cut)) == set(expected)
    for tid, thread in threads(cut).items():
        assert thread["name"] in (None, expected[tid]["name"])
        assert_python_frames(thread, expected[tid], cut["gaps"])
        assert_native_frames(thread, expected[tid], cut["gaps"])
    proven = {finding["pattern"] for finding in cut["findings"] if finding["confidence"] == "proven"}
    assert proven <= {finding["pattern"] for finding in full["findings"] if finding["confidence"] == "proven"}
    assert any(gap["source"] == "core" and "cut short" in gap["reason"] for gap in cut["gaps"])


def assert_python_frames(shown: Dict[str, Any], expected: Dict[str, Any], gaps: List[Dict[str, Any]]) -> None:
    incomplete = len(shown["python"]) < len(expected["python"])
    for mine, theirs in pairs(shown["python"], expected["python"]):
        for key in ("file", "line", "function"):
            if mine[key] in (None, "<unknown>"):
                incomplete = incomplete or theirs[key] is not None
            else:
                assert mine[key] == theirs[key], (mine, theirs)
    assert not incomplete or about(gaps, "cpython", shown["tid"]), (shown["tid"], gaps)


def assert_native_frames(shown: Dict[str, Any], expected: Dict[str, Any], gaps: List[Dict[str, Any]]) -> None:
    """What gdb had to guess counts as not there; it is marked, and a gap says that it may be there."""
    sure = [frame for frame in shown["native"] if frame["trust"] != "scan"]
    for mine, theirs in pairs(sure, expected["native"]):
        assert mine["address"] == theirs["address"], (mine, theirs)
        assert mine["function"] in (None, theirs["function"])
    incomplete = len(sure) < len(expected["native"])
    assert not incomplete or about(gaps, "gdb", shown["tid"]), (shown["tid"], gaps)


def pairs(shown: List[Dict[str, Any]], expected: List[Dict[str, Any]]) -> Iterator[Tuple[Any, Any]]:
    """Counted from the innermost; none of them may be without its like."""
    assert len(shown) <= len(expected)
    return zip(shown, expected)


def about(gaps: List[Dict[str, Any]], source: str, tid: int) -> bool:
    """Does a gap name a thread, or all of its process?"""
    for gap in gaps:
        subject = gap["subject"]
        if gap["source"] == source and (subject.startswith("process ") or str(tid) in subject or "more" in subject):
            return True
    return False


# ---------------------------------------------------------------------- the harness itself


def test_a_seed_is_a_damage(bases: Bases, tmp_path: Path) -> None:
    """The same seed damages the same bytes; laid over the core or written into a copy, the reader sees the same."""
    ready = bases("3.12", "own")
    assert ready.mutator.damage(5) == ready.mutator.damage(5)
    assert len({json.dumps(ready.mutator.damage(seed).to_json()) for seed in range(50)}) > 45
    damage = ready.mutator.damage(11)
    assert Damage.from_json(json.loads(json.dumps(damage.to_json()))) == damage
    copy = Base("3.12", "own", tmp_path / "core")
    write_damaged(ready.base.core, damage, copy.core)
    assert run(copy, Damage(), seconds=PATIENCE).answer == run(ready.base, damage, seconds=PATIENCE).answer


def test_damage_goes_where_the_reader_reads(bases: Bases) -> None:
    """What the clean run noted has every part of the reader in it, and lists, of which damage can make rings."""
    slots = bases("3.12", "own").mutator.trace.slots
    readers = {label.partition(".")[0] for label in slots}
    assert readers >= {
        "attributes",
        "code",
        "exceptions",
        "frame",
        "futures",
        "interpreter",
        "locks",
        "builtins",
        "discovery",
    }
    for function in ("_read_threads", "visit", "set_items", "deque_items", "type_at", "_entries", "bytes_", "_handled"):
        assert any(f".{function}:" in label and len(rows) > 1 for label, rows in slots.items()), function


@pytest.mark.parametrize(
    "bug, failure",
    [(planted.raises, "KeyError: 'planted'"), (planted.spins, "too long"), (planted.eats, "MemoryError")],
)
def test_the_harness_finds_planted_bugs(
    bug: Callable[..., None], failure: str, bases: Bases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception, an endless loop and too much memory are failures of their case, and of nothing else."""
    ready = bases("3.12", "own")
    with monkeypatch.context() as patch:
        patch.setattr("postmortem.pipeline.analyze_target", bug)
        assert failure in str(run(ready.base, Damage(), seconds=0.5).failure)
    assert run(ready.base, Damage(), seconds=PATIENCE).failure is None
