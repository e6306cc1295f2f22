"""The garbage collector runs again and again, and little else does.

**What it looks like.** A process uses a core, and most observations of the interpreter show the cyclic garbage collector at
work; its own counters rise by full collections.

**Easily mistaken for** `python-busy-loop`: the samples show one line of Python, the one that happens to trigger it.

**Why it is slow.** A full collection visits every container in the process. `gc.collect()` after each item, a threshold
that was set low, or a callback that collects make the cost of each step grow with all that the program keeps.

**Remedy.** Collect once after the whole batch, or leave it to the interpreter; raise the threshold
(`gc.set_threshold`), and `gc.freeze()` permanent objects.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterator, List, Optional

from ....evidence import Collections, Process, PythonFrame, Thread
from ....findings import Slot, Template
from ....waitgraph import Agent
from ...facts.clauses import named
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from ..asyncio.event_loop_starvation import CROWD

PATTERN = Pattern(
    id="gc-storm",
    tier="specific",
    title="the cyclic garbage collector runs again and again",
    explanation=(
        "The cyclic garbage collector goes through all containers of the program (lists, dicts, objects) to find those that "
        "only refer to each other. Here it runs so often that it takes most of the time, and it holds the GIL (the "
        "interpreter lock) meanwhile."
    ),
    remedy=(
        "Take gc.collect() out of the loop (once per batch is enough), or raise gc.set_threshold(); gc.freeze() after "
        "start-up keeps permanent objects out of all later collections."
    ),
    needs=("window",),
    references=("https://docs.python.org/3/library/gc.html",),
)  # fmt: skip

#: Shares of the observations during the window: from MIN_SHARE on a match is possible, from SURE_SHARE on likely if too many
#: collections are full, from ALL on likely. Measured: 0-0.1 in programs that allocate much, with the usual thresholds; 0.04-0.07
#: with one collection each second over a large heap; 0.33-0.44 with a threshold of 1; 0.79-0.98 with gc.collect() for each item;
#: 0.53 in a batch that builds graphs of millions of objects: one collection in a hundred is full, and nothing has to change.
MIN_SHARE, SURE_SHARE, ALL = 0.3, 0.5, 0.75
#: Least share of full collections; with the interpreter's thresholds it is one in a hundred.
FULL_SHARE = 0.1
#: Least number of observations; fewer are not representative.
MIN_LOOKS = 10

_SUMMARY = Template("the garbage collector takes {share:.0%} of the time, triggered at {place}")
_UNKNOWN_PLACE = Template("an unknown place")
_AT_WORK = Template("the collector was at work in {share:.0%} of {looks:n observation} over {seconds:.1f} s")
_COUNTERS = Template("its own counters rose by {counts} (generation {oldest}: all objects)")
_COUNT = Template("{count} of generation {generation}")
_SETS_OFF = Template("{thread} triggers it at {place}{how}")
_BY_CALL = Template(", with gc.collect()")
_NO_WINDOW = Template("an observation window: how much of the time the collector is at work")
_SELDOM = Template("the garbage collector of process {pid} was at work in {share:.0%} of the observations")
_STANDS = Template("the one collection that {thread} runs stands still: a finalizer in it waits for something")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process whose collector was observed at work."""
    for process in view.pythons:
        main = process.interpreters[0] if process.interpreters else None
        if main is None:
            continue
        seen = main.collections
        if seen is None or seen.share is None or seen.looks < MIN_LOOKS:
            if main.collecting:
                yield CannotTell((_NO_WINDOW(),))
            continue
        if seen.share < MIN_SHARE:
            if main.collecting:
                yield No(_SELDOM(pid=process.pid, share=seen.share))
            continue
        stands = next((t for t in process.threads if t.gc and _stands(view, process, t)), None)
        if stands is not None:
            yield No(_STANDS(thread=named(stands)))
            continue
        yield _match(view, process, seen, seen.share)


def _stands(view: View, process: Process, thread: Thread) -> bool:
    """Return whether a thread waits within its collection instead of collecting."""
    if view.graph.stuck(Agent(process.pid, thread.tid)) is not None:
        return True
    share = view.cpu_share(thread)
    return thread.wait is not None and thread.wait.endless is True and share is not None and share < MIN_SHARE


def _match(view: View, process: Process, seen: Collections, share: float) -> Match:
    thread = _collector(view, process)
    frames = _frames(view, thread) if thread is not None else []
    facts = [_AT_WORK(share=share, looks=seen.looks, seconds=seen.seconds)]
    if seen.counts is not None:
        counts = tuple(_COUNT(count=count, generation=n) for n, count in enumerate(seen.counts))
        facts.append(_COUNTERS(counts=counts, oldest=len(counts) - 1))
    place: Slot = frames[0] if frames else _UNKNOWN_PLACE()
    called = thread is not None and thread.calling is not None and thread.calling.function.startswith("gc.")
    if thread is not None:
        facts.append(_SETS_OFF(thread=named(thread), place=place, how=_BY_CALL() if called else None))
    crowded = any((loop.ready or 0) >= CROWD for loop in process.loops)  # its objects alone keep the collector at work
    likely = (share >= SURE_SHARE and _asked_for(seen)) or (share >= ALL and not crowded)
    return Match(
        confidence="likely" if likely else "possible",
        summary=_SUMMARY(share=share, place=place),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, thread) for f in view.loops_around(frames[:3])),
        victims=tuple(view.victim(process, t) for t in process.threads if t.gil == "waits"),
        pid=process.pid,
    )


def _asked_for(seen: Collections) -> bool:
    """Return whether there are more full collections than the interpreter starts by itself."""
    return seen.counts is not None and seen.counts[-1] >= FULL_SHARE * max(1, sum(seen.counts))


def _collector(view: View, process: Process) -> Optional[Thread]:
    """Return the thread that collects; if unknown, the Python thread that used most CPU."""
    running = [t for t in process.threads if t.gc and t.python]
    busy = sorted((t for t in process.threads if t.python), key=lambda t: -(view.cpu_share(t) or 0.0))
    return next(iter(running or busy), None)


def _frames(view: View, thread: Thread) -> List[PythonFrame]:
    """Return the program's lines in the samples, most frequent first; without samples, the current line."""
    seen: Counter[PythonFrame] = Counter()
    for count, frames in view.samples(thread):
        frame = own_frame(frames)
        if frame is not None:
            seen[frame] += count
    here = own_frame(thread.python)
    return [frame for frame, _count in seen.most_common(3)] or ([here] if here is not None else [])
