"""Polling: tasks and threads that yield their turn and check again, instead of waiting.

A polling task is nearly always found suspended in ``sleep(0)`` (or another one-turn wait): it is on no thread's
stack, only in the chain of its coroutines. A polling thread is at the line that calls ``sleep(0)``.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...evidence import Process, PythonFrame, Task, Thread
from . import knowledge
from .view import View

#: A zero sleep: a thread releases the GIL and requests it again at once.
_SLEEP_0 = re.compile(r"\bsleep\(\s*0(?:\.0*)?\s*\)")
#: Least share of a thread's samples in the polling function, and of a core that a loop's thread keeps busy.
_MOSTLY = 0.5


class Poller(NamedTuple):
    """All tasks, or all threads, of a process that poll at one line."""

    frame: PythonFrame  # the line that awaits the turn, or calls sleep(0)
    tasks: Tuple[Task, ...]  # empty if threads poll
    tids: Tuple[int, ...]  # the threads, or the known threads of the tasks' loops

    @property
    def number(self) -> int:
        """Return the number of polling tasks or threads."""
        return len(self.tasks) or len(self.tids)


def pollers(view: View, process: Process) -> List[Poller]:
    """Return the polling tasks of a process, by line, most tasks first."""
    loops = {loop.id: loop.tid for loop in process.loops}
    found: Dict[PythonFrame, List[Task]] = {}
    for task in process.tasks:
        if task.state == "pending" and (task.awaiting == "sleep(0)" or _yields(task)):
            frame = next((f for f in task.stack if not knowledge.is_loop_turn(f)), None)
            if frame is not None:
                found.setdefault(frame, []).append(task)
        elif task.state == "running":
            frame = _turn_of(view, process, task, loops.get(task.loop or ""))
            if frame is not None:
                found.setdefault(frame, []).append(task)
    result = []
    for frame, tasks in found.items():
        tids = sorted({tid for tid in (loops.get(t.loop or "") for t in tasks) if tid is not None}) or _busiest(
            view, process
        )
        result.append(Poller(frame, tuple(tasks), tuple(tids)))
    return sorted(result, key=lambda p: (-len(p.tasks), p.frame.file, p.frame.line or 0))


def _busiest(view: View, process: Process) -> List[int]:
    """Return the only thread that keeps a core busy, on which a loop of greenlets runs whose thread is not known; else none."""
    hot = [thread.tid for thread in process.threads if (view.wanted_share(thread) or 0.0) >= _MOSTLY]
    return hot if len(hot) == 1 else []


def _yields(task: Task) -> bool:
    """Return whether a task of trio or a greenlet of gevent waits for nothing but its next turn, at a line of the program."""
    if task.wait is not None or not task.stack or not knowledge.is_loop_turn(task.stack[0]):
        return False
    calls = next((frame for frame in task.stack if not knowledge.is_loop_turn(frame)), None)
    return calls is not None and not knowledge.is_library(calls)


def _turn_of(view: View, process: Process, task: Task, tid: Optional[int]) -> Optional[PythonFrame]:
    """Return the line at which the running task gives up its turn by sleep(0), now or in samples of its loop's thread."""
    own, thread = knowledge.own_frame(task.stack), view.thread(process, tid)
    if own is None or thread is None:
        return None
    sampled = [knowledge.own_frame(frames) for _count, frames in view.samples(thread)]
    turns = [f for f in (own, *sampled) if f is not None and (f.file, f.function) == (own.file, own.function)]
    return next((f for f in turns if _SLEEP_0.search(view.evidence.source(f.file, f.line) or "")), None)


def polling_threads(view: View, process: Process) -> List[Poller]:
    """Return the threads whose samples lie mostly in a function that calls sleep(0), by line, most threads first."""
    found: Dict[PythonFrame, List[int]] = {}
    for thread in process.threads:
        own = [(count, knowledge.own_frame(frames)) for count, frames in view.samples(thread)]
        turns = [f for _n, f in own if f is not None and _SLEEP_0.search(view.evidence.source(f.file, f.line) or "")]
        if not turns:
            continue
        inside = sum(n for n, f in own if f is not None and (f.file, f.function) == (turns[0].file, turns[0].function))
        if inside >= _MOSTLY * sum(n for n, _f in own):
            found.setdefault(turns[0], []).append(thread.tid)
    result = [Poller(frame, (), tuple(tids)) for frame, tids in found.items()]
    return sorted(result, key=lambda p: (-len(p.tids), p.frame.file, p.frame.line or 0))


def spin_share(view: View, threads: List[Thread], frame: Optional[PythonFrame]) -> Optional[float]:
    """Return the share of loop threads' samples that did no work; None without samples.

    In such a sample the innermost frame is the loop's own code, or a check made by the polling function ``frame``.
    """
    total = spinning = 0
    for thread in threads:
        for count, frames in view.samples(thread):
            if not frames:
                continue
            total += count
            spinning += count if _only_turning(frames, frame) else 0
    return spinning / total if total else None


def _only_turning(frames: Tuple[PythonFrame, ...], poll: Optional[PythonFrame]) -> bool:
    """Return whether a sample shows only the event loop's code or the polling function's check."""
    if knowledge.is_loop_machinery(frames[0]):
        return True
    if poll is None:
        return False
    # the check itself, such as queue.empty(): a standard library call made by the polling function
    asking = next((f for f in frames if not knowledge.is_stdlib(f)), None)
    return (
        asking is not None
        and knowledge.is_stdlib(frames[0])
        and (asking.file, asking.function) == (poll.file, poll.function)
    )
