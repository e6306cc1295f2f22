"""What the watchdog found out about one hang, in words: as a file beside the capture, and through the shared page.

Needs the standard library alone: it is read by pytest's process, by its watchdog and by pytest-xdist's controller.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ..narration import escaped

#: In the bundle; what a controller looks for.
FILE = "pytest.json"
_TEXT_MOST = 100_000  # characters; the page holds what they are in UTF-8 and JSON, unless all are rare ones
_CULPRITS = 4
_WHAT = {
    "setup": "the setup of",
    "call": "",
    "teardown": "the teardown of",
    "collection": "the collection of",
}


class Answer(NamedTuple):
    """``kind`` is one of page.KINDS. ``verdict`` is empty when nothing was recognised, ``bundle`` when none was written.
    ``message`` is what a failure says, ``text`` the whole report. ``run`` and ``worker``: pytest-xdist's, else empty."""

    nodeid: str
    kind: str
    limit: float
    verdict: str
    bundle: str
    message: str
    text: str
    run: str = ""
    worker: str = ""

    @classmethod
    def decode(cls, data: bytes) -> Answer:
        """Raises ValueError."""
        try:
            return cls(**json.loads(data))
        except TypeError as exc:
            raise ValueError(str(exc)) from None

    def encode(self) -> bytes:
        return json.dumps(self._replace(text=self.text[:_TEXT_MOST])._asdict()).encode()

    @property
    def properties(self) -> List[Tuple[str, str]]:
        """For the JUnit file, and whoever else reads the properties of a test."""
        return [("postmortem_bundle", self.bundle), ("postmortem_verdict", self.verdict)]

    @property
    def headline(self) -> str:
        return self.message.partition("\n")[0]

    @property
    def subject(self) -> str:
        """The phase of the test, for a sentence."""
        return " ".join(filter(None, (_WHAT.get(self.kind, ""), self.nodeid)))


def message(kind: str, limit: float, report: Dict[str, Any], bundle: str) -> str:
    """A failure's words: what took too long, why, where to change the code. ``report``: report.json's contents."""
    return shown(_lines(kind, limit, report, bundle))


def failed(kind: str, limit: float, why: str) -> str:
    """The same when there is no diagnosis."""
    return shown([f"{_took(kind, limit)}: not diagnosed", *why.splitlines()])


def shown(lines: Iterable[str]) -> str:
    """Lines of which none moves a terminal, or gives a CI runner orders: names in them are the tests' and their targets'."""
    return "\n".join(escaped(part) for line in lines for part in line.split("\n"))


def _took(kind: str, limit: float) -> str:
    what = {"exit": "the interpreter's exit", "call": "the test"}.get(kind, kind)
    return f"{what} took longer than {limit:g} s"


def _lines(kind: str, limit: float, report: Dict[str, Any], bundle: str) -> Iterator[str]:
    findings: List[Dict[str, Any]] = report.get("findings") or []
    leading = findings[0] if findings and findings[0].get("pattern") == report.get("verdict") else None
    if leading is None:
        yield f"{_took(kind, limit)}: nothing known was recognised"
    else:
        yield f"{_took(kind, limit)}: {leading['pattern']}, {leading['confidence']}"
        yield leading["summary"]
        for culprit in (leading.get("culprits") or [])[:_CULPRITS]:
            source = f": {culprit['source'].strip()}" if culprit.get("source") else ""
            yield f"  {culprit['file']}:{culprit['line']} in {culprit['function']}{source}"
        if leading.get("remedy"):
            yield leading["remedy"]
    yield f"The bundle is kept in {bundle}"
