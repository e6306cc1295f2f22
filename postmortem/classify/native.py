"""What is known about native frames: whose code they are, and from where in Python it was called."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from ..evidence import NativeFrame, Process, PythonFrame, Thread
from ..findings import Culprit
from . import knowledge

#: Libraries that do things for whoever calls them: C, C++, the loader, and what carries a call from Python to C.
_RUNTIME = re.compile(
    r"/((libc|libm|libpthread|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|ld|ld-linux-x86-64|ld-musl-x86_64|libffi)[-.]"
    r"|_ctypes\.|_cffi_backend\.|linux-vdso)[^/]*$|^\[vdso\]$"
)
_INTERPRETER = re.compile(r"(libpython\d[^/]*\.so[^/]*|python\d*(\.\d+)?[a-z]*)( \(deleted\))?$")


def is_program(frame: NativeFrame) -> bool:
    """Is it code of an extension, or of a library that one uses, rather than the interpreter's or the C library's?"""
    return frame.module is not None and not _RUNTIME.search(frame.module) and not _INTERPRETER.search(frame.module)


def called(thread: Thread) -> Tuple[NativeFrame, ...]:
    """The frames of extensions that the innermost Python frame has called, most recent call first."""
    found: List[NativeFrame] = []
    for frame in thread.stack:
        if isinstance(frame, PythonFrame):
            break
        if is_program(frame):
            found.append(frame)
    return tuple(found)


def frames_of(thread: Thread, module: Optional[str]) -> Tuple[NativeFrame, ...]:
    """The thread's frames in a module, wherever in its stack, most recent call first."""
    return tuple(frame for frame in thread.native if frame.module == module and module is not None)


def entered_at(thread: Thread, module: Optional[str]) -> Optional[PythonFrame]:
    """The line of the program from which the thread's oldest call into a module was made; without one, its innermost
    line."""
    at = max((i for i, f in enumerate(thread.stack) if isinstance(f, NativeFrame) and f.module == module), default=-1)
    callers = [f for f in thread.stack[at + 1 :] if isinstance(f, PythonFrame)] if module is not None else []
    return knowledge.own_frame(callers) or knowledge.own_frame(thread.python)


def where(frame: NativeFrame) -> str:
    """``smooth of _smooth.so``"""
    module = (frame.module or "?").rsplit("/", 1)[-1]
    return f"{frame.function} of {module}" if frame.function else module


def culprit(process: Process, thread: Thread, frame: NativeFrame) -> Optional[Culprit]:
    """Its line in C or C++, where the library has debug information."""
    if frame.file is None or frame.line is None:
        return None
    return Culprit(process.pid, thread.tid, None, frame.file, frame.line, frame.function or "?", None)
