"""Where a core came from, in the reports."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from postmortem.evidence import Origin, decode, encode, replace
from postmortem.report.machine import json_report
from postmortem.report.phrases import origins
from postmortem.report.text import textreport

from ....support.samples import sleeper

FULL = Origin(
    "systemd", "/var/lib/systemd/coredump/core.zst", 4711, "python3", "SIGABRT", 1_700_000_000.0, "web.service", "ada",
    "3f3f3f3f3f3f", 2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("origin", "sentence"),
    [
        (
            FULL,
            "Core of PID 4711 (python3), unit web.service, in container 3f3f3f3f3f3f, on ada, SIGABRT at 2023-11-14 "
            "22:13:20 UTC, from systemd's journal; 2 older ones are left out.",
        ),
        (
            replace(FULL, unit=None, container=None, hostname=None, time=None, others=1),
            "Core of PID 4711 (python3), SIGABRT, from systemd's journal; 1 older one is left out.",
        ),
        (
            replace(FULL, container=None, others=0, trust="copied"),
            "Core of PID 4711 (python3), unit web.service, on ada, SIGABRT at 2023-11-14 22:13:20 UTC, from the journal "
            "given with -D.",
        ),
        (
            Origin("systemd", pid=7, trust="unverified", written_by=1001),
            "Core said to be of PID 7, unverified: user 1001 wrote this into systemd's journal, and nothing shows that it was "
            "systemd-coredump.",
        ),
        (
            Origin("systemd", trust="unverified"),
            "Core, unverified: another program wrote this into systemd's journal, and nothing shows that it was "
            "systemd-coredump.",
        ),
        (Origin("apport"), "Core, from an apport report."),
        (Origin("directory", time=1e30), "Core, the newest in its directory."),
    ],
)
def test_the_sentence(origin: Origin, sentence: str) -> None:
    """What is known, and nothing of what is not."""
    assert origins.sentence(origin) == sentence


def test_both_reports_tell_it() -> None:
    """Text and JSON, by the schema, and the evidence reads it back; control characters are harmless."""
    evidence, diagnosis = sleeper()
    evidence = replace(evidence, origin=replace(FULL, command="a\x1b[2J\nb", trust="verified"))
    assert decode(encode(evidence)).origin == evidence.origin
    shown = textreport.render(evidence, diagnosis, color=False)
    assert "Core of PID 4711 (a\\x1b[2J" in shown
    assert "\x1b" not in shown
    document = json.loads(json_report.render(evidence, diagnosis))
    schema = json.loads((Path(json_report.__file__).parent / "report.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["origin"]["unit"] == "web.service"
