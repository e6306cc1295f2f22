"""Ownership of a lock, a semaphore's permit or an item that must be given back."""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional

from ...cpython.frames.frame import Frame, Frames
from ...evidence import HeldLock, PythonFrame
from ...evidence.vocabulary import OwnerBasis


class Acquired(NamedTuple):
    """A place of acquisition."""

    frame: Frame
    depth: int  # of the frame, 0 = most recent call
    line: Optional[int]  # None: unknown; the frame's current line stands in


class Ownership(NamedTuple):
    """A thing held by a thread or task.

    ``acquired_at`` is None if only the thing's own record names the holder.
    """

    thing: int  # address of the lock, semaphore or queue
    agent: int  # tid of a thread, or address of a task
    basis: OwnerBasis
    acquired_at: Optional[Acquired] = None

    def place(self, shown: Callable[[Frame], PythonFrame]) -> Optional[PythonFrame]:
        """Return the place of acquisition; None if unknown.

        ``shown`` converts a frame.
        """
        at = self.acquired_at
        return shown(at.frame).at(at.line or at.frame.line) if at is not None else None

    def held(self, resource: str, shown: Callable[[Frame], PythonFrame]) -> Optional[HeldLock]:
        """Return the ownership as evidence; None if no frame accounts for it."""
        place, at = self.place(shown), self.acquired_at
        return HeldLock(resource, place, at.depth, self.basis) if place is not None and at is not None else None


def plain(frames: Frames) -> Callable[[Frame], PythonFrame]:
    """Return a converter of frames that leaves out columns and variables."""

    def shown(frame: Frame) -> PythonFrame:
        code = frame.code
        return PythonFrame(code.filename, frame.line, code.name, code.qualname, frames.module(frame))

    return shown
