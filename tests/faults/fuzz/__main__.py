"""``python -m tests.faults.fuzz --count 10000``: damaged cores, and how the reader bears them. Ends with 1 on a failure.

The same seed over the same interpreters and cores is the same damage: ``--seed N`` alone runs one case and shows it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import List, Optional, Sequence

from ...interpreters import wanted
from ...support.interpreters import is_read
from . import campaign, flips
from .bases import KINDS, Base, NotTaken, base, home
from .campaign import Done, Tally
from .cases import run
from .foreign import campaign as foreign


def main(words: Optional[Sequence[str]] = None) -> int:
    options = _parser().parse_args(words)
    if options.replay:
        return foreign.replay(options.replay) if options.replay.name.startswith("foreign-") else _replay(options.replay)
    if options.bundles:
        count = options.count or (1 if options.seed is not None else 10_000)
        return foreign.campaign(count, options.seed or 0, options.jobs, options.coverage)
    over = _bases(options.python, options.kind)
    if not over:
        print("there is no interpreter to take a core of; make interpreters", file=sys.stderr)
        return 2
    if options.flips:
        return _flips(over, options.flips, options.seed or 0, options.jobs)
    count = options.count or (1 if options.seed is not None else 10_000)
    first = options.seed or 0
    cases = campaign.spread(over, range(first, first + count), "gdb" if options.gdb else "damage")
    tally = _run(cases, options.jobs)
    _tell(tally)
    return 1 if tally.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, help="how many cases (10000; with --seed 1)")
    parser.add_argument("--seed", type=int, help="the first case's seed (0)")
    parser.add_argument("--python", action="append", help="an interpreter's id, see `make interpreters ARGS=--list`")
    parser.add_argument("--kind", choices=(*KINDS, "both"), default="both", help="who wrote the cores: own or kernel")
    parser.add_argument(
        "--bundles", action="store_true", help="no cores but bundles, archives, crash reports, journals"
    )
    parser.add_argument("--coverage", type=Path, metavar="DIR", help="with --bundles: leave coverage's data there")
    parser.add_argument("--gdb", action="store_true", help="with native stacks: seconds a case")
    parser.add_argument(
        "--flips", type=int, metavar="N", help=f"N trials an interpreter with {flips.BYTES} bytes flipped"
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="a failing case that was kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser


def _bases(ids: Optional[List[str]], kind: str) -> List[Base]:
    """One core of each interpreter and kind; what is not there is named."""
    found = []
    for one in ids or [w.id for w in wanted.MATRIX if is_read(w)]:
        for writer in KINDS if kind == "both" else (kind,):
            try:
                found.append(base(one, writer))
            except NotTaken as exc:
                print(f"{one}, {writer}: {exc}", file=sys.stderr)
    return found


def _run(cases: Sequence[campaign.Case], jobs: int) -> Tally:
    tally, began = Tally(), time.monotonic()
    places: Counter[str] = Counter()
    for number, done in enumerate(campaign.run_all(cases, jobs), 1):
        tally.add(done)
        if done.outcome.failure is not None:
            place = _place(done.outcome.failure)
            places[place] += 1
            _show(done, whole=places[place] == 1)
        if sys.stderr.isatty() and number % 50 == 0:
            print(f"\r{number} of {len(cases)}, {len(tally.failures)} failures", end="", file=sys.stderr)
    for place, count in places.most_common():
        print(f"{count:5} failures: {place}")
    print(f"\n{len(cases)} cases in {time.monotonic() - began:.0f} s, cores in {home()}")
    return tally


def _place(failure: str) -> str:
    """What failures have in common: the last line, or for what takes too long the function it was found in."""
    lines = [line.strip() for line in failure.strip().splitlines()]
    inner = [line for line in lines if line.startswith("File") and "/postmortem/" in line]
    return (inner[-1].rpartition("/postmortem/")[2] + ": " if inner else "") + lines[-1].partition(":")[0]


def _show(done: Done, whole: bool) -> None:
    case = done.case
    path = campaign.keep(done)
    print(f"\nseed {case.seed}, {case.base.python} {case.base.kind}, {done.outcome.seconds:.2f} s: kept in {path}")
    print("  " + "; ".join(campaign.kept(path).damage.said), flush=True)
    if whole:
        print("  " + str(done.outcome.failure).strip().replace("\n", "\n  "), flush=True)


def _tell(tally: Tally) -> None:
    print(
        f"{len(tally.failures)} failures; {tally.refused} refused in one sentence; {tally.same} with the clean verdict"
    )
    for what, done in (("slowest", tally.slowest), ("largest", tally.largest)):
        if done is not None:
            case, outcome = done.case, done.outcome
            where = f"seed {case.seed}, {case.base.python} {case.base.kind}"
            print(f"{what}: {outcome.seconds:.2f} s, {outcome.memory >> 20} MB ({where})")


def _flips(over: Sequence[Base], count: int, first: int, jobs: int) -> int:
    """Each interpreter for itself."""
    status = 0
    for one in over:
        tally = _run([campaign.Case(one, seed, "flips") for seed in range(first, first + count)], jobs)
        share = tally.same / count
        print(f"{one.python} {one.kind}: the same verdict in {tally.same} of {count} trials ({share:.1%})")
        if share < flips.WANTED or tally.failures:
            status = 1
    return status


def _replay(path: Path) -> int:
    found = campaign.kept(path)
    outcome = run(found.base, found.damage, found.with_locals)
    print("; ".join(found.damage.said))
    print(outcome.failure or outcome)
    return 1 if outcome.failure else 0


if __name__ == "__main__":
    sys.exit(main())
