"""Whether a report of an application says what is right."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from .specs import Application, State

_MARK = re.compile(r"[ \t]*# HANG (\w+)[ \t]*$")


@dataclass(frozen=True)
class Row:
    """Outcome of one state of one application. ``verdict`` is None where the report is silent."""

    application: str
    state: str
    version: str
    python: str
    tried: str  # the day, ISO 8601
    verdict: Optional[str] = None
    confidence: Optional[str] = None
    line: Optional[str] = None  # file:line of the first culprit
    right: bool = False
    problem: str = ""  # why there is no report, or what is wrong with it

    def to_json(self) -> Dict[str, Any]:
        """As kept in tried.json."""
        return asdict(self)


def marked(folder: Path, state: str) -> Set[Tuple[str, int]]:
    """Return (file name, line) of all lines that are marked ``# HANG state``."""
    lines: Set[Tuple[str, int]] = set()
    for path in sorted(folder.glob("*.py")):
        for number, text in enumerate(path.read_text().splitlines(), 1):
            found = _MARK.search(text)
            if found and found[1] == state:
                lines.add((path.name, number))
    return lines


def unmarked(text: str) -> str:
    """Return a program's text without marks; line numbers stay."""
    return "\n".join(_MARK.sub("", line) for line in text.split("\n"))


def judge(application: Application, state: State, report: Dict[str, Any], work: Path, row: Row) -> Row:
    """Return the row completed by what the report says. ``work`` is the folder that the application ran in."""
    findings: List[Dict[str, Any]] = report["findings"]
    leading = findings[0] if findings else None
    said: Dict[str, Any] = {**row.to_json(), "problem": ""}
    if leading is not None:
        first = next(iter(leading["culprits"]), None)
        said["verdict"], said["confidence"] = leading["pattern"], leading["confidence"]
        said["line"] = None if first is None else f"{Path(first['file']).name}:{first['line']}"
    said["problem"] = _wrong_at_rest(leading, work) if state.idle else _wrong_in_hang(application, state, leading, work)
    said["right"] = not said["problem"]
    return Row(**said)


def _wrong_at_rest(leading: Optional[Dict[str, Any]], work: Path) -> str:
    """Silence is right, and a *possible* that names no line of the application."""
    if leading is None:
        return ""
    if leading["confidence"] != "possible":
        return f"{leading['confidence']}, although the application is well"
    if any(_own(culprit["file"], work) for culprit in leading["culprits"]):
        return "names a line of the application"
    return ""


def _wrong_in_hang(application: Application, state: State, leading: Optional[Dict[str, Any]], work: Path) -> str:
    if leading is None:
        return "silent"
    if leading["pattern"] not in state.accept:
        return f"not {' or '.join(state.accept)}"
    first = next(iter(leading["culprits"]), None)
    if first is None:
        return "names no line"
    if state.typed_file:
        at = state.typed_file in first["file"] and first["line"] == state.typed_line
    else:
        at = _own(first["file"], work) and (
            (Path(first["file"]).name, first["line"]) in marked(application.program, state.name)
        )
    return "" if at else "another line"


def _own(file: str, work: Path) -> bool:
    """Whether a file is the application's own: in its folder, given by its path or, where that is relative, by name."""
    path = Path(file)
    return path.parent == work or (not path.is_absolute() and (work / path).is_file())
