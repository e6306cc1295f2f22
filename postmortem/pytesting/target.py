"""The process that runs the tests, as seen by its watchdog."""

from __future__ import annotations

import posix as os  # as in watchdog: os itself takes long to import


class Target:
    """pytest's process, identified by pid and start time."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._start = _stat(pid)[19:20]  # starttime in clock ticks: field 22 of proc(5)
        self.handle: int | None = None
        opener = getattr(os, "pidfd_open", None)
        if opener is not None:
            try:  # noqa: SIM105 - contextlib is slow to import
                self.handle = opener(pid)
            except OSError:
                pass  # kernels before 5.3

    @property
    def alive(self) -> bool:
        """Return whether the process still exists and is no zombie."""
        fields = _stat(self.pid)
        return bool(self._start) and fields[19:20] == self._start and fields[0] not in "ZX"

    @property
    def held(self) -> bool:
        """Return whether the process is stopped or traced, so that its limits are suspended."""
        return _stat(self.pid)[:1] in (["T"], ["t"]) or self._status("TracerPid") not in ("0", "")

    def catches(self, number: int) -> bool:
        """Return whether the process has a handler for a signal."""
        mask = self._status("SigCgt")
        return bool(mask) and bool(int(mask, 16) >> (number - 1) & 1)

    def signal(self, number: int) -> None:
        """Send a signal to the process, if it still exists and may be signalled."""
        from .. import signalling  # noqa: PLC0415 - most watchdogs never need it

        try:  # noqa: SIM105 - as above
            signalling.send(self.pid, int(self._start[0]) if self._start else None, number)
        except OSError:
            pass  # not permitted

    def _status(self, key: str) -> str:
        """Return a field of /proc/PID/status; "" if unknown."""
        try:
            with open(f"/proc/{self.pid}/status", encoding="utf-8", errors="replace") as stream:
                lines = [line.split() for line in stream if line.startswith(f"{key}:")]
        except OSError:
            return ""
        return lines[0][1] if lines else ""


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third, the state, on; ["X"] if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            line = stream.read()
    except OSError:
        return ["X"]
    return line[line.rindex(")") + 2 :].split()
