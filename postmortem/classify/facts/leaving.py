"""Threads in the exit handlers of the C library, or in the end of the interpreter, and whose code these run."""

from __future__ import annotations

import itertools
import re
from typing import List, NamedTuple, Optional, Tuple

from ...evidence import NativeFrame, Thread
from . import native

#: exit() and what it calls: glibc's stdlib/exit.c, cxa_finalize.c, elf/dl-fini.c; musl's src/exit.
_EXIT = re.compile(
    r"(__GI_)?_*(exit|run_exit_handlers|cxa_finalize|dl_fini|dl_call_fini|funcs_on_exit|libc_exit_fini)(@.*)?$"
)
_LIBC = re.compile(r"/(libc|ld|ld-linux-x86-64|ld-linux-aarch64|ld-musl-\w+)[-.][^/]*$")
#: The end of the interpreter (Python/pylifecycle.c, 3.8 to 3.15), by names that stripped builds export, too.
_FINALIZE = re.compile(r"Py_(FinalizeEx|Finalize)$|_?Py_Finalize\.constprop")
#: A thread that wants the GIL of an interpreter that has ended is hung up for good: Python/thread_pthread.h, 3.14.
_HUNG = re.compile(r"_?PyThread_hang_thread$")


class Leaving(NamedTuple):
    """A thread that ends its process.

    - ``ended``: True in exit handlers; False while the interpreter is still being finalised
    - ``called``: the native frames that were called from there, most recent call first
    """

    ended: bool
    called: Tuple[NativeFrame, ...]

    @property
    def handler(self) -> Optional[NativeFrame]:
        """Return the innermost frame of the library that was called from there; None if that is the C library alone."""
        own = [frame for frame in self.called if native.is_program(frame)]
        named = (frame for frame in own if frame.function is not None and not frame.function.startswith("std::"))
        return next(named, own[-1] if own else None)


def leaving(thread: Thread) -> Optional[Leaving]:
    """Return what a thread runs on its way out of the process; None if it runs Python code, or is not on that way."""
    frames = list(itertools.takewhile(lambda frame: isinstance(frame, NativeFrame), thread.stack))
    above: List[NativeFrame] = [frame for frame in frames if isinstance(frame, NativeFrame)]
    for at, frame in enumerate(above):
        name = frame.function or ""
        if frame.module is not None and _LIBC.search(frame.module) and _EXIT.match(name):
            return Leaving(True, tuple(above[:at]))
        if _FINALIZE.match(name) and native.is_interpreter(frame):
            return Leaving(False, tuple(above[:at]))
    return None


def hung(thread: Thread) -> bool:
    """Return whether the interpreter has hung a thread up because it wanted the GIL after the end."""
    return any(frame.function and _HUNG.match(frame.function) for frame in thread.native)
