"""Threads that a thread joins.

- up to 3.12: ``Thread.join`` waits for the joined thread's ``_tstate_lock`` in Python code
- from 3.13: the wait is in C, below ``Thread.join``
- at exit: ``threading._shutdown`` waits for every thread that is not a daemon

Source: Lib/threading.py of 3.11-3.13.
"""

from __future__ import annotations

from typing import Optional, Sequence

from ...cpython.frames.frame import Frame
from ...cpython.objects.attributes import attribute
from ...cpython.state.interpreter import Python

_THREADING = "threading.py"


def joined_thread(python: Python, frames: Sequence[Frame]) -> Optional[int]:
    """Return the ident of the thread that the innermost frames join; None if there is none."""
    for frame in frames[:4]:
        if frame.function == "result" and frame.code.filename.endswith("concurrent/futures/_base.py"):
            return _runner_of(python, python.frames.local(frame, "self"))
        if not frame.code.filename.endswith(_THREADING):
            return None
        if frame.function in ("_wait_for_tstate_lock", "join"):
            thread = python.frames.local(frame, "self")
            return python.objects.integer_or_none(attribute(python.objects, thread, "_ident") if thread else None)
        if frame.function == "_shutdown":
            return _owner_of_tstate_lock(python, python.frames.local(frame, "lock"))
    return None


def _runner_of(python: Python, future: Optional[int]) -> Optional[int]:
    """Return the ident of the worker that runs a future's work item.

    Source: Lib/concurrent/futures/thread.py, _WorkItem.run.
    """
    if future is None:
        return None
    for interpreter in python.interpreters:
        for thread in interpreter.threads:
            for frame in thread.frames[-8:]:
                if frame.function == "run" and frame.code.filename.endswith("concurrent/futures/thread.py"):
                    item = python.frames.local(frame, "self")
                    if item and attribute(python.objects, item, "future") == future:
                        return thread.ident
    return None


def _owner_of_tstate_lock(python: Python, lock: Optional[int]) -> Optional[int]:
    if lock is None:
        return None
    for interpreter in python.interpreters:
        for thread in interpreter.threads:
            if thread.object and attribute(python.objects, thread.object, "_tstate_lock") == lock:
                return thread.ident
    return None
