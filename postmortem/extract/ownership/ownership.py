"""Who has what: one type for threads and tasks, for locks, permits of semaphores, and what is lent."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional

from ...cpython.frames.frame import Frame, Frames
from ...evidence import HeldLock, PythonFrame
from ...evidence.vocabulary import OwnerBasis


class Acquired(NamedTuple):
    """Where something was acquired."""

    frame: Frame
    depth: int  # of the frame, 0 = most recent call
    line: Optional[int]  # None: where the frame stands now is all that is known


class Ownership(NamedTuple):
    """``acquired_at`` is None where only the thing's own record tells."""

    thing: int  # address of the lock, semaphore or queue
    agent: int  # tid of a thread, or address of a task
    basis: OwnerBasis
    acquired_at: Optional[Acquired] = None

    def place(self, shown: Callable[[Frame], PythonFrame]) -> Optional[PythonFrame]:
        """The line where it was acquired, where that is known; else the one where the function stands."""
        at = self.acquired_at
        return shown(at.frame).at(at.line or at.frame.line) if at is not None else None

    def held(self, resource: str, shown: Callable[[Frame], PythonFrame]) -> Optional[HeldLock]:
        """As evidence; None where no frame accounts for it."""
        place, at = self.place(shown), self.acquired_at
        return HeldLock(resource, place, at.depth, self.basis) if place is not None and at is not None else None


def plain(frames: Frames) -> Callable[[Frame], PythonFrame]:
    """How to show a frame at a line of its own, without columns and variables."""

    def shown(frame: Frame) -> PythonFrame:
        code = frame.code
        return PythonFrame(code.filename, frame.line, code.name, code.qualname, frames.module(frame))

    return shown
