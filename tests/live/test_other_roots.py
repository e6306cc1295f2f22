"""Processes in namespaces of their own, with another root: a container without a container engine.

The root holds an interpreter and what it links. Under the same names this machine has *other* files: whoever takes the
host's finds a wrong program, wrong symbols and wrong source lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from ..support.capturing import HANG_S, environment
from ..support.otherroots import PROGRAM, Root, capture, other_root, running  # noqa: F401 - a fixture

pytestmark = pytest.mark.live


def report_of(bundle: Path) -> Dict[str, Any]:
    loaded: Dict[str, Any] = json.loads((bundle / "report.json").read_bytes())
    return loaded


def judge(report: Dict[str, Any], root: Root) -> None:
    """Complete stacks, named native frames down to the first, the right lines, the child, the verdict."""
    assert report["verdict"] == "lock-order-deadlock", report["findings"]
    assert report["findings"][0]["confidence"] == "proven"
    assert {culprit["source"].strip() for culprit in report["findings"][0]["culprits"]} <= {"with other:", "with one:"}
    process = next(p for p in report["processes"] if p["argv"][1:] == [str(root.program)])
    assert process["own_pid"] == 1
    child = next(p for p in report["processes"] if p["ppid"] == process["pid"])
    assert child["own_pid"] not in (None, child["pid"])
    threads = process["threads"]
    assert len(threads) == 3
    for thread in threads:
        assert [frame["function"] for frame in thread["python"]][-1] in ("<module>", "_bootstrap")
        native = thread["native"]
        assert all(frame["function"] for frame in native), native
        assert native[-1]["function"] in ("clone3", "__clone", "clone", "_start"), native
        assert any("PyEval" in frame["function"] for frame in native)
        assert thread["counters"]["voluntary_switches"] is not None
        seen = thread["samples"][0]["frames"]
        assert [(f["file"], f["line"]) for f in seen] == [(f["file"], f["line"]) for f in thread["python"]]
    waits = {thread["tid"]: thread["wait"] for thread in threads}
    assert waits[process["pid"]]["kind"] == "process"
    (waited,) = [r for r in process["resources"] if r["id"] == waits[process["pid"]]["resource"]]
    assert [waker["pid"] for waker in waited["wakers"]] == [child["pid"]]
    mine = {process["pid"], child["pid"]}
    assert [gap for gap in report["gaps"] if any(str(pid) in gap["subject"] for pid in mine)] == []
    assert [gap for gap in report["gaps"] if gap["source"] in ("gdb", "core", "cpython", "files")] == []


@pytest.mark.parametrize("how", ["pivot_root", "chroot"])
def test_a_process_in_namespaces_of_its_own(root: Root, tmp_path: Path, how: str) -> None:
    """As if it were ours; and from the bundle alone as well, when it has ended and its root is gone from our sight."""
    bundle = tmp_path / "bundle"
    with running(root, how) as pid:
        done = capture("--pid", str(pid), "-o", str(bundle))
    assert done.returncode == 0, done.stderr
    assert "in its own pid namespace" in done.stderr
    judge(report_of(bundle), root)
    kept = bundle / "raw" / "roots" / "1"
    assert Path(f"{kept}{root.program}").read_text() == PROGRAM
    (bundle / "evidence.json").unlink()
    command = [sys.executable, "-m", "postmortem", "analyze", "-f", "json", str(bundle)]
    again = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False)
    assert again.returncode == 0, again.stderr
    judge(json.loads(again.stdout), root)


def test_a_command_that_makes_itself_a_container(root: Root, tmp_path: Path) -> None:
    """It is ended before it is diagnosed, and its namespaces with it: the bundle has what is needed."""
    bundle = tmp_path / "bundle"
    done = capture("-t", "3", "-k", "1", "-o", str(bundle), "--", *root.command("pivot_root"))
    assert done.returncode == 124, done.stderr
    judge(report_of(bundle), root)
