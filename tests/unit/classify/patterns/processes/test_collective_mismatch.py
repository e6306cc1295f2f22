"""Ranks in different collective operations: told from stragglers, and from programs that call other things so."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

import pytest

from postmortem.evidence import Evidence, Process, Wait
from postmortem.evidence import replace as changed

from .....support.diagnosed import classify
from .....support.make import APP, counters, evidence, found, frame, process, samples, thread

WAIT = Wait("pipe", "read", endless=True)


def rank(
    pid: int,
    operation: str,
    line: int,
    wait: Optional[Wait] = WAIT,
    window: bool = True,
    away: int = 0,
    comm: str = APP,
) -> Process:
    frames = [frame(operation, 3, comm), frame("step", line), frame("main", 90)]
    looks = samples((100 - away, frames), (away, frames[1:])) if window else ()
    measured = counters(0.0, 0) if window else None
    one = thread(pid, frames, is_main=True, wait=wait, samples=looks, counters=measured)
    return process([one], pid=pid, exe="/usr/bin/python3")


def job(
    *ranks: Process, window: bool = True, branches: Optional[Dict[str, Dict[int, Tuple[int, ...]]]] = None
) -> Evidence:
    known = evidence(*ranks, window=1.0 if window else None, kind="timeout" if window else "core")
    return changed(known, branches=branches or {})


def test_the_rank_that_went_another_way_leads() -> None:
    """One saves, the others average: both lines are named, the rarer first, and the condition before the place where their
    ways part."""
    known = job(
        rank(1, "barrier", 40), rank(2, "all_reduce", 50), rank(3, "all_reduce", 50), branches={APP: {40: (38,)}}
    )
    report = next(f for f in classify(known).findings if f.pattern == "collective-mismatch")
    assert report.confidence == "likely" and [c.line for c in report.culprits] == [40, 50, 38]
    assert "1 waits in barrier and 2 wait in all_reduce" in report.summary and len(report.victims) == 3
    assert "service.py:38" in " ".join(report.evidence)


def test_a_straggler_is_none() -> None:
    """All who wait are in one operation at one line, and one is elsewhere: it is said so. One alone is not even that."""
    known = job(rank(1, "barrier", 40), rank(2, "barrier", 40), rank(3, "load", 30, None))
    ruled = {r.pattern: r.because for r in classify(known).ruled_out}
    assert "2 of 3 ranks wait in barrier" in ruled["collective-mismatch"]
    for several in (
        job(rank(1, "barrier", 40), rank(2, "barrier", 40)),
        job(rank(1, "barrier", 40), rank(2, "load", 3)),
    ):
        assert "collective-mismatch" not in found(several)


def test_one_operation_at_two_lines_is_possible() -> None:
    """They may be the same turn of two branches; in a core, where nobody knows whether they stay, it abstains."""
    assert found(job(rank(1, "barrier", 40), rank(2, "barrier", 44)))["collective-mismatch"] == "possible"
    lone = job(rank(1, "barrier", 40, window=False), rank(2, "barrier", 44, window=False), window=False)
    assert "collective-mismatch" in {a.pattern for a in classify(lone).abstained}


def test_different_operations_are_a_mismatch_in_a_core_too() -> None:
    """Ranks in different operations wait for each other for ever, so a core without samples is enough."""
    lone = job(rank(1, "barrier", 40, window=False), rank(2, "all_reduce", 50, window=False), window=False)
    assert found(lone)["collective-mismatch"] == "likely"


@pytest.mark.parametrize(("away", "expected"), [(5, "likely"), (6, "possible")])
def test_who_moves_goes_on_slowly(away: int, expected: str) -> None:
    """Out of the operation in one sample of twenty or more: it comes through."""
    known = job(rank(1, "barrier", 40, away=away), rank(2, "all_reduce", 50))
    assert found(known)["collective-mismatch"] == expected


def test_functions_that_are_only_called_so() -> None:
    """Stages of a pipeline called gather and reduce wait for their input: possible at most, and said why. Those that compute
    or sleep are in no operation; with a library for ranks the names are sure."""
    report = next(
        f for f in classify(job(rank(1, "gather", 40), rank(2, "reduce", 50))).findings if "gather" in f.summary
    )
    assert report.confidence == "possible" and "by their names alone" in " ".join(report.evidence)
    sleeps = Wait("sleep", "nanosleep", timeout_s=60.0)
    assert "collective-mismatch" not in found(job(rank(1, "scan", 40, sleeps), rank(2, "reduce", 50, None)))
    torch = "/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
    known = job(rank(1, "gather", 40, None, comm=torch), rank(2, "reduce", 50, None, comm=torch))
    assert found(known)["collective-mismatch"] == "likely"
