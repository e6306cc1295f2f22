"""Diagnoses made while the command continues, each in a child process, one after the other.

Meanwhile the parent goes on waiting for the command and for signals. A child has a process group of its own: Ctrl-C is
for the command.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Callable, Dict, List, Optional, Tuple

from ... import signalling
from ...bundle import Bundle
from ...quiet import be_quiet
from ...supervision import Ended
from .command import Command
from .conclusion import attend_to_signals

Captured = Tuple[Bundle, Optional[int]]  # the bundle, and its number when there are several

#: Most children, running or waiting for their turn.
_MOST = 8
_PATIENCE_S = 3.0


class Diagnoses:
    """The diagnoses of one run.

    - ``diagnose(captured, prepare)``: runs in the child and reports results and failures; calls ``prepare`` first,
      which waits for the child's turn and may raise KeyboardInterrupt
    - ``say``: called with a sentence about a child that ended without a report of its own
    """

    def __init__(
        self, command: Command, diagnose: Callable[[Captured, Callable[[], None]], None], say: Callable[[str], None]
    ) -> None:
        self._command = command
        self._diagnose = diagnose
        self._say = say
        self._children: Dict[int, Bundle] = {}
        #: Read end of a pipe that the latest child holds open until it ends.
        self._turn: Optional[int] = None

    def start(self, captured: Captured, quiet: bool = True) -> bool:
        """Start a child; return False when there are too many already, or fork(2) fails.

        ``quiet``: the child runs at low priority.
        """
        if len(self._running()) >= _MOST:
            return False
        try:
            turn, held = os.pipe()
        except OSError:
            return False
        try:
            pid = os.fork()
        except OSError:
            os.close(turn)
            os.close(held)
            return False
        if pid == 0:
            self._be_the_child(captured, turn, quiet)
        with contextlib.suppress(OSError):  # the child does so too: whichever comes first, it leads a group
            os.setpgid(pid, pid)
        self._command.helpers[pid] = None
        self._children[pid] = captured[0]
        os.close(held)
        if self._turn is not None:
            os.close(self._turn)
        self._turn = turn
        return True

    def wait(self) -> None:
        """Wait until all children have ended; a signal that requests the end ends them too."""
        self._wait()
        for pid, bundle in self._children.items():
            status, number = self._command.collect_helper(pid) or (None, None)
            reason = Ended(status, number).reason
            if reason is not None:
                self._say(f"the diagnosis {reason}; the capture is kept: postmortem analyze {bundle.path}")
        self._children.clear()

    def _wait(self) -> None:
        if self._command.wait_for_helpers(list(self._children)):
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self._running():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signalling.send_to_group(pid, number)
            self._command.interrupted = None
            if self._command.wait_for_helpers(list(self._children), time.monotonic() + _PATIENCE_S):
                return

    def _running(self) -> List[int]:
        self._command.reap()
        return [pid for pid in self._children if self._command.helpers.get(pid) is None]

    def _be_the_child(self, captured: Captured, turn: int, quiet: bool) -> None:
        status = 1
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # a report is written to the terminal from the background
            os.close(turn)
            self._diagnose(captured, lambda: self._prepare(quiet))
            status = 0
        finally:
            os._exit(status)

    def _prepare(self, quiet: bool) -> None:
        attend_to_signals(self._command)
        if self._turn is not None:
            os.read(self._turn, 1)  # nothing is ever written; read(2) returns when the child before this one ends
        if quiet:
            be_quiet()
