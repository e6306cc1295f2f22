"""One thread runs Python code at full CPU and never leaves a function.

**What it looks like.** A thread uses a whole core; in every sample of the window the same function is on its stack, and
what lies above it changes.

**Easily mistaken for** a long but healthy computation: mostly the two look alike from outside, and this is *possible*. It is
*likely* when the loop was seen to go around while all that it computes with returned to what it was; or when others wait
meanwhile: threads for a lock that this one holds in another loop than one over items, or the timers and tasks of an event loop
for a coroutine that computes without an `await`.

**Why it hangs.** A condition that never becomes true: a search without a bound, a retry without a limit, a cursor that does
not move.

**Remedy.** Look at the condition of the loop named here and bound it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Iterator, List, Optional, Tuple

from .... import sourcepaths
from ....evidence import Process, PythonFrame, Thread
from ....findings import Template
from ....findings.found import Said
from ...facts import knowledge, native
from ...facts.clauses import named
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from ..asyncio.keptloops import keeps_its_loop

PATTERN = Pattern(
    id="python-busy-loop",
    tier="computation",
    title="one thread runs Python code at 100 % and never leaves a function",
    explanation=(
        "The thread computes without pause and was inside the same function in every sample. If that function should have "
        "been done long ago, its loop does not end. Whether it makes progress can seldom be seen from outside."
    ),
    remedy="Check the loop's condition and bound it (a maximum of rounds, a deadline); log its progress to tell slow from stuck.",
    needs=("window",),
    references=("https://docs.python.org/3/library/faulthandler.html#dumping-the-tracebacks-after-a-timeout",),
)

#: Least share of a core used, or waited for while runnable.
MIN_SHARE = 0.8
#: Least share of a thread's samples with the same function on the stack.
MIN_STABLE = 0.95

_SUMMARY = Template("{thread} uses {share:.0%} of a core in {frame} and was inside it in {every} sample")
_DELAYED = Template(
    "{thread} computes in {frame} and was inside it in {every} sample: it used {share:.0%} of a core, and was runnable but "
    "waited for one for {waited:.0%} of the time"
)
_USED = Template("{thread} used {share:.0%} of a core over {seconds:.1f} s")
_ON_ITS_STACK = Template("{function} is on its stack in {share:.0%} of the samples{moves}")
_MOVES = Template(", while what it calls changes")
_HOLDS = Template("{count:n thread} {count:v wait} for a lock that it holds meanwhile")
_SAME = Template(
    "{function}, or a function that called it, went around at least {turns} times, and at {looks} looks its variables came back "
    "to the same values: nothing that it computes with changes for good"
)
_CHANGES = Template(
    "variables that {function}, or a function that called it, uses change from round to round: {names:, }"
)
_ONLY_TURNS = Template(
    "{function} is a loop of the server that this process runs: it turned, called no code of the program, and no other thread "
    "waits for connections"
)
_NO_IO = Template("the process read and wrote nothing during the window")
_LOOP_TURNS = Template("the event loop of {thread} keeps turning; no function blocks it")
_IS_NATIVE = Template("{thread} computes in native code, without the GIL: it runs no Python")
_MOVES_BETWEEN = Template("{thread} is busy, but moves between functions")
_WAS_RUNNING = Template("{thread} was running Python code at {frame} when the core was taken")
_HAS_THE_GIL = Template("{thread} holds the GIL and is in no system call")
_ONE_MOMENT = Template("one moment only: capture with `postmortem capture --pid` to see whether it stays there")
_NO_WINDOW = Template("an observation window: does the native call on top end?")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread that uses a whole core in Python."""
    for process in view.pythons:
        if view.cpu(process) is None:
            yield from _from_core(view, process)
            continue
        for thread in process.threads:
            if (view.wanted_share(thread) or 0) >= MIN_SHARE and thread.python:
                yield from _busy(view, process, thread)


def _busy(view: View, process: Process, thread: Thread) -> Iterator[Answer]:
    """Yield a match if the thread stays in one function."""
    if view.in_loop(thread) and not _inside_step(thread):
        yield No(_LOOP_TURNS(thread=named(thread)))
        return
    if _runs_without_the_gil(process, thread):
        yield No(_IS_NATIVE(thread=named(thread)))
        return
    stable, part = _stable(view, thread)
    if stable is None or part < MIN_STABLE:
        yield No(_MOVES_BETWEEN(thread=named(thread)))
        return
    lines = _lines(view, thread, stable)
    held = [t for t in view.waits_on(process, thread.tid) if any(e.verb == "wants" for e in view.edges(process, t))]
    moves = _MOVES() if len({s.frames for s in thread.samples}) > 1 else None
    facts: List[Said] = [
        _USED(thread=named(thread), share=view.cpu_share(thread) or 0, seconds=view.window or 0),
        _ON_ITS_STACK(function=stable.function, share=part, moves=moves),
        *(kept := keeps_its_loop(process, thread, stable)),
    ]
    rounds = thread.rounds
    if rounds is not None and rounds.same is True:
        facts.append(_SAME(function=rounds.function, turns=rounds.turns, looks=rounds.looks))
    elif rounds is not None and rounds.changed:
        facts.append(_CHANGES(function=rounds.function, names=rounds.changed))
    if held:
        facts.append(_HOLDS(count=len(held)))
    if process.io is not None and not process.io.get("wchar") and not process.io.get("rchar"):
        facts.append(_NO_IO())
    turns = _is_a_servers_loop(view, process, thread, stable)
    if turns:
        facts.append(_ONLY_TURNS(function=stable.function))
    delays = held and not any(map(view.moves, held))  # one that gets its turn is not kept by this thread for good
    delays = delays and not _goes_over_items(view, lines) and not _is_one_native_call(thread)
    yield Match(
        confidence="likely" if delays or kept or turns or (rounds is not None and rounds.same is True) else "possible",
        summary=_said(view, thread, lines[0], part),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, f, thread) for f in view.loops_around(lines)),
        victims=tuple(view.victim(process, t) for t in held),
        pid=process.pid,
    )


def _is_a_servers_loop(view: View, process: Process, thread: Thread, stable: PythonFrame) -> bool:
    """Return whether a library's loop in a process that listens turns, and nothing else: it calls no code of the program.

    No variable of it was seen to go on, and no other thread waits for connections, as beside a long computation.
    """
    package, rounds = sourcepaths.package(stable.file), thread.rounds
    if not process.listening or package is None or rounds is None or not rounds.turns or rounds.changed:
        return False
    sockets = {r.id for r in process.resources if r.kind == "socket" and r.listening}
    others = [other.wait for other in process.threads if other is not thread and other.wait is not None]
    if any(wait.kind == "event-loop" or wait.resource in sockets for wait in others):
        return False
    return all(
        knowledge.is_stdlib(frame) or frame.file.startswith("<") or sourcepaths.package(frame.file) == package
        for _count, frames in view.samples(thread)
        for frame in itertools.takewhile(lambda f: (f.file, f.function) != (stable.file, stable.function), frames)
    )


def _goes_over_items(view: View, lines: List[PythonFrame]) -> bool:
    """Return whether all loops around these lines are `for` loops, each of which ends with its items."""
    headers = [frame for frame in view.loops_around(lines) if frame not in lines]
    texts = [view.evidence.source(frame.file, frame.line) for frame in headers]
    return bool(texts) and all(text is not None and text.lstrip().startswith(("for ", "async for ")) for text in texts)


def _runs_without_the_gil(process: Process, thread: Thread) -> bool:
    """Return whether a thread computes in native code: another one has the GIL, and no sample shows it at a second place."""
    holder = process.gil.holder_tid if process.gil is not None else None
    return holder not in (None, thread.tid) and thread.gil != "waits" and len({s.frames for s in thread.samples}) == 1


def _is_one_native_call(thread: Thread) -> bool:
    """Return whether a thread is in one call of an extension in all samples, without the GIL: it may be long work."""
    return (
        thread.gil in ("detached", "unknown")
        and _native_on_top(thread)
        and len({s.frames for s in thread.samples}) == 1
    )


def _said(view: View, thread: Thread, frame: PythonFrame, part: float) -> Said:
    """Return the summary: how much of a core the thread used, and how much it wanted beyond that."""
    share, wanted = view.cpu_share(thread) or 0.0, view.wanted_share(thread) or 0.0
    every = "every" if part >= 1 else "nearly every"
    if share >= MIN_SHARE:
        return _SUMMARY(thread=named(thread), frame=frame, every=every, share=min(share, 1.0))
    return _DELAYED(thread=named(thread), frame=frame, every=every, share=share, waited=wanted - share)


def _inside_step(thread: Thread) -> bool:
    """Return whether a loop's thread runs a callback or task step with frames outside the loop's own code."""
    at = next((i for i, f in enumerate(thread.python) if knowledge.in_table(f, (knowledge.LOOP_STEP,))), 0)
    return any(not knowledge.is_loop_machinery(f) for f in thread.python[:at])


def _stable(view: View, thread: Thread) -> Tuple[Optional[PythonFrame], float]:
    """Return the function that the thread stays in, and its share of the samples; (None, 0.0) if there is none.

    It is the innermost function of the program that is on the stack, at the same depth, in (nearly) every sample. If the
    source is known, one seen inside a loop is preferred: that loop keeps the thread, not what it calls.
    """
    seen: Counter[Tuple[int, str, str]] = Counter()
    example: dict[Tuple[int, str, str], PythonFrame] = {}
    total = 0
    for count, frames in view.samples(thread):
        total += count
        for depth, frame in enumerate(reversed(frames)):
            if knowledge.is_stdlib(frame) or frame.file.startswith("<"):
                continue
            key = (depth, frame.file, frame.function)
            seen[key] += count
            example[key] = frame
    kept = [key for key, count in seen.items() if count >= MIN_STABLE * total]
    if not kept:
        return None, 0.0
    near = [key for key in kept if key[0] >= max(kept)[0] - 1]
    looping = [key for key in near if any(len(view.loops_around([f])) > 1 for f in _lines(view, thread, example[key]))]
    best = max(looping or kept)
    return example[best], seen[best] / total


def _lines(view: View, thread: Thread, stable: PythonFrame) -> List[PythonFrame]:
    """Return the lines at which that function was seen, most frequent first; of a library, the program's call before them."""
    seen: Counter[PythonFrame] = Counter()
    for count, frames in view.samples(thread):
        frame = next((f for f in frames if (f.file, f.function) == (stable.file, stable.function)), None)
        if frame is not None:
            seen[frame] += count
    lines = [frame for frame, _count in seen.most_common(4)] or [stable]
    called = _called_from(view, thread, stable) if knowledge.is_library(stable) else None
    return [called, *lines] if called is not None else lines


def _called_from(view: View, thread: Thread, stable: PythonFrame) -> Optional[PythonFrame]:
    """Return the program's line that led to a function most often; None if there is none."""
    seen: Counter[PythonFrame] = Counter()
    for count, frames in view.samples(thread):
        at = next(
            (i for i, f in enumerate(frames) if (f.file, f.function) == (stable.file, stable.function)), len(frames)
        )
        own = next((f for f in frames[at:] if not knowledge.is_library(f) and not knowledge.is_stdlib(f)), None)
        if own is not None:
            seen[own] += count
    return next((frame for frame, _count in seen.most_common(1)), None)


def _from_core(view: View, process: Process) -> Iterator[Answer]:
    """Yield an answer for a thread that runs Python code with the GIL in a core; it may be busy or just passing."""
    running = [t for t in process.threads if t.gil == "holds" and t.wait is None and t.python]
    frame = knowledge.own_frame(running[0].python) if running else None
    if frame is None:
        return
    if _native_on_top(running[0]):
        yield CannotTell((_NO_WINDOW(),))
        return
    yield Match(
        confidence="possible",
        summary=_WAS_RUNNING(thread=named(running[0]), frame=frame),
        evidence=(_HAS_THE_GIL(thread=named(running[0])), _ONE_MOMENT()),
        culprits=(view.culprit(process, frame, running[0]),),
        pid=process.pid,
    )


def _native_on_top(thread: Thread) -> bool:
    """Return whether the innermost frame is native code of an extension, or of a library that one uses."""
    return bool(thread.native) and native.is_program(thread.native[0])
