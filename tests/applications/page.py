"""docs/applications.md, made of tried.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

from .judging import Row
from .specs import APPLICATIONS, Application

TRIED = Path(__file__).parent / "tried.json"
PAGE = Path(__file__).parents[2] / "docs" / "applications.md"

_HEAD = """\
# Real applications

Each of these was run unmodified, idle and in two hangs that users report of it, and captured with `postmortem capture --pid`.
An idle application is *right* if the report is silent, or leads with a *possible* finding that names no line of
the application; a hang, if the first finding has the right pattern and its first line is the line to change.
`make applications` tries them anew, before every release; do not edit this page by hand.

"""


def kept() -> List[Row]:
    """Latest outcome of every application and state."""
    return [Row(**row) for row in json.loads(TRIED.read_text())] if TRIED.is_file() else []


def merged(old: Iterable[Row], new: Iterable[Row], applications: Sequence[Application] = APPLICATIONS) -> List[Row]:
    """Return the newest row of every state, in the order of the specification; rows of what is no longer tried go."""
    by_state: Dict[Tuple[str, str], Row] = {(row.application, row.state): row for row in [*old, *new]}
    order = [(application.id, state.name) for application in applications for state in application.states]
    return [by_state[key] for key in order if key in by_state]


def write(rows: Sequence[Row]) -> None:
    """Write tried.json and the page."""
    TRIED.write_text(json.dumps([row.to_json() for row in rows], indent=1) + "\n")
    PAGE.write_text(rendered(rows))


def rendered(rows: Sequence[Row], applications: Sequence[Application] = APPLICATIONS) -> str:
    """The page's text."""
    return _HEAD + "\n".join(_table(rows, applications)) + "\n"


def _table(rows: Sequence[Row], applications: Sequence[Application]) -> Iterator[str]:
    yield f"{sum(row.right for row in rows)} of {len(rows)} are right.\n"
    yield "| application | Python | state | verdict said | right | tried |"
    yield "|---|---|---|---|---|---|"
    states = {
        (application.id, state.name): (application, state)
        for application in applications
        for state in application.states
    }
    named = ""
    for row in rows:
        application, state = states[row.application, row.state]
        title = f"{application.title}, {row.version}" if application.distribution else application.title
        python = row.python
        shown = title if title != named else ""
        named = title
        what = f"idle: {state.does}" if state.idle else state.does
        yield f"| {shown} | {python if shown else ''} | {what} | {said(row)} | {_judged(row)} | {row.tried} |"


def said(row: Row) -> str:
    """Return the verdict of a report in a few words."""
    if row.verdict is None:
        return "not tried" if row.problem and row.problem != "silent" else "nothing"
    at = f", {row.line}" if row.line else ""
    return f"`{row.verdict}`, {row.confidence}{at}"


def _judged(row: Row) -> str:
    return "yes" if row.right else f"**no**: {row.problem}".replace("|", "\\|")
