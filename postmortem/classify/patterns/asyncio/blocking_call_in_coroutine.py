"""A synchronous call blocks the thread of an event loop.

**What it looks like.** The loop's thread is inside a callback or the step of a task, at the same call in every sample: a
sleep, a socket, a subprocess, a lock, or a computation. The loop's `select` is never reached, or only between long calls.

**Easily mistaken for** a short piece of work between two turns; `event-loop-starvation`, where each of many tasks has a
little work; `loop-self-wait`, where the call waits for the loop itself.

**Why it hangs.** An event loop runs one callback at a time, on one thread. Until it returns, no other task moves, no timer
fires, no connection is served, and none of the loop's own timeouts expires.

**Remedy.** Await the asynchronous equivalent (`asyncio.sleep`, an asynchronous client, `create_subprocess_exec`), or move
the call to a thread: `await asyncio.to_thread(...)`, `loop.run_in_executor(None, ...)`.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from ....evidence import Loop, Process, PythonFrame, Task, Thread
from ....findings import Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import knowledge
from ...facts.clauses import named
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .loopsteps import (
    SameCall,
    calls_out,
    computes,
    fills,
    inside,
    is_alone,
    is_coroutine,
    kept_in,
    others,
    running,
    same_call,
    step,
)

PATTERN = Pattern(
    id="blocking-call-in-coroutine",
    tier="group",
    title="a synchronous call blocks the event loop's thread",
    explanation=(
        "An event loop serves all its tasks on one thread, one after the other. One of them has made an ordinary call that "
        "waits, or computes for long, instead of awaiting: until it returns, no other task, timer or timeout of this loop "
        "can run."
    ),
    remedy=(
        "Await the asynchronous equivalent of the call (asyncio.sleep, an asynchronous client, asyncio.Lock), or make it on "
        "another thread: `await asyncio.to_thread(function, ...)` (loop.run_in_executor up to Python 3.8)."
    ),
    needs=("window",),
    references=("https://docs.python.org/3/library/asyncio-dev.html#running-blocking-code",),
)  # fmt: skip

#: Seconds: blocking an event loop for so long is never intended.
LONG_S = 5.0
#: Least share of the loop thread's samples inside a callback or step.
MIN_INSIDE = 0.9
#: Seconds by which a timer of the loop is late when many short calls block it, as one long one would.
LATE_S = 1.0
#: Seconds of a callback that delays others noticeably.
SLOW_S = 0.1

_FOR_GOOD = Template("the loop of {thread} is blocked for good by what its thread waits for: that is the cause")
_TYPED = Template("{thread} runs what a person has typed: its shell does so on its own event loop on purpose")
_MANY = Template("the loop of {thread} is busy with many callbacks, not blocked by one")
_NO_WINDOW = Template("an observation window: does the callback of the event loop return?")
_COMES_BACK = Template("the callbacks of the loop of {thread} return")
_TURNED = Template("the loop of {thread} began another turn during the window: its callbacks return")
#: Seconds by which a loop's first timer is late after several long calls in a row.
_VERY_LATE_S = 2.0
#: Wake-ups a second of a loop's thread: with fewer, each of its calls lasts for a tenth of a second or more, on average.
_FEW_WAKES = 10.0
_GOES_ON = Template("the loop of {thread} goes from callback to callback, although its turn is long")
_IN_COROUTINE = Template("{thread} computes in the coroutine {function} itself, and does not await")
_FILLS = Template("{thread} fills {queue}, which has no bound and never makes it wait, so the loop never gets a turn")
_BLOCKS = Template("{thread} {does} at {frame}, inside its event loop: nothing else on that loop can run")
_INSIDE = Template("{thread} runs an event loop, and is inside one of its callbacks at {frame}: it {does}")
_COMPUTES = Template("computes")
_RAN = Template("was running")
_WAITS = Template("waits ({what})")
_TURN = Template("the loop's current turn began {age:.1f} s ago, and it has run the same callback ever since")
_LATE = Template("the loop's first timer is {late:.1f} s late")
_SAMPLES = Template("it was inside this callback in {share:.0%} of the samples over {window:.1f} s")
_SAMPLES_AGAIN = Template(
    "it was in this function, in one callback after the other, in {share:.0%} of the samples over {window:.1f} s"
)
_NESTED = Template(
    "{thread} is in the selector of its loop: the callback itself runs the loop, whose other tasks go on"
)
_ONE_MOMENT = Template("one moment only: capture the running process to see whether the call returns")
_SAME_CALL = Template("it has been in the same call of {function} for {lasts:.1f} s or more")
_ALONE = Template("the loop has nothing else to do: nothing is delayed")
_OTHERS = Template("{count:n other task} of this loop cannot run meanwhile")
_READY = Template("{count:n callback} of the loop {count:v is|are} ready")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each loop thread inside a callback: whether the callback blocks the loop.

    A worker of gevent's thread pool that waits for a job has a hub, too, and nothing to do on it.
    """
    for process in view.pythons:
        for thread in process.threads:
            if step(thread.python, running(process, thread)) is None or view.idle(thread):
                continue
            if knowledge.is_typed(thread.python):
                yield No(_TYPED(thread=named(thread)))
                continue
            if view.graph.stuck(Agent(process.pid, thread.tid)) is not None:
                yield No(_FOR_GOOD(thread=named(thread)))
                continue
            yield _answer(view, process, thread)


def _answer(view: View, process: Process, thread: Thread) -> Answer:
    """Return a match if one callback blocks the loop."""
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    same = same_call(view, loop, thread)
    kept = kept_in(view, process, thread) or (same.frame if same is not None else None)
    again = _again(view, process, thread, loop, kept, same)
    if again is not None and kept is not None:
        return _match(view, process, thread, kept, again, again=True, shared=same is not None)
    why_not = _why_not(view, process, thread, loop, kept)
    if why_not or kept is None:
        return No(why_not or _MANY(thread=named(thread)))
    lasts = loop is not None and loop.callback_lasts_s is not None
    if not lasts and (not thread.samples or thread.counters is None):
        if thread.wait is None or thread.wait.kind in ("gil", "event-loop"):
            return CannotTell((_NO_WINDOW(),))
        return _match(view, process, thread, kept, None)
    share = inside(view, process, thread)
    if not lasts and share < MIN_INSIDE:
        return No(_COMES_BACK(thread=named(thread)))
    return _match(view, process, thread, kept, share)


def _is_very_late(loop: Loop) -> bool:
    """Return whether the loop's first timer is late by more than any short slice of work explains."""
    return loop.next_timer_s is not None and loop.next_timer_s < -_VERY_LATE_S


def _has_long_callbacks(loop: Loop) -> bool:
    """Return whether the callbacks of the loop's turn have lasted long each, on average: few long calls, not many short ones."""
    if loop.turn_s is None or loop.turn_done is None:
        return False
    return loop.turn_s / (loop.turn_done + 1) >= LATE_S


def _delays(loop: Loop) -> bool:
    """Return whether the loop's callbacks are slow enough, on average, to delay others noticeably, and others are ready."""
    slow = loop.turn_s is not None and loop.turn_s / ((loop.turn_done or 0) + 1) >= SLOW_S
    return slow and bool(loop.ready or (loop.next_timer_s is not None and loop.next_timer_s < 0))


def _again(
    view: View,
    process: Process,
    thread: Thread,
    loop: Optional[Loop],
    kept: Optional[PythonFrame],
    same: Optional[SameCall],
) -> Optional[float]:
    """Return the share of samples at a line where one callback after the other waits long, or computes while the loop is late.

    The loop turns, or its turn goes on with the next callback, but each makes the same synchronous call. None otherwise.
    """
    if loop is None or kept is None or loop.callback_lasts_s is not None:
        return None
    if same is not None and loop.ready:
        return same.share
    late = loop.next_timer_s is not None and loop.next_timer_s < -LATE_S
    waits = thread.wait is not None and thread.wait.kind not in ("gil", "event-loop") and view.rests(thread)
    called = _is_very_late(loop) and _has_long_callbacks(loop) and not is_coroutine(process, loop, kept)
    wakes = view.switches(thread)
    long = (
        waits and wakes is not None and wakes <= _FEW_WAKES
    )  # though the first of the loop's timers has just been served
    slow = _delays(loop) and computes(view, thread) and not is_coroutine(process, loop, kept)
    if not ((late and (waits or called)) or long or slow):
        return None
    place = (kept.file, kept.function, None if slow else kept.line)
    share = view.sampled_share(
        thread, lambda frames: any((f.file, f.function, None if slow else f.line) == place for f in frames)
    )
    return share if share >= MIN_INSIDE else None


def _why_not(
    view: View, process: Process, thread: Thread, loop: Optional[Loop], kept: Optional[PythonFrame]
) -> Optional[Text]:
    """Return why the loop is not blocked by one call; None if nothing contradicts that."""
    if loop is not None and loop.turned:
        return _TURNED(thread=named(thread))
    only = sum(one.tid == thread.tid for one in process.loops) == 1
    if only and loop is not None and not loop.ready and thread.wait is not None and thread.wait.kind == "event-loop":
        return _NESTED(thread=named(thread))
    if loop is not None and loop.turned is False and loop.callback_lasts_s is None:
        return _GOES_ON(thread=named(thread))
    if (
        kept is not None
        and computes(view, thread)
        and is_coroutine(process, loop, kept)
        and not calls_out(view, process, thread, MIN_INSIDE)
    ):
        return _IN_COROUTINE(thread=named(thread), function=kept.function)
    filled = fills(process, thread)
    return _FILLS(thread=named(thread), queue=filled) if filled else None


def _sleeps_long(thread: Thread) -> bool:
    """Return whether the thread is in a long sleep, whose duration is known from the call itself."""
    return thread.wait is not None and thread.wait.kind == "sleep" and (thread.wait.timeout_s or 0.0) >= LONG_S


def _match(
    view: View,
    process: Process,
    thread: Thread,
    here: PythonFrame,
    same: Optional[float],
    again: bool = False,
    shared: bool = False,
) -> Match:
    busy = computes(view, thread)
    loop = next((one for one in process.loops if one.tid == thread.tid), None)
    alone, waiting = is_alone(process, loop), others(process, loop)
    does = _COMPUTES() if busy else _waiting(thread)
    facts = [_INSIDE(thread=named(thread), frame=here, does=does)]
    lasts = loop is not None and loop.callback_lasts_s is not None
    if loop is not None and lasts and loop.turn_s is not None:
        facts.append(_TURN(age=loop.turn_s))
    if loop is not None and loop.next_timer_s is not None and loop.next_timer_s < 0:
        facts.append(_LATE(late=-loop.next_timer_s))
    if same is not None:
        told = _SAMPLES_AGAIN if again else _SAMPLES
        facts.append(told(share=same, window=view.window or 0))
    else:
        facts.append(_ONE_MOMENT())
    call = thread.calling
    if call is not None and call.lasts_s is not None:
        facts.append(_SAME_CALL(function=call.function, lasts=call.lasts_s))
    facts += _kept(loop, waiting) if not alone else [_ALONE()]
    endless = thread.wait is not None and thread.wait.endless is True and bool(waiting)
    sure = lasts or _sleeps_long(thread) or (not busy if same is not None else endless)
    sure = sure or (again and loop is not None and _is_very_late(loop) and (not busy or _has_long_callbacks(loop)))
    return Match(
        confidence="likely" if (sure or shared) and not alone else "possible",
        summary=_BLOCKS(thread=named(thread), does=does, frame=here),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, thread) for f in _frames(view, process, thread, here)),
        victims=tuple(view.victim_of(Agent(process.pid, task=task.id)) for task in waiting[:20]),
        pid=process.pid,
    )


def _waiting(thread: Thread) -> Said:
    wait = thread.wait
    if wait is None:
        return _RAN()
    return (
        wait.phrase
        if wait.phrase and wait.verb == "waits"
        else _WAITS(what=wait.phrase or (wait.syscall if wait.kind == "other" else wait.kind))
    )


def _kept(loop: Optional[Loop], waiting: List[Task]) -> Iterator[Text]:
    """Yield texts on the tasks and callbacks that cannot run."""
    if waiting:
        yield _OTHERS(count=len(waiting))
    if loop is not None and loop.ready:
        yield _READY(count=loop.ready)


def _frames(view: View, process: Process, thread: Thread, here: PythonFrame) -> List[PythonFrame]:
    """Return the blocking line, the coroutine's call that leads there, two of the callers between, and the loops around."""
    task = running(process, thread)
    above = list(step(thread.python, task) or ())
    at = above.index(here) if here in above else 0
    callers = [frame for frame in above[at + 1 :] if not knowledge.is_library(frame)]
    coroutines = {(frame.file, frame.function) for frame in task.stack} if task is not None else set()
    calls = [frame for frame in callers if (frame.file, frame.function) in coroutines] or callers[-1:]
    lines: Dict[object, PythonFrame] = {}
    for frame in view.loops_around([here, *calls[:1], *callers[:2]]):
        lines.setdefault((frame.file, frame.line), frame)
    return list(lines.values())
