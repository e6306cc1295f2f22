"""Python functions that the program has set for signals → evidence."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ..cpython.functions import Functions
from ..cpython.interpreter import Python
from ..cpython.signals import handlers
from ..evidence import Gap, PythonFrame, SignalHandler

#: asyncio's own: what cancels the main task at Ctrl-C, and what stands in for a handler that an event loop calls, of which
#: ``Loop.signals`` tells (Lib/asyncio/runners.py, unix_events.py).
_ASYNCIOS = ("_on_sigint", "_sighandler_noop")


def signal_handlers(python: Optional[Python], gaps: List[Gap]) -> Optional[Tuple[SignalHandler, ...]]:
    """None when it is not known; a process without Python has none."""
    if python is None:
        return None
    found = handlers(python)
    if found is None:
        gaps.append(Gap("cpython", "signal handlers", "the interpreter's table of them was not found",
                        "take a core with every page (--core sparse)"))  # fmt: skip
        return None
    functions = Functions(python.frames)
    shown = []
    for handler in found:
        code = functions.code(handler.callable)
        if code is None:
            shown.append(SignalHandler(handler.signal))
        elif code.name not in _ASYNCIOS or "/asyncio/" not in code.filename:
            shown.append(
                SignalHandler(handler.signal, PythonFrame(code.filename, code.firstlineno, code.name, code.qualname))
            )
    return tuple(shown)
