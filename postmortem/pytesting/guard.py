"""The plugin in pytest's process: it records what begins and how long it may take, and fails what took longer.

The hooks of every test (``beats``) are a few stores into the shared page. Everything else happens in the watchdog, until
it sends a signal: its handler raises in the main thread, only below pytest's own ``CallInfo.from_call``. The report is
then made by ``reports``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Iterator, List, Optional

import pytest

from . import limits, page
from .beats import Beats
from .leaving import Leaver, leave
from .page import IDLE, LIMITS
from .start import Watchdog, folder

if TYPE_CHECKING:
    from .answer import Answer
    from .reports import Reports

NAME = "postmortem-guard"
_BEATS, _REPORTS = f"{NAME}-beats", f"{NAME}-reports"
#: Code that runs below it may be interrupted; saved before ``beats`` wraps the function.
_PHASE = pytest.CallInfo.from_call.__func__.__code__  # type: ignore[attr-defined]
_DEBUGGERS = ("pydevd", "debugpy", "bdb", "pdb", "ipdb", "_pydevd_bundle", "pudb")

_latest: Optional[Guard] = None


def switch_on(config: pytest.Config, under_way: bool = False) -> None:
    """Register the plugin; raise pytest.UsageError for invalid options.

    In a session that is already ``under_way`` it starts at once.
    """
    global _latest  # noqa: PLW0603 - a process ends once, so one guard watches its exit
    if not under_way and not limits.configured(config).seconds:
        return  # 0 was given: no limit, whatever the ini file says
    nested = _latest is not None and not _latest.finished
    guard = Guard(config, nested)
    if not nested:
        if _latest is not None:
            _latest.close()
        _latest = guard
    config.pluginmanager.register(guard, NAME)
    if under_way:
        guard.start()


class Guard:
    """The plugin of one session. ``nested``: the session runs inside a test of another one, in the same process."""

    def __init__(self, config: pytest.Config, nested: bool) -> None:
        self._config = config
        self._nested = nested
        self.finished = False
        default = limits.configured(config)
        self._limits = limits.Limits(default)
        self._worker: Optional[str] = getattr(config, "workerinput", {}).get("workerid")
        self._collection_s = limits.collection(config, default)
        self._exit_s = limits.at_exit(config, default, self._worker is not None)
        self._watchdog: Optional[Watchdog] = None
        self._beats: Optional[Beats] = None
        self._page: page.Page
        self._least = float("inf")
        # kept here: tests that freeze time replace names in modules
        self._now, self._sleep = time.monotonic, time.sleep
        self._run = ""
        self._status = 1

    # ------------------------------------------------------------------ the session

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Start the watchdog."""
        self.start()

    def start(self) -> None:
        """Start the watchdog, unless it is running, and install the hooks and the signal handler."""
        if self._watchdog is not None:
            return
        self._watchdog = Watchdog(self._config, self._worker)
        self._page = self._watchdog.page
        self._page.words[page.STATUS] = 1
        self._page.begin(IDLE, self._now())
        self._keep_results()
        self._previous: Any = signal.SIG_DFL
        self._beats = Beats(self._page, self._limit_of, self._struck)
        self._config.pluginmanager.register(self._beats, _BEATS)
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(self._watchdog.signal, self._on_signal)
        os.register_at_fork(after_in_child=self._page.detach)  # children are not watched
        if not self._nested:
            self._watch_the_exit()

    def _keep_results(self) -> None:
        """Keep each finished test's JUnit element, if such a file is wanted."""
        journal = None if self._watchdog is None else self._watchdog.journal
        if journal is not None:
            from . import junit  # noqa: PLC0415 - only if such a file is wanted

            writer = junit.find_writer(self._config)
            if writer is not None:
                self._config.pluginmanager.register(junit.Journal(journal.fileno(), writer))

    def _watch_the_exit(self) -> None:
        """Wrap threading._shutdown, which the interpreter calls first when it ends, by that name in all versions."""
        shutdown = threading._shutdown  # type: ignore[attr-defined]

        def watched() -> None:
            threading._shutdown = shutdown  # type: ignore[attr-defined]
            self._exit_begins()
            shutdown()

        threading._shutdown = watched  # type: ignore[attr-defined]

    def _exit_begins(self) -> None:
        """Begin the phase of the interpreter's exit."""
        if self._watchdog is None:
            return
        with contextlib.suppress(ValueError):  # pytest ran in another thread
            signal.signal(self._watchdog.signal, Leaver(self._page).handle)
        self._page.words[page.STATUS] = self._status
        self._page.name("the interpreter's exit")
        self._begin(page.EXIT_PHASE, self._exit_s)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Record the name of the run, shared with the workers, in pytest-xdist's controller."""
        self._run = node.workerinput.get("testrunuid", "")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> Iterator[None]:
        """End the last phase; add hung exits of workers to the results, and fail the session."""
        if self._watchdog is not None:
            self._page.begin(IDLE, self._now())
        yield
        if self._run:
            from . import junit  # noqa: PLC0415

            for found in self._hung_exits():
                if self._watchdog is not None and self._watchdog.xml is not None:
                    junit.add(self._watchdog.xml, found)
                if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                    session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._status = int(session.exitstatus) or 1

    def _hung_exits(self) -> List[Answer]:
        """Return the workers whose exit hung."""
        if not self._run:
            return []
        from .workers import exits  # noqa: PLC0415 - only in pytest-xdist's controller

        return exits(folder(self._config), self._run)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the workers whose exit hung."""
        for found in self._hung_exits():
            terminalreporter.write_sep("=", f"postmortem: worker {found.worker} hangs at its exit", red=True, bold=True)
            terminalreporter.write_line(found.text)
            terminalreporter.write_line(f"FAILED exit of {found.worker} - {found.headline}", red=True)
            terminalreporter.write_line(f"The bundle is kept in {found.bundle}")

    def pytest_unconfigure(self) -> None:
        """Unregister the hooks; the watch over the exit remains, unless nested."""
        self.finished = True
        if self._nested:
            self.close()
        # The watch over the exit keeps this object alive; it needs nothing of the session and its tests.
        if self._beats is not None:
            self._beats.end()
        for name in (_BEATS, _REPORTS):
            if self._config.pluginmanager.hasplugin(name):
                self._config.pluginmanager.unregister(name=name)
        del self._config, self._limits, self._beats

    def close(self) -> None:
        """Stop the watchdog."""
        if self._watchdog is not None:
            self._watchdog.close()
            self._watchdog = None

    # ------------------------------------------------------------------ phases

    def _limit_of(self, item: Any) -> limits.Limit:
        found = self._limits.of(item)
        self._note(found.seconds)
        return found

    def _note(self, seconds: float) -> None:
        """Tell the watchdog of a shorter limit than any before: it sleeps no longer than the shortest one."""
        if 0 < seconds < self._least and self._watchdog is not None:
            self._page.doubles[page.LEAST] = self._least = seconds
            self._watchdog.wake()

    def _begin(self, kind: int, seconds: float) -> None:
        """Begin a phase other than those of a test."""
        self._page.doubles[LIMITS + kind] = seconds
        self._page.begin(kind, self._now())
        self._note(seconds)

    def pytest_collectstart(self, collector: Any) -> None:
        """Begin the collection of a module."""
        if self._watchdog is not None:
            self._page.name(collector.nodeid)
            self._begin(page.COLLECTION, self._collection_s)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: Any) -> None:
        """End the collection of a module, and report if it took too long."""
        if self._watchdog is None:
            return
        if self._page.words[page.STRUCK] == self._page.serial:
            self._reports().of_collection(report)
        self._page.begin(IDLE, self._now())

    def pytest_enter_pdb(self) -> None:
        """Disable the limit of the current phase while a person debugs."""
        if self._watchdog is not None:
            self._page.words[page.DEBUGGED] = self._page.serial

    # ------------------------------------------------------------------ strikes

    def _on_signal(self, number: int, frame: Any) -> None:
        """Handle the watchdog's signal, in the main thread at any place; raise only where that ends a phase."""
        __tracebackhide__ = True
        if self._page.words[page.ORDER] == page.EXIT:
            leave(self._page.words[page.STATUS])
        serial = self._page.serial
        if self._page.words[page.STRUCK] != serial:
            if callable(self._previous):
                self._previous(number, frame)
            return
        if self._page.words[page.DEBUGGED] == serial or _debugged():
            self._page.words[page.DEBUGGED] = serial
            return
        if self._page.words[page.ENDED] != serial and _inside_a_phase(frame):
            raise self._reports().hang()

    def _struck(self) -> None:
        """Request a report of the phase that has just ended."""
        self._reports().due = True

    def _reports(self) -> Reports:
        """Return the plugin that changes reports, registered at the first strike."""
        found: Optional[Reports] = self._config.pluginmanager.get_plugin(_REPORTS)
        if found is None:
            from .reports import Reports  # noqa: PLC0415 - most suites never hang

            found = Reports(self._page, self._now, self._sleep)
            self._config.pluginmanager.register(found, _REPORTS)
        return found


def _inside_a_phase(frame: Any) -> bool:
    """Return whether a frame is below CallInfo.from_call, whose ``except`` catches the exception.

    pytest's own work is not to be interrupted.
    """
    frame = frame.f_back if frame is not None and frame.f_code is not _PHASE else None
    while frame is not None:
        if frame.f_code is _PHASE:
            return True
        frame = frame.f_back
    return False


def _debugged() -> bool:
    """Return whether a debugger steps through this process, by the trace function or sys.monitoring.

    The test is pytest-timeout's.
    """
    trace = sys.gettrace()
    module = getattr(trace, "__module__", None) or getattr(type(trace), "__module__", "")
    if trace is not None and any(part in _DEBUGGERS for part in str(module).split(".")):
        return True
    monitoring: Any = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None
