"""Run the whole command, from a program that hangs to its report, as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Optional, Sequence, Tuple

LEDGER = """
import threading
class Account:
    def __init__(self, name): self.name, self.lock = name, threading.Lock()
first, second = Account("first"), Account("second")
both = threading.Barrier(2)
def deposit():
    with first.lock:                 # holds-first
        both.wait()
        with second.lock:            # wants-second
            pass
def withdraw():
    with second.lock:                # holds-second
        both.wait()
        with first.lock:             # wants-first
            pass
tellers = [threading.Thread(target=f, name=f.__name__) for f in (deposit, withdraw)]
for t in tellers: t.start()
while not (first.lock.locked() and second.lock.locked()): pass
import time; time.sleep(0.2)
print("ready", flush=True)
for t in tellers: t.join()
"""


def postmortem(*words: str, cwd: Path, env: Optional[Dict[str, str]] = None) -> subprocess.CompletedProcess[str]:
    """Run the command in ``cwd`` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "postmortem", *words],
        cwd=str(cwd),
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def capture(
    folder: Path, source: str, python: str = sys.executable, seconds: str = "1.5", **env: str
) -> Dict[str, Any]:
    """Return the report.json of a program that a capture ended, after a short look: what it does in time is not the question."""
    (folder / "program.py").write_text(source)
    words = ("capture", "-t", "100", "--stall", seconds, "--observe", "0.3", "-o", "bundle", "--", python, "program.py")
    done = postmortem(*words, cwd=folder, env=env)
    assert done.returncode == 124, done.stderr
    return report(folder / "bundle")


def capture_pid(pid: int, folder: Path, *options: str) -> Dict[str, Any]:
    """Return the report.json of a running process, which goes on; the bundle is ``folder``/bundle."""
    done = postmortem("capture", "--pid", str(pid), *options, "-o", "bundle", cwd=folder)
    assert done.returncode == 0, done.stderr
    return report(folder / "bundle")


def report(bundle: Path) -> Dict[str, Any]:
    """Return the report.json of a bundle."""
    loaded: Dict[str, Any] = json.loads((bundle / "report.json").read_text())
    return loaded


def assert_leads(found: Dict[str, Any], wanted: Tuple[str, Sequence[str]], source: str, mark: str) -> None:
    """Check the leading finding: its pattern, one of some confidences, and the line of the source that ends in ``# mark``."""
    first = next(iter(found["findings"]), None)
    assert first is not None
    assert (first["pattern"], first["confidence"] in wanted[1]) == (wanted[0], True), first
    line = next(n for n, text in enumerate(source.splitlines(), 1) if text.endswith(f"# {mark}"))
    assert line in {culprit["line"] for culprit in first["culprits"]}
