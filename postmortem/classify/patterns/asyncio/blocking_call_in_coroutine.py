"""A synchronous call blocks the thread of an event loop.

**What it looks like.** The loop's thread is inside a callback or the step of a task, at the same call in every sample: a
sleep, a socket, a subprocess, a lock, or a computation. The loop's `select` is never reached.

**Easily mistaken for** a short piece of work between two turns; `event-loop-starvation`, where each of many tasks has a
little work; `loop-self-wait`, where the call waits for the loop itself.

**Why it hangs.** An event loop runs one callback at a time, on one thread. Until it returns, no other task moves, no timer
fires, no connection is served, and none of the loop's own timeouts expires.

**Remedy.** Await the asynchronous equivalent (`asyncio.sleep`, an asynchronous client, `create_subprocess_exec`), or move
the call to a thread: `await asyncio.to_thread(...)`, `loop.run_in_executor(None, ...)`.
"""

from __future__ import annotations

from typing import Iterator, List, Optional

from ....evidence import Loop, Process, PythonFrame, Task, Thread
from ....waitgraph import Agent
from ...facts import knowledge
from ...facts.knowledge import short
from ...facts.view import View, label, plural
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .loopsteps import computes, fills, inside, is_alone, is_coroutine, kept_in, others, step

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

#: Seconds: blocking an event loop for so long is never intended.
LONG_S = 5.0
#: Least share of the loop thread's samples inside a callback or step.
MIN_INSIDE = 0.9


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each loop thread inside a callback: whether the callback blocks the loop."""
    for process in view.pythons:
        for thread in process.threads:
            if step(thread.python) is None:
                continue
            if view.graph.stuck(Agent(process.pid, thread.tid)) is not None:
                yield No(f"the loop of {label(thread)} is blocked for good by what it waits for: that is the cause")
                continue
            yield _answer(view, process, thread)


def _answer(view: View, process: Process, thread: Thread) -> Answer:
    """Return a match if one callback blocks the loop."""
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    kept = kept_in(view, thread)
    why_not = _why_not(view, process, thread, loop, kept)
    if why_not or kept is None:
        return No(why_not or f"the loop of {label(thread)} is busy with many callbacks, not kept by one")
    lasts = loop is not None and loop.callback_lasts_s is not None
    if not lasts and (not thread.samples or thread.counters is None):
        if thread.wait is None or thread.wait.kind in ("gil", "event-loop"):
            return CannotTell(("an observation window: does the callback of the event loop come back?",))
        return _match(view, process, thread, kept, None)
    share = inside(view, thread)
    if not lasts and share < MIN_INSIDE:
        return No(f"the loop of {label(thread)} comes back from its callbacks")
    return _match(view, process, thread, kept, share)


def _why_not(
    view: View, process: Process, thread: Thread, loop: Optional[Loop], kept: Optional[PythonFrame]
) -> Optional[str]:
    """Return why the loop is not blocked by one call; None if nothing contradicts that."""
    if loop is not None and loop.turned:
        return f"the loop of {label(thread)} turned during the window: its callbacks come back"
    if loop is not None and loop.turned is False and loop.callback_lasts_s is None:
        return f"the loop of {label(thread)} goes from callback to callback, though its turn is long"
    if kept is not None and computes(view, thread) and is_coroutine(process, loop, kept):
        return f"{label(thread)} computes in the coroutine {kept.function} itself, and does not await"
    filled = fills(process, thread)
    return (
        f"{label(thread)} fills {filled}, which never makes it wait, and so never gives the loop a turn"
        if filled
        else None
    )


def _sleeps_long(thread: Thread) -> bool:
    """Return whether the thread is in a long sleep, whose duration is known from the call itself."""
    return thread.wait is not None and thread.wait.kind == "sleep" and (thread.wait.timeout_s or 0.0) >= LONG_S


def _match(view: View, process: Process, thread: Thread, here: PythonFrame, same: Optional[float]) -> Match:
    busy = computes(view, thread)
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    alone, waiting = is_alone(process, loop), others(process, loop)
    does = "computes" if busy else _waiting(thread)
    facts = [f"{label(thread)} runs an event loop, and is inside a callback of it at {short(here)}: it {does}"]
    lasts = loop is not None and loop.callback_lasts_s is not None
    if loop is not None and lasts and loop.turn_s is not None:
        facts.append(f"the loop's present turn began {loop.turn_s:.1f} s ago, and it runs the same callback since")
    if loop is not None and loop.next_timer_s is not None and loop.next_timer_s < 0:
        facts.append(f"the loop's first timer is {-loop.next_timer_s:.1f} s late")
    if same is not None:
        facts.append(f"it was inside this callback in {same:.0%} of the samples over {view.window or 0:.1f} s")
    else:
        facts.append("one moment only: capture the running process to see whether the call comes back")
    call = thread.calling
    if call is not None and call.lasts_s is not None:
        facts.append(f"it is in the same call of {call.function} since {call.lasts_s:.1f} s and more")
    facts += (
        _kept(loop, waiting) if not alone else ["the loop has nothing else to do: it keeps nobody waiting but itself"]
    )
    sure = lasts or _sleeps_long(thread) or (same is not None and not busy)
    return Match(
        confidence="likely" if sure and not alone else "possible",
        summary=f"{label(thread)} {does} at {short(here)}, inside its event loop: nothing else of the loop can run",
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, thread) for f in view.loops_around(_frames(thread, here))),
        victims=tuple(view.victim_of(Agent(process.pid, task=task.id)) for task in waiting[:20]),
        pid=process.pid,
    )


def _waiting(thread: Thread) -> str:
    wait = thread.wait
    if wait is None:
        return "was running"
    return wait.phrase if wait.phrase and wait.verb == "waits" else f"waits ({wait.phrase or wait.kind})"


def _kept(loop: Optional[Loop], waiting: List[Task]) -> Iterator[str]:
    """Yield sentences on the tasks and callbacks that cannot run."""
    if waiting:
        yield f"{plural(len(waiting), 'other task')} of this loop cannot run meanwhile"
    if loop is not None and loop.ready:
        yield f"{plural(loop.ready, 'callback')} of the loop {'stands' if loop.ready == 1 else 'stand'} ready"


def _frames(thread: Thread, here: PythonFrame) -> List[PythonFrame]:
    """Return the blocking line, and up to two of the program's own callers up to the loop."""
    above = list(step(thread.python) or ())
    at = above.index(here) if here in above else 0
    return [here, *[f for f in above[at + 1 :] if not knowledge.is_library(f)][:2]]
