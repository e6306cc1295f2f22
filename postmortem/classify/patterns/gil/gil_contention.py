"""CPU-bound Python threads share one core.

**What it looks like.** Two or more threads compute in Python; together they use about one core, however many there are; in
every sample one runs and the others wait for the interpreter lock (GIL). A thread that does I/O beside them gets its turn
late, by the 5 ms switch interval for every computing thread before it (the convoy).

One thread that computes is enough if others let go of the GIL at every call, and then wait for it most of the time: those that
fetch rows one by one beside a simulation, say.

Of two threads each has half a core: that is *possible* only. It is *likely* with more, or when a thread beside them waits for its
turn.

**Easily mistaken for** many idle threads; `gil-thrash`, where the lock changes hands thousands of times a second.

**Why it is slow.** Only the holder of the GIL runs Python code: threads do not make a computation faster.

**Remedy.** Processes (`ProcessPoolExecutor`) or native code that releases the GIL for the computation.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Set, Tuple

from ....evidence import Process, PythonFrame, Thread
from ....findings import Culprit, Template, Text
from ...facts import clauses
from ...facts.clauses import named
from ...facts.gil import RUNS_WITHOUT, behind_a_lock, computing, kept_long, rates_of, runs_without, waited
from ...facts.knowledge import is_library, own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="gil-contention",
    tier="wait",
    title="CPU-bound Python threads share one core",
    explanation=(
        "Only the thread that holds the GIL (the interpreter lock) runs Python code. These threads all want to compute, so "
        "they take turns of a few milliseconds on what is in effect a single core, and all others wait in between."
    ),
    remedy="Move the computation to processes (concurrent.futures.ProcessPoolExecutor) or to code that releases the GIL.",
    needs=("window",),
    references=("https://docs.python.org/3/library/sys.html#sys.setswitchinterval",),
)

#: Cores used together: Python threads under one GIL use at most one; a little kernel time comes on top.
LOW, HIGH = 0.7, 1.5
#: Least cores that they use together: with less they wait for a core of a busy machine rather than for each other.
OWN_CORE = 0.35
#: Least share of the observations on a futex. A thread that waits for the GIL sleeps on a futex; one that waits for a CPU is
#: runnable. On a loaded machine both happen: with a load of 7 on two cores, 30 to 80 % of the observations of contending
#: threads showed them asleep, 0 to 6 % of independent ones.
ASLEEP = 0.2
#: Most of the window that threads sleep on average which only wait for a CPU: a little more than the 6 % measured. That one of
#: them is found waiting for the GIL at one moment says nothing then.
NEVER_ASLEEP = 0.08
#: Least share of the window in which a thread that has little to compute waits for the GIL behind one that does not pause.
MOSTLY = 0.5
#: Least share of the timer's rate; a slower rate means that one thread keeps the GIL.
SLOW = 0.1

_SUMMARY = Template("{count:n thread} compute at {places} and share one core: the GIL lets one run at a time")
_SHARES = Template("{count} threads together use {total:.2f} cores: {shares}")
_SHARE = Template("{thread} {share:.0%}")
_HANDOFFS = Template(
    "the GIL changes hands {rate:.0f} times a second: the pace of the switch timer, not of the program"
)
_WAITED = Template("{count:n thread} {count:v was|were} waiting for the GIL at the moment of capture")
_QUEUES = Template("{thread} has little to compute, but has to queue for the GIL behind them")
_NOT_FOR_THE_GIL = Template(
    "{count:n thread} {count:v computes|compute} now and then, but {count:v was|were} seldom seen to wait for the GIL"
)
_BEHIND = Template(
    "{thread} computes at {places} without a pause, and {count:n thread} {count:v waits|wait} most of the time for the GIL"
)
_NO_WINDOW = Template("an observation window: which threads used the CPU while others waited for the GIL")
_NO_FREE_CORE = Template("a machine with a free core: {count:n thread} had to wait for the CPU itself")
_GIL_FREE = Template("the GIL of process {pid} was free at the moment of capture, and no thread waited for it")
_NOT_ONE_CORE = Template("the busy threads of process {pid} use {total:.2f} cores together, not one")
_KEPT = Template(
    "a thread of process {pid} had the GIL for long at a time: its timer hands it on every few milliseconds"
)
_NOT_THE_TIMER = Template("{handoffs} GIL hand-overs a second do not match the pace of the switch timer ({pace})")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process with several threads that compute in Python."""
    for process in view.pythons:
        threads = [t for t in process.threads if t.python]
        if len(threads) < 2:
            continue
        if runs_without(process):
            yield No(RUNS_WITHOUT(pid=process.pid))
            continue
        if view.cpu(process) is None:
            if sum(t.gil == "waits" for t in threads) >= 2:
                yield CannotTell((_NO_WINDOW(),))
            continue
        hot = computing(view, threads)
        if len(hot) < 2:
            yield from _convoy(view, process, threads, hot)
            continue
        total, wanted = sum(view.cpu_share(t) or 0 for t in hot), sum(view.wanted_share(t) or 0 for t in hot)
        why_not = _why_not(view, process, total, wanted) or behind_a_lock(hot)
        if why_not:
            yield No(why_not)
            continue
        if wanted > HIGH and _asleep(hot) < ASLEEP and (_never_sleep(hot) or not _starves(process, threads, hot)):
            yield CannotTell((_NO_FREE_CORE(count=len(hot)),))
            continue
        if _looked(hot) and wanted <= HIGH and _asleep(hot) < ASLEEP:
            yield No(_NOT_FOR_THE_GIL(count=len(hot)))
            continue
        yield _match(view, process, threads, hot, [t for t in threads if t not in hot and t.gil == "waits"])


def _convoy(view: View, process: Process, threads: List[Thread], hot: List[Thread]) -> Iterator[Answer]:
    """Yield the answer for one thread that computes while others, which let go of the GIL at each call, wait for it again."""
    behind = [t for t in threads if t not in hot and waited(view, t) >= MOSTLY]
    if not hot or not behind:
        return
    why_not = _why_not(view, process, view.cpu_share(hot[0]) or 0, view.wanted_share(hot[0]) or 0)
    yield No(why_not) if why_not else _match(view, process, threads, hot, behind)


def _why_not(view: View, process: Process, total: float, wanted: float) -> Optional[Text]:
    """Return why the threads do not contend for the GIL; None if nothing contradicts that."""
    if process.gil is not None and process.gil.locked is False and not any(t.gil == "waits" for t in process.threads):
        return _GIL_FREE(pid=process.pid)
    if wanted < LOW or total > HIGH:
        return _NOT_ONE_CORE(pid=process.pid, total=total)
    if kept_long(view, process):
        return _KEPT(pid=process.pid)
    rates = rates_of(view, process)
    if rates is not None and (rates.fast or rates.handoffs < SLOW * rates.pace * rates.part):
        # rounded, as other processes may have the same rates but for decimals
        return _NOT_THE_TIMER(handoffs=round(rates.handoffs), pace=round(rates.pace))
    return None


def _starves(process: Process, threads: List[Thread], hot: List[Thread]) -> bool:
    """Return whether a thread with little to compute waits for the GIL while a computing one holds it."""
    holder = process.gil.holder_tid if process.gil is not None else None
    return any(t.gil == "waits" for t in threads if t not in hot) and any(t.tid == holder for t in hot)


def _looked(threads: List[Thread]) -> bool:
    """Return whether the threads were looked at during the window: what each of them did at that moment."""
    return any(t.counters is not None and t.counters.syscalls for t in threads)


def _asleep(threads: List[Thread]) -> float:
    """Return the share of observations that found the threads on a futex."""
    seen = [t.counters for t in threads if t.counters]
    looks = sum(sum(counters.states.values()) for counters in seen)
    return sum(counters.syscalls.get("futex", 0) for counters in seen) / looks if looks else 0.0


def _never_sleep(threads: List[Thread]) -> bool:
    """Return whether the threads ran, or were runnable and waited for a CPU, for all of the window."""
    seen = [t.counters for t in threads if t.counters is not None]
    slept = sum(c.seconds - (c.cpu_s or 0.0) - (c.run_delay_s or 0.0) for c in seen)
    return bool(seen) and slept < NEVER_ASLEEP * sum(c.seconds for c in seen)


def _culprits(view: View, process: Process, frames: List[Tuple[Thread, PythonFrame]]) -> Iterator[Culprit]:
    """Yield the lines that compute, the loops around them, and a caller in a loop; each place once for all threads."""
    told: Set[PythonFrame] = set()
    for thread, hot in frames:
        if hot in told or len(told) > 8:
            continue
        callers = [f for f in _stack(view, thread, hot) if not is_library(f) and f.function != hot.function][:1]
        for frame in view.loops_around([hot, *callers]):
            if frame not in told:
                told.add(frame)
                yield view.culprit(process, frame, thread)


def _collects(view: View, process: Process, hot: List[Thread]) -> Iterator[Culprit]:
    """Yield the line at which the main thread waits for a result of one of them: where the thread pool is used."""
    main = view.main(process)
    waits = [e for e in view.edges(process, main) if e.kind == "future"] if main is not None else []
    frame = own_frame(main.python) if main is not None else None
    if main is not None and frame is not None and any(w.tid in {t.tid for t in hot} for e in waits for w in e.wakers):
        yield view.culprit(process, frame, main)


def _stack(view: View, thread: Thread, hot: PythonFrame) -> Tuple[PythonFrame, ...]:
    """Return a stack of the thread that contains a frame, from that frame outwards."""
    seen = [frames for _count, frames in view.samples(thread) if hot in frames] or [thread.python]
    return seen[0][seen[0].index(hot) :] if hot in seen[0] else seen[0]


def _match(view: View, process: Process, threads: List[Thread], hot: List[Thread], starved: List[Thread]) -> Match:
    """Return the match of the threads that compute, and of those that have little to compute and wait for their turn."""
    rate = process.gil.handoffs_per_s if process.gil else None
    total = sum(view.cpu_share(t) or 0 for t in hot)
    shares = tuple(_SHARE(thread=named(t), share=view.cpu_share(t) or 0) for t in hot[:6])
    facts = [_SHARES(count=len(hot), total=total, shares=shares)]
    if rate is not None:
        facts.append(_HANDOFFS(rate=rate))
    facts.append(_WAITED(count=sum(t.gil == "waits" for t in threads)))
    facts += [_QUEUES(thread=named(thread)) for thread in starved[:3]]
    frames = [(t, f) for t in sorted(hot, key=lambda t: -(view.cpu_share(t) or 0)) for f in [view.hot_frame(t)] if f]
    places = clauses.unlike(f for _t, f in frames)[:3]
    main = view.main(process)
    victims = starved + ([main] if main and main not in hot and main not in starved else [])
    # else each of two is held up by the other alone: half the pace at worst
    queue = len(hot) + len(starved) > 2 and total >= OWN_CORE
    behind = _BEHIND(thread=named(hot[0]), places=places, count=len(starved))
    return Match(
        confidence="likely" if queue else "possible",
        summary=_SUMMARY(count=len(hot), places=places) if len(hot) > 1 else behind,
        evidence=tuple(facts),
        culprits=(*_culprits(view, process, frames), *_collects(view, process, hot)),
        victims=tuple(view.victim(process, t) for t in victims),
        pid=process.pid,
    )
