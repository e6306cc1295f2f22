"""From the first reason to capture to the exit status: captures, the end of the tree, diagnoses, in this order.

A tree that hit a deadline or a stall is ended before its diagnosis, so that the diagnosis competes with nothing. A tree
that continues (after a capture on demand, with ``--pid`` or ``--on-timeout leave``) is diagnosed meanwhile.

A job runner cancels a job with a signal and sends KILL ten seconds later (GitHub: INT, TERM after 7.5 s, KILL after 10;
GitLab, Docker, Kubernetes: TERM, then KILL). After an ending signal everything is shorter: a short window, a copy only
while there is time, and the diagnosis runs while the tree is ended, not after it.
"""

from __future__ import annotations

import copy
import functools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, List, Optional

from ... import errors
from ...bundle import Bundle
from ...narration import Narration
from ...quiet import be_quiet
from ...supervision import Ended, Waiting, run_apart
from ..options import Options
from ..procfs import tree
from . import conclusion, triggers
from .background import Captured, Diagnoses
from .command import HURRY_S, Command, Watch

if TYPE_CHECKING:
    from ..readers import Reader

TIMED_OUT = 124  # as in timeout(1)
_LOOK_S = 1.0
#: Seconds beyond its budget at least before a diagnosing child is killed; and the same after a signal.
_LEAST_S, _PATIENCE_S = 30.0, 3.0
#: Exit status of a diagnosing child that was interrupted by a signal.
_INTERRUPTED = 3
#: Seconds to observe after an ending signal.
_HURRIED_WINDOW_S = 0.5


class Course:
    """One run of ``postmortem capture`` after the command's start.

    - ``diagnose``: the pipeline's diagnose_captured
    - ``reader``: see capture.readers
    """

    def __init__(
        self,
        command: Command,
        options: Options,
        narration: Narration,
        diagnose: Callable[..., object],
        reader: Reader,
    ) -> None:
        self._command = command
        self._options = options
        self._narration = narration
        self._pipeline = diagnose
        self._reader = reader
        self._diagnoses = Diagnoses(command, self._diagnose_beside, narration.say)
        self._count = 0
        self._latest: Optional[Bundle] = None
        self._watched = isinstance(command, Watch)
        self._leaves = self._watched or options.on_timeout == "leave"

    def run(self, reason: Optional[triggers.Trigger] = None) -> int:
        """Capture and diagnose; return the exit status. Raises CaptureFailed.

        ``reason``: capture now; None: wait for a reason.
        """
        if reason is None:
            waiting = triggers.Triggers(self._command, self._options)
            reason = waiting.wait()
            while reason is not None and reason["kind"] == "signal" and self._command.cancelled is None:
                self._on_demand(reason)
                reason = waiting.wait()
            if reason is None:
                return self._as_it_ended()
            if self._command.cancelled is not None:
                return self._on_cancel(reason, self._command.cancelled)
            return self._for_good(reason, waiting.unreadable)
        return self._for_good(reason, [])

    # ------------------------------------------------------------------ captures

    def _on_demand(self, reason: triggers.Trigger) -> None:
        """Capture a command that continues, and may end, meanwhile."""
        self._command.goes_on, self._narration.draws = True, False
        try:
            captured = self._capture(reason)
        except errors.CaptureFailed as exc:
            self._narration.say(exc.sentence())
        else:
            self._beside(captured)
        finally:
            self._command.goes_on, self._narration.draws = False, True

    def _on_cancel(self, reason: triggers.Trigger, number: int) -> int:
        """Capture a job that is being cancelled, perhaps because the command hangs; then end it."""
        self._command.hurry()
        self._options = options = copy.copy(self._options)
        options.observe, options.budget = min(options.observe, _HURRIED_WINDOW_S), min(options.budget, HURRY_S)
        options.signal = number
        left = []
        try:
            captured = self._capture(reason)
            left = [] if self._beside(captured) else [captured]
        except errors.CaptureFailed as exc:
            self._narration.say(exc.sentence())
        finally:
            conclusion.end(self._command, options, self._latest, self._narration.say)
        if left:
            self._diagnose(left)
        return self._as_it_ended()

    def _as_it_ended(self) -> int:
        """Wait for the diagnoses; return the command's status, or end by the signal that killed it."""
        self._diagnoses.wait()
        self._command.end_alike()
        return self._command.status or 0

    def _for_good(self, reason: triggers.Trigger, unreadable: List[int]) -> int:
        """Capture after a deadline or a stall, or a running process; return the exit status."""
        struck = time.monotonic()
        try:
            waiting_for_diagnosis = self._series(reason, unreadable)
            if self._options.on_cancel == "capture" and self._command.asked_to_end():
                self._command.hurry()
            if self._command.hurry_until is not None:
                waiting_for_diagnosis = [each for each in waiting_for_diagnosis if not self._beside(each)]
        finally:
            if not self._leaves:
                conclusion.end(self._command, self._options, self._latest, self._narration.say)
        if self._leaves and not self._watched and self._command.status is None:
            self._narration.say(self._where_it_goes_on())
        self._diagnoses.wait()
        if waiting_for_diagnosis:
            self._diagnose(waiting_for_diagnosis, struck + self._options.budget)
        return 0 if self._watched else TIMED_OUT

    def _series(self, reason: triggers.Trigger, unreadable: List[int]) -> List[Captured]:
        """Make one capture, or as many as requested; return those not yet diagnosed."""
        left: List[Captured] = []
        for index in range(self._options.repeat):
            began = time.monotonic()
            try:
                captured = self._capture(reason, unreadable)
            except errors.CaptureFailed as exc:
                if index == 0:
                    raise
                self._narration.say(exc.sentence())
                break
            if not (self._leaves and self._options.repeat > 1 and self._beside(captured)):
                left.append(captured)
            if index + 1 < self._options.repeat and not self._wait_until(began + (self._options.every or 0.0)):
                self._narration.say(f"the series ends after {index + 1} of {self._options.repeat} captures")
                break
        return left

    def _capture(self, reason: triggers.Trigger, unreadable: Optional[List[int]] = None) -> Captured:
        number = None
        if self._options.numbered:
            number = self._count = conclusion.free_number(self._options, self._count + 1)
        self._command.trigger = reason
        bundle = conclusion.create(self._command, self._options, number, self._narration.say)
        self._latest = bundle
        if unreadable:
            conclusion.note_unreadable(bundle, unreadable)
        try:
            conclusion.fill(
                bundle, self._command, self._options, self._reader, self._narration.say, self._narration.step
            )
        finally:
            self._narration.clear()
        return bundle, number

    def _wait_until(self, moment: float) -> bool:
        """Wait for the next capture of a series; return False when the process has ended, or a signal ends the series."""
        before = tree.look(self._command.pid)
        while self._command.pause(max(min(moment - time.monotonic(), _LOOK_S), 0.0)):
            now = tree.look(self._command.pid)
            if now is None or before is None or now.start != before.start or not now.alive:
                return False
            if time.monotonic() >= moment:
                return True
        return False

    def _where_it_goes_on(self) -> str:
        name = conclusion.program(self._command, self._options)
        end = ", and ends with this container, because postmortem is its first process" if os.getpid() == 1 else ""
        return f"{name} keeps running as process {self._command.pid}{end}"

    # ------------------------------------------------------------------ diagnoses

    def _beside(self, captured: Captured) -> bool:
        """Start a diagnosis in a child process; return False if the caller is to make it later."""
        if self._diagnoses.start(captured, quiet=self._command.hurry_until is None):
            return True
        self._narration.say(f"not diagnosed yet: {_later(captured[0].path)}")
        return self._options.on_signal is not None

    def _prepare(self) -> None:
        conclusion.attend_to_signals(self._command, self._grace_s)
        if self._leaves:  # and no thread is stopped any more
            be_quiet()

    @property
    def _grace_s(self) -> float:
        """Seconds for which a diagnosis continues after the first ending signal."""
        return HURRY_S if self._options.on_cancel == "capture" and self._command.hurry_until is None else 0.0

    def _diagnose(self, several: List[Captured], until: Optional[float] = None) -> None:
        """Diagnose one bundle after the other, each within the budget and in a child of its own.

        ``until``: deadline of the first, in time.monotonic() seconds.
        """
        command, narration = self._command, self._narration
        waiting = Waiting(
            command.next_ending,
            command.collect_helper,
            lambda pid: command.helpers.update({pid: None}),
            _PATIENCE_S + self._grace_s,
        )
        for index, captured in enumerate(several):
            wanted = self._hurried(until or time.monotonic() + self._options.budget)
            until = None
            most = wanted + max(self._options.budget, _LEAST_S)
            try:
                ended = run_apart(
                    functools.partial(self._diagnose_here, captured, self._prepare, wanted), waiting, most
                )
            except OSError:  # no child can be started
                ended = Ended(self._diagnose_here(captured, self._prepare, wanted))
            if ended.status == _INTERRUPTED or ended.asked is not None:
                narration.say(
                    f"interrupted; the capture is kept: {_later(*(bundle.path for bundle, _n in several[index:]))}"
                )
                return
            if ended.reason is not None:
                narration.say(f"the diagnosis {ended.reason}; the capture is kept: {_later(captured[0].path)}")

    def _diagnose_beside(self, captured: Captured, prepare: Callable[[], None]) -> None:
        """Diagnose in a background child; report an interruption."""
        until = self._hurried(time.monotonic() + self._options.budget)
        if self._diagnose_here(captured, prepare, until) == _INTERRUPTED:
            self._narration.say(f"interrupted; the capture is kept: {_later(captured[0].path)}")

    def _diagnose_here(self, captured: Captured, prepare: Callable[[], None], until: float) -> int:
        """Diagnose in this process; return its exit status. Signals interrupt from ``prepare`` on."""
        try:
            prepare()
            self._diagnose_one(captured, until)
            conclusion.ignore_signals()
        except KeyboardInterrupt:
            conclusion.ignore_signals()
            return _INTERRUPTED
        finally:
            self._narration.clear()
        return 0

    def _hurried(self, until: float) -> float:
        """Return the time at which a verdict is wanted, earlier after an ending signal."""
        return min(until, self._command.hurry_until or until)

    def _diagnose_one(self, captured: Captured, until: float) -> None:
        """Diagnose one bundle; a failure is only reported, since the capture is worth more."""
        bundle, number = captured
        path = bundle.path
        narration, options = self._narration, self._options
        narration.step(f"analysing {path}")
        asked = {"with_locals": True} if options.locals else {}
        reports = [_numbered(name, number) for name in options.report]
        try:
            self._pipeline(
                bundle,
                stream=narration.report,
                format=options.format or "text",
                reports=reports,
                progress=narration.draw,
                until=until,
                **asked,
            )
        except errors.PostmortemError as exc:
            narration.say(f"{exc.sentence()}; the capture is kept: {_later(path)}")
        except Exception as exc:
            narration.say(f"the diagnosis failed ({type(exc).__name__}: {exc}); the capture is kept: {_later(path)}")


def _later(*paths: Path) -> str:
    return f"postmortem analyze {' '.join(map(str, paths))}"


def _numbered(name: str, number: Optional[int]) -> str:
    """Return a report's file name for each bundle: hang.json, or hang-1.json, hang-2.json."""
    path = Path(name)
    return name if number is None else str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
