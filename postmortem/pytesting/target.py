"""The process that runs the tests, as its watchdog sees it."""

from __future__ import annotations

import posix as os  # as in watchdog: os itself takes long to import


class Target:
    """pytest's process, however it ends."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._start = _stat(pid)[19:20]  # starttime, in clock ticks: field 22 of proc(5)
        self.handle: int | None = None
        opener = getattr(os, "pidfd_open", None)
        if opener is not None:
            try:  # noqa: SIM105 - contextlib takes long to import
                self.handle = opener(pid)
            except OSError:
                pass  # a kernel before 5.3

    @property
    def alive(self) -> bool:
        fields = _stat(self.pid)
        return bool(self._start) and fields[19:20] == self._start and fields[0] not in "ZX"

    @property
    def held(self) -> bool:
        """Stopped by its terminal or a signal, or looked at by a debugger: no time passes for it."""
        return _stat(self.pid)[:1] in (["T"], ["t"]) or self._status("TracerPid") not in ("0", "")

    def catches(self, number: int) -> bool:
        mask = self._status("SigCgt")
        return bool(mask) and bool(int(mask, 16) >> (number - 1) & 1)

    def signal(self, number: int) -> None:
        from .. import signalling  # noqa: PLC0415 - most watchdogs never need it

        try:  # noqa: SIM105 - as above
            signalling.send(self.pid, int(self._start[0]) if self._start else None, number)
        except OSError:
            pass  # it may not be signalled

    def _status(self, key: str) -> str:
        try:
            with open(f"/proc/{self.pid}/status", encoding="utf-8", errors="replace") as stream:
                lines = [line.split() for line in stream if line.startswith(f"{key}:")]
        except OSError:
            return ""
        return lines[0][1] if lines else ""


def _stat(pid: int) -> list[str]:
    """The fields from the third on, the state; one that says dead when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            line = stream.read()
    except OSError:
        return ["X"]
    return line[line.rindex(")") + 2 :].split()
