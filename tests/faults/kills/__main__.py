"""``python -m tests.faults.kills --count 200``: captures and targets killed, jobs cancelled, at random; 1 on a failure."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence

from . import campaign
from .campaign import Outcome
from .target import Target

_THREADS, _HEAP_MB = 60, 300
#: Every so many captures one is killed without looking; the others as soon as they trace.
_BLIND = 3
#: A job's deadline, and the time in which it is cancelled: half of it lies before the deadline.
_DEADLINE_S, _JOB_S = 2.0, 5.0


def main(words: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="trials of each kind (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("postmortem", "target", "job"), help="who is killed (all)")
    options = parser.parse_args(words)
    bad = 0
    kinds: Dict[str, Callable[[Path, int, int], Iterator[Outcome]]] = {
        "postmortem": captures,
        "target": targets,
        "job": jobs,
    }
    for kind, trials in kinds.items():
        if options.only in (None, kind):
            with tempfile.TemporaryDirectory(prefix="kills-") as folder:
                began = time.monotonic()
                bad += _tell(kind, list(_shown(trials(Path(folder), options.count, options.seed))))
                print(f"  {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


def captures(
    folder: Path, count: int, seed: int, threads: int = _THREADS, heap_mb: int = _HEAP_MB
) -> Iterator[Outcome]:
    """postmortem is killed: two of three times while it traces, else at any moment."""
    target = Target(folder, threads, heap_mb)
    try:
        spans = {mode: campaign.measured(folder, target, mode) for mode in ("sparse", "python")}
        shares = campaign.moments(count, 1.0, seed)
        for number, share in enumerate(shares):
            mode, traced = campaign.mode_of(number), number % _BLIND != 0
            after = share * (spans[mode].pause_s if traced else spans[mode].whole_s)
            yield campaign.kill_postmortem(folder, target, mode, after, traced)
    finally:
        target.kill()


def targets(folder: Path, count: int, seed: int, threads: int = _THREADS, heap_mb: int = 50) -> Iterator[Outcome]:
    """The target is killed, in turn under --pid and as a command."""
    target = Target(folder, threads, heap_mb)
    try:
        spans = {mode: campaign.measured(folder, target, mode) for mode in ("sparse", "python")}
    finally:
        target.kill()
    for number, share in enumerate(campaign.moments(count, 1.0, seed)):
        mode = campaign.mode_of(number // 2)
        yield campaign.kill_target(folder, mode, share * spans[mode].whole_s, threads, heap_mb, number % 2 == 0)


def jobs(folder: Path, count: int, seed: int, threads: int = _THREADS, heap_mb: int = _HEAP_MB) -> Iterator[Outcome]:
    """A job is cancelled: TERM, and KILL ten seconds later, from the command's start to the end of the diagnosis."""
    for number, share in enumerate(campaign.moments(count, 1.0, seed)):
        whom, mode = campaign.CANCELLED[number % len(campaign.CANCELLED)], campaign.mode_of(number // 3)
        yield campaign.cancel_job(folder, whom, mode, share * _JOB_S, _DEADLINE_S, threads, heap_mb)


def _shown(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    for outcome in outcomes:
        if outcome.problem:
            print(f"{outcome.mode}, {outcome.after_s:.4f} s: {outcome.problem}", file=sys.stderr, flush=True)
        yield outcome


def _tell(kind: str, outcomes: List[Outcome]) -> int:
    bad = sum(outcome.problem is not None for outcome in outcomes)
    traced = sum(outcome.traced for outcome in outcomes)
    bundles = Counter(outcome.bundle for outcome in outcomes)
    modes = Counter(outcome.mode for outcome in outcomes)
    print(f"{kind} killed {len(outcomes)} times ({_list(modes)}): {bad} failures")
    if kind == "postmortem":
        print(f"  {traced} of them while it traced the target; bundles: {_list(bundles)}")
    if kind == "job":
        print(f"  {traced} of them needed KILL; bundles: {_list(bundles)}")
    return bad


def _list(counts: Dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
