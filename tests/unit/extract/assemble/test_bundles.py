"""What a bundle says beside its cores: where the command ran, and where the sources were checked out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional

import pytest

from tests.support.bundles import evidence_of


@pytest.mark.parametrize(
    ("cwd", "noted", "known", "root"),
    [
        ("/w/repo/src", "/w/repo", "/w/repo/src", "/w/repo"),
        ("/w/repo/src (deleted)", None, None, None),
        (None, 7, None, None),
        ("(unreachable)/w", "repo", None, None),
    ],
)
def test_where_the_command_ran(tmp_path: Path, cwd: Any, noted: Any, known: Optional[str], root: Optional[str]) -> None:
    """Only what is an absolute name of a folder that is there; damaged files say nothing."""
    facts = tmp_path / "raw" / "proc" / "7" / "process.json"
    facts.parent.mkdir(parents=True)
    facts.write_text(json.dumps({"pid": 7, "argv": ["work"], "cwd": cwd}))
    (tmp_path / "manifest.json").write_text(json.dumps({"processes": [7], "checkout": noted}))
    found = evidence_of(tmp_path)
    assert (found.processes[0].cwd, found.checkout) == (known, root)
