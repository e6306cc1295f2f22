"""Clauses that the texts of several patterns share."""

from __future__ import annotations

from typing import Dict, Iterable, Optional, Tuple

from ...evidence import Process, PythonFrame, Task, Thread
from ...findings import Template, Text, ThreadName
from ...waitgraph import program

_AT = Template(" at {frame}")


def at(frame: Optional[PythonFrame]) -> Optional[Text]:
    """Return " at FILE:LINE in FUNCTION"; None without a frame."""
    return _AT(frame=frame) if frame is not None else None


def named(thread: Thread) -> ThreadName:
    """Return a thread as the slot of a text."""
    return ThreadName(thread.tid, thread.name)


_TASK, _NAMED_TASK = Template("task {name}"), Template("{name}")


def task(one: Task) -> Text:
    """Return "task NAME", or "Task-1" for asyncio's default names."""
    name = one.name or one.id
    return (_NAMED_TASK if name.lower().startswith("task") else _TASK)(name=name)


_PROCESS = Template("{program} (PID {pid})")
_PID = Template("PID {pid}")
_FOREVER = Template(", without a time limit")


def process(one: Process) -> Text:
    """Return a process as its program and number: "app.py (PID 12)"."""
    return numbered(program(one) or "process", one.pid)


def numbered(name: Optional[str], pid: Optional[int]) -> Text:
    """Return a process that may not have been captured, with the name of its program if that is known."""
    return _PROCESS(program=name, pid=pid) if name else _PID(pid=pid)


def forever(endless: Optional[bool]) -> Optional[Text]:
    """Return ", without a time limit" if a wait is known to have none."""
    return _FOREVER() if endless else None


def unlike(frames: Iterable[PythonFrame]) -> Tuple[PythonFrame, ...]:
    """Return the frames without those that would read the same as an earlier one (file name, line and function)."""
    found: Dict[Tuple[str, Optional[int], str], PythonFrame] = {}
    for frame in frames:
        found.setdefault((frame.file.rsplit("/", 1)[-1], frame.line or None, frame.function), frame)
    return tuple(found.values())
