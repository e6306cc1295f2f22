"""Series of captures: of a running process, after a deadline; what ends one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ..support.capturing import Lines, capture, finished, start, state

pytestmark = pytest.mark.live


def test_a_series_of_a_running_process(tmp_path: Path) -> None:
    """As many bundles as asked for, so far apart, each with its reports; the process runs on."""
    with subprocess.Popen(["sleep", "600"]) as target:
        options = ["--repeat", "3", "--every", "0.6", "--observe", "0.1", "--report", str(tmp_path / "x.json")]
        words = ["--pid", str(target.pid), *options, "-o", str(tmp_path / "bundles")]
        done = finished(start(*words), tmp_path / "bundles")
        assert done.status == 0, done.stderr
        assert state(target.pid) == "S"
        target.kill()
    assert sorted(os.listdir(str(done.bundle))) == ["1", "2", "3"]
    for number in (1, 2, 3):
        assert f"diagnosed {done.bundle / str(number)} as text ['{tmp_path}/x-{number}.json']" in done.stderr
        assert (done.bundle / str(number) / "raw" / "cores" / f"{target.pid}.core").exists()


def test_a_series_ends_with_its_process(tmp_path: Path) -> None:
    """What there is is diagnosed; nothing waits for a process that is gone."""
    with subprocess.Popen(["sleep", "600"]) as target:
        words = ["--pid", str(target.pid), "--repeat", "9", "--every", "1m", "--observe", "0.1"]
        process = start(*words, "-o", str(tmp_path / "bundles"))
        said = Lines(process.stderr)
        said.until("diagnosed")
        target.kill()
        said.until("the series ends after 1 of 9 captures")
    assert finished(process, tmp_path / "bundles").status == 0


def test_a_series_after_a_deadline(tmp_path: Path) -> None:
    """All captures come first, then the end of the tree, then the diagnoses in their order."""
    done = capture(tmp_path, "--repeat", "2", "--every", "1", "--", "sleep", "600")
    assert done.status == 124
    assert sorted(os.listdir(str(done.bundle))) == ["1", "2"]
    places = [done.stderr.index(text) for text in ("into", "stopped", "bundle/2", "diagnosed", "bundle/2 as")]
    assert places == sorted(places)
    second = json.loads((done.bundle / "2" / "manifest.json").read_bytes())
    assert second["steps"][-1]["step"] == "end"
    assert second["trigger"] == {"kind": "timeout", "seconds": 0.5, "signal": None}
    assert state(second["root_pid"]) is None


def test_a_signal_ends_a_series(tmp_path: Path) -> None:
    """It is the deadline that struck: what asks for an end now gets it at once, and the tree with it."""
    words = ["-t", "0.5", "--observe", "0.1", "--repeat", "9", "--every", "1h", "-o", str(tmp_path / "bundles")]
    process = start(*words, "--", "sleep", "600")
    said = Lines(process.stderr)
    said.until("stopped")
    process.terminate()
    said.until("the series ends after 1 of 9 captures")
    said.until("diagnosed")
    done = finished(process, tmp_path / "bundles")
    assert done.status == 124
    assert state(json.loads((done.bundle / "1" / "manifest.json").read_bytes())["root_pid"]) is None
