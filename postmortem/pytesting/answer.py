"""The watchdog's answer about one hang, in words: a file beside the capture, and a message in the shared page.

Needs only the standard library: it is read by pytest's process, its watchdog and pytest-xdist's controller.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from ..narration import escaped

#: Name of the file in the bundle, by which a controller finds it.
FILE = "pytest.json"
_TEXT_MOST = 100_000  # characters; fits the page in UTF-8 and JSON unless most of them are rare ones
_CULPRITS = 4
_WHAT = {
    "setup": "the setup of",
    "call": "",
    "teardown": "the teardown of",
    "collection": "the collection of",
}


class Answer(NamedTuple):
    """The result of the examination of one hang.

    - ``kind``: one of page.KINDS; ``limit``: in seconds.
    - ``verdict``: empty if nothing was recognised; ``bundle``: empty if none was written.
    - ``message``: the failure's message; ``text``: the whole report.
    - ``run``, ``worker``: pytest-xdist's, else empty.
    """

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
        """Decode an answer; raise ValueError if it is damaged."""
        try:
            return cls(**json.loads(data))
        except TypeError as exc:
            raise ValueError(str(exc)) from None

    def encode(self) -> bytes:
        """Encode the answer as JSON, with its text cut to a maximum length."""
        return json.dumps(self._replace(text=self.text[:_TEXT_MOST])._asdict()).encode()

    @property
    def properties(self) -> List[Tuple[str, str]]:
        """Return the properties of the test, for the JUnit file and other readers."""
        return [("postmortem_bundle", self.bundle), ("postmortem_verdict", self.verdict)]

    @property
    def headline(self) -> str:
        """Return the first line of the message."""
        return self.message.partition("\n")[0]

    @property
    def subject(self) -> str:
        """Return the phase of the test, for a sentence."""
        return " ".join(filter(None, (_WHAT.get(self.kind, ""), self.nodeid)))


def message(kind: str, limit: float, report: Dict[str, Any], bundle: str) -> str:
    """Return a failure's message: what took too long, why, and where to change the code.

    ``report``: the contents of report.json.
    """
    return shown(_lines(kind, limit, report, bundle))


def failed(kind: str, limit: float, why: str) -> str:
    """Return a failure's message without a diagnosis."""
    return shown([f"{_took(kind, limit)}: not diagnosed", *why.splitlines()])


def shown(lines: Iterable[str]) -> str:
    """Join lines, escaped so that names of tests and targets control no terminal and no CI runner."""
    return "\n".join(escaped(part) for line in lines for part in line.split("\n"))


def _took(kind: str, limit: float) -> str:
    what = {"exit": "the interpreter's exit", "call": "the test"}.get(kind, kind)
    return f"{what} took longer than {limit:g} s"


def _lines(kind: str, limit: float, report: Dict[str, Any], bundle: str) -> Iterator[str]:
    findings: List[Dict[str, Any]] = report.get("findings") or []
    leading = findings[0] if findings and findings[0].get("pattern") == report.get("verdict") else None
    if leading is None:
        yield f"{_took(kind, limit)}: no known pattern was recognised"
    else:
        yield f"{_took(kind, limit)}: {leading['pattern']}, {leading['confidence']}"
        yield leading["summary"]
        for culprit in (leading.get("culprits") or [])[:_CULPRITS]:
            source = f": {culprit['source'].strip()}" if culprit.get("source") else ""
            yield f"  {culprit['file']}:{culprit['line']} in {culprit['function']}{source}"
        if leading.get("remedy"):
            yield leading["remedy"]
    yield f"The bundle is kept in {bundle}"
