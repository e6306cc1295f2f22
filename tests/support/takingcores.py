"""Take a core of a running program: the kernel's, postmortem's own, gcore's."""

from __future__ import annotations

import resource
import signal
import subprocess
from pathlib import Path

from . import required
from .capturing import finished, start
from .interpreters import Program


def needs_cores() -> None:
    """Skip, in CI fail, unless a crash leaves its core in the working directory."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern != "core":
        required.lacking(f"the kernel's core_pattern is {pattern!r}: cores do not land in the working directory")


def kernel_core(program: Program, folder: Path) -> Path:
    """Abort a program whose working directory is ``folder``; return the core that the kernel writes there."""
    needs_cores()
    resource.prlimit(program.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    program.process.send_signal(signal.SIGABRT)
    program.process.wait(60)
    return next(folder.glob("core*"))


def sparse_core(program: Program, folder: Path) -> Path:
    """Return the core that a capture of the running program writes."""
    done = finished(start("--observe", "0", "-o", str(folder / "b"), "--pid", str(program.pid)), folder / "b")
    assert done.status == 0, done.stderr
    return done.core(program.pid)


def gcore(program: Program, folder: Path) -> Path:
    """Return the core that gdb's generate-core-file writes of the running program."""
    words = [
        str(required.gdb()),
        "-nx",
        "-batch",
        "-p",
        str(program.pid),
        "-ex",
        f"generate-core-file {folder / 'gcore'}",
    ]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    return folder / "gcore"
