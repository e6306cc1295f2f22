"""Steps of a capture that failed or left something out → gaps, one a cause: what fifty processes share is said once."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..evidence import Gap

_PROCESS = re.compile(r"\bprocess (\d+)\b")
#: So many subjects of one cause are named.
_MOST_NAMED = 3


class _Shortcoming(NamedTuple):
    step: str
    subject: str
    reason: str
    remedy: Optional[str]

    @property
    def cause(self) -> Tuple[str, str, Optional[str]]:
        """The same for every process that it befell."""
        pid = _PROCESS.fullmatch(self.subject)
        if pid is None:
            return self.step, self.reason, self.remedy
        number = re.compile(rf"\b{pid[1]}\b")
        remedy = number.sub("PID", self.remedy) if self.remedy else None
        return self.step, number.sub("PID", self.reason), remedy


def step_gaps(manifest: Dict[str, Any]) -> List[Gap]:
    """In the order in which the causes first struck. The manifest may be anything."""
    steps = manifest.get("steps")
    listed = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    replaced = {
        str(step.get("subject")) for step in listed if step.get("step") == "kernel-core" and step.get("ok") is True
    }
    causes: Dict[Tuple[str, str, Optional[str]], List[_Shortcoming]] = {}
    for each in _shortcomings(listed, replaced):
        causes.setdefault(each.cause, []).append(each)
    return [_gap(alike) for alike in causes.values()]


def _shortcomings(steps: List[Dict[str, Any]], replaced: Set[str]) -> Iterator[_Shortcoming]:
    for step in steps:
        name, subject, remedy = str(step.get("step")), str(step.get("subject") or "capture"), step.get("remedy")
        failure = (step.get("error") or "failed") if step.get("ok") is False else None
        if name == "core" and subject in replaced:
            continue  # the kernel has written one
        for reason in (step.get("left_out"), failure):
            if reason:
                yield _Shortcoming(name, subject, str(reason), str(remedy) if remedy else None)


def _gap(alike: List[_Shortcoming]) -> Gap:
    first = alike[0]
    subjects = list(dict.fromkeys(each.subject for each in alike))
    if len(subjects) == 1:
        return Gap(first.step, first.subject, first.reason, first.remedy)
    numbers = [subject.rsplit(" ", 1)[-1] for subject in subjects]
    named = ", ".join(numbers[:_MOST_NAMED])
    more = f" and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else ""
    return Gap(first.step, f"processes {named}{more}", f"{first.reason}; the same of the others", first.remedy)
