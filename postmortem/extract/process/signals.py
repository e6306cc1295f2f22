"""Python functions that the program has set for signals → evidence."""

from __future__ import annotations

import signal
from typing import Any, Collection, List, Optional, Sequence, Tuple

from ...cpython.frames.functions import Functions
from ...cpython.state.interpreter import Python
from ...cpython.state.signals import handlers
from ...evidence import Gap, PythonFrame, SignalHandler, Thread
from ...signalnames import signal_name

#: asyncio's own: what cancels the main task at Ctrl-C, and what stands in for a handler that an event loop calls, of which
#: ``Loop.signals`` tells (Lib/asyncio/runners.py, unix_events.py).
_ASYNCIOS = ("_on_sigint", "_sighandler_noop")
#: Of our own pytest plugin: they end the test that is being looked at, which nothing in it waits for.
_OURS = "/postmortem/pytesting/"
#: Caught by runtimes for themselves, without anything that the program could do then: the interpreter's Ctrl-C,
#: faulthandler (Modules/faulthandler.c, faulthandler_handlers), readline's window size, and glibc's own for cancelling
#: threads and setting ids in all of them (sysdeps/unix/sysv/linux/internal-signals.h: 32 and 33).
_RUNTIMES = frozenset((
    signal.SIGINT, signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGWINCH, 32, 33,
))  # fmt: skip
_SIGNALS = 64


def caught(mask: Any) -> Optional[Tuple[int, ...]]:
    """The signals of a SigCgt (bit N-1 for signal N) that the program itself catches; None when it was not noted."""
    if not isinstance(mask, int) or isinstance(mask, bool):
        return None
    return tuple(number for number in range(1, _SIGNALS + 1) if mask >> number - 1 & 1 and number not in _RUNTIMES)


def signal_handlers(
    python: Optional[Python], gaps: List[Gap], catches: Optional[Collection[int]] = None, threads: Sequence[Thread] = ()
) -> Optional[Tuple[SignalHandler, ...]]:
    """None when it is not known; a process without Python has none. ``catches``: what the kernel says, see ``caught``."""
    if python is None:
        return None
    found = handlers(python)
    if found is None:
        gaps.append(
            Gap(
                "cpython",
                "signal handlers",
                "the interpreter's table of them was not found",
                "take a core with every page (--core sparse)",
                code="no-handler-table",
            )
        )
        return None
    beside = sorted(set(catches or ()) - {handler.signal for handler in found})
    if beside:  # set by C code with sigaction(2): what that does is anybody's guess
        if all(t.wait is not None and t.wait.endless for t in threads):
            names = ", ".join(signal_name(number) for number in beside[:4])
            gaps.append(
                Gap(
                    "cpython",
                    "signal handlers",
                    f"C code catches {names}: what it does then cannot be read",
                    code="native-handlers",
                )
            )
        return None
    functions = Functions(python.frames)
    shown = []
    for handler in found:
        code = functions.code(handler.callable)
        if code is None:
            shown.append(SignalHandler(handler.signal))
        elif _OURS not in code.filename and (code.name not in _ASYNCIOS or "/asyncio/" not in code.filename):
            shown.append(
                SignalHandler(handler.signal, PythonFrame(code.filename, code.firstlineno, code.name, code.qualname))
            )
    return tuple(shown)
