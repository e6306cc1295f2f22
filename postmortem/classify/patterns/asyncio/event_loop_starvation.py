"""So many tasks are ready that each of them waits long for its turn.

**What it looks like.** The event loop's thread is at work all the time, in another callback or task at every observation, and
dozens or hundreds are in the loop's ready queue. Heartbeats and timers are late.

**Easily mistaken for** `busy-event-loop`, where one or a few tasks poll and do nothing; `blocking-call-in-coroutine`, where
a single call does not return.

**Why it is slow.** The ready queue is first come, first served. A task that wakes up goes to its end, and gets its turn after
all tasks before it: 200 tasks of 10 ms each take two seconds. A semaphore does not help, because the tasks that it lets
through join the same queue; nor do priorities, which asyncio does not have.

**Remedy.** Let a few workers take jobs from a bounded queue, so that only as many tasks are ready as there are workers;
move the computation to threads or processes; make the slices shorter.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterator, List, Optional, Tuple

from ....evidence import Loop, Process, PythonFrame, Task, Thread
from ....findings import Template
from ...facts import knowledge
from ...facts.clauses import named
from ...facts.polling import pollers
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .loopsteps import running, same_call, step

PATTERN = Pattern(
    id="event-loop-starvation",
    tier="group",
    title="so many tasks are ready that each waits long for its turn",
    explanation=(
        "An event loop runs whatever is ready, one after the other, in the order in which it became ready. Here so much is "
        "ready that a turn takes long, and everything (timers, heartbeats, new connections) is late by that much. A semaphore "
        "will not help: the tasks that it lets through join the same queue."
    ),
    remedy=(
        "Put the jobs into a bounded queue (asyncio.Queue(maxsize=...)) from which a few worker tasks take them, so that "
        "only these are ready at any time; move work that computes to asyncio.to_thread or a process pool."
    ),
    needs=("window",),
    references=("https://docs.python.org/3/library/asyncio-queue.html",
                "https://docs.python.org/3/library/asyncio-dev.html#concurrency-and-multithreading"),
)  # fmt: skip

#: Callbacks in the ready queue. Servers under full load measure 0-6; with tasks that yield occasionally it is the number of
#: those tasks.
MIN_READY, MANY_READY = 8, 20
#: Seconds: a shorter turn delays nothing noticeably. Servers under full load measure 0.001-0.03.
LONG_TURN = 0.1
#: Least number of finished callbacks from which the rest is extrapolated: the first may be the only slow one.
FEW = 5
#: Least share of the loop thread's samples inside a callback or step, rather than in `select`.
MIN_INSIDE = 0.7

_ONE_MOMENT = Template("one moment only: an observation window would show whether the callbacks do work all the time")
#: Callbacks that make a turn long by their number, whatever each does, and the share of samples at work that is enough then:
#: the rest is the loop's own bookkeeping for them, and the garbage collector's.
CROWD, MIN_IN_CROWD = 1_000, 0.1
#: Callbacks that take a while even if each only counts.
HUGE = 10_000
_NO_WINDOW = Template("an observation window: do the {count} callbacks of the event loop get their turns?")
_NO_WORK = Template(
    "{ready:n callback} {ready:v was|were} ready, but {share:.0%} of the samples of {thread} show no work"
)
_ONE_CALL = Template("the callbacks of the loop of {thread} all spend their time in one synchronous call of a library")
_ONLY_POLLS = Template("the tasks that are ready in the loop of {thread} only poll")
_WAIT = Template("{count:n callback} {count:v waits for its|wait for their} turn in the event loop of {thread}{at}")
_MOSTLY_AT = Template(", most of them at {frame}")
_QUEUE = Template("{count:n callback} {count:v is|are} in the ready queue of the loop of {thread}")
_TASKS = Template("{count:n task} {count:v wait} only for a turn")
_AT_WORK = Template("the loop's thread was at work in {share:.0%} of the samples over {window:.1f} s")
_TURN = Template(
    "{done} of the {callbacks} callbacks of the current turn took {took:.3f} s: the whole turn takes about {turn:.2g} s, and a "
    "callback that becomes ready now waits that long"
)
_LATE = Template("its first timer is {late:.2f} s late")
_SEMAPHORE = Template("a semaphore would not help: the tasks that it lets through go to the end of the same queue")
_SPAWNED = Template("tasks and callbacks are created in a loop at {frames}")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each loop with a long ready queue: whether its callbacks do work."""
    for process in view.pythons:
        for loop in process.loops:
            thread = view.thread(process, loop.tid)
            if thread is None or _queued(loop) < MIN_READY:
                continue
            if thread.samples:
                yield _answer(view, process, loop, thread)
                continue
            place = knowledge.own_frame(step(thread.python, running(process, thread)) or ())
            if _queued(loop) >= MANY_READY and place is not None and thread.wait is None:
                tasks = [t for t in process.tasks if t.loop == loop.id and t.state == "pending" and t.ready]
                yield _match(view, process, loop, thread, tasks, None, [place])
            else:
                yield CannotTell((_NO_WINDOW(count=_queued(loop)),))


def _queued(loop: Loop) -> int:
    """Return the number of callbacks of the current turn, or of those ready for the next one if that is larger."""
    return max(loop.ready or 0, loop.turn_callbacks or 0)


def _turn_s(loop: Loop) -> Optional[float]:
    """Return the estimated duration of the current turn in seconds; at least its age. None if unknown."""
    if loop.turn_s is None or not loop.turn_callbacks or loop.turn_done is None:
        return None
    return loop.turn_s * (loop.turn_callbacks / loop.turn_done if loop.turn_done >= FEW else 1.0)


def _is_long(loop: Loop) -> bool:
    """Return whether the turn is long; if its duration is unknown, whether a timer is late, or without one by its size."""
    turn = _turn_s(loop)
    if turn is None and loop.next_timer_s is None:
        return _queued(loop) >= HUGE
    return (-(loop.next_timer_s or 0.0) if turn is None else turn) >= LONG_TURN


def _answer(view: View, process: Process, loop: Loop, thread: Thread) -> Answer:
    """Return a match if the callbacks work rather than only poll."""
    if same_call(view, loop, thread) is not None:
        return No(_ONE_CALL(thread=named(thread)))
    inside, places = _work(view, thread)
    crowded = _queued(loop) >= CROWD and _is_long(loop)
    if inside < (MIN_IN_CROWD if crowded else MIN_INSIDE):
        return No(_NO_WORK(ready=_queued(loop), share=1 - inside, thread=named(thread)))
    tasks = [t for t in process.tasks if t.loop == loop.id and t.state == "pending" and t.ready]
    if sum(len(p.tasks) for p in pollers(view, process)) > len(tasks) // 2 and not places:
        return No(_ONLY_POLLS(thread=named(thread)))
    return _match(view, process, loop, thread, tasks, inside, places)


def _work(view: View, thread: Thread) -> Tuple[float, List[PythonFrame]]:
    """Return (share of samples at work, the program's most frequent places in them)."""
    total = inside = 0
    seen: Counter[PythonFrame] = Counter()
    for count, frames in view.samples(thread):
        total += count
        at = next((i for i, f in enumerate(frames) if knowledge.in_table(f, (knowledge.LOOP_STEP,))), None)
        above = frames[:at] if at is not None else ()
        own = knowledge.own_frame([f for f in above if not knowledge.is_loop_machinery(f)])
        if own is not None:
            inside += count
            seen[own] += count
    return inside / total if total else 0.0, [frame for frame, _n in seen.most_common(3)]


def _match(
    view: View,
    process: Process,
    loop: Loop,
    thread: Thread,
    tasks: List[Task],
    inside: Optional[float],
    places: List[PythonFrame],
) -> Match:
    ready, turn, late = _queued(loop), _turn_s(loop), loop.next_timer_s
    at = _MOSTLY_AT(frame=places[0]) if places else None
    facts = [_QUEUE(count=ready, thread=named(thread))]
    if tasks:
        facts.append(_TASKS(count=len(tasks)))
    facts.append(_AT_WORK(share=inside, window=view.window or 0) if inside is not None else _ONE_MOMENT())
    if turn is not None and (loop.turn_done or 0) >= FEW:
        facts.append(_TURN(done=loop.turn_done, callbacks=loop.turn_callbacks, took=loop.turn_s, turn=turn))
    if late is not None and late < 0:
        facts.append(_LATE(late=-late))
    facts.append(_SEMAPHORE())
    spawned = [f for f in loop.spawned_at if not knowledge.is_library(f)]
    if spawned:
        facts.append(_SPAWNED(frames=tuple(spawned[:3])))
    frames = list(dict.fromkeys([*places[:2], *_callers(view, thread, places), *spawned[:3]]))
    return Match(
        confidence="likely" if ready >= MANY_READY and _is_long(loop) and inside is not None else "possible",
        summary=_WAIT(count=ready, thread=named(thread), at=at),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, frame, thread) for frame in view.loops_around(frames[:6])),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        pid=process.pid,
    )


def _callers(view: View, thread: Thread, places: List[PythonFrame]) -> Iterator[PythonFrame]:
    """Yield the program's coroutines that called the slow lines, if these are in other functions."""
    for _count, frames in view.samples(thread):
        at = next((i for i, f in enumerate(frames) if knowledge.in_table(f, (knowledge.LOOP_STEP,))), 0)
        own = [f for f in frames[:at] if not knowledge.is_library(f)]
        if len(own) > 1 and own[0] in places:
            yield own[-1]
