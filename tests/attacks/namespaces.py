"""A pid namespace of a test's own, where it hands out process numbers and where process 1 is its own program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Tuple

from ..support.required import lacking

ROOT = Path(__file__).resolve().parents[2]
_UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")
#: ``fork_as(number)``: a fork that gets a certain number, which must be free. Returns like os.fork.
PRELUDE = """
import os, signal, subprocess, sys, time

def fork_as(number):
    for _attempt in range(1000):
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(number - 1))
        child = os.fork()
        if child in (0, number):
            return child
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    raise SystemExit(f"nobody gets the number {number}")

assert os.getpid() == 1, "this is meant for a pid namespace of its own"
"""


def needed() -> None:
    """Skips the test where there are no such namespaces; in CI it fails."""
    try:
        said = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False, text=True)
        missing = said.stderr if said.returncode else ""
    except FileNotFoundError as exc:
        missing = str(exc)
    if missing:
        message = f"no pid namespaces here (sysctl kernel.unprivileged_userns_clone=1, and util-linux): {missing}"
        lacking(message)


def run(program: str, *words: str, timeout: float = 120.0, **settings: Any) -> Tuple[int, str, str]:
    """``program``, after PRELUDE, as process 1; its status and what it wrote. All that it started ends with it."""
    command = [*_UNSHARE, sys.executable, "-c", PRELUDE + program, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=timeout, env=environment, **settings
    )
    return done.returncode, done.stdout, done.stderr
