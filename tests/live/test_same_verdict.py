"""One hang, looked at in every way: a capture, its bundle where the program is gone, gdb's core, the kernel's core."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest

from postmortem.native import find_gdb

from ..corpora.cases import Case, all_cases
from ..support.diagnosing import postmortem
from ..support.interpreters import Program
from ..support.takingcores import kernel_core

pytestmark = pytest.mark.live

#: Hangs that one core can tell: who holds what, who waits for whom.
TOLD_BY_A_CORE = (
    "lock-order-deadlock/stock-and-orders",
    "self-deadlock/session-table",
    "async-deadlock/account-transfers",
    "missed-wakeup/sales-report",
    "loop-self-wait/price-facade",
)
CASES = [case for case in all_cases() if case.name in TOLD_BY_A_CORE]


def told(report: Dict[str, Any]) -> Tuple[str, str, Set[Tuple[str, int]]]:
    """What leads, how sure, and its lines."""
    first = report["findings"][0]
    return first["pattern"], first["confidence"], {(Path(c["file"]).name, c["line"]) for c in first["culprits"]}


def analyzed(target: Path) -> Dict[str, Any]:
    done = postmortem("analyze", "-f", "json", str(target), cwd=target.parent)
    assert done.returncode == 0, done.stderr
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def gdbs_core(pid: int, path: Path) -> None:
    """What gcore does."""
    gdb = find_gdb()
    assert gdb is not None
    words: List[str] = [str(gdb), "-nx", "-batch", "-p", str(pid), "-ex", f"generate-core-file {path}"]
    subprocess.run(words, check=True, capture_output=True, timeout=120, env={**os.environ, "DEBUGINFOD_URLS": ""})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_the_same(case: Case, tmp_path: Path) -> None:
    """From a capture, from its bundle on a machine without the program, from gcore and from a kernel core: the same pattern,
    the same confidence, the same lines."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    case.copy_to(home)
    source = (home / "program.py").read_text("utf-8")
    with Program(sys.executable, source, home, cwd=home) as program:
        done = postmortem(
            "capture", "--pid", str(program.pid), "--observe", "0.5", "-o", str(tmp_path / "bundle"), cwd=home
        )
        assert done.returncode == 0, done.stderr
        captured = told(json.loads((tmp_path / "bundle" / "report.json").read_text("utf-8")))
        assert captured[0] in case.verdict
        gdbs_core(program.pid, tmp_path / "gcore")
        assert told(analyzed(tmp_path / "gcore")) == captured
        kernels = kernel_core(program, home)
        assert told(analyzed(kernels)) == captured
    shutil.move(str(tmp_path / "bundle"), str(elsewhere / "bundle"))
    shutil.rmtree(home)
    assert told(analyzed(elsewhere / "bundle")) == captured
