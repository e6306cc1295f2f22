"""The end of a gdb that may not end.

A read of a file system that does not respond (FUSE, NFS) cannot be interrupted, and its process is killed only once
that responds. It is given some time and then left behind.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess

from .. import signalling

#: Seconds that a killed process may take to end.
DIES_S = 5.0


class Child:
    """A gdb in a session of its own, and all processes that it started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._left_behind = False

    def end(self) -> None:
        """Kill the session, unless gdb was waited for: its pid may be reused then."""
        if self._left_behind or self.process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signalling.send_to_group(self.process.pid, signal.SIGKILL)
        self._left_behind = not ended(self.process, DIES_S)


def ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process at most so many seconds; return whether it has ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return True
    return False
