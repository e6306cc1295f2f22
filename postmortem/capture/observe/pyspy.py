"""py-spy during the window: Python stacks fifty times a second, without stopping the process (``--nonblocking``).

The chrometrace format keeps microseconds and separates threads. py-spy's output and errors go to files, so that it
writes to no terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

from ... import programs, signalling
from ...bundle import Bundle, Step
from ...foreign.files import read_descriptor
from ...foreign.held import Folder
from ..freeze import refusal
from ..run.command import Command
from . import sampling

RATE_HZ = 50
#: Number of samplers that run at the same time: each costs CPU time of the machine.
MOST = 4
#: Seconds that a sampler may take to write its file after the window.
_PATIENCE_S = 3.0
#: Seconds that it may take when the capture is to end soon.
_HURRIED_PATIENCE_S = 1.0
_NOTHING_YET = (
    "it had not started sampling by the end of the window: it finds no interpreter, or searches a lot of memory"
)
#: Bytes read of a sampler's trace, and of its messages.
_MOST_TRACE, _MOST_SAID = 256 << 20, 1 << 20
_INTERRUPTED = 128 + signal.SIGINT
_MISSING = "py-spy is not installed, so there are no Python stacks from the observation window"
_REMEDY = "run pip install py-spy in postmortem's environment"


def find() -> Optional[str]:
    """Return the path of py-spy: POSTMORTEM_PYSPY, else beside the interpreter (a venv not activated), else on PATH."""
    named = os.environ.get("POSTMORTEM_PYSPY")
    if named:
        return str(Path(named).absolute()) if os.access(named, os.X_OK) else None
    beside = str(Path(sys.executable).with_name("py-spy"))
    return beside if os.access(beside, os.X_OK) else programs.find("py-spy")


class Sampler:
    """A running py-spy, or our own sampler where py-spy cannot read the interpreter. Raises OSError.

    It writes into unnamed files on the bundle's disk, so that no file of it is left behind.
    """

    def __init__(self, program: Optional[str], pid: int, seconds: float, folder: Folder, command: Command) -> None:
        self.pid = pid
        self._command = command
        with contextlib.ExitStack() as undone:
            self._output, self._log = folder.unnamed(), -1
            undone.callback(self.close)
            self._log = folder.unnamed()
            os.set_inheritable(self._output, True)  # py-spy opens the file anew, by this number
            self._spawn(program, pid, seconds, f"/proc/self/fd/{self._output}")
            undone.pop_all()

    def _spawn(self, program: Optional[str], pid: int, seconds: float, output: str) -> None:
        command = self._command
        arguments = stand_in(pid, seconds, output)
        if program is not None:
            arguments = [
                program,
                "record",
                "--pid",
                str(pid),
                "--nonblocking",
                "--idle",
                "--threads",
                "--full-filenames",
                "--format",
                "chrometrace",
                "--rate",
                str(RATE_HZ),
                "--duration",
                str(max(1, int(seconds + 0.999))),
                "--output",
                output,
            ]
        kind = "python" if program is None else "py-spy"
        self.helper = programs.spawn(
            kind,
            arguments,
            env=programs.environment(kind, {"NO_COLOR": "1"}),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, self._log, 1),
                (os.POSIX_SPAWN_DUP2, self._log, 2),
            ],
            setpgroup=0,  # Ctrl-C is for the command and for us
            setsigmask=command.original_mask,
            setsigdef=(signal.SIGINT, signal.SIGPIPE),
        )
        command.helpers[self.helper] = None

    @property
    def status(self) -> Optional[int]:
        """Exit status of the sampler; None while it runs."""
        self._command.reap()
        return self._command.helpers[self.helper]

    def stop(self, number: int) -> None:
        """Send a signal to the sampler if it still runs."""
        if self.status is None:
            signalling.send_to_group(self.helper, number)

    def trace(self) -> bytes:
        """Return the trace written; empty if none."""
        try:
            return read_descriptor(self._output, _MOST_TRACE)
        except OSError:
            return b""

    def close(self) -> None:
        """Close its files."""
        for descriptor in (self._output, self._log):
            if descriptor >= 0:
                os.close(descriptor)
        self._output = self._log = -1

    def complaint(self) -> str:
        """Return the last messages of py-spy, on one line."""
        said = b""
        with contextlib.suppress(OSError):
            said = read_descriptor(self._log, _MOST_SAID)
        lines = [line.strip() for line in said.decode("utf-8", "backslashreplace").splitlines()]
        remarks = [line for line in lines if line and "Sampling process" not in line and "Wrote" not in line]
        reasons = [line for line in remarks if line.startswith(("Error", "Reason"))]
        silent = _NOTHING_YET if self.status == _INTERRUPTED else f"it ended with status {self.status}"
        return " ".join((reasons or remarks)[-2:])[:300] or silent


def stand_in(pid: int, seconds: float, output: str) -> List[str]:
    """Return the command line of our own sampler, run in an interpreter of its own."""
    arguments = [str(pid), str(seconds), str(RATE_HZ), output]
    return programs.python(sampling.__name__, arguments, paths=())


class Samplers:
    """The samplers of the tree's Python processes, at most ``MOST``; any other process gets a failed step."""

    def __init__(self, bundle: Bundle, command: Command) -> None:
        self._bundle = bundle
        self._command = command
        self._running: Dict[int, Sampler] = {}

    def start(self, pids: List[int], seconds: float) -> None:
        """Start a sampler for each process, for so many seconds."""
        program = find()
        for position, pid in enumerate(pids):
            stand_in = position < MOST and sampling.wanted_for(pid)
            if program is None and not stand_in:
                self._refuse(pid, _MISSING, _REMEDY)
            elif position >= MOST:
                self._refuse(
                    pid,
                    f"only {MOST} processes are sampled at a time",
                    f"run postmortem capture --pid {pid} for this one",
                )
            else:
                try:
                    self._running[pid] = Sampler(
                        None if stand_in else program, pid, seconds, self._bundle.folder, self._command
                    )
                except OSError as exc:
                    self._refuse(pid, f"py-spy could not be started: {exc}", _REMEDY)

    def finish(self) -> None:
        """End the samplers, and move their traces into the bundle; py-spy writes its trace at SIGINT."""
        for sampler in self._running.values():
            sampler.stop(signal.SIGINT)
        deadline = time.monotonic() + _PATIENCE_S
        if self._command.hurry_until is not None:
            deadline = min(deadline, time.monotonic() + _HURRIED_PATIENCE_S)
        while any(s.status is None for s in self._running.values()) and time.monotonic() < deadline:
            if not self._command.pause(0.02) and self._command.interrupted is not None:
                break
        for pid, sampler in self._running.items():
            with self._bundle.step("py-spy", f"process {pid}") as step:
                self._collect(sampler, pid, step)
        self.close()

    def close(self) -> None:
        """Kill the samplers that still run, and close their files."""
        for sampler in self._running.values():
            sampler.stop(signal.SIGKILL)
            sampler.close()
        self._running.clear()

    def _collect(self, sampler: Sampler, pid: int, step: Step) -> None:
        status = sampler.status
        data = sampler.trace()
        if data.strip():
            self._bundle.write(f"raw/pyspy/{pid}.chrometrace.json", data)
        elif "ermission" in sampler.complaint():
            step.fail_with(refusal.explain(pid))
        elif status is None:
            said = f"py-spy did not finish in time on process {pid}"
            step.fail("not-sampled", said, f"try py-spy dump --pid {pid} by hand", pid=pid)
        else:
            late = status == _INTERRUPTED
            remedy = "watch it for longer: --observe SECONDS" if late else "postmortem doctor says what is missing"
            step.fail("not-sampled", f"py-spy could not sample process {pid}: {sampler.complaint()}", remedy, pid=pid)

    def _refuse(self, pid: int, error: str, remedy: str) -> None:
        with self._bundle.step("py-spy", f"process {pid}") as step:
            step.fail("not-sampled", error, remedy)
