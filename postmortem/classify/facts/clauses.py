"""Clauses that the texts of several patterns share."""

from __future__ import annotations

from typing import Dict, Iterable, Optional, Tuple

from ...evidence import PythonFrame, Task, Thread
from ...findings import Template, Text, ThreadName

_AT = Template(" at {frame}")


def at(frame: Optional[PythonFrame]) -> Optional[Text]:
    """Return " at FILE:LINE in FUNCTION"; None without a frame."""
    return _AT(frame=frame) if frame is not None else None


def named(thread: Thread) -> ThreadName:
    """Return a thread as the slot of a text."""
    return ThreadName(thread.tid, thread.name)


_TASK = Template("task {name}")


def task(one: Task) -> Text:
    """Return "task NAME"."""
    return _TASK(name=str(one.name))


def unlike(frames: Iterable[PythonFrame]) -> Tuple[PythonFrame, ...]:
    """Return the frames without those that read like an earlier one: file name, line and function are the same."""
    found: Dict[Tuple[str, Optional[int], str], PythonFrame] = {}
    for frame in frames:
        found.setdefault((frame.file.rsplit("/", 1)[-1], frame.line or None, frame.function), frame)
    return tuple(found.values())
