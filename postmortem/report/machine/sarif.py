"""SARIF 2.1.0 (OASIS standard of 2020-03-27): findings as results of a code scanner, at the lines to change.

A finding is one result: its location is the first line to change; the other lines and the victims are related locations
(§3.27.12: several locations only if all must be changed). Columns are UTF-16 code units. Files below the root of the
sources are relative to ``%SRCROOT%``, which forges replace by the root of the repository; others have absolute URIs.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple
from urllib.parse import urlsplit

from ...evidence import Evidence, Frame, Process, PythonFrame, Thread
from ...findings import Culprit, Diagnosis, Finding
from .. import escape, grouping
from ..phrases import chains, labels, origins, roles
from ..phrases.culprits import by_place, sufferers, who
from ..result import Result
from . import columns, json_text, paths

Json = Dict[str, Any]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_LEVELS = {"proven": "error", "likely": "warning", "possible": "note"}
_PLACES = 20  # most related locations
_STACKS = 8
_FRAMES = 60
_GAPS = 100
_LONGEST = 8000  # characters of a message


def render(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """Render a target as a log with one run."""
    return _log([_run(evidence, diagnosis)])


def render_many(results: Sequence[Result]) -> str:
    """Render one run per target, distinguished by ``automationDetails``, as consumers of several runs of one tool require."""
    runs = []
    for number, (target, evidence, diagnosis) in enumerate(results, 1):
        name = escape.cut(escape.clean(target), 200).replace("/", "_")
        runs.append({**_run(evidence, diagnosis), "automationDetails": {"id": f"postmortem/{number}-{name}/"}})
    return _log(runs)


def _log(runs: List[Json]) -> str:
    return json_text.dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs})


def _run(evidence: Evidence, diagnosis: Diagnosis) -> Json:
    driver: Json = {"name": "postmortem"}
    if evidence.tool_version:
        driver["version"] = evidence.tool_version
    driver["rules"] = [_rule(finding) for finding in _by_rule(diagnosis.findings)]
    run: Json = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": list(_notifications(evidence, diagnosis))}
        ],
        "results": _Results(evidence, diagnosis).all(),
        "properties": {
            "verdict": diagnosis.verdict,
            "signature": diagnosis.signature,
            "trigger": escape.clean(origins.why(evidence)),
        },
    }
    top = paths.root(evidence)
    if top is not None:
        run["originalUriBaseIds"] = {_ROOT: {"uri": f"{paths.uri(top)}/"}}
    return run


# ---------------------------------------------------------------------- rules


def _by_rule(findings: Sequence[Finding]) -> List[Finding]:
    """Return the first finding of each pattern."""
    found: Dict[str, Finding] = {}
    for finding in findings:
        found.setdefault(finding.pattern, finding)
    return list(found.values())


def _rule(finding: Finding) -> Json:
    see = "".join(f" See {reference}" for reference in finding.references)
    rule: Json = {
        "id": escape.clean(finding.pattern),
        "shortDescription": _message(_first_sentence(finding.explanation)),
        "fullDescription": _message(finding.explanation),
        "help": _message(f"{finding.explanation} What to do: {finding.remedy}{see}"),
        "defaultConfiguration": {"level": _level(finding)},
        "properties": {"tags": ["reliability", "hang"]},
    }
    link = next(filter(_is_link, finding.references), None)
    if link is not None:
        rule["helpUri"] = link
    return rule


def _first_sentence(text: str) -> str:
    return escape.cut(text.partition(". ")[0].rstrip("."), 250) + "."


def _is_link(text: str) -> bool:
    if not text.isascii() or not text.isprintable() or any(ch in text for ch in ' <>"{}|\\^`'):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _level(finding: Finding) -> str:
    return _LEVELS.get(finding.confidence, "note")


def _message(text: str) -> Json:
    """Return a plain text message: brackets would begin a link, braces a placeholder (§3.11.5, §3.11.6)."""
    shown = "\n".join(escape.clean(line) for line in text.split("\n"))
    if len(shown) > _LONGEST:
        shown = shown[: _LONGEST - 1] + "…"
    for mark, meant in (("\\", "\\\\"), ("[", "\\["), ("]", "\\]"), ("{", "{{"), ("}", "}}")):
        shown = shown.replace(mark, meant)
    return {"text": shown or "?"}


# ---------------------------------------------------------------------- results


class _Results:
    """The results of one run."""

    def __init__(self, evidence: Evidence, diagnosis: Diagnosis) -> None:
        self._evidence, self._diagnosis = evidence, diagnosis
        self._rules = [finding.pattern for finding in _by_rule(diagnosis.findings)]
        self._processes: Dict[int, Process] = {process.pid: process for process in evidence.processes}
        self._top = paths.root(evidence)
        self._seen: Dict[str, int] = {}

    def all(self) -> List[Json]:
        """Return a result for each finding, the leading one first."""
        return [self._result(finding, number == 0) for number, finding in enumerate(self._diagnosis.findings)]

    def _result(self, finding: Finding, leads: bool) -> Json:
        places = by_place(finding.culprits)
        said = [finding.summary]
        if places:
            said.append(f"In {places[0][0].function}, {who(places[0])}. {roles.of(self._evidence, places[0])}".rstrip())
        said.append(f"What to do: {finding.remedy}")
        result: Json = {
            "ruleId": escape.clean(finding.pattern),
            "ruleIndex": self._rules.index(finding.pattern),
            "level": _level(finding),
            "message": _message("\n".join(said)),
            "locations": self._somewhere(finding, places),
            "partialFingerprints": {"postmortem/v1": self._fingerprint(finding, leads)},
            "properties": {
                "confidence": escape.clean(finding.confidence),
                "evidence": [escape.clean(fact) for fact in finding.evidence],
                "because_of": [escape.clean(pattern) for pattern in finding.because_of],
            },
        }
        related = self._related(finding, places)
        if related:
            result["relatedLocations"] = [{"id": number, **one} for number, one in enumerate(related, 1)]
        stacks = self._stacks(finding)
        if stacks:
            result["stacks"] = stacks
        flows = [self._flow(way) for way in chains.ways(self._evidence, finding)] if leads else []
        if flows:
            result["codeFlows"] = flows
        return result

    def _fingerprint(self, finding: Finding, leads: bool) -> str:
        """Return the signature for the leading finding; for another one the signature with its pattern, numbered if repeated."""
        signature = escape.clean(self._diagnosis.signature)
        found = signature if leads else f"{signature}/{escape.clean(finding.pattern)}"
        self._seen[found] = self._seen.get(found, 0) + 1
        return found if self._seen[found] == 1 else f"{found}/{self._seen[found]}"

    def _related(self, finding: Finding, places: Sequence[Sequence[Culprit]]) -> List[Json]:
        related = [
            {**self._culprit(members[0]), "message": _message(self._as_well(members))} for members in places[1:_PLACES]
        ]
        for victim in sufferers(finding)[: _PLACES - len(related)]:
            label = labels.label(self._thread(victim.pid, victim.tid), victim.tid, victim.task)
            message = _message(f"also affected: {label} of process {victim.pid}")
            related.append(
                {**self._location(victim.pid, victim.file, victim.line, victim.function), "message": message}
            )
        return related

    def _as_well(self, members: Sequence[Culprit]) -> str:
        return f"also to change: {who(members)}. {roles.of(self._evidence, members)}".rstrip()

    def _thread(self, pid: int, tid: Optional[int]) -> Optional[Thread]:
        process = self._processes.get(pid)
        return next((t for t in process.threads if t.tid == tid), None) if process is not None else None

    # ------------------------------------------------------------------ places

    def _culprit(self, culprit: Culprit) -> Json:
        location = self._location(culprit.pid, culprit.file, culprit.line, culprit.function)
        region = columns.region(self._evidence, culprit)
        if "physicalLocation" in location and region is not None:
            found: Json = {"startLine": region.line}
            if region.column is not None:
                found.update(startColumn=region.column, endLine=region.end_line, endColumn=region.end_column)
            text = self._evidence.sources.get(culprit.file, {}).get(region.line, culprit.source)
            if text is not None and region.end_line in (None, region.line):
                found["snippet"] = {"text": escape.cut(escape.clean(text.strip("\r\n")), 1000)}
            location["physicalLocation"]["region"] = found
        return location

    def _location(self, pid: Optional[int], file: Optional[str], line: Optional[int], function: Optional[str]) -> Json:
        location: Json = {}
        if file is not None and paths.is_file(file):
            physical: Json = {"artifactLocation": self._artifact(pid, file)}
            if line is not None and line > 0:
                physical["region"] = {"startLine": line}
            location["physicalLocation"] = physical
        name = escape.clean(function) if function else None
        if file is not None and not paths.is_file(file):
            name = f"{name or '?'} of {escape.clean(file)}"
        if name:
            location["logicalLocations"] = [{"fullyQualifiedName": escape.cut(name, 1000), "kind": "function"}]
        return location

    def _somewhere(self, finding: Finding, places: Sequence[Sequence[Culprit]]) -> List[Json]:
        """Return the first line to change that is in a file.

        Without one, return a victim's line, the main thread's or the executable: forges refuse a log with a result without a
        location.
        """
        first = [self._culprit(members[0]) for members in places]
        first += [self._location(v.pid, v.file, v.line, v.function) for v in finding.victims]
        pids = [*(c.pid for c in finding.culprits), *(v.pid for v in finding.victims), *self._processes]
        process = self._processes.get(pids[0]) if pids else None
        if process is not None:
            frames = [labels.own_place(thread.python) for thread in process.threads if thread.is_main]
            first += [self._location(process.pid, f.file, f.line, f.function) for f in frames if f is not None]
            if process.exe is not None and process.exe.startswith("/"):
                first.append(self._location(process.pid, process.exe, None, None))
        return [one for one in first if "physicalLocation" in one][:1] or first[:1]

    def _artifact(self, pid: Optional[int], file: str) -> Json:
        name = paths.absolute(file, self._processes.get(pid) if pid is not None else None)
        inside = paths.below(name, self._top)
        if inside is not None:
            return {"uri": paths.uri(inside), "uriBaseId": _ROOT}
        return {"uri": paths.uri(name)}

    # ------------------------------------------------------------------ stacks and flows

    def _stacks(self, finding: Finding) -> List[Json]:
        """Return the stacks of the threads to blame; equal ones once."""
        wanted = dict.fromkeys((c.pid, c.tid) for c in finding.culprits if c.tid is not None)
        found: Dict[Tuple[Frame, ...], Json] = {}
        for pid, tid in wanted:
            thread = self._thread(pid, tid)
            if thread is None or not thread.stack or thread.stack in found or len(found) >= _STACKS:
                continue
            frames = [self._frame(pid, thread.tid, frame) for frame in thread.stack[:_FRAMES]]
            label = f"{labels.label(thread)} of process {pid}"
            found[thread.stack] = {"message": _message(label), "frames": frames}
        return list(found.values())

    def _frame(self, pid: int, tid: int, frame: Frame) -> Json:
        if isinstance(frame, PythonFrame):
            place = self._location(pid, frame.file, frame.line, frame.qualname or frame.function)
        else:  # a relative name is relative to the directory in which that library was built
            known = frame.file if frame.file is not None and frame.file.startswith("/") else None
            place = self._location(pid, known, frame.line, frame.function or f"{frame.address:#x}")
        found: Json = {"threadId": tid, "location": place}
        if frame.module:
            found["module"] = escape.cut(escape.clean(frame.module), 1000)
        return found

    def _flow(self, way: chains.Way) -> Json:
        """Return a wait chain as a code flow."""
        steps = []
        for step in way.steps:
            frame = step.frame
            place = self._location(step.pid, frame.file, frame.line, frame.function) if frame is not None else {}
            steps.append({"location": {**place, "message": _message(step.text)}})
        return {"message": _message("Who waits for whom"), "threadFlows": [{"locations": steps}]}


# ---------------------------------------------------------------------- notifications


def _notifications(evidence: Evidence, diagnosis: Diagnosis) -> Iterable[Json]:
    """Yield gaps, and patterns that they left undecided; and that nothing was found although the program hung."""
    if not diagnosis.findings and evidence.trigger.kind in ("timeout", "stall"):
        yield _note("warning", "no-verdict", f"{origins.why(evidence)} No known pattern was recognised.")
    for members in grouping.gaps(evidence.gaps)[:_GAPS]:
        gap = members[0]
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        remedy = f" Next time: {gap.remedy}" if gap.remedy else ""
        yield _note("warning", f"gap/{gap.source}", f"{gap.source}, {gap.subject}{more}: {gap.reason}.{remedy}")
    for absent in diagnosis.abstained[:_GAPS]:
        text = f"{absent.pattern} could not be decided: it needs {', '.join(absent.missing)}."
        yield _note("note", f"undecided/{absent.pattern}", text)


def _note(level: str, name: str, text: str) -> Json:
    return {"level": level, "descriptor": {"id": escape.cut(escape.clean(name), 200)}, "message": _message(text)}
