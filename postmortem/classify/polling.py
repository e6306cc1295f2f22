"""Who polls: tasks that give the event loop a turn and ask again, instead of waiting.

A polling task is nearly always found suspended in ``sleep(0)`` (or another one-turn wait): it is on no thread's
stack, only in the chain of its coroutines.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from ..evidence import Process, PythonFrame, Task, Thread
from . import knowledge
from .view import View


class Poller(NamedTuple):
    """All tasks of a process that poll at one line."""

    frame: PythonFrame  # the line that awaits the turn
    tasks: Tuple[Task, ...]
    tids: Tuple[int, ...]  # threads of their loops, where known


def pollers(process: Process) -> List[Poller]:
    """Most tasks first."""
    loops = {loop.id: loop.tid for loop in process.loops}
    found: Dict[PythonFrame, List[Task]] = {}
    for task in process.tasks:
        if task.state == "pending" and task.awaiting == "sleep(0)":
            frame = next((f for f in task.stack if not knowledge.is_loop_turn(f)), None)
            if frame is not None:
                found.setdefault(frame, []).append(task)
    result = []
    for frame, tasks in found.items():
        tids = sorted({tid for tid in (loops.get(t.loop or "") for t in tasks) if tid is not None})
        result.append(Poller(frame, tuple(tasks), tuple(tids)))
    return sorted(result, key=lambda p: (-len(p.tasks), p.frame.file, p.frame.line or 0))


def spin_share(view: View, threads: List[Thread], frame: Optional[PythonFrame]) -> Optional[float]:
    """Of the samples of loop threads, the share in which the loop only turned: its innermost frame is the loop's
    machinery, or the polling function asks its question. None without samples."""
    total = spinning = 0
    for thread in threads:
        for count, frames in view.samples(thread):
            if not frames:
                continue
            total += count
            spinning += count if _only_turning(frames, frame) else 0
    return spinning / total if total else None


def _only_turning(frames: Tuple[PythonFrame, ...], poll: Optional[PythonFrame]) -> bool:
    if knowledge.is_loop_machinery(frames[0]):
        return True
    if poll is None:
        return False
    # the question itself, such as queue.empty(): a standard library call made by the polling function
    asking = next((f for f in frames if not knowledge.is_stdlib(f)), None)
    return (
        asking is not None and knowledge.is_stdlib(frames[0]) and (asking.file, asking.function) == (poll.file, poll.function)
    )
