"""Many damaged inputs, side by side; those that fail are kept as bytes."""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .. import bases
from . import inputs
from .cases import Limits, Outcome, run, worst
from .clean import Clean
from .inputs import Input
from .mutations import damaged


class Done(NamedTuple):
    seed: int
    kind: str
    said: List[str]
    outcomes: List[Outcome]

    @property
    def failure(self) -> Optional[Outcome]:
        return next((one for one in self.outcomes if one.failure is not None), None)


_clean: List[Clean] = []  # made before the children are forked


def run_seed(seed: int, coverage: Optional[Path] = None, limits: Limits = Limits()) -> Done:  # noqa: B008 - a tuple
    given = damaged(_clean[0], seed)
    return Done(seed, given.kind, given.said, run(given, limits, coverage))


def _run(job: Tuple[int, Optional[Path]]) -> Done:
    return run_seed(*job)


def run_all(clean: Clean, seeds: Sequence[int], jobs: int, coverage: Optional[Path] = None) -> Iterator[Done]:
    """In the order of the seeds."""
    _clean[:] = [clean]
    if jobs <= 1:
        yield from map(_run, [(seed, coverage) for seed in seeds])
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        yield from pool.map(_run, [(seed, coverage) for seed in seeds], chunksize=4)


def keep(given: Input, seed: int) -> Path:
    """Writes down a failing case, so that it can be had again whatever becomes of the clean inputs."""
    folder = bases.home() / "failures"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"foreign-{given.kind}-{seed}.json"
    path.write_text(json.dumps(given.to_json()))
    return path


def campaign(count: int, first: int, jobs: int, coverage: Optional[Path]) -> int:
    """Runs and tells; returns the exit status."""
    clean, began = Clean(), time.monotonic()
    failures: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    refused = 0
    slowest: Tuple[float, int] = (0.0, first)
    largest: Tuple[int, int] = (0, first)
    for done in run_all(clean, range(first, first + count), jobs, coverage):
        kinds[done.kind] += 1
        refused += any(one.status == 1 for one in done.outcomes)
        seconds, memory = worst(done.outcomes)
        slowest, largest = max(slowest, (seconds, done.seed)), max(largest, (memory, done.seed))
        if done.failure is not None:
            place = _place(str(done.failure.failure))
            failures[place] += 1
            _show(done, keep(damaged(clean, done.seed), done.seed), failures[place] == 1)
    for place, number in failures.most_common():
        print(f"{number:5} failures: {place}")
    print(
        f"\n{count} cases in {time.monotonic() - began:.0f} s ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})"
    )
    print(f"{sum(failures.values())} failures; {refused} refused in one sentence by some command")
    print(
        f"slowest command: {slowest[0]:.2f} s (seed {slowest[1]}); largest: {largest[0] >> 20} MB (seed {largest[1]})"
    )
    return 1 if failures else 0


def _place(failure: str) -> str:
    """What failures have in common: the innermost line of ours, and the exception."""
    lines = [line.strip() for line in failure.strip().splitlines()] or [""]
    inner = [line for line in lines if line.startswith("File") and "/postmortem/" in line]
    return (inner[-1].rpartition("/postmortem/")[2] + ": " if inner else "") + lines[-1].partition(":")[0][:100]


def _show(done: Done, path: Path, whole: bool) -> None:
    found = done.failure
    assert found is not None
    print(
        f"\nseed {done.seed}, {done.kind}, {found.command}, {found.seconds:.2f} s, {found.memory >> 20} MB: kept in {path}"
    )
    print("  " + "; ".join(done.said)[:300], flush=True)
    if whole:
        print("  " + str(found.failure).strip().replace("\n", "\n  ")[-3000:], flush=True)
    sys.stdout.flush()


def replay(path: Path) -> int:
    """A case that was kept, with what each command says."""
    given = inputs.kept(path)
    outcomes = run(given)
    print("; ".join(given.said))
    for one in outcomes:
        print(f"{one.command}: status {one.status}, {one.seconds:.2f} s, {one.memory >> 20} MB: {one.said}")
        print(one.failure or "ended well")
    return 1 if any(one.failure for one in outcomes) else 0
