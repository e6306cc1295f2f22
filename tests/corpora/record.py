"""Runs corpus cases for real and compares the diagnosis with their labels; records evidence.json beside them.

    python -m tests.corpora.record [--cases GLOB]... [--python X.Y,X.Y] [--check] [--jobs N] [--measure [--again]]

Prints the verdict against the label, case by case. The exit status is 1 when a case could not be recorded or the
diagnosis does not fit its label. With --check, or with several interpreters, nothing is written beside the cases.
--measure keeps what came out in corpora/measured.json, from which corpora/measured.md is made, and the evidence of the
version that the label names; --again runs only what is not right there yet.
"""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from postmortem import evidence as ev
from ..support.diagnosed import classify

from . import measured
from .cases import Case, all_cases
from .judge import Judgement, judge
from .runs import NotRecorded, parsing, record

#: Those on which the goal is to be reached, of the ones that a label names.
PYTHONS = "3.8,3.11,3.13,3.14"


class Outcome(NamedTuple):
    """``failure``: why there is no judgement."""

    case: Case
    version: str
    judgement: Optional[Judgement]
    failure: Optional[str] = None
    signature: Optional[str] = None
    recorded: Optional[str] = None  # signature of the evidence beside the case

    @property
    def right(self) -> bool:
        return self.judgement is not None and self.judgement.right

    def __str__(self) -> str:
        where = f"{self.case.name} ({self.version})"
        if self.judgement is None:
            return f"{where}: NOT RECORDED: {self.failure}"
        verdict = self.judgement
        culprit = {True: "culprit found", False: "culprit missed", None: ""}[verdict.culprit]
        said = f"{verdict.verdict} ({verdict.confidence})" if verdict.verdict else "silent"
        another = "another signature than recorded" if self.recorded not in (None, self.signature) else None
        return f"{where}: {', '.join(part for part in (said, culprit, verdict.remarks, another) if part)}"

    def as_json(self) -> Dict[str, Any]:
        verdict = self.judgement
        return {
            "kind": self.case.kind, "failure": self.failure,
            "verdict": verdict and verdict.verdict, "confidence": verdict and verdict.confidence,
            "right": self.right, "culprit": verdict and verdict.culprit, "remarks": verdict and verdict.remarks,
            "signature": self.signature, "recorded": self.recorded,
            "false_proofs": list(verdict.false_proofs) if verdict else [], "proof_due": verdict and verdict.proof_due,
        }


def run(case: Case, version: str, keep: bool) -> Outcome:
    try:
        recorded = record(case, version)
    except (NotRecorded, subprocess.TimeoutExpired) as exc:
        return Outcome(case, version, None, str(exc))
    before = classify(ev.decode(case.evidence.read_bytes())).signature if case.evidence.exists() else None
    if keep:
        case.evidence.write_bytes(recorded)
    diagnosis = classify(ev.decode(recorded))
    with parsing:
        judgement = judge(case, diagnosis)
    return Outcome(case, version, judgement, None, diagnosis.signature, before)


def _wanted(globs: Sequence[str], pythons: Optional[str]) -> List[Tuple[Case, str]]:
    """Each case with the interpreters that it is to run on: of those asked for, the ones that its label names."""
    chosen = [case for case in all_cases() if any(fnmatch.fnmatch(case.name, glob) for glob in globs)]
    if pythons is None:
        return [(case, case.recorded_with) for case in chosen]
    return [
        (case, version)
        for version in pythons.split(",")
        for case in chosen
        if version in case.pythons and case.record != "synthesised"
    ]


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpora.record", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", action="append", metavar="GLOB", help="pattern/case, such as 'sleeping/*'")
    parser.add_argument("--python", metavar="X.Y,…", help="instead of the version in case.toml")
    parser.add_argument("--check", action="store_true", help="compare with the labels, write nothing")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many cases side by side")
    parser.add_argument("--measure", action="store_true", help="keep the outcomes in corpora/measured.json")
    parser.add_argument("--again", action="store_true", help="only what is not right there")
    options = parser.parse_args(argv)
    wanted = _wanted(options.cases or ["*"], options.python or (PYTHONS if options.measure else None))
    if options.again:
        before = measured.read()
        wanted = [(c, v) for c, v in wanted if not measured.is_right(before.get(measured.key(c.name, v)))]
    if not wanted:
        parser.error(f"no case is named {', '.join(options.cases or ['*'])}, or nothing of it is left to run")
    keep = not (options.check or options.measure) and (options.python is None or "," not in options.python)
    outcomes: List[Outcome] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda one: run(one[0], one[1], keep or (options.measure and one[1] == one[0].recorded_with)), wanted):
            print(outcome, flush=True)
            outcomes.append(outcome)
            if options.measure:
                measured.note(measured.key(outcome.case.name, outcome.version), outcome.as_json())
    good = sum(outcome.right for outcome in outcomes)
    print(f"{good} of {len(outcomes)} as labelled")
    return 0 if good == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
