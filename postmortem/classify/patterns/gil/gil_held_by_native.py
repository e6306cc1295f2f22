"""Native code runs, or waits, without releasing the GIL.

**What it looks like.** One thread holds the GIL and is inside a C extension, in a C function called through ctypes.PyDLL, or in
one long call of a builtin, such as ``bytes.find`` or ``list.sort``, while others wait. It computes there at full CPU, or sleeps
in a system call for which Python's own code would release the GIL. All its samples show one line of Python, or several threads
make such calls in turn. The interpreter's
own count of hand-overs stands still, and the other threads wake every 5 ms to ask for the GIL in vain.

**Easily mistaken for** `python-busy-loop`, which releases the GIL when asked; native code that has released the GIL; a
regular expression that takes long (`regex-backtracking`).

**Why it hangs.** The interpreter can take the GIL away only between two instructions of Python. Native code keeps it until
it returns, or releases it by itself.

**Remedy.** Release the GIL around the long part of the native function, or run it in a process of its own. Give a builtin less
to do at a time.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

from ....evidence import NativeFrame, Process, PythonFrame, Thread
from ....findings import Confidence, Template, Text
from ...facts import native
from ...facts.clauses import named
from ...facts.gil import SWITCH_INTERVAL, kept_long, runs_without, waited
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="gil-held-by-native",
    tier="group",
    title="native code runs or waits without releasing the GIL",
    explanation=(
        "While a thread is inside native code that does not release the GIL (the interpreter lock), a C extension's or a "
        "builtin's, no other thread of the process runs Python code: no heartbeat, no signal handler, no timeout. The "
        "interpreter asks for the lock every 5 ms, but only Python code reacts to that."
    ),
    remedy=(
        "Release the GIL around the long or blocking part of the native function (Py_BEGIN_ALLOW_THREADS, "
        "py::gil_scoped_release, `with nogil`, ctypes.CDLL in place of PyDLL), or call it in a process of its own. "
        "Give a builtin, which cannot be changed, less to do at a time."
    ),
    needs=("python", "cores"),
    references=("https://docs.python.org/3/c-api/init.html#releasing-the-gil-from-extension-code",),
)

#: Least share of a core used, or waited for while runnable.
MIN_SHARE = 0.8
#: Least share of the samples with the same innermost Python line: of one thread, and of several that take turns there.
MIN_STABLE, MIN_IN_TURNS = 0.95, 0.6
#: Most hand-overs, as a share of those that the timer forces where threads wait for the GIL without a pause.
SELDOM = 0.05
#: Least threads that wait for it, where it is handed over now and then: one alone may have come just now.
CROWD = 2
#: Least share of the window in which each of a crowd waited for it.
MIN_WAITED = 0.25
#: Seconds: without a window, a wait with a shorter timeout is unremarkable.
LONG = 60

#: How functions of the interpreter's regular expressions begin (Modules/_sre.c, Modules/_sre/sre_lib.h).
_SRE = ("sre_", "pattern_", "_sre")

_SUMMARY = Template("{thread} keeps the GIL in native code, {place}{at}{wanted}")
_CALLED_AT = Template(", called at {frame}")
_WANTED = Template(", and {count:n thread} {count:v wait} for it")
_HOLDS = Template("{thread} holds the GIL and is in {place}")
_FROM = Template("it got there from {place}")
_SYSTEM_CALL = Template("the system call {call}")
_WAITS = Template("it waits there ({wait}) while it holds the GIL")
_ONE_MOMENT = Template("it was in no system call; one moment only, so whether it stays there is not known")
_COMPUTES = Template("it used {share:.0%} of a core over {seconds:.1f} s, at one line of Python")
_NEVER_HANDED_OVER = Template("the GIL never changed hands in {seconds:.1f} s{asked}")
_HANDED_OVER_ONCE = Template("the GIL changed hands once in {seconds:.1f} s{asked}")
_HANDED_OVER = Template("the GIL changed hands only {count} times in {seconds:.1f} s{asked}")
_ASKED = Template(", though its timer asks every {milliseconds:g} ms")
_WAITING = Template("{count:n thread} {count:v wait} for the GIL")
_INTERPRETERS_OWN = Template("{thread} holds the GIL and is in no native code other than the interpreter's")
_NO_WINDOW = Template("an observation window: does the native call of {thread} end?")
_CHANGED_HANDS = Template("the GIL of process {pid} changed hands {count} times during the window")
_COMES_BACK = Template("{thread} returns from native code again and again")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process whose GIL is held by a thread in native code."""
    for process in view.pythons:
        gil = process.gil
        holder = view.thread(process, gil.holder_tid) if gil is not None and gil.locked else None
        if holder is None or runs_without(process):
            continue
        frames = native.called(holder) or native.compiled(holder)
        asleep = native.asleep_unasked(holder) and view.rests(holder)
        waiting = [t for t in process.threads if t.gil == "waits"]
        if not frames and not asleep:
            within = native.builtin(holder)
            if waiting and within and _one_builtin(view, process, holder, waiting):
                yield _answer(view, process, holder, within[:1], waiting)
            elif waiting and holder.native:
                yield No(_INTERPRETERS_OWN(thread=named(holder)))
            continue
        yield _answer(view, process, holder, frames or native.calls(holder), waiting)


def _one_builtin(view: View, process: Process, holder: Thread, waiting: List[Thread]) -> bool:
    """Return whether one call of a builtin keeps the GIL: code in Python lets go of it as often as its timer asks.

    Calls of regular expressions, and the garbage collector's work, have patterns of their own.
    """
    handoffs = process.gil.handoffs if process.gil is not None else None
    if handoffs is None or holder.gc or any((f.function or "").startswith(_SRE) for f in holder.native):
        return False
    return _seldom_lets_go(view, process, holder, handoffs, waiting)


def _answer(
    view: View, process: Process, holder: Thread, frames: Tuple[NativeFrame, ...], waiting: List[Thread]
) -> Answer:
    handoffs = process.gil.handoffs if process.gil is not None else None
    lasts = holder.wait is not None and (native.blocks(holder.wait) or handoffs is not None)
    blocked = lasts and view.rests(holder)
    if handoffs is None and not blocked and not waiting:
        return CannotTell((_NO_WINDOW(thread=named(holder)),))
    seldom = handoffs is None or handoffs < 2 or _seldom_lets_go(view, process, holder, handoffs, waiting)
    if not seldom and not _keep_it(view, process, waiting):
        return No(_CHANGED_HANDS(pid=process.pid, count=handoffs))
    if not blocked and not (_stays(view, holder, waiting) or _keep_it(view, process, waiting)):
        return No(_COMES_BACK(thread=named(holder)))
    ends = holder.wait is not None and holder.wait.endless is False and (holder.wait.timeout_s or 0.0) < LONG
    sure = bool(waiting) and (handoffs is not None or (blocked and not ends))
    sure = sure and (handoffs is None or handoffs < 2 or len(waiting) >= CROWD)
    return _match(view, process, holder, frames, waiting, "likely" if sure else "possible")


def _seldom_lets_go(view: View, process: Process, holder: Thread, handoffs: int, waiting: List[Thread]) -> bool:
    """Return whether one call after the other keeps the GIL far longer than its timer allows, while others wait for it."""
    interval = (process.gil.switch_interval if process.gil is not None else None) or SWITCH_INTERVAL
    seldom = bool(waiting and view.window) and handoffs * interval < SELDOM * (view.window or 0.0)
    return seldom and _stays(view, holder, waiting)


def _keep_it(view: View, process: Process, waiting: List[Thread]) -> bool:
    """Return whether long calls kept the GIL, one after the other, for nearly all of the window while several waited for it."""
    crowd = sum(waited(view, thread) >= MIN_WAITED for thread in waiting)
    return crowd >= CROWD and kept_long(view, process)


def _stays(view: View, holder: Thread, waiting: List[Thread]) -> bool:
    """Return whether a thread was at one line of Python, at full CPU, over the window; True for a lone core.

    Threads that wait for the GIL at that same line take turns with it: together they keep a core busy there.
    """
    here = _place(holder.python)
    turns = [holder, *(thread for thread in waiting if _place(thread.python) == here)]
    shares = [share for share in map(view.wanted_share, turns) if share is not None]
    if shares and sum(shares) < MIN_SHARE:
        return False
    # py-spy reports no qualified names: compare only what both record
    seen = [(count, _place(frames)) for thread in turns for count, frames in view.samples(thread)]
    total = sum(count for count, _where in seen)
    least = MIN_STABLE if len(turns) == 1 else MIN_IN_TURNS
    return not total or sum(count for count, place in seen if place == here) >= least * total


def _place(frames: Sequence[PythonFrame]) -> Tuple[Tuple[str, Optional[int], str], ...]:
    return tuple((f.file, f.line, f.function) for f in frames[:1])


def _match(
    view: View,
    process: Process,
    holder: Thread,
    frames: Tuple[NativeFrame, ...],
    waiting: List[Thread],
    how: Confidence,
) -> Match:
    entered = native.entered_at(holder, next((f.module for f in frames[-1:] if native.is_program(f)), None))
    inner, outer = map(native.located, (frames[0], frames[-1])) if frames else (_call(holder), _call(holder))
    facts = [_HOLDS(thread=named(holder), place=inner)]
    facts += [_FROM(place=outer)] if len(frames) > 1 else []
    facts.append(_does(view, holder))
    if process.gil is not None and process.gil.handoffs is not None:
        interval = (process.gil.switch_interval or SWITCH_INTERVAL) * 1000
        asked = _ASKED(milliseconds=interval) if waiting else None
        count, seconds = process.gil.handoffs, view.window or 0
        told = _HANDED_OVER_ONCE if count else _NEVER_HANDED_OVER
        facts.append(
            told(seconds=seconds, asked=asked) if count < 2 else _HANDED_OVER(count=count, seconds=seconds, asked=asked)
        )
    if waiting:
        facts.append(_WAITING(count=len(waiting)))
    found = [view.culprit(process, entered, holder)] if entered is not None else []
    found += [c for f in frames[-1:] for c in [native.culprit(process, holder, f)] if native.is_program(f) and c]
    return Match(
        confidence=how,
        summary=_SUMMARY(
            thread=named(holder),
            place=outer,
            at=_CALLED_AT(frame=entered) if entered is not None else None,
            wanted=_WANTED(count=len(waiting)) if waiting else None,
        ),
        evidence=tuple(facts),
        culprits=tuple(dict.fromkeys(found)),
        victims=tuple(view.victim(process, t) for t in waiting),
        pid=process.pid,
    )


def _call(holder: Thread) -> Text:
    return _SYSTEM_CALL(call=holder.wait.syscall if holder.wait is not None else "?")


def _does(view: View, holder: Thread) -> Text:
    share: Optional[float] = view.cpu_share(holder)
    if holder.wait is not None and view.rests(holder):
        return _WAITS(wait=holder.wait.phrase or holder.wait.syscall or holder.wait.kind)
    if share is None:
        return _ONE_MOMENT()
    return _COMPUTES(share=share, seconds=view.window or 0)
