"""What the corpus came to when it was run for real: corpora/measured.json, and corpora/measured.md made of it.

    python -m tests.corpora.measured        writes the page anew

corpora/first.json has the first outcome of each case that was written blind, before its rule was, or had seen it.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .cases import ROOT, Case, all_cases

Outcome = Mapping[str, Any]
RUNS, FIRST, PAGE = ROOT / "measured.json", ROOT / "first.json", ROOT / "measured.md"
TOP1, CULPRIT = 0.95, 0.90


def key(case: str, version: str) -> str:
    return f"{case}@{version}"


def read() -> Dict[str, Dict[str, Any]]:
    """Outcome of the last run of each case, by ``key``."""
    found: Dict[str, Dict[str, Any]] = json.loads(RUNS.read_text("utf-8")) if RUNS.exists() else {}
    return found


def note(name: str, outcome: Outcome) -> None:
    """Keeps one outcome, at once: a run takes long, and may be cut short."""
    found = {**read(), name: dict(outcome)}
    lines = (f"{json.dumps(one)}: {json.dumps(found[one])}" for one in sorted(found))
    RUNS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def is_right(outcome: Optional[Outcome]) -> bool:
    """As labelled, with its line, and nothing false said beside it."""
    return bool(outcome and outcome["right"] and outcome["culprit"] is not False and not outcome["false_proofs"])


class Sums:
    """(how many right, of how many) of some outcomes."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        known = list(outcomes)
        hangs = [one for one in known if one["kind"] == "hang"]
        others = [one for one in known if one["kind"] != "hang"]
        self.top1 = sum(bool(one["right"]) for one in hangs), len(hangs)
        self.culprit = sum(bool(one["culprit"]) for one in hangs), len(hangs)
        self.silent = sum(bool(one["right"]) for one in others), len(others)
        self.false_proofs = sum(bool(one["false_proofs"]) for one in known)

    def row(self, name: str) -> str:
        cells = [share(self.top1), share(self.culprit), share(self.silent), str(self.false_proofs)]
        return f"| {name} | {' | '.join(cells)} |"


def share(pair: Tuple[int, int]) -> str:
    right, of = pair
    return f"{right} of {of} ({100 * right / of:.1f} %)" if of else "none"


def page(runs: Mapping[str, Outcome], first: Mapping[str, Outcome], cases: Iterable[Case]) -> str:
    versions = sorted({name.rpartition("@")[2] for name in runs}, key=lambda v: [int(part) for part in v.split(".")])
    blind = {case.name for case in cases if case.blind}
    last = [outcome for name, outcome in runs.items() if name.rpartition("@")[0] in blind]
    return "\n".join([
        "# The corpus, run for real", "",
        "Written by `python -m tests.corpora.measured` from `measured.json`, which `make corpora ARGS=--measure` keeps: each",
        "program is run on every interpreter named here that its label names, captured or left to crash, and diagnosed.", "",
        "| Python | leading pattern right | culprit on a marked line | healthy and unknown left in peace | false proofs |",
        "|---|---|---|---|---|",
        *(Sums(o for n, o in runs.items() if n.endswith(f"@{version}")).row(version) for version in versions),
        Sums(runs.values()).row("all"), "",
        f"## The {len(blind)} cases that were written blind", "",
        "From the descriptions of the patterns alone, before the rules that find them were written, or had seen them.", "",
        "| score | leading pattern right | culprit on a marked line | healthy and unknown left in peace | false proofs |",
        "|---|---|---|---|---|",
        Sums(first.values()).row("first"), Sums(last).row("last"), "",
        "## What is not as labelled", "",
        "| case | said | remarks |", "|---|---|---|",
        *_misses(runs), "",
    ])


def _misses(runs: Mapping[str, Outcome]) -> List[str]:
    rows = []
    for name, outcome in sorted(runs.items()):
        if not is_right(outcome):
            said = f"{outcome['verdict']} ({outcome['confidence']})" if outcome["verdict"] else "(silent)"
            rows.append(f"| {name} | {said} | {outcome['failure'] or outcome['remarks'] or ''} |".replace("\n", " "))
    return rows


def main() -> int:
    PAGE.write_text(page(read(), json.loads(FIRST.read_text("utf-8")), all_cases()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
