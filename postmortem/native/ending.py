"""How a gdb is ended that may not end: a read of a file system that does not answer (FUSE, NFS) cannot be interrupted, and
what waits in it dies only when that answers. It is given a moment and then left behind."""

from __future__ import annotations

import contextlib
import signal
import subprocess

from .. import signalling

#: Seconds that what was killed may take to end.
DIES_S = 5.0


class Child:
    """A gdb in a session of its own, with whatever it started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._left_behind = False

    def end(self) -> None:
        """Not once it has been waited for: its number may be another's by then."""
        if self._left_behind or self.process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signalling.send_to_group(self.process.pid, signal.SIGKILL)
        self._left_behind = not ended(self.process, DIES_S)


def ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits for a process, so many seconds at most: has it ended?"""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return True
    return False
