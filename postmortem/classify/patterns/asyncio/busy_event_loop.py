"""An event loop spins: it turns as fast as it can, and every turn finds nothing to do.

**What it looks like.** The loop's thread uses all the CPU it gets; its `select` is called with a timeout of zero, because
the ready queue is never empty: a task awaits `sleep(0)` in a loop, a descriptor is always ready (a socket at end of file
whose reader was not removed), or some task does not leave a cancelled scope of anyio. So it is in trio and gevent
(`trio.sleep(0)`, `gevent.sleep(0)`), and in Twisted, where a call schedules itself by `callLater(0)`.

**Easily mistaken for** `event-loop-starvation`, where many tasks have real work; for a computation that yields with
`sleep(0)` now and then, whose samples lie in the computation, not in the loop.

**Why it hangs.** `await sleep(0)` does not wait. The task is ready again at once, and so the loop never sleeps. With
several such loops, or another thread that wants the interpreter lock, it becomes `gil-thrash`.

**Remedy.** Wait for the thing itself: an `asyncio.Queue`, an `asyncio.Event`, `run_in_executor` around a blocking
`get()`; remove readers at end of file.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterator, List, Optional, Tuple

from ....evidence import Loop, Process, PythonFrame, Thread
from ....findings import Slot, Template
from ...facts import knowledge
from ...facts.clauses import named
from ...facts.polling import Poller, pollers, spin_share
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .cancelling import undelivered
from .event_loop_starvation import CROWD
from .selectloops import turning

PATTERN = Pattern(
    id="busy-event-loop",
    tier="group",
    title="an event loop spins instead of waiting",
    explanation=(
        "An event loop should sleep in the kernel until something happens. Here something is always ready, so the loop "
        "turns without pause, uses all the CPU it can get and takes the interpreter lock from all other threads."
    ),
    remedy="Wait for the event itself (asyncio.Queue.get, asyncio.Event.wait) instead of checking again after sleep(0).",
    needs=("window",),
    references=("https://docs.python.org/3/library/asyncio-task.html#sleeping",),
)

#: Least number of cores wanted (used, or waited for while runnable): a spinning loop takes all it can get.
MIN_CPU = 0.7
#: Least share of the loop threads' samples. Polling loops measure 0.6 or more, computations that yield below 0.1.
MIN_SPIN = 0.4

#: Functions that report the exception of a callback, and the least share of the samples in them if it always fails.
_REPORTS = (
    ("asyncio/base_events.py", "call_exception_handler"),
    ("asyncio/base_events.py", "default_exception_handler"),
)
MIN_FAILING = 0.2

#: Loops that serve descriptors by functions in Python, so that samples show it.
_OF_PYTHON = ("asyncio", "twisted")
#: These functions, and the least share of the samples in a loop so driven.
_SERVES = ("_read_ready", "_write_ready", "_accept_connection")
_SERVES_TWISTED = "_doReadOrWrite"
MIN_DRIVEN = 0.02
#: Least share of a loop's calls that one function makes which alone keeps the loop from sleeping.
MIN_ALONE = 0.7
#: Least share of the samples in turns of the loop that run no callback.
MIN_TURNING = 0.8

_POLL = Template("{count:n task} {count:v poll} at {frame}: sleep(0) yields to the loop, but does not wait")
_SUSPENDED = Template("{count:n task} suspended in sleep(0), awaited at {frame}")
_POLL_REMEDY = Template("At {file}{line:+:@}, wait for what is polled instead of checking again after sleep(0).")
_ONE_MOMENT = Template("one moment only: without an observation window it is not known whether the loop spins")
_LITTLE_CPU = Template("a task awaits sleep(0) at {frame}, but the process uses only {cpu:.0%} of a core")
_OTHER_WORK = Template(
    "a task yields with sleep(0) at {frame}, but {share:.0%} of the loop's samples are in other work"
)
_CORES = Template("{cpu:.2f} cores of CPU used over {window:.1f} s")
_ONLY_TURNED = Template("in {share:.0%} of the samples of the loop's thread, the loop only turned and polled")
_NO_WINDOW = Template("an observation window: CPU and samples of the loop's thread")
_NEVER_SLEEPS = Template("the event loop of {thread} never sleeps: {functions: or } is called at every turn")
_MACHINERY = Template(
    "the loop's thread wanted {share:.0%} of a core, and {spin:.0%} of its samples are in the loop's own code"
)
_CALLED = Template("{part:.0%} of the calls that it was seen to make, or is set up to make, are of {function}")
_QUEUES = Template("callbacks ready: {ready}; descriptors watched: {watched}")
_NOT_DRIVEN = Template("hardly any sample serves a descriptor: nothing comes, and what is called readies itself again")
_IN_VAIN = Template("the event loop of {thread} never sleeps: its selector, at {frame}, returns at once with nothing")
_ONLY_TURNS = Template("in {share:.0%} of the samples of its thread, the loop turned without running any callback")
_WAIT_REMEDY = Template(
    "Upgrade the package that this selector comes from, or give the loop another one: a selector has to wait until a "
    "descriptor is ready or its time limit is over."
)
_UNKNOWN = Template("unknown")
_FAILS = Template("{share:.0%} of the samples report an exception that {function} raises again and again")
_READY_REMEDY = Template(
    "A descriptor that stays ready (end of file, an error) is reported at every turn: remove its reader or writer and close it, "
    "or do not schedule the callback again from itself."
)


def match(view: View) -> Iterator[Answer]:
    """Yield answers for polling tasks, undelivered cancellations and callbacks that are always ready."""
    for process in view.pythons:
        found = [p for p in pollers(view, process) if not _crowded(process, p)]
        cancelled = list(undelivered(view, process, MIN_CPU, MIN_SPIN))
        yield from [_polling(view, process, found)] if found else cancelled or _always_ready(view, process)
        if not found and not cancelled:
            yield from _never_waits(view, process)
        yield from turning(view, process, MIN_CPU)


def _crowded(process: Process, poller: Poller) -> bool:
    """Return whether many other tasks are in the same ready queues: then the loop has work and does not spin."""
    ids = {t.loop for t in poller.tasks}
    ready = [loop.ready for loop in process.loops if loop.id in ids and loop.ready is not None]
    return bool(ready) and sum(ready) > 10 + 3 * len(poller.tasks)


def _polling(view: View, process: Process, found: List[Poller]) -> Answer:
    """Return the answer for the line at which most tasks poll."""
    poller = found[0]
    threads = [t for t in process.threads if t.tid in poller.tids]
    cpu, wanted = view.cpu(process), view.demand(process)
    places = [(p, f) for p in found[:3] for f in view.loops_around([p.frame])]
    culprits = tuple(view.culprit(process, f, _thread(threads, p), p.tasks[0].name) for p, f in places)
    facts = [_SUSPENDED(count=len(p.tasks), frame=p.frame) for p in found[:3]]
    summary = _POLL(count=len(poller.tasks), frame=poller.frame)
    remedy = _POLL_REMEDY(file=poller.frame.file, line=poller.frame.line)
    if cpu is None or wanted is None:
        facts.append(_ONE_MOMENT())
        return Match("possible", summary, tuple(facts), culprits, remedy=remedy, pid=process.pid)
    if wanted < MIN_CPU:
        return No(_LITTLE_CPU(frame=poller.frame, cpu=cpu))
    share = spin_share(view, threads, poller.frame)
    if share is not None and share < MIN_SPIN:
        return No(_OTHER_WORK(frame=poller.frame, share=1 - share))
    facts.append(_CORES(cpu=cpu, window=view.window or 0))
    if share is not None:
        facts.append(_ONLY_TURNED(share=share))
    return Match("likely", summary, tuple(facts), culprits, remedy=remedy, pid=process.pid)


def _thread(threads: List[Thread], poller: Poller) -> Optional[Thread]:
    return next((t for t in threads if t.tid in poller.tids), None)


def _always_ready(view: View, process: Process) -> Iterator[Answer]:
    """Yield answers for loops without a polling task: whether one callback is ready at every turn."""
    for loop in process.loops:
        thread = view.thread(process, loop.tid)
        if thread is None:
            continue
        share = view.wanted_share(thread)
        if share is None:
            yield CannotTell((_NO_WINDOW(),))
            continue
        spin = spin_share(view, [thread], None)
        fails = _failing(view, thread)
        if share < MIN_CPU or spin is None or (spin < MIN_SPIN and fails < MIN_FAILING):
            continue
        callbacks, part = _callbacks(view, thread, loop)
        if not callbacks:
            continue
        often = _FAILS(share=fails, function=callbacks[0]) if fails >= MIN_FAILING else None
        alone = part >= MIN_ALONE and loop.kind in _OF_PYTHON and view.sampled_share(thread, _is_driven) < MIN_DRIVEN
        fixed = (often or part >= 0.9) and _registered(loop, callbacks[0])
        yield Match(
            confidence="likely" if (alone or fixed) and not _is_full(loop) else "possible",
            summary=_NEVER_SLEEPS(thread=named(thread), functions=tuple(callbacks[:3])),
            evidence=(
                _MACHINERY(share=share, spin=spin),
                _CALLED(part=part, function=callbacks[0]),
                _QUEUES(ready=_known(loop.ready), watched=_known(loop.readers)),
                *((often,) if often else ()),
                *((_NOT_DRIVEN(),) if alone else ()),
            ),
            culprits=tuple(view.culprit(process, f, thread) for f in callbacks[:3]),
            remedy=_READY_REMEDY(),
            pid=process.pid,
        )


def _never_waits(view: View, process: Process) -> Iterator[Match]:
    """Yield matches for loops that only turn: they run no callback, but their selector returns at once."""
    for loop in process.loops:
        thread = view.thread(process, loop.tid) or _turning_thread(view, process)
        share = view.wanted_share(thread) if thread is not None else None
        if thread is None or loop.kind not in _OF_PYTHON or loop.ready or share is None or share < MIN_CPU:
            continue
        only = view.sampled_share(thread, _only_turns)
        if only < MIN_TURNING:
            continue
        selects: Counter[PythonFrame] = Counter()
        for count, stack in view.samples(thread):
            at = next((i for i, f in enumerate(stack) if knowledge.in_table(f, (knowledge.LOOP_ONCE,))), 0)
            selects.update({f: count for f in stack[max(0, at - 1) : at] if not knowledge.is_stdlib(f)})
        if selects:
            yield Match(
                confidence="likely",
                summary=_IN_VAIN(thread=named(thread), frame=selects.most_common(1)[0][0]),
                evidence=(_ONLY_TURNS(share=only), _QUEUES(ready=_known(loop.ready), watched=_known(loop.readers))),
                culprits=tuple(view.culprit(process, f, thread) for f, _count in selects.most_common(2)),
                remedy=_WAIT_REMEDY(),
                pid=process.pid,
            )


def _turning_thread(view: View, process: Process) -> Optional[Thread]:
    """Return the only thread whose samples show a loop that turns, for a loop that runs in a greenlet; else None."""
    turning = [t for t in process.threads if view.sampled_share(t, _turns) > 0]
    return turning[0] if len(turning) == 1 else None


def _turns(frames: Tuple[PythonFrame, ...]) -> bool:
    return any(knowledge.in_table(frame, (knowledge.LOOP_ONCE,)) for frame in frames)


def _only_turns(frames: Tuple[PythonFrame, ...]) -> bool:
    """Return whether a sample shows a loop that turns outside of any callback, and without code of the program."""
    at = next((i for i, frame in enumerate(frames) if knowledge.in_table(frame, (knowledge.LOOP_ONCE,))), None)
    inside = frames[:at] if at is not None else ()
    called = any(knowledge.in_table(f, (knowledge.LOOP_STEP,)) or not knowledge.is_library(f) for f in inside)
    return at is not None and not called


def _failing(view: View, thread: Thread) -> float:
    """Return the share of a loop thread's samples in which it reports the exception of a callback."""
    return view.sampled_share(thread, lambda frames: any(knowledge.in_table(f, _REPORTS) for f in frames))


def _is_driven(frames: Tuple[PythonFrame, ...]) -> bool:
    """Return whether a sample of a loop's thread serves a descriptor that was ready."""
    return any(
        (f.function.startswith(_SERVES) and f.file.endswith("asyncio/selector_events.py"))
        or (f.function == _SERVES_TWISTED and "/twisted/internet/" in f.file)
        for f in frames
    )


def _known(count: Optional[int]) -> Slot:
    """Return a number as the slot of a text; "unknown" for None."""
    return count if count is not None else _UNKNOWN()


def _is_full(loop: Loop) -> bool:
    """Return whether so many callbacks are ready that a turn is long by their number: no single one is ready at every turn."""
    return max(loop.ready or 0, loop.turn_callbacks or 0) >= CROWD


def _registered(loop: Loop, called: PythonFrame) -> bool:
    """Return whether a function is a descriptor's callback, or is in the ready queue again.

    A loaded server is as busy, but it runs tasks and protocols, which the loop's own transports call.
    """
    known = [*loop.watchers, *loop.ready_callbacks]
    return any((f.file, f.function) == (called.file, called.function) for f in known)


def _callbacks(view: View, thread: Thread, loop: Loop) -> Tuple[List[PythonFrame], float]:
    """Return the program's functions that the loop may call at every turn, the most frequent first with its share.

    They are taken from samples; without any, from the ready queue and the watched descriptors.
    """
    seen: Counter[PythonFrame] = Counter()
    for count, stack in view.samples(thread):
        at = next((i for i, f in enumerate(stack) if knowledge.in_table(f, knowledge.LOOP_STEPS)), 0)
        above = [f for f in stack[:at] if not knowledge.is_loop_machinery(f) and not knowledge.is_stdlib(f)]
        if above:
            seen[above[-1]] += count
    if not seen:
        seen.update([*loop.ready_callbacks, *loop.watchers])
    if not seen:
        return [], 0.0
    first = seen.most_common(1)[0][0]
    same = sum(n for f, n in seen.items() if (f.file, f.function) == (first.file, first.function))
    watching = [f for f in loop.watchers if (f.file, f.function) == (first.file, first.function)]
    return list(dict.fromkeys([f for f, _n in seen.most_common(3)] + watching)), same / sum(seen.values())
