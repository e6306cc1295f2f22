"""The watchdog process: asleep until a limit may have passed; it ends as soon as pytest does.

``start`` runs it without site-packages and the environment's settings (``-I -S``). Modules needed only after a limit has
passed are imported then.
"""

# contextlib.suppress would take a seventh of the start-up time:
# ruff: noqa: SIM105

from __future__ import annotations

import posix as os  # os itself, signal and typing would take as long to import as the interpreter takes to start
import select
import time

from . import page
from .target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    try:  # the C module that `signal` wraps in enumerations
        import _signal as signal
    except ImportError:
        import signal

#: Longest sleep: if the process's end cannot be waited for (Python 3.8), and if it can.
_BLIND_S, _LONGEST_S = 2.0, 60.0
_CONFIRM_S = 0.005
_POSTPONED_S = 1.0
_STDERR = 2
_NOWHERE = "/proc/self/fdinfo"  # as in `programs`, which imports more than this process needs


def main(words: list[str]) -> None:
    """Run the launcher, and the watchdog that it forks.

    ``words``: the JSON of ``start``, the worker's name or "", the pid to watch, and the descriptors of the page and perhaps
    of the journal.
    """
    told, worker, pid, *kept = words
    descriptors = [int(word) for word in kept]
    shared = page.Page(descriptors[0])
    if os.fork():
        until = time.monotonic() + 10.0
        while not shared.words[page.WATCHDOG] and time.monotonic() < until:
            time.sleep(0.001)
        os._exit(0)
    os.setsid()
    os.chdir(_NOWHERE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Watch(shared, told, Target(int(pid)), descriptors, speaks=not worker).run()
    os._exit(0)  # cleaning up would take as long as everything before


class Watch:
    """The watchdog's loop."""

    def __init__(self, shared: page.Page, told: str, target: Target, descriptors: list[int], *, speaks: bool) -> None:
        self._page = shared
        self._told = told
        self._target = target
        self._done = -1  # serial number of the last strike
        self._later: dict[int, float] = {}  # serial number → restart of its time
        reader, writer = os.pipe()
        for end in (reader, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
        self._woken = reader
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN)
        if target.handle is not None:
            self._poll.register(target.handle, select.POLLIN)
        _let_go({reader, writer, target.handle, *descriptors}, speaks)
        shared.words[page.WATCHDOG] = os.getpid()  # from now on signals are handled

    def run(self) -> None:
        """Watch until the process has ended."""
        while self._target.alive:
            wait = self._look()
            if wait > 0:
                self._sleep(wait)

    def _sleep(self, seconds: float) -> None:
        longest = _LONGEST_S if self._target.handle is not None else _BLIND_S
        shortest = self._page.doubles[page.LEAST] or longest  # a phase may begin right now
        self._poll.poll(max(1, round(min(seconds, longest, shortest) * 1000)))
        try:
            os.read(self._woken, 4096)
        except BlockingIOError:
            pass

    def _look(self) -> float:
        """Check the current phase, and strike if its limit has passed; return the seconds until the next check."""
        phase = self._page.phase()
        if phase is None:
            return _CONFIRM_S
        if not phase.limit or phase.serial == self._done:
            return _LONGEST_S
        left = max(phase.start, self._later.get(phase.serial, 0.0)) + phase.limit - time.monotonic()
        if left > 0:
            return left
        time.sleep(_CONFIRM_S)
        again = self._page.phase()
        if again is None or (again.serial, again.start, again.limit) != (phase.serial, phase.start, phase.limit):
            return 0.0
        if self._target.held:
            self._later = {phase.serial: time.monotonic()}  # its whole limit again, from the last time it was held
            return _POSTPONED_S
        self._done = phase.serial
        import json  # noqa: PLC0415 - most watchdogs never need it

        from .strike import strike  # noqa: PLC0415

        told: dict[str, Any] = json.loads(self._told)
        strike(self._page, told, self._target, phase)
        return 0.0


def _let_go(mine: set[int | None], speaks: bool) -> None:
    """Close all inherited descriptors, which belong to pytest's callers: a pipe ends only when no process holds it."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1) if speaks else (0, 1, _STDERR):  # the controller reports for its workers
        os.dup2(nothing, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > _STDERR and int(name) not in mine:
            try:
                os.close(int(name))
            except OSError:
                pass  # the descriptor of the listing itself
