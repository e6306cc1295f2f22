"""What is known about native frames: whose code they are, and from where in Python it was called."""

from __future__ import annotations

import itertools
import re
from typing import List, Optional, Sequence, Tuple

from ...evidence import NativeFrame, Process, PythonFrame, Thread, Wait
from ...findings import Culprit
from . import knowledge

#: Libraries that do things for whoever calls them: C, C++, the loader, and what carries a call from Python to C.
_RUNTIME = re.compile(
    r"/((libc|libm|libpthread|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|ld|ld-linux-x86-64|ld-musl-x86_64|libffi)[-.]"
    r"|_ctypes\.|_cffi_backend\.|linux-vdso)[^/]*$|^\[vdso\]$"
)
#: What carries a call from Python to any C function. Builds that link it statically have its functions in the interpreter.
_BRIDGE = re.compile(r"/(libffi[-.]|_ctypes\.|_cffi_backend\.)[^/]*$")
_BRIDGING = frozenset(("ffi_call", "ffi_call_int", "ffi_call_unix64", "_call_function_pointer", "_ctypes_callproc"))
_INTERPRETER = re.compile(r"(libpython\d[^/]*\.so[^/]*|python\d*(\.\d+)?[a-z]*)( \(deleted\))?$")

#: System calls that CPython 3.8 to 3.15 makes without the GIL only (Py_BEGIN_ALLOW_THREADS in Modules/timemodule.c,
#: selectmodule.c, socketmodule.c, posixmodule.c, signalmodule.c, fcntlmodule.c): not so read, write and futex, which its
#: parser, faulthandler, and the locks of its runtime use with it.
_WITHOUT_GIL = frozenset((
    "nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "accept", "accept4", "connect", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "wait4", "waitid", "pause",
    "rt_sigsuspend", "rt_sigtimedwait", "flock", "msgrcv", "msgsnd", "semop", "semtimedop", "mq_timedreceive",
))  # fmt: skip
#: The same of a pipe or socket, but not of a file, the interpreter's source for one.
_READS = frozenset(("read", "readv"))
#: A turn of native frames tells how somebody came here; more of them is for `postmortem debug`.
_SHOWN = 4


def is_program(frame: NativeFrame) -> bool:
    """Is it code of an extension, or of a library that one uses, rather than the interpreter's or the C library's?"""
    return frame.module is not None and not _RUNTIME.search(frame.module) and not _INTERPRETER.search(frame.module)


def is_interpreter(frame: NativeFrame) -> bool:
    return frame.module is not None and bool(_INTERPRETER.search(frame.module))


def called(thread: Thread) -> Tuple[NativeFrame, ...]:
    """The frames of extensions that the innermost Python frame has called, most recent call first. Where it has called a
    function of the C library directly, through ctypes or cffi, those of that library."""
    above = _above_python(thread)
    program = tuple(frame for frame in above if is_program(frame))
    bridge = next((i for i, frame in enumerate(above) if is_bridge(frame)), 0)
    return program or tuple(f for f in above[:bridge] if f.module is not None and not _INTERPRETER.search(f.module))


def _above_python(thread: Thread) -> List[NativeFrame]:
    return list(itertools.takewhile(lambda frame: isinstance(frame, NativeFrame), thread.stack))  # type: ignore[arg-type]


def is_bridge(frame: NativeFrame) -> bool:
    return frame.function in _BRIDGING or bool(frame.module and _BRIDGE.search(frame.module))


def blocks(wait: Wait) -> bool:
    """Is it a call in which threads wait for something, rather than one that takes a moment, as mmap does?"""
    return wait.kind != "other" or wait.syscall in _WITHOUT_GIL or wait.syscall in _READS


def asleep_unasked(thread: Thread) -> bool:
    """Does it wait in a system call before which Python's own code gives up the GIL? If it has it, other code made it."""
    wait = thread.wait
    if wait is None or not thread.python:
        return False
    return wait.syscall in _WITHOUT_GIL or (wait.syscall in _READS and wait.kind in ("pipe", "socket"))


def calls(thread: Thread) -> Tuple[NativeFrame, ...]:
    """Its innermost native frame that is not the interpreter's, whoever called it."""
    return tuple(f for f in _above_python(thread) if f.module is not None and not _INTERPRETER.search(f.module))[:1]


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


def led_there(frames: Sequence[NativeFrame]) -> Optional[str]:
    """The functions of extensions, and of libraries that they use, most recent call first: ``a of _x.so called by …``."""
    names = list(dict.fromkeys(where(f) for f in frames if is_program(f)))
    return " called by ".join(names[:_SHOWN]) if names else None


def culprit(process: Process, thread: Thread, frame: NativeFrame) -> Optional[Culprit]:
    """Its line in C or C++, where the library has debug information."""
    if frame.file is None or frame.line is None:
        return None
    return Culprit(process.pid, thread.tid, None, frame.file, frame.line, frame.function or "?", None)
