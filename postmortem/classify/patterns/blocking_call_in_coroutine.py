"""A synchronous call blocks the thread of an event loop.

**What it looks like.** The loop's thread is inside a callback or the step of a task, at the same call in every sample: a
sleep, a socket, a subprocess, a lock, or a computation. The loop's `select` is never reached.

**Easily mistaken for** a short slice of work between two turns; `event-loop-starvation`, where every task has a little;
`loop-self-wait`, where the call waits for the loop itself.

**Why it hangs.** An event loop runs one callback at a time, on one thread. As long as one does not come back, no other
task moves, no timer fires, no connection is served, and no timeout of the loop's own strikes.

**Remedy.** Await the asynchronous equivalent (`asyncio.sleep`, an asynchronous client, `create_subprocess_exec`), or move
the call to a thread: `await asyncio.to_thread(...)`, `loop.run_in_executor(None, ...)`.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterator, List, Optional, Tuple

from ...evidence import Loop, Process, PythonFrame, Task, Thread
from ...waitgraph import Agent
from .. import knowledge
from ..knowledge import short
from ..pattern import Answer, CannotTell, Match, No, Pattern
from ..view import View, label, plural

PATTERN = Pattern(
    id="blocking-call-in-coroutine",
    title="a synchronous call blocks the event loop's thread",
    explanation=(
        "An event loop serves all its tasks on one thread, one after the other. One of them has made an ordinary call that "
        "waits, or computes for long, instead of awaiting: until it comes back, no other task, timer or timeout of this "
        "loop can run."
    ),
    remedy=(
        "Await the asynchronous equivalent of the call (asyncio.sleep, an asynchronous client, asyncio.Lock), or make it on "
        "another thread: `await asyncio.to_thread(function, ...)` (loop.run_in_executor up to Python 3.8)."
    ),
    needs=("window",),
    outranks=("network-wait", "sleeping", "child-wait", "stdin-wait", "file-lock-wait", "dns-wait", "disk-wait",
              "python-busy-loop", "lock-contention", "pipe-never-closed", "gil-contention", "event-loop-starvation"),
    references=("https://docs.python.org/3/library/asyncio-dev.html#running-blocking-code",),
)  # fmt: skip

#: Of the loop thread's samples: inside a callback or step, and of these at the same place. Loops under load, whose steps
#: take a millisecond each, are at one place in less than half of the samples.
MIN_INSIDE, MIN_SAME = 0.9, 0.9
#: Of a core: computes rather than waits.
BUSY = 0.8
#: Further threads that run an event loop: (file ending, function that runs one callback).
_STEPS = (knowledge.LOOP_STEP, ("uvloop/loop.pyx", "_run"), ("tornado/ioloop.py", "_run_callback"))


def match(view: View) -> Iterator[Answer]:
    for process in view.pythons:
        for thread in process.threads:
            if _step(thread.python) is None:
                continue
            if view.graph.stuck(Agent(process.pid, thread.tid)) is not None:
                yield No(f"the loop of {label(thread)} is blocked for good by what it waits for: that is the cause")
                continue
            yield _answer(view, process, thread)


def _step(frames: Tuple[PythonFrame, ...]) -> Optional[Tuple[PythonFrame, ...]]:
    """The frames above the loop's own, of a callback or step that is being run; None outside of one."""
    at = next((i for i, f in enumerate(frames) if knowledge.in_table(f, _STEPS)), None)
    if at is None:
        return None
    above = frames[:at]
    return above if any(not knowledge.is_loop_machinery(f) for f in above) else None


def _answer(view: View, process: Process, thread: Thread) -> Answer:
    here = _place(thread)
    if here is None:
        return No(f"the loop of {label(thread)} was between two turns")
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    if loop is not None and loop.turned:
        return No(f"the loop of {label(thread)} turned during the window: its callbacks come back")
    lasts = loop is not None and loop.callback_lasts_s is not None
    if not lasts and (not thread.samples or thread.counters is None):
        if thread.wait is None or thread.wait.kind in ("gil", "event-loop"):
            return CannotTell(("an observation window: does the callback of the event loop come back?",))
        return _match(view, process, thread, here, None)
    inside, same = _shares(view, thread, here)
    if not lasts and inside < MIN_INSIDE:
        return No(f"the loop of {label(thread)} comes back from its callbacks")
    if not lasts and same < MIN_SAME:
        return No(f"the loop of {label(thread)} is busy with many callbacks, not kept by one")
    return _match(view, process, thread, here, same)


def _place(thread: Thread) -> Optional[PythonFrame]:
    """The program's line, of the callback or what it called, that does not come back."""
    return knowledge.own_frame(_step(thread.python) or ())


def _shares(view: View, thread: Thread, here: PythonFrame) -> Tuple[float, float]:
    """(of all samples those inside a callback, of these those with this place on the stack)"""
    total = inside = 0
    at_place: Counter[Tuple[str, str]] = Counter()
    for count, frames in view.samples(thread):
        total += count
        above = _step(frames)
        if above is not None:
            inside += count
            at_place.update({key: count for key in {(f.file, f.function) for f in above}})
    return inside / max(1, total), at_place[(here.file, here.function)] / max(1, inside)


def _match(view: View, process: Process, thread: Thread, here: PythonFrame, same: Optional[float]) -> Match:
    share = view.wanted_share(thread)
    computes = share is not None and share >= BUSY
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    others = [t for t in process.tasks if loop is not None and t.loop == loop.id and t.state == "pending"]
    does = "computes" if computes else _waiting(thread)
    facts = [f"{label(thread)} runs an event loop, and is inside a callback of it at {short(here)}: it {does}"]
    if loop is not None and loop.callback_lasts_s is not None and loop.turn_s is not None:
        facts.append(f"the loop's present turn began {loop.turn_s:.1f} s ago, and it runs the same callback since")
    if loop is not None and loop.next_timer_s is not None and loop.next_timer_s < 0:
        facts.append(f"the loop's first timer is {-loop.next_timer_s:.1f} s late")
    if same is not None:
        facts.append(f"it was there in {same:.0%} of the samples over {view.window or 0:.1f} s")
    else:
        facts.append("one moment only: capture the running process to see whether the call comes back")
    if thread.calling is not None and thread.calling.lasts_s is not None:
        facts.append(
            f"it is in the same call of {thread.calling.function} since {thread.calling.lasts_s:.1f} s and more"
        )
    facts += _kept(loop, others)
    frames = _frames(thread, here)
    return Match(
        confidence="possible" if same is None else "likely",
        summary=f"{label(thread)} {does} at {short(here)}, inside its event loop: nothing else of the loop can run",
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, thread) for f in view.loops_around(frames)),
        victims=tuple(view.victim_of(Agent(process.pid, task=task.id)) for task in others[:20]),
        pid=process.pid,
    )


def _waiting(thread: Thread) -> str:
    wait = thread.wait
    if wait is None:
        return "was running"
    return wait.detail if wait.detail and wait.detail.startswith("waits") else f"waits ({wait.detail or wait.kind})"


def _kept(loop: Optional[Loop], others: List[Task]) -> Iterator[str]:
    if others:
        yield f"{plural(len(others), 'other task')} of this loop cannot run meanwhile"
    if loop is not None and loop.ready:
        yield f"{plural(loop.ready, 'callback')} of the loop {'stands' if loop.ready == 1 else 'stand'} ready"


def _frames(thread: Thread, here: PythonFrame) -> List[PythonFrame]:
    """The line that does not come back, and the program's own callers up to the loop."""
    above = [f for f in _step(thread.python) or () if not knowledge.is_library(f) and f != here]
    return [here, *above[:2]]
