"""A bundle that is analyzed where the files of its cores are others, or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .test_diagnosis import LEDGER, capture, postmortem

pytestmark = pytest.mark.live


def test_recorded_evidence_is_better_than_cores_without_their_files(tmp_path: Path) -> None:
    """--sysroot that has nothing of them, or --exe of another program: what the capture found stays, and a gap tells
    why; with the right files the same verdict comes from the cores."""
    before = capture(tmp_path, LEDGER)
    assert before["findings"][0]["confidence"] == "proven"
    (tmp_path / "empty").mkdir()
    for words in (("--sysroot", "empty"), ("--exe", "/bin/true", "--sysroot", "empty"), ("--sysroot", "/"), ()):
        done = postmortem("analyze", *words, "-f", "json", "bundle", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        now = json.loads(done.stdout)
        assert (now["signature"], now["findings"][0]["confidence"]) == (before["signature"], "proven"), words
        assert any("recorded at the capture" in gap["reason"] for gap in now["gaps"]) == ("empty" in words)
