"""A diagnosis against its label, and all of them together as a page to read: ``corpora/confusion.md``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from postmortem.findings import Diagnosis, Finding

from .cases import Case

SILENT = "(silent)"


@dataclass(frozen=True)
class Judgement:
    """What one diagnosis got right. None: the question does not arise."""

    case: Case
    verdict: Optional[str]  # of a hang the report's verdict, otherwise the first claim above *possible*
    confidence: Optional[str]
    right: bool  # a hang: an accepted pattern leads; otherwise: nothing above *possible*
    culprit: Optional[bool]  # a hang: the leading finding names a marked line
    false_claims: Tuple[str, ...]  # above *possible*, though nothing is wrong or the label forbids it
    false_proofs: Tuple[str, ...]  # *proven*, and not true
    proof_due: Optional[bool]  # an expert would call it proven: was it?

    @property
    def remarks(self) -> str:
        said: List[str] = []
        if not self.right:
            said.append("MISSED" if self.case.kind == "hang" else "FALSE ALARM")
        if self.right and self.culprit is False:
            said.append("culprit missed")
        if self.right and self.confidence == "possible":
            said.append("only possible")
        said += [f"claims {pattern}" for pattern in self.false_claims if pattern != self.verdict]
        said += [f"FALSE PROOF of {pattern}" for pattern in self.false_proofs]
        if self.proof_due is False:
            said.append("not proven")
        return ", ".join(said)


def judge(case: Case, diagnosis: Diagnosis) -> Judgement:
    claims = [finding for finding in diagnosis.findings if finding.confidence != "possible"]
    hang = case.kind == "hang"
    leading = next(iter(diagnosis.findings if hang else claims), None)
    verdict = leading.pattern if leading else None
    right = (verdict in case.verdict) if hang else not claims
    true = {*case.verdict, *case.also}
    forbidden = [f.pattern for f in claims if f.pattern in case.must_not or not hang]
    return Judgement(
        case=case,
        verdict=verdict,
        confidence=leading.confidence if leading else None,
        right=right,
        culprit=(right and leading is not None and _names_culprit(case, leading)) if hang else None,
        false_claims=tuple(dict.fromkeys(forbidden)),
        false_proofs=tuple(sorted({f.pattern for f in claims if f.confidence == "proven" and f.pattern not in true})),
        proof_due=(right and leading is not None and leading.confidence == "proven") if case.proven else None,
    )


def _names_culprit(case: Case, finding: Finding) -> bool:
    return any(case.is_culprit(culprit.file, culprit.line) for culprit in finding.culprits)


@dataclass(frozen=True)
class Totals:
    """(how many right, of how many); the last three fields count failures."""

    top1: Tuple[int, int]
    firm: Tuple[int, int]  # of the right ones, above *possible*
    culprit: Tuple[int, int]
    proven: Tuple[int, int]
    silent: Tuple[int, int]  # healthy and unknown programs left in peace
    false_alarms: int  # healthy or unknown, and something is claimed
    false_claims: int  # a hang of which something forbidden is claimed
    false_proofs: int


def totals(judgements: Sequence[Judgement]) -> Totals:
    hangs = [j for j in judgements if j.case.kind == "hang"]
    others = [j for j in judgements if j.case.kind != "hang"]
    due = [j for j in hangs if j.proof_due is not None]
    return Totals(
        top1=(sum(j.right for j in hangs), len(hangs)),
        firm=(sum(j.right and j.confidence != "possible" for j in hangs), sum(j.right for j in hangs)),
        culprit=(sum(bool(j.culprit) for j in hangs), len(hangs)),
        proven=(sum(bool(j.proof_due) for j in due), len(due)),
        silent=(sum(j.right for j in others), len(others)),
        false_alarms=sum(not j.right for j in others),
        false_claims=sum(bool(j.false_claims) for j in hangs),
        false_proofs=sum(bool(j.false_proofs) for j in judgements),
    )


def page(judgements: Sequence[Judgement]) -> str:
    """The confusion matrix as Markdown: totals first, then the matrix, then every case."""
    sums = totals(judgements)
    return "\n".join(
        [
            "# The corpus, replayed",
            "",
            "Written by `make test ARGS='tests/corpora --update'`; a test compares it. A change improves it or leaves it alone.",
            "",
            "| | |",
            "|---|---|",
            f"| leading pattern right | {_share(sums.top1)} |",
            f"| of these above *possible* | {_share(sums.firm)} |",
            f"| culprit on a marked line | {_share(sums.culprit)} |",
            f"| proven where an expert would | {_share(sums.proven)} |",
            f"| healthy and unknown left in peace | {_share(sums.silent)} |",
            f"| false alarms on them | {sums.false_alarms} |",
            f"| hangs of which something false is claimed | {sums.false_claims} |",
            f"| false proofs | {sums.false_proofs} |",
            "",
            "## Label against leading finding",
            "",
            *_matrix(judgements),
            "",
            "## Cases",
            "",
            "| case | leading finding | culprit | remarks |",
            "|---|---|---|---|",
            *(_row(judgement) for judgement in sorted(judgements, key=lambda j: j.case.name)),
            "",
        ]
    )


def _share(pair: Tuple[int, int]) -> str:
    right, all_of_them = pair
    return f"{right} of {all_of_them} ({100 * right / all_of_them:.1f} %)" if all_of_them else "none"


def _matrix(judgements: Sequence[Judgement]) -> List[str]:
    counts: Dict[str, Dict[str, int]] = {}
    for judgement in judgements:
        label = judgement.case.verdict[0] if judgement.case.verdict else judgement.case.kind
        row = counts.setdefault(label, {})
        said = judgement.verdict or SILENT
        row[said] = row.get(said, 0) + 1
    columns = [*sorted({said for row in counts.values() for said in row} - {SILENT}), SILENT]
    lines = ["| label ↓ said → | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for label in sorted(counts, key=lambda name: (name in ("healthy", "unknown"), name)):
        cells = [str(counts[label].get(column, "·")) for column in columns]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return lines


def _row(judgement: Judgement) -> str:
    said = f"{judgement.verdict} ({judgement.confidence})" if judgement.verdict else SILENT
    culprit = {True: "yes", False: "no", None: ""}[judgement.culprit]
    return f"| {judgement.case.name} | {said} | {culprit} | {judgement.remarks} |"
