"""Fatal errors of the interpreter: the meaning of each message, and its remedy.

Messages of ``Py_FatalError`` in CPython 3.8 to 3.15; each row cites its source. The name of the function that issued it
counts as part of the message, as it does in the text up to 3.8.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Tuple

from ....findings import Template, Text


class Meaning(NamedTuple):
    """The meaning of a message, and its remedy."""

    words: Text
    remedy: Text


_GIL = Template(
    "Hold the GIL around every call of Python's C API: ctypes.PyDLL or ctypes.pythonapi in place of ctypes.CDLL, "
    "PyGILState_Ensure and PyGILState_Release around it in a thread of native code."
)
_REFCOUNT = Template(
    "Look for a Py_DECREF too many, or a Py_INCREF that is missing, in native code (and in ctypes' py_object): "
    "borrowed references must not be released."
)
_STATES = Template(
    "Pair the calls that save and restore a thread state (PyEval_SaveThread and PyEval_RestoreThread, "
    "PyGILState_Ensure and PyGILState_Release), each in the same thread."
)

_TABLE: Tuple[Tuple[str, Template, Template], ...] = (
    # Objects/obmalloc.c, _PyMem_DebugCheckGIL
    (r"memory allocator called without holding the GIL",
     Template("a thread that did not hold the GIL requested memory from Python's allocator"),
     _GIL),
    # Python/pystate.c, ensure_tstate_not_NULL, PyThreadState_Get ("no current thread" in 3.8); Python/ceval.c
    (r"must be called with (the GIL held|an active thread state)|no current thread|Python API called without"
     r"|(PyThreadState_Get|PyEval_SaveThread|_PyThreadState_GET).*NULL tstate",
     Template("a function of Python's C API was called by a thread that did not hold the GIL, the interpreter lock"),
     _GIL),
    # Python/ceval.c: PyEval_RestoreThread, PyEval_AcquireThread; Python/ceval_gil.c; Python/pystate.c
    (r"NULL tstate|tstate mix-up|orphan tstate|GIL is not locked|wrong thread state|non-NULL old thread state"
     r"|not attached|already attached|new thread state",
     Template("thread states were saved and restored out of order"),
     _STATES),
    # Python/pystate.c: PyGILState_Release, tstate_delete_common
    (r"auto-releasing thread-state|must be current when releasing|still current|This thread state|invalid tstate",
     Template("a thread state was released by a thread that did not hold it"),
     _STATES),
    # Python/pylifecycle.c: Py_EndInterpreter; Python/pystate.c: PyInterpreterState_Delete
    (r"not the last thread|thread is not current|thread still has a frame|remaining (threads|subinterpreters)",
     Template("a sub-interpreter was ended while something still ran in it"),
     Template("Join the threads of a sub-interpreter before it is ended.")),
    # Objects/object.c none_dealloc ("deallocating None"), boolobject.c, longobject.c: up to 3.11; later for debug builds
    (r"deallocating (None|True|False|NotImplemented|Ellipsis|small int|immortal)|none_dealloc|immortal",
     Template("an object that must never be freed was released more often than it was acquired"),
     _REFCOUNT),
    # Include/object.h, _Py_NegativeRefcount; Objects/object.c, _PyObject_AssertFailed
    (r"negative ref ?count|_PyObject_AssertFailed|refcnt",
     Template("an object was released more often than it was acquired"),
     _REFCOUNT),
    # Modules/gcmodule.c, Objects/object.c: PyObject_GC_Track
    (r"already tracked|not tracked|object is .*tracked",
     Template("native code registered one object twice with the garbage collector"),
     Template("Call PyObject_GC_Track once for each object, after its fields are set.")),
    # Objects/call.c, _Py_CheckFunctionResult, and its like for slots: fatal in debug builds
    (r"without setting an exception|with an (error|exception) set|returned NULL|returned a result with",
     Template("a native function failed without an exception, or returned a result together with one"),
     Template("Let the native function return NULL if, and only if, it has set an exception.")),
    # Python/ceval.c, _Py_CheckRecursiveCall: 3.8 to 3.11 (fifty calls above the limit while RecursionError is handled), 3.12
    (r"Cannot recover from (Python )?stack overflow",
     Template("the recursion limit was exceeded, RecursionError was caught, and the code that caught it continued to recurse: "
              "fifty calls beyond the limit the interpreter gives up"),
     Template("Do not catch RecursionError inside the recursion, nor use `except Exception` or a bare `except` there; end the "
              "recursion, or walk the data in a loop.")),
    # Python/ceval.c, 3.14: the stack itself is nearly used up
    (r"Unrecoverable stack overflow",
     Template("the recursion continued when the thread's stack was used up except for a last reserve"),
     Template("End the recursion: walk the data in a loop, with a list of what is still to be done.")),
    # Modules/_io/bufferedio.c, _enter_buffered_busy
    (r"could not acquire lock for .* at interpreter shutdown",
     Template("the interpreter was shutting down and tried to flush a stream whose lock a daemon thread still held"),
     Template("Join threads that print before the program ends, instead of making them daemons.")),
    # Python/pylifecycle.c, Python/initconfig.c, Modules/getpath
    (r"^init_|^_PyPathConfig|failed to (get|initialize|import)|unable to|can't initialize|random numbers|Py_Initialize",
     Template("the interpreter could not start: it did not find its own library, or not in a usable form"),
     Template("Look at PYTHONHOME and PYTHONPATH, and at the installation of the interpreter.")),
    # Python/lock.c, Python/thread_pthread.h
    (r"unlocking mutex|PyMUTEX|PyCOND|lock(s)? after fork|mutex",
     Template("a lock inside the interpreter was released by a thread that did not hold it, or could not be used"),
     Template("Look for native code that releases locks twice, or that forks with other threads running.")),
    # Objects/unicodeobject.c
    (r"(?<![a-z])intern(ed|ing)?(?![a-z])",
     Template("the interpreter's table of interned strings was damaged"),
     Template("Look for native code that changes strings in place, or frees them too often.")),
)  # fmt: skip


def meaning(function: Optional[str], message: str) -> Optional[Meaning]:
    """Return the meaning of a message; None if unknown: from a newer interpreter, or from an extension."""
    said = f"{function}: {message}" if function else message
    for pattern, words, remedy in _TABLE:
        if re.search(pattern, said):
            return Meaning(words(), remedy())
    return None
