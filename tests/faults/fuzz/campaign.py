"""Many cases over several base cores, side by side, and what came of them."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence

from . import bases, flips
from .bases import Base
from .cases import SECONDS, TOO_LONG, Outcome, Prepared, prepare, run, seeded
from .damage import Damage

#: How a seed becomes a core's damage and an outcome.
RUNS: Dict[str, Callable[[Prepared, int], Outcome]] = {
    "damage": seeded,
    "gdb": lambda prepared, seed: seeded(prepared, seed, gdb=True),
    "flips": flips.trial,
}


#: Times an undamaged core's: what a damaged one may take on a machine that is slow at the moment.
_SLOWER = 4


class Case(NamedTuple):
    base: Base
    seed: int
    run: str = "damage"


class Done(NamedTuple):
    case: Case
    outcome: Outcome
    same: bool  # the clean core's verdict and confidence


prepared = lru_cache(maxsize=None)(prepare)


def run_case(case: Case) -> Done:
    ready = prepared(case.base)
    outcome = RUNS[case.run](ready, case.seed)
    if case.run == "damage" and outcome.failure is not None and outcome.failure.startswith(TOO_LONG):
        clean = run(case.base, Damage(), with_locals=case.seed % 3 == 0, seconds=20 * SECONDS)
        outcome = seeded(ready, case.seed, seconds=max(SECONDS, _SLOWER * clean.seconds))
    return Done(case, outcome, flips.same(ready, outcome))


def run_all(cases: Sequence[Case], jobs: int) -> Iterator[Done]:
    """In the order in which the cases stand."""
    if jobs <= 1:
        yield from map(run_case, cases)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        yield from pool.map(run_case, cases, chunksize=8)


def spread(over: Sequence[Base], seeds: Iterable[int], run: str = "damage") -> List[Case]:
    """Each seed once, the bases in turn: a seed alone names its case as long as the list of bases is the same."""
    return [Case(over[seed % len(over)], seed, run) for seed in seeds]


class Tally:
    """What is told at the end."""

    def __init__(self) -> None:
        self.done: List[Done] = []

    def add(self, done: Done) -> None:
        self.done.append(done)

    @property
    def failures(self) -> List[Done]:
        return [done for done in self.done if done.outcome.failure is not None]

    @property
    def refused(self) -> int:
        return sum("refused" in done.outcome.answer for done in self.done)

    @property
    def same(self) -> int:
        return sum(done.same for done in self.done)

    @property
    def slowest(self) -> Optional[Done]:
        return max(self.done, key=lambda done: done.outcome.seconds, default=None)

    @property
    def largest(self) -> Optional[Done]:
        return max(self.done, key=lambda done: done.outcome.memory, default=None)


def keep(done: Done, ready: Optional[Prepared] = None) -> Path:
    """Writes down a failing case so that it can be had again whatever the reader then reads."""
    case = done.case
    folder = bases.home() / "failures"
    folder.mkdir(parents=True, exist_ok=True)
    ready = ready or prepared(case.base)
    damage = flips.flipped(ready, case.seed) if case.run == "flips" else ready.mutator.damage(case.seed)
    path = folder / f"{case.base.python}-{case.base.kind}-{case.seed}.json"
    told = {
        "core": str(case.base.core),
        "python": case.base.python,
        "kind": case.base.kind,
        "locals": case.run != "flips" and case.seed % 3 == 0,
        **damage.to_json(),
    }
    path.write_text(json.dumps(told))
    return path


class Kept(NamedTuple):
    base: Base
    damage: Damage
    with_locals: bool


def kept(path: Path) -> Kept:
    found = json.loads(path.read_text())
    base = Base(found["python"], found["kind"], Path(found["core"]))
    return Kept(base, Damage.from_json(found), bool(found["locals"]))
