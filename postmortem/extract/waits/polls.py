"""Threads that poll for a file lock and sleep in between."""

from __future__ import annotations

from typing import Optional, Sequence

from ...cpython.frames.frame import Frame
from ...cpython.frames.nativecalls import native_call
from ...cpython.state.interpreter import Python
from ...cpython.sync.polls import asks_for_file_locks, has_no_limit, makes_lock_files, texts
from ...evidence import Wait
from ...evidence import replace as changed
from ...evidence.stacks import is_sqlite
from .endpoints import DescriptorBook

#: Seconds; a thread that sleeps longer is not considered to be polling.
_LONGEST_S = 10.0
#: Innermost frames searched: a function that only sleeps may lie above the one that polls.
_INNERMOST = 2


def polled_lock(
    python: Python,
    descriptors: DescriptorBook,
    wait: Wait,
    tid: int,
    frames: Sequence[Frame],
    asked: Optional[float],
) -> Optional[Wait]:
    """Return a sleeping thread's wait as one for the file lock that it polls; None if it polls for none.

    - ``frames``: at least one, most recent call first
    - ``asked``: seconds passed to ``sleep``; None if unknown
    """
    call = native_call(python.frames, frames[0])
    if call is not None and is_sqlite(call.function):
        lock = descriptors.note_polled_lock((), True, tid)
        return _asks(wait, lock, wait.timeout_s, False) if lock is not None else None
    length = asked if asked is not None else wait.timeout_s
    if length is None or length > _LONGEST_S:
        return None
    for frame in frames[:_INNERMOST]:
        if asks_for_file_locks(python.frames, frame):
            paths = [text for text in texts(python.frames, frame) if text.startswith("/")]
            lock = descriptors.note_polled_lock(paths, False, tid) if paths else None
            lock = lock or descriptors.note_polled_lock((), False, tid)
            if lock is not None:
                return _asks(wait, lock, length, has_no_limit(python.frames, frame))
    for frame in frames[:_INNERMOST]:
        path = _lock_file(python, frame) if makes_lock_files(python.frames, frame) else None
        if path is not None:
            lock = descriptors.note_lock_file(path, tid)
            return changed(
                _asks(wait, lock, length, has_no_limit(python.frames, frame)),
                detail=f"every {length:g} s whether a lock file is gone",
            )
    return None


def _lock_file(python: Python, frame: Frame) -> Optional[str]:
    """Return the path that a function's variables name: the only one, or the only one that calls itself a lock."""
    paths = {text for text in texts(python.frames, frame) if text.startswith("/")}
    named = {path for path in paths if "lock" in path.rpartition("/")[2].lower()}
    several = paths if len(paths) == 1 else named
    return several.pop() if len(several) == 1 else None


def _asks(wait: Wait, lock: str, length: Optional[float], endless: bool) -> Wait:
    every = f"every {length:g} s" if length else "again and again"
    return changed(
        wait,
        kind="file",
        resource=lock,
        timeout_s=None,
        endless=endless,
        polls_s=length or 0.0,
        verb="asks",
        detail=f"{every} for a lock on a file",
    )
