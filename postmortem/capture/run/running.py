"""The check that ``--pid`` names a process that can be captured (proc(5))."""

# pathlib would take longer to import than everything else here:
# ruff: noqa: PTH112

from __future__ import annotations

import os

from ... import errors
from ..procfs import parsers


def check(pid: int) -> None:
    """Raise CaptureFailed for a thread, a kernel thread or a missing process, with what to name instead."""
    try:
        leader = int(parsers.status(f"/proc/{pid}")["Tgid"])
        stat = parsers.stat(f"/proc/{pid}")
    except (OSError, KeyError, ValueError, IndexError):
        if not os.path.isdir(f"/proc/{pid}"):
            raise errors.CaptureFailed(f"there is no process {pid}", "ps -ef lists all processes") from None
        return  # the capture finds out what it can read
    if leader != pid:  # a thread has a folder below /proc too, in no listing
        raise errors.CaptureFailed(f"{pid} is a thread of process {leader}", f"postmortem capture --pid {leader}")
    if stat.is_kernel_thread:
        raise errors.CaptureFailed(f"{pid} is a kernel thread: there is nothing to capture")
