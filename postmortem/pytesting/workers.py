"""Reports in pytest-xdist's controller, from the answers left by its workers' watchdogs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Iterator, List, Optional

from .answer import FILE, Answer
from .start import folder

#: Seconds: an examination takes its time; beyond this no answer will come.
_LONGEST_S = 75.0
_LOOK_S = 0.05


def answers(place: Path, run: str) -> Iterator[Answer]:
    """Yield the answers of one run, sorted by path."""
    for path in sorted(place.glob(f"*/{FILE}")):
        try:
            found = Answer.decode(path.read_bytes())
        except (OSError, ValueError):
            continue
        if found.run == run:
            yield found


def explain_crash(nodeid: str, report: Any) -> None:
    """Extend the report of a test in which a worker died, if its watchdog ended it."""
    node = report.node
    run, worker = node.workerinput.get("testrunuid"), node.gateway.id
    found: Optional[Answer] = None
    for one in answers(folder(node.config), run):
        if one.nodeid == nodeid and one.worker == worker and one.kind != "exit":
            found = one
    if found is None:
        return
    report.longrepr = f"{found.message}\nIt could not be interrupted: worker {worker} was ended and replaced."
    report.when = found.kind
    report.location = (report.location[0], None, ".".join(nodeid.split("::")[1:]))
    report.sections.append(("postmortem", found.text))
    report.user_properties += found.properties
    from .junit import find_writer  # noqa: PLC0415 - workers seldom crash

    writer = find_writer(node.config)
    if writer is not None:  # it takes properties only from a teardown's report
        for name, value in found.properties:
            writer.node_reporter(report).add_property(name, value)


def exits(place: Path, run: str) -> List[Answer]:
    """Wait for pending examinations; return the workers whose exit hung."""
    until = time.monotonic() + _LONGEST_S
    while time.monotonic() < until and any(place.glob(f".looking-{run}-*")):
        time.sleep(_LOOK_S)
    return [one for one in answers(place, run) if one.kind == "exit"]
