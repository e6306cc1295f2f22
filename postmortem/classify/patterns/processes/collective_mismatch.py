"""The ranks of one job wait in different collective operations.

**What it looks like.** Several processes run the same program. Each is in a collective operation (a barrier, an all-reduce, a
broadcast) that needs all of them, but not all are in the same one; none moves.

**Easily mistaken for** a straggler, which still computes while the others wait in the same operation; a rank that
waits for something else, such as a file.

**Why it hangs.** A collective operation ends when every rank has called it, in the same order. One rank has taken another
branch (a condition that depends on its own data, an exception, one batch more), so that each waits for the others.

**Remedy.** Make every rank take the same branches: decide on values that were exchanged before, pad the last batch, and
let no rank leave a loop alone.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from ....evidence import PythonFrame
from ....findings import Template, Text
from ...facts import clauses
from ...facts.knowledge import is_library
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .ranks import Rank, jobs_of, rank_of, stays

PATTERN = Pattern(
    id="collective-mismatch",
    tier="specific",
    title="ranks of one job wait in different collective operations",
    explanation=(
        "A collective operation (barrier, all-reduce, broadcast …) ends only when every process of the job, every rank, has "
        "called it. Here some ranks are in one and some in another, so that each waits for the others."
    ),
    remedy=(
        "Compare the lines below: somewhere before them the ranks took different branches. Let conditions depend on values "
        "that all ranks share (broadcast the decision), and make loops equally long on every rank."
    ),
    references=("https://pytorch.org/docs/stable/distributed.html", "https://mpi4py.readthedocs.io/en/stable/tutorial.html"),
)  # fmt: skip

_SUMMARY = Template(
    "of {ranks:n rank}, {several: and }, each for the others: {thread} of process {pid} took another branch{site:+, to @}"
)
_SOME_IN = Template("{count} {count:v wait} in {operation}")
_GROUP = Template(
    "{count:n rank} ({count:v process|processes} {pids}) {count:v is|are} in {operation}{site:+, called at @}"
)
_WAKE = Template("some of them wake now and then: they may poll, or make slow progress")
_DECIDED = Template("which way a rank takes depends on {conditions}: compare the outcome on each rank")
_BY_NAME = Template("these are functions of the program, recognised by their names alone: they may do something else")
_ALL_IN_ONE = Template("{waiting} of {ranks} ranks wait in {operation}, and the others are elsewhere")
_WINDOW = Template("an observation window: do the ranks move?")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each job with several ranks in collective operations."""
    for job in jobs_of(view):
        ranks = [rank_of(process) for process in job]
        waiting = [rank for rank in ranks if rank.operation is not None]
        if len(waiting) < 2:
            continue
        operations = {rank.operation for rank in waiting}
        sites = {(r.site.file, r.site.line) for r in waiting if r.site is not None}
        if len(operations) == 1 and len(sites) < 2:
            if len(waiting) < len(ranks):
                yield No(_ALL_IN_ONE(waiting=len(waiting), ranks=len(ranks), operation=waiting[0].operation))
            continue
        moving = [r for r in waiting if not stays(view, r.thread)]
        if view.window is None and len(operations) == 1:
            yield CannotTell((_WINDOW(),))
            continue
        yield _match(view, waiting, len(ranks), bool(moving), len(operations) > 1)


def _match(view: View, ranks: List[Rank], of: int, moving: bool, differ: bool) -> Match:
    groups: Dict[Tuple[Optional[str], Optional[PythonFrame]], List[Rank]] = {}
    for rank in ranks:
        groups.setdefault((rank.operation, rank.site), []).append(rank)
    ordered = sorted(groups.items(), key=lambda item: (len(item[1]), str(item[0][0])))
    facts = [_group(operation, site, several) for (operation, site), several in ordered]
    if moving:
        facts.append(_WAKE())
    decided = _decided(view, [several[0] for _key, several in ordered[:4]])
    if decided:
        facts.append(_DECIDED(conditions=tuple(decided[:3])))
    sure = any(r.sure for r in ranks)
    if not sure:
        facts.append(_BY_NAME())
    first = ordered[0][1][0]
    return Match(
        confidence="likely" if differ and not moving and sure else "possible",
        summary=_SUMMARY(
            ranks=of,
            several=tuple(_SOME_IN(count=len(several), operation=op) for (op, _site), several in ordered[:3]),
            thread=clauses.named(first.thread),
            pid=first.process.pid,
            site=first.site,
        ),
        evidence=tuple(facts),
        culprits=tuple(
            [view.culprit(several[0].process, site, several[0].thread) for (_op, site), several in ordered[:4] if site]
            + [view.culprit(first.process, frame) for frame in decided[:4]]
        ),
        victims=tuple(view.victim(rank.process, rank.thread) for rank in ranks),
        pid=first.process.pid,
    )


def _group(operation: Optional[str], site: Optional[PythonFrame], ranks: List[Rank]) -> Text:
    """Return a text on the ranks that wait in one operation, called at one line."""
    pids = tuple(rank.process.pid for rank in ranks[:8])
    return _GROUP(count=len(ranks), pids=pids, operation=operation, site=site)


def _decided(view: View, ranks: List[Rank]) -> List[PythonFrame]:
    """Return the conditions of the program before the point where the ranks' stacks diverge, the nearest first."""
    stacks = [[f for f in rank.thread.python[::-1] if not is_library(f)] for rank in ranks]
    shared = min((len(stack) for stack in stacks), default=0)
    parting = next((i for i in range(shared) if len({(s[i].file, s[i].line) for s in stacks}) > 1), shared)
    found: List[PythonFrame] = []
    for stack in stacks:
        for frame in reversed(stack[parting:]):
            lines = view.evidence.branches.get(frame.file, {}).get(frame.line or 0, ())
            found += [frame.at(line) for line in lines]
    return list(dict.fromkeys(found))
