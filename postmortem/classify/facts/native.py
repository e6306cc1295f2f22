"""Native frames: the code that they belong to, and the Python line that called them."""

from __future__ import annotations

import itertools
import re
from typing import List, Optional, Sequence, Tuple, Union

from ...evidence import NativeFrame, Process, PythonFrame, Thread, Wait
from ...findings import Culprit, Template, Text
from . import knowledge

#: Libraries that serve any caller: C and C++ runtimes, the loader, and the bridges from Python to C.
_RUNTIME = re.compile(
    r"/((libc|libm|libpthread|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|ld|ld-linux-x86-64|ld-musl-x86_64|libffi)[-.]"
    r"|_ctypes\.|_cffi_backend\.|linux-vdso)[^/]*$|^\[vdso\]$"
)
#: Bridges that call arbitrary C functions from Python. If linked statically, their functions are in the interpreter.
_BRIDGE = re.compile(r"/(libffi[-.]|_ctypes\.|_cffi_backend\.)[^/]*$")
_BRIDGING = frozenset(("ffi_call", "ffi_call_int", "ffi_call_unix64", "_call_function_pointer", "_ctypes_callproc"))
_INTERPRETER = re.compile(r"(libpython\d[^/]*\.so[^/]*|python\d*(\.\d+)?[a-z]*)( \(deleted\))?$")

#: System calls that CPython 3.8 to 3.15 makes only without the GIL (Py_BEGIN_ALLOW_THREADS in Modules/timemodule.c,
#: selectmodule.c, socketmodule.c, posixmodule.c, signalmodule.c, fcntlmodule.c). Not read, write and futex: the parser,
#: faulthandler and the locks of the runtime make these with it.
_WITHOUT_GIL = frozenset((
    "nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "accept", "accept4", "connect", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "wait4", "waitid", "pause",
    "rt_sigsuspend", "rt_sigtimedwait", "flock", "msgrcv", "msgsnd", "semop", "semtimedop", "mq_timedreceive",
))  # fmt: skip
#: Likewise on a pipe or socket, but not on a regular file, which may be source code read by the interpreter.
_READS = frozenset(("read", "readv"))
#: How functions that run Python code begin (Python/ceval.c).
_EVAL = ("_PyEval_", "PyEval_")
#: Most native frames shown in a sentence; `postmortem debug` shows all.
_SHOWN = 4

_OF = Template("{function} of {library}")
_COMPILED = Template("a function compiled at run time, which lies in no file")
_CALLED_BY = Template("{places: called by }")


def is_program(frame: NativeFrame) -> bool:
    """Return whether a frame is code of an extension, or of a library used by one, not of the interpreter or the C runtime."""
    return frame.module is not None and not _RUNTIME.search(frame.module) and not _INTERPRETER.search(frame.module)


def is_interpreter(frame: NativeFrame) -> bool:
    """Return whether a frame is code of the Python interpreter."""
    return frame.module is not None and bool(_INTERPRETER.search(frame.module))


def called(thread: Thread) -> Tuple[NativeFrame, ...]:
    """Return the frames of extensions called by the innermost Python frame, most recent call first.

    If it called a C library function directly, through ctypes or cffi, return the frames of that library.
    """
    above = _above_python(thread)
    program = tuple(frame for frame in above if is_program(frame))
    bridge = next((i for i, frame in enumerate(above) if is_bridge(frame)), 0)
    return program or tuple(f for f in above[:bridge] if f.module is not None and not _INTERPRETER.search(f.module))


def compiled(thread: Thread) -> Tuple[NativeFrame, ...]:
    """Return the innermost native frame above the Python frames if its code lies in no file: it was compiled at run time."""
    return tuple(frame for frame in _above_python(thread)[:1] if frame.module is None)


def builtin(thread: Thread) -> Tuple[NativeFrame, ...]:
    """Return the frames of a builtin's call by the innermost Python frame, most recent call first; none in the eval loop."""
    above = _above_python(thread)
    return tuple(itertools.takewhile(lambda frame: not (frame.function or "").startswith(_EVAL), above))


def _above_python(thread: Thread) -> List[NativeFrame]:
    """Return the native frames above the innermost Python frame, most recent call first."""
    return list(itertools.takewhile(lambda frame: isinstance(frame, NativeFrame), thread.stack))  # type: ignore[arg-type]


def is_bridge(frame: NativeFrame) -> bool:
    """Return whether a frame is part of ctypes, cffi or libffi."""
    return frame.function in _BRIDGING or bool(frame.module and _BRIDGE.search(frame.module))


def blocks(wait: Wait) -> bool:
    """Return whether a system call is one that waits, rather than one that is brief, such as mmap."""
    return wait.kind != "other" or wait.syscall in _WITHOUT_GIL or wait.syscall in _READS


def asleep_unasked(thread: Thread) -> bool:
    """Return whether a thread is in a system call for which Python's own code releases the GIL.

    If the thread holds the GIL nevertheless, other native code made the call.
    """
    wait = thread.wait
    if wait is None or not thread.python:
        return False
    return wait.syscall in _WITHOUT_GIL or (wait.syscall in _READS and wait.kind in ("pipe", "socket"))


def calls(thread: Thread) -> Tuple[NativeFrame, ...]:
    """Return the innermost native frame outside the interpreter, as a tuple of at most one, whatever called it."""
    return tuple(f for f in _above_python(thread) if f.module is not None and not _INTERPRETER.search(f.module))[:1]


def frames_of(thread: Thread, module: Optional[str]) -> Tuple[NativeFrame, ...]:
    """Return a thread's frames in a module, anywhere in its stack, most recent call first."""
    return tuple(frame for frame in thread.native if frame.module == module and module is not None)


def entered_at(thread: Thread, module: Optional[str]) -> Optional[PythonFrame]:
    """Return the program's line that made the thread's oldest call into a module; without one, its innermost line."""
    at = max((i for i, f in enumerate(thread.stack) if isinstance(f, NativeFrame) and f.module == module), default=-1)
    callers = [f for f in thread.stack[at + 1 :] if isinstance(f, PythonFrame)] if module is not None else []
    return knowledge.own_frame(callers) or knowledge.own_frame(thread.python)


def library(frame: NativeFrame) -> str:
    """Return the file name of a frame's module: ``_smooth.so``."""
    return (frame.module or "?").rsplit("/", 1)[-1]


def located(frame: NativeFrame) -> Union[Text, str]:
    """Return a location as a slot: ``smooth of _smooth.so``."""
    if frame.module is None and frame.function is None:
        return _COMPILED()
    return _OF(function=frame.function, library=library(frame)) if frame.function else library(frame)


def chain(frames: Sequence[NativeFrame]) -> Optional[Text]:
    """Return the call chain through extensions, most recent call first: ``a of _x.so called by …``; None if there is none."""
    places = tuple(dict.fromkeys(located(f) for f in frames if is_program(f)))
    return _CALLED_BY(places=places[:_SHOWN]) if places else None


def culprit(process: Process, thread: Thread, frame: NativeFrame) -> Optional[Culprit]:
    """Return the C or C++ line of a frame as a culprit; None without debug information."""
    if frame.file is None or frame.line is None:
        return None
    return Culprit(process.pid, thread.tid, None, frame.file, frame.line, frame.function or "?", None)
