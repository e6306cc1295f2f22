"""GitHub's workflow commands: printed in a job, they become annotations at the lines to change.

Form and escapes are those of @actions/core (packages/core/src/command.ts): ``%``, CR and LF as ``%25``, ``%0D`` and
``%0A``, in properties ``:`` and ``,`` as well. A step shows at most ten annotations of each level.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

from ... import runners
from ...evidence import Evidence
from ...findings import Culprit, Diagnosis, Finding
from .. import escape
from ..phrases import origins, roles
from ..phrases.culprits import by_place, who
from ..result import Result
from . import columns, paths

_COMMANDS = {"proven": "error", "likely": "warning", "possible": "notice"}
_PLACES = 4  # of the leading finding
_OTHERS = 5  # other findings, one place each
_LONGEST = 4000  # characters of a message


def render(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """Render one command per line; without a finding, a single one that says so and names no line of code."""
    return "".join(f"{line}\n" for line in _annotations(evidence, diagnosis))


def render_many(results: Sequence[Result]) -> str:
    """Render the commands of several targets."""
    return "".join(render(evidence, diagnosis) for _, evidence, diagnosis in results)


def _annotations(evidence: Evidence, diagnosis: Diagnosis) -> Iterator[str]:
    if not diagnosis.findings:
        ended = evidence.trigger.kind in ("timeout", "stall")
        message = f"{origins.why(evidence)} No known pattern was recognised."
        yield _command("error" if ended else "notice", "postmortem: no verdict", None, [message])
        return
    leading, *others = diagnosis.findings
    members = by_place(leading.culprits)[:_PLACES]
    for culprits in members or [[]]:
        yield _of(evidence, leading, culprits)
    for finding in others[:_OTHERS]:
        yield _of(evidence, finding, (by_place(finding.culprits) or [[]])[0], "notice")


def _of(evidence: Evidence, finding: Finding, culprits: Sequence[Culprit], command: Optional[str] = None) -> str:
    title = f"postmortem: {finding.pattern}, {finding.confidence}"
    lines = [finding.summary]
    where: Dict[str, object] = {}
    if culprits:
        lines.append(f"In {culprits[0].function}, {who(culprits)}. {roles.of(evidence, culprits)}".rstrip())
        where = _where(evidence, culprits[0])
        if not where:
            lines.append(f"At {culprits[0].file}:{culprits[0].line or '?'}.")
    lines.append(f"What to do: {finding.remedy}")
    return _command(command or _COMMANDS.get(finding.confidence, "notice"), title, where, lines)


def _where(evidence: Evidence, culprit: Culprit) -> Dict[str, object]:
    if not paths.is_file(culprit.file):
        return {}
    process = next((p for p in evidence.processes if p.pid == culprit.pid), None)
    name = paths.absolute(culprit.file, process)
    found: Dict[str, object] = {"file": paths.below(name, paths.root(evidence)) or name}
    region = columns.region(evidence, culprit)
    if region is not None:
        found["line"] = region.line
        if region.end_line is not None and region.column is not None:
            found["endLine"] = region.end_line
            if region.end_line == region.line:  # GitHub accepts columns only for a single line
                found["col"], found["endColumn"] = region.column, region.end_column
    return found


def _command(command: str, title: str, where: Optional[Dict[str, object]], lines: List[str]) -> str:
    properties = {**(where or {}), "title": escape.cut(title, 200)}
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    message = "\n".join(escape.clean(line) for line in lines)
    shown = message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"
    return f"::{command} {listed}::{_data(shown)}"


def _data(text: str) -> str:
    return runners.inside(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(escape.clean(text)).replace(":", "%3A").replace(",", "%2C")
