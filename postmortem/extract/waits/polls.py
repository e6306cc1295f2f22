"""Threads that ask again and again, and sleep in between, for what they could have waited for."""

from __future__ import annotations

from typing import Optional, Sequence

from ...cpython.frames.calls import first_number
from ...cpython.frames.frame import Frame
from ...cpython.frames.nativecalls import native_call
from ...cpython.state.interpreter import Python
from ...cpython.sync.polls import asks_for_file_locks, has_no_limit, is_sqlite, texts
from ...evidence import Wait
from ...evidence import replace as changed
from .endpoints import DescriptorBook

#: Seconds: who sleeps longer does something else, or nothing.
_LONGEST_S = 10.0
#: A function that only sleeps may lie above the one that asks.
_INNERMOST = 2


class Polls:
    """``told`` is asked of threads that sleep."""

    def __init__(self, python: Optional[Python], descriptors: DescriptorBook) -> None:
        self._python, self._descriptors = python, descriptors

    def told(self, wait: Wait, tid: int, frames: Sequence[Frame]) -> Optional[Wait]:
        """The wait of a thread that sleeps, as that for the lock on a file which it asks for; None when it does not."""
        if self._python is None or not frames:
            return None
        call = native_call(self._python.frames, frames[0])
        if call is not None and is_sqlite(call.function):
            lock = self._descriptors.note_polled_lock((), True, tid)
            return self._asks(wait, lock, wait.timeout_s, False) if lock is not None else None
        asked = first_number(self._python.frames, frames[0], "sleep")
        length = asked if asked is not None else wait.timeout_s
        if length is None or length > _LONGEST_S:
            return None
        for frame in frames[:_INNERMOST]:
            if asks_for_file_locks(self._python.frames, frame):
                paths = [text for text in texts(self._python.frames, frame) if text.startswith("/")]
                lock = self._descriptors.note_polled_lock(paths, False, tid) if paths else None
                lock = lock or self._descriptors.note_polled_lock((), False, tid)
                if lock is not None:
                    return self._asks(wait, lock, length, has_no_limit(self._python.frames, frame))
        return None

    @staticmethod
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
