"""Callbacks of an event loop as the stack of its thread shows them: where one keeps the thread, and whether it computes."""

from __future__ import annotations

from collections import Counter
from typing import List, Optional, Tuple

from ....evidence import Loop, Process, PythonFrame, Task, Thread
from ...facts import knowledge
from ...facts.view import View

#: What runs one callback: (file ending, function).
STEPS = (knowledge.LOOP_STEP, ("uvloop/loop.pyx", "_run"), ("tornado/ioloop.py", "_run_callback"))
#: Of the samples inside a callback: in the same function. Loops under load, whose steps take a millisecond each, are in one
#: function in less than half of them.
MIN_SAME = 0.9


def step(frames: Tuple[PythonFrame, ...]) -> Optional[Tuple[PythonFrame, ...]]:
    """The frames above the loop's own, of a callback or step that is being run; None outside of one."""
    at = next((i for i, f in enumerate(frames) if knowledge.in_table(f, STEPS)), None)
    if at is None:
        return None
    above = frames[:at]
    return above if any(not knowledge.is_loop_machinery(f) for f in above) else None


def computes(view: View, thread: Thread) -> bool:
    return thread.wait is None and bool(view.computes(thread))


def kept_in(view: View, thread: Thread) -> Optional[PythonFrame]:
    """The innermost line of the program, above the loop's own frames, that was there in (nearly) all samples; without
    samples, the innermost one."""
    own = [f for f in step(thread.python) or () if not knowledge.is_library(f)]
    own = own or [f for f in step(thread.python) or () if not knowledge.is_stdlib(f)]
    seen: Counter[Tuple[str, str]] = Counter()
    inside = 0
    for count, frames in view.samples(thread):
        above = step(frames)
        inside += count if above is not None else 0
        seen.update({key: count for key in {(f.file, f.function) for f in above or ()}})
    if not inside:
        return next(iter(own), None)
    return next((f for f in own if seen[(f.file, f.function)] >= MIN_SAME * inside), None)


def inside(view: View, thread: Thread) -> float:
    """Of all samples those inside a callback."""
    counted = [(count, step(frames) is not None) for count, frames in view.samples(thread)]
    return sum(count for count, is_inside in counted if is_inside) / max(1, sum(count for count, _is in counted))


def fills(process: Process, thread: Thread) -> Optional[str]:
    """A queue without a bound that grows, and that a line on the thread's stack puts into."""
    lines = {(f.file, f.line) for f in thread.python}
    growing = (b for b in process.backlogs if not b.limit and (b.growth or 0) > 0)
    return next((b.name for b in growing if any((f.file, f.line) in lines for f in b.filled_at)), None)


def is_coroutine(process: Process, loop: Optional[Loop], frame: PythonFrame) -> bool:
    """Is it a frame of the running task's own chain of awaits?"""
    running = [t for t in process.tasks if t.state == "running" and (loop is None or t.loop == loop.id)]
    return any((f.file, f.function) == (frame.file, frame.function) for task in running for f in task.stack)


def others(process: Process, loop: Optional[Loop]) -> List[Task]:
    """Tasks of the loop that wait while one runs."""
    return [t for t in process.tasks if loop is not None and t.loop == loop.id and t.state == "pending"]


def is_alone(process: Process, loop: Optional[Loop]) -> bool:
    """Has the loop nothing to do but what runs, as of a script that is one coroutine? Then it keeps nobody waiting."""
    if loop is None or others(process, loop):
        return False
    return (loop.ready, loop.scheduled, loop.watched) == (0, 0, 0)
