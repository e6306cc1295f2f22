"""Python signal handlers of the program as evidence."""

from __future__ import annotations

import signal
from typing import Any, Collection, List, Optional, Sequence, Tuple

from ...cpython.execution.library import Library, Limits
from ...cpython.execution.quiet import Quiet
from ...cpython.frames.functions import Functions
from ...cpython.state.interpreter import Python
from ...cpython.state.signals import handlers
from ...evidence import Gap, PythonFrame, SignalHandler, Thread
from ...signalnames import signal_name
from ...timelimits import TimeLimit

#: asyncio's own: the one that cancels the main task at Ctrl-C, and the placeholder for handlers called by an event
#: loop, which ``Loop.signals`` lists (Lib/asyncio/runners.py, unix_events.py).
_ASYNCIOS = ("_on_sigint", "_sighandler_noop")
#: Handlers of the pytest plugin: they end the examined test, which does not wait for them.
_OURS = "/postmortem/pytesting/"
#: Signals that runtimes catch without any action by the program: the interpreter's Ctrl-C, faulthandler
#: (Modules/faulthandler.c, faulthandler_handlers), readline's window size, and glibc's own for cancelling threads and
#: setting ids in all of them (sysdeps/unix/sysv/linux/internal-signals.h: 32 and 33).
_RUNTIMES = frozenset((
    signal.SIGINT, signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGWINCH, 32, 33,
))  # fmt: skip
_SIGNALS = 64
#: Seconds for the evaluation of one handler; at most 64 signals have one.
_SECONDS = 0.05


def caught(mask: Any) -> Optional[Tuple[int, ...]]:
    """Return the signals of a SigCgt mask (bit N-1 for signal N) that the program catches; None if unknown."""
    if not isinstance(mask, int) or isinstance(mask, bool):
        return None
    return tuple(number for number in range(1, _SIGNALS + 1) if mask >> number - 1 & 1 and number not in _RUNTIMES)


def signal_handlers(
    python: Optional[Python], gaps: List[Gap], catches: Optional[Collection[int]] = None, threads: Sequence[Thread] = ()
) -> Optional[Tuple[SignalHandler, ...]]:
    """Return the program's signal handlers; None if unknown, empty without Python.

    ``catches``: caught signals according to the kernel (``caught``).
    """
    if python is None:
        return None
    found = handlers(python)
    if found is None:
        gaps.append(Gap("cpython", "signal handlers", code="no-handler-table"))
        return None
    beside = sorted(set(catches or ()) - {handler.signal for handler in found})
    if beside:  # set by C code with sigaction(2): the effect is unknown
        if all(t.wait is not None and t.wait.endless for t in threads):
            names = tuple(signal_name(number) for number in beside[:4])
            gaps.append(Gap.of("cpython", "signal handlers", "native-handlers", names=names))
        return None
    functions, library = Functions(python.frames), Library(python.frames, {})
    shown = []
    for handler in found:
        code = functions.code(handler.callable)
        if code is None:
            shown.append(SignalHandler(handler.signal))
        elif _OURS not in code.filename and (code.name not in _ASYNCIOS or "/asyncio/" not in code.filename):
            frame = PythonFrame(code.filename, code.firstlineno, code.name, code.qualname)
            quiet = Quiet(library, Limits(TimeLimit(_SECONDS))).sets_a_flag(handler.callable) or None
            shown.append(SignalHandler(handler.signal, frame, quiet))
    return tuple(shown)
