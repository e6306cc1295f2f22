"""The callback that an event loop's thread runs, according to its stack and samples: where it stays, whether it computes."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Tuple

from ....evidence import Loop, Process, PythonFrame, Task, Thread
from ...facts import knowledge
from ...facts.view import View

#: Frames that run one callback: (path suffix, functions). Twisted's also serve descriptors (18.9-25.5).
STEPS = (
    *knowledge.LOOP_STEPS,
    ("uvloop/loop.pyx", "_run"),
    ("tornado/ioloop.py", "_run_callback"),
    ("twisted/internet/epollreactor.py", "_doReadOrWrite"),
    ("twisted/internet/posixbase.py", "_doReadOrWrite"),
    ("twisted/internet/selectreactor.py", "_doReadOrWrite"),
)
#: Where the threads of a pool begin that have a loop each (gevent/threadpool.py: _WorkerGreenlet.run, 20.12 to 26.9).
_POOLS = (("gevent/threadpool.py", "run"),)
#: Kinds of loops whose tasks are greenlets: their stacks do not tell what is awaited from what is called.
_OF_GREENLETS = ("gevent", "eventlet")
#: Least share of the samples inside a callback that are in the same function. In loops under load, whose steps take a
#: millisecond each, one function is in less than half of them.
MIN_SAME = 0.9
#: Least share of all samples at one innermost line, and seconds of a callback on average, that tell one slow call made again
#: and again from many small steps.
MIN_SAME_CALL, SAME_CALL_S = 0.85, 0.005
#: Where each callback delays the loop noticeably, a smaller share of the samples is enough.
_MIN_LONG_CALL, _LONG_CALL_S = 0.6, 0.05


class SameCall(NamedTuple):
    """A call that callback after callback makes.

    - ``frame``: the program's line that makes it; the library's own if the program has none there
    - ``share``: of all samples of the loop's thread
    """

    frame: PythonFrame
    share: float


def step(frames: Tuple[PythonFrame, ...], task: Optional[Task] = None) -> Optional[Tuple[PythonFrame, ...]]:
    """Return the frames of the current callback or step, above the loop's own; None outside one.

    ``task``: the one that runs, for loops whose own code leaves no frames: its outermost coroutine begins the step.
    """
    at = next((i for i, f in enumerate(frames) if knowledge.in_table(f, STEPS)), None)
    if at is None and task is not None and task.stack:
        outer = task.stack[-1].file, task.stack[-1].function
        at = next((i + 1 for i, f in enumerate(frames) if (f.file, f.function) == outer), None)
    if at is None:
        return None
    above = frames[:at]
    return above if any(not knowledge.is_loop_machinery(f) for f in above) else None


def running(process: Process, thread: Thread) -> Optional[Task]:
    """Return the task that runs on a loop's thread; None if there is none.

    A native thread of gevent's pool does its jobs in a greenlet beside a hub of its own, on which nothing else runs.
    """
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    if loop is None or any(knowledge.in_table(frame, _POOLS) for frame in thread.python[-2:]):
        return None
    return next((t for t in process.tasks if t.state == "running" and t.loop == loop.id), None)


def computes(view: View, thread: Thread) -> bool:
    """Return whether a thread runs and uses all the CPU it can get."""
    return thread.wait is None and bool(view.computes(thread))


def kept_in(view: View, process: Process, thread: Thread) -> Optional[PythonFrame]:
    """Return the innermost line of the program, within the callback, whose function is in (nearly) all samples.

    Without samples inside a callback, the innermost line of the stack.
    """
    task = running(process, thread)
    now = step(thread.python, task) or ()
    own = [f for f in now if not knowledge.is_library(f)] or [f for f in now if not knowledge.is_stdlib(f)]
    seen: Counter[Tuple[str, str]] = Counter()
    inside = 0
    for count, frames in view.samples(thread):
        above = step(frames, task)
        inside += count if above is not None else 0
        seen.update({key: count for key in {(f.file, f.function) for f in above or ()}})
    if not inside:
        return next(iter(own), None)
    return next((f for f in own if seen[(f.file, f.function)] >= MIN_SAME * inside), None)


def inside(view: View, process: Process, thread: Thread) -> float:
    """Return the share of samples inside a callback."""
    task = running(process, thread)
    return view.sampled_share(thread, lambda frames: step(frames, task) is not None)


def fills(process: Process, thread: Thread) -> Optional[str]:
    """Return the name of a growing unbounded queue that a line on the thread's stack puts into; None if there is none."""
    lines = {(f.file, f.line) for f in thread.python}
    growing = (b for b in process.backlogs if not b.limit and (b.growth or 0) > 0)
    return next((b.name for b in growing if any((f.file, f.line) in lines for f in b.filled_at)), None)


def is_coroutine(process: Process, loop: Optional[Loop], frame: PythonFrame) -> bool:
    """Return whether a frame is in the running task's own chain of awaits, or is the function that a greenlet runs."""
    running = [t for t in process.tasks if t.state == "running" and (loop is None or t.loop == loop.id)]
    greenlets = loop is not None and loop.kind in _OF_GREENLETS
    chains = [_entered(task.stack) if greenlets else task.stack for task in running]
    return any((f.file, f.function) == (frame.file, frame.function) for chain in chains for f in chain)


def _entered(frames: Tuple[PythonFrame, ...]) -> Tuple[PythonFrame, ...]:
    """Return the frame of the function that a greenlet runs, the outermost but for eventlet's own."""
    return tuple(frame for frame in frames if not frame.file.endswith("eventlet/greenthread.py"))[-1:]


def calls_out(view: View, process: Process, thread: Thread, least: float) -> bool:
    """Return whether the innermost coroutine of the running task is inside one call of an ordinary function.

    ``least``: the share of samples in which that function is on the stack. The coroutine may be a library's own.
    """
    task = running(process, thread)
    chain = {(f.file, f.function) for f in task.stack} if task is not None else set()
    at = next((i for i, f in enumerate(thread.python) if (f.file, f.function) in chain), 0)
    if not at:
        return False
    called = thread.python[at - 1].file, thread.python[at - 1].function
    return view.sampled_share(thread, lambda frames: any((f.file, f.function) == called for f in frames)) >= least


def same_call(view: View, loop: Optional[Loop], thread: Thread) -> Optional[SameCall]:
    """Return the call of a library that the callbacks of a loop's turn all make, and that takes each some time; else None.

    Nearly all samples are at one innermost line of it, or below one line of the program that calls it and awaits nothing; a
    callback lasts for ``SAME_CALL_S`` or more on average. Of long callbacks most samples are enough.
    """
    length = loop.turn_s / ((loop.turn_done or 0) + 1) if loop is not None and loop.turn_s is not None else 0.0
    if length < SAME_CALL_S:
        return None
    seen: Counter[Tuple[str, Optional[int]]] = Counter()
    frame_of: Dict[Tuple[str, Optional[int]], PythonFrame] = {}
    total = 0
    for count, frames in view.samples(thread):
        total += count
        inner = frames[0] if frames else None
        if inner is None or not knowledge.is_library(inner) or knowledge.is_loop_machinery(inner):
            continue
        own = next((frame for frame in frames if not knowledge.is_library(frame)), None)
        seen[inner.file, inner.line] += count
        frame_of.setdefault((inner.file, inner.line), own or inner)
        if own is not None and not _may_await(view, own):
            seen[own.file, own.line] += count
            frame_of[own.file, own.line] = own
    place, count = next(iter(seen.most_common(1)), (("", None), 0))
    least = _MIN_LONG_CALL if length >= _LONG_CALL_S else MIN_SAME_CALL
    return SameCall(frame_of[place], count / total) if count and count >= least * total else None


def _may_await(view: View, frame: PythonFrame) -> bool:
    """Return whether a line awaits, as far as its source is known."""
    text = view.evidence.source(frame.file, frame.line)
    return text is None or "await " in text or "async " in text


def others(process: Process, loop: Optional[Loop]) -> List[Task]:
    """Return the loop's tasks that wait while one runs."""
    return [t for t in process.tasks if loop is not None and t.loop == loop.id and t.state == "pending"]


def is_alone(process: Process, loop: Optional[Loop]) -> bool:
    """Return whether the loop has nothing to do but the current callback, so that nothing is delayed."""
    if loop is None or others(process, loop):
        return False
    return (loop.ready, loop.scheduled, loop.watched) == (0, 0, 0)
