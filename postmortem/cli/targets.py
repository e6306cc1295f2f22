"""Analysis of several targets: a failure is one sentence, and does not stop the others."""

from __future__ import annotations

import os
import sys
from typing import Callable, Sequence, Tuple

from .. import errors, publish, supervision
from ..evidence import Evidence
from ..findings import Diagnosis
from ..progress import Progress
from ..report.escape import clean

Analyse = Callable[[str], Tuple[Evidence, Diagnosis]]


def each(targets: Sequence[str], analyse: Analyse, plan: publish.Plan, color: str, progress: Progress) -> int:
    """Analyse every target and render the results; return an exit status.

    The status is 1 if a target could not be analysed, 2 if that was wrong usage. This runs in
    a child, and again in a new one when a target ended it (``supervision.supervise``): that target is then reported
    without being analysed, and complaints already printed are not repeated.
    """
    results, status = [], 0
    for index, target in enumerate(targets):
        try:
            supervision.progress.note(index)
            if index in supervision.progress.ended:
                raise errors.PostmortemError(
                    f"{target}: {supervision.progress.ended[index]}", "copy it again from its machine"
                )
            results.append((target, *analyse(target)))
        except errors.PostmortemError as exc:
            status = max(status, exc.status)
            if index >= supervision.progress.told:
                progress.clear()
                complain(exc.sentence(), target if len(targets) > 1 else "")
                for line in exc.known if isinstance(exc, errors.CoreGone) else ():
                    print(f"  {clean(line)}", file=sys.stderr)
        except Exception as exc:  # cores are hostile input: one that triggers a defect must not stop the others
            status = max(status, 1)
            if index >= supervision.progress.told:
                progress.clear()
                complain(defect(exc), target if len(targets) > 1 else "")
    supervision.progress.note(-1)
    progress.clear()
    publish.emit(plan, results, sys.stdout, color=color, many=len(targets) > 1)
    return status


def complain(sentence: str, about: str = "") -> None:
    """Print one line on stderr."""
    prefix = f"postmortem: {clean(about)}" if about else "postmortem"
    print(f"{prefix}: {clean(sentence)}", file=sys.stderr)


def defect(exc: BaseException) -> str:
    """Return the sentence for an unforeseen exception; with POSTMORTEM_DEBUG set, raise it instead."""
    if os.environ.get("POSTMORTEM_DEBUG"):
        raise exc
    return f"{type(exc).__name__}: {exc}; this is a defect of postmortem, POSTMORTEM_DEBUG=1 shows where"
