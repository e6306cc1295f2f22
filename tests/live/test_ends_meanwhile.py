"""A target that ends while it is captured: the bundle says so, instead of showing less without a word."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List

import pytest

from ..support.capturing import Captured, capture, finished, start
from ..support.interpreters import Program

pytestmark = pytest.mark.live

#: Allows everything but restart_syscall(2) (<linux/filter.h>: load the number; 219? kill the process; allow).
SANDBOXED = """
import ctypes, select, struct, sys
code = struct.pack("<HBBI", 0x20, 0, 0, 0) + struct.pack("<HBBI", 0x15, 0, 1, 219)
code += struct.pack("<HBBI", 0x06, 0, 0, 0x80000000) + struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
kept = ctypes.create_string_buffer(code, len(code))
program = struct.pack("<HxxxxxxQ", 4, ctypes.addressof(kept))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit("no seccomp filter: %d" % ctypes.get_errno())
poll = select.poll()
poll.register(sys.stdin, select.POLLIN)
print("ready", flush=True)
poll.poll()
"""


def _ends(done: Captured) -> List[str]:
    errors = [step["error"] or "" for step in done.steps("processes")]
    return [error for error in errors if "ended while it was being captured" in error]


def test_a_sandbox_that_the_stop_kills_is_told(tmp_path: Path) -> None:
    """Its filter forbids what the kernel restarts poll with; the remedy is to do without a stop, and that helps."""
    with Program(sys.executable, SANDBOXED, tmp_path) as program:
        words = ["--pid", str(program.pid), "--observe", "0.2", "-o"]
        harmless = finished(start(*words, str(tmp_path / "a"), "--core", "none"), tmp_path / "a")
        assert (_ends(harmless), program.process.poll()) == ([], None)
        done = finished(start(*words, str(tmp_path / "b")), tmp_path / "b")
        assert len(_ends(done)) == 1, done.manifest["steps"]
    step = next(step for step in done.steps("processes") if not step["ok"])
    assert "--core none" in step["remedy"]


def test_a_command_that_ends_while_it_is_watched(tmp_path: Path) -> None:
    """One step says it; there is nothing left to copy."""
    looked_at = tmp_path / "bundle" / "raw" / "proc"
    script = f"until [ -e {looked_at}/$$/process.json ]; do sleep 0.02; done"
    done = capture(tmp_path, "--", "sh", "-c", script, timeout=0.3, observe=20)
    assert len(_ends(done)) == 1, done.manifest["steps"]


def test_a_command_that_lives_on_is_not_said_to_have_ended(tmp_path: Path) -> None:
    """Neither is one that the capture itself ends afterwards."""
    assert _ends(capture(tmp_path, "--", "sleep", "600")) == []
