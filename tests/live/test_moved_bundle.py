"""A bundle that is analyzed where the files of its cores are others, or that lacks its end."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from ..support.capturing import HANG_S, start
from ..support.diagnosing import LEDGER, capture, postmortem
from ..support.interpreters import Program

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


def test_a_capture_that_was_killed_says_so(tmp_path: Path) -> None:
    """Before its core, with kill -9: the analysis of what there is tells what is missing."""
    source = "import sys; print('ready', flush=True); sys.stdin.read()"
    with Program(sys.executable, source, tmp_path) as program:
        capturing = start("--pid", str(program.pid), "--observe", "20", "-o", str(tmp_path / "cut"))
        looked_at = tmp_path / "cut" / "raw" / "proc" / str(program.pid) / "process.json"
        until = time.monotonic() + HANG_S
        while not looked_at.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        capturing.kill()
        capturing.communicate()
    done = postmortem("analyze", "-f", "json", "cut", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    gaps = json.loads(done.stdout)["gaps"]
    assert [gap["source"] for gap in gaps if "cut short" in gap["reason"]] == ["capture"]
