"""Cancelled scopes of anyio that a task does not leave: the cancellation is delivered again at every turn of the loop.

``CancelScope._deliver_cancellation`` reschedules itself with ``call_soon`` as long as a task is left in the scope (anyio
2.0-4.12, _backends/_asyncio.py). A task that catches the cancellation, or is shielded from it while it waits for
something that never comes, keeps the loop turning at full speed.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Set, Tuple

from ....evidence import Loop, Process, PythonFrame, Task, Thread
from ....findings import Template, Text
from ....waitgraph import Agent
from ...facts.clauses import named
from ...facts.knowledge import in_table, is_library, is_loop_machinery, is_stdlib, own_frame
from ...facts.view import View
from ...pattern import Match

#: Least share of samples inside a delivery that runs at the moment of capture.
_OFTEN = 0.2
_DELIVERS = (("anyio/_backends/_asyncio.py", "_deliver_cancellation"),)
_REMEDY = Template(
    "Make sure that code which runs while a scope is being cancelled ends: give the shielded part a deadline "
    "(`move_on_after(seconds, shield=True)`), and never catch the cancellation without raising it again. Upgrade anyio, too."
)
_SUMMARY = Template(
    "the event loop of {thread} never sleeps: a cancelled scope is cancelled again at every turn{where}"
)
_STAY = Template(": {count:n task} {count:v has|have} not left it, at {first}")
_TURNS = Template(
    "the loop's thread wanted {wanted:.0%} of a core, and in {spin:.0%} of its samples it only turns the loop, delivers a "
    "cancellation or goes back to sleep"
)
_AGAIN = Template(
    "{callback} is in its ready queue: anyio calls it in every turn until the last task has left the scope"
)
_RUNS = Template("{callback} runs now: anyio calls it in every turn until the last task has left the scope")
_STILL = Template("{task} still waits at {frame}")


def undelivered(view: View, process: Process, min_cpu: float, min_spin: float) -> Iterator[Match]:
    """Yield a match for each loop that spins this way.

    ``min_cpu`` is the least share of a core that its thread wants, ``min_spin`` the least share of its samples that only
    turn the loop.
    """
    for loop in process.loops:
        thread = view.thread(process, loop.tid)
        if thread is None:
            continue
        again = _again(view, loop, thread)
        if again is None or (view.wanted_share(thread) or 0.0) < min_cpu:
            continue
        spin = _spin(view, process, thread)
        if spin >= min_spin:
            yield _match(view, process, loop, thread, spin, again)


def _again(view: View, loop: Loop, thread: Thread) -> Optional[Text]:
    """Return why a cancellation is delivered again and again: it is in the ready queue, or runs now and in many samples."""
    queued = next((f for f in loop.ready_callbacks if in_table(f, _DELIVERS)), None)
    if queued is not None:
        return _AGAIN(callback=queued)
    runs = next((f for f in thread.python if in_table(f, _DELIVERS)), None)
    often = view.sampled_share(thread, lambda frames: any(in_table(f, _DELIVERS) for f in frames)) >= _OFTEN
    return _RUNS(callback=runs) if runs is not None and often else None


def _spin(view: View, process: Process, thread: Thread) -> float:
    """Return the share of samples in the loop, in anyio, or at a line where a task awaits.

    The last is a step that the cancellation woke and that suspends again.
    """
    awaits = {(f.file, f.line, f.function) for t in process.tasks if t.state == "pending" for f in t.stack}
    return view.sampled_share(thread, lambda frames: bool(frames) and _turns(frames, awaits))


def _turns(frames: Tuple[PythonFrame, ...], awaits: Set[Tuple[str, Optional[int], str]]) -> bool:
    """Return whether a sample does no work of the program."""
    inner = next((f for f in frames if not is_stdlib(f)), frames[0])
    return (
        is_loop_machinery(frames[0]) or is_loop_machinery(inner) or (inner.file, inner.line, inner.function) in awaits
    )


def _match(view: View, process: Process, loop: Loop, thread: Thread, spin: float, again: Text) -> Match:
    left = [t for t in process.tasks if t.loop == loop.id and t.state == "pending" and t.ready is False]
    places: List[Tuple[Task, PythonFrame]] = [(t, f) for t in left[:20] for f in t.stack if not is_library(f)]
    seen = [f for _n, frames in view.samples(thread) for f in frames if in_table(f, _DELIVERS)]
    seen = seen or [f for f in loop.ready_callbacks if in_table(f, _DELIVERS)][:1]
    first = own_frame(left[0].stack) if left else None
    where = _STAY(count=len(left), first=first) if first is not None else None
    culprits = [view.culprit_of(Agent(process.pid, task=t.id), f) for t, f in places]
    culprits += [view.culprit(process, f, thread) for f in dict.fromkeys(seen)]
    return Match(
        confidence="likely",
        summary=_SUMMARY(thread=named(thread), where=where),
        evidence=(
            _TURNS(wanted=view.wanted_share(thread) or 0, spin=spin),
            again,
            *(_STILL(task=Agent(process.pid, task=t.id), frame=f) for t in left[:4] for f in [own_frame(t.stack)] if f),
        ),
        culprits=tuple(dict.fromkeys(culprits)),
        remedy=_REMEDY(),
        pid=process.pid,
    )
