"""Threads hand the interpreter lock (GIL) to and fro so fast that little work gets done.

**What it looks like.** Many threads, about one core of CPU (or a little more, much of it in the kernel), and thousands
of hand-overs of the GIL a second. Most threads are found in `take_gil`. The same program is fast on one core, under
strace, or on another machine: whatever makes a thread keep the lock a little longer hides it.

**Easily mistaken for** `gil-contention`, where CPU-bound threads hand over only when the 5 ms timer forces them.

**Why it hangs.** A thread that polls releases the GIL at every turn and requests it again at once. On several cores each
hand-over wakes a thread on another core and waits for it: the switch costs more than the turn. The thread with real
work gets one turn among all the others. Threads that all wait on one `Condition`, each for its own turn, do the same without
polling: every `notify_all()` wakes them all, and all but one wait again.

**Remedy.** Let the polling threads wait for what they poll; see `busy-event-loop` for the lines. Wake only the thread that
can go on: give each one its own Condition, Event or queue.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterator, List, Optional, Tuple

from ....evidence import Process, PythonFrame, Thread
from ....findings import Culprit, Template, Text
from ...facts.gil import RATIO, RUNS_WITHOUT, Rates, rates_of, runs_without
from ...facts.polling import Poller, pollers, polling_threads
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .notified import WAKE_ONE, crowds

PATTERN = Pattern(
    id="gil-thrash",
    tier="resource",
    title="threads hand the GIL to and fro so fast that little work gets done",
    explanation=(
        "The GIL (the interpreter lock: only the thread that holds it runs Python code) changes hands thousands of times a "
        "second. Each hand-over wakes a thread, often on another core, and costs more than the turn it buys, so the "
        "thread with real work waits behind all the others. This is why the speed depends on luck: one core (taskset), "
        "strace or a slower machine make a thread keep the lock longer and can hide it."
    ),
    remedy="Let the polling threads wait for what they need: a blocking get(), an Event, a Condition.",
    needs=("window",),
    references=(
        "https://docs.python.org/3/c-api/init.html#thread-state-and-the-global-interpreter-lock",
        "https://bugs.python.org/issue7946",
    ),
)  # fmt: skip

#: Least number of cores wanted: below it the process has time to spare, and frequent hand-overs do no harm.
MIN_CPU = 0.5

_SUMMARY = Template("{count:n thread} {count:v hand} the GIL to and fro {rate:,.0f} times a second{because}")
_BECAUSE = Template(": {cause}")
_HANDOFFS = Template(
    "{handoffs:,.0f} hand-overs of the GIL a second, counted by the interpreter itself (its timer forces at most {pace:.0f}), "
    "and {wakes:,.0f} wake-ups of threads a second"
)
_COMPETE = Template(
    "{count:n thread} {count:v compete} for it; {waiting} {waiting:v was|were} waiting for it at the moment of capture"
)
_CPU = Template("{cpu:.2f} cores of CPU used over {seconds:.1f} s")
_TASKS_POLL = Template("{count:n task} {count:v poll} at {frame}, yielding to the loop (sleep(0)) each time")
_THREADS_POLL = Template("{count:n thread} {count:v poll} at {frame}, releasing the GIL (sleep(0)) each time")
_WAIT_INSTEAD = Template(
    "At {file}{line:+:@}, wait for the event instead of checking again after sleep(0): a queue's blocking or awaitable get(), an "
    "Event, or at least a sleep of a millisecond. If the file belongs to a library, upgrade it. Pinning the program to one "
    "core (taskset) only hides the cause."
)
_RELEASE = Template(
    "several threads at {frame} release the GIL and take it back again and again, for little work each time"
)
_FETCH_MORE = Template(
    "Do more in each native call: fetch rows in batches (fetchmany), read larger blocks. Where the work itself is small, one "
    "thread does it faster than several; processes share no GIL."
)
#: Times the pace of the switch timer, and threads, from which on hand-overs are no by-product of waits.
_FAR, _SEVERAL = 50, 2
#: Wake-ups for each hand-over that show threads which wake for the GIL and do not get it: work with pauses has one or two.
_IN_VAIN = 2.5
_NO_COUNT = Template("the interpreter's count of GIL hand-overs over an observation window")
_SLOW = Template(
    "the GIL of process {pid} changes hands {rate:.0f} times a second; its switch timer alone may cause {pace:.0f}"
)
_AT_REST = Template("the GIL of process {pid} changes hands {rate} times a second, but the process is mostly idle")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process with several Python threads: a match if the GIL is handed over too often."""
    for process in view.pythons:
        threads = [t for t in process.threads if t.python]
        if len(threads) < 2:
            continue
        if runs_without(process):
            yield No(RUNS_WITHOUT(pid=process.pid))
            continue
        rates = rates_of(view, process)
        if rates is None:
            yield CannotTell((_NO_COUNT(),))
            continue
        if not rates.fast and not _wakes_in_vain(view, process, threads, rates):
            yield No(_SLOW(pid=process.pid, rate=rates.handoffs, pace=rates.pace))
            continue
        wanted = view.demand(process)
        if wanted is not None and wanted < MIN_CPU:
            yield No(_AT_REST(pid=process.pid, rate=round(rates.handoffs)))
            continue
        yield _match(view, process, threads, rates)


def _wakes_in_vain(view: View, process: Process, threads: List[Thread], rates: Rates) -> bool:
    """Return whether threads wake far more often than the timer wakes waiters, although the holder hardly changes.

    A polling thread that releases the GIL takes it back before the thread that it woke can run.
    """
    if sum(t.gil == "waits" for t in threads) < 2 or not pollers(view, process):
        return False
    return rates.wakes - len(threads) * rates.pace >= RATIO * rates.pace * rates.part


def _match(view: View, process: Process, threads: List[Thread], rates: Rates) -> Match:
    competing = [t for t in threads if (view.switches(t) or 0) >= 1 or t.gil in ("waits", "holds")]
    waiting = [t for t in threads if t.gil == "waits"]
    found = pollers(view, process) or polling_threads(view, process)
    woken = [] if found else crowds(view, process, rates.pace * rates.part)
    count = len(competing) or len(threads)
    cpu = view.cpu(process)
    facts = [
        _HANDOFFS(handoffs=rates.handoffs, pace=rates.pace, wakes=rates.wakes),
        _COMPETE(count=count, waiting=len(waiting)),
    ]
    if cpu is not None:
        facts.append(_CPU(cpu=cpu, seconds=view.window or 0))
    causes = [*map(_polls, found[:3]), *(crowd.says for crowd in woken)]
    released = None if causes else _released(view, threads, rates, len(waiting))
    facts += [*causes, *([_RELEASE(frame=released)] if released is not None else [])]
    return Match(
        confidence="likely" if found or woken or released is not None else "possible",
        summary=_SUMMARY(count=count, rate=rates.most, because=_BECAUSE(cause=causes[0]) if causes else None),
        evidence=tuple(facts),
        culprits=_culprits(view, process, found)
        or tuple(view.culprit(process, f) for crowd in woken[:2] for f in crowd.places)
        or _busiest(view, process, threads),
        victims=tuple(view.victim(process, t) for t in _victims(view, process, found)),
        remedy=_remedy(found) if found else WAKE_ONE() if woken else _FETCH_MORE() if released is not None else None,
        because_of=("busy-event-loop",),
        pid=process.pid,
    )


def _released(view: View, threads: List[Thread], rates: Rates, waiting: int) -> Optional[PythonFrame]:
    """Return the line at which several threads give up the GIL again and again, far beyond what work with pauses does."""
    in_vain = bool(waiting) and rates.wakes >= _IN_VAIN * rates.handoffs
    if rates.handoffs < _FAR * rates.pace or (waiting < _SEVERAL and not in_vain):
        return None
    lines = Counter(view.hot_frame(t) for t in threads if (view.switches(t) or 0) >= rates.pace)
    frame, count = next(iter(lines.most_common(1)), (None, 0))
    return frame if count >= _SEVERAL else None


def _culprits(view: View, process: Process, found: List[Poller]) -> Tuple[Culprit, ...]:
    places = [(p, f) for p in found[:3] for f in view.loops_around([p.frame])]
    return tuple(view.culprit(process, f, task=p.tasks[0].name if p.tasks else None) for p, f in places)


def _polls(poller: Poller) -> Text:
    told = _TASKS_POLL if poller.tasks else _THREADS_POLL
    return told(count=poller.number, frame=poller.frame)


def _remedy(found: List[Poller]) -> Text:
    frame = found[0].frame
    return _WAIT_INSTEAD(file=frame.file, line=frame.line)


def _victims(view: View, process: Process, found: List[Poller]) -> List[Thread]:
    """Return the threads that want the GIL for something other than polling, the main thread included."""
    polling = {tid for p in found for tid in p.tids}
    return [t for t in process.threads if t.python and t.tid not in polling and (t.is_main or t.gil == "waits")][:5]


def _busiest(view: View, process: Process, threads: List[Thread]) -> Tuple[Culprit, ...]:
    """Return the lines of the threads with the most switches, for a process without pollers."""
    ranked = sorted(threads, key=lambda t: -(view.switches(t) or 0))[:3]
    found = []
    for thread in ranked:
        frame = view.hot_frame(thread)
        if frame is not None:
            found.append(view.culprit(process, frame, thread))
    return tuple(dict.fromkeys(found))
