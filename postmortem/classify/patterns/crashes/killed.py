"""Ended by a signal that was sent to the process, and left a core.

**What it looks like.** A core with SIGABRT, SIGQUIT or another signal that a process sent (a supervisor's watchdog, a person with
`kill`, a terminal); or that a watchdog thread or an alarm of the program itself sent, while the receiving thread did
something else.

**Easily mistaken for** a crash: no instruction of the program failed. An `os.abort()` of the program's own is neither.

**Why.** Mostly because the program did not answer in time, so that a watchdog or a person took it for hung. What it did at
that moment is diagnosed like a hang; a finding about that comes before this one.

**Remedy.** Find out why it took so long, at the line where the main thread was; or give it more time.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import PythonFrame, Thread
from ....findings import Culprit
from ...facts.knowledge import own_frame, short
from ...facts.view import View, label
from ...pattern import ANYTHING, Answer, CannotTell, Match, No, Pattern
from .crashing import Crashed, crashes, interrupted, kind, lines, raises

PATTERN = Pattern(
    id="killed",
    title="ended from outside, by a signal",
    explanation=(
        "No instruction of the program failed: somebody sent the process a signal that ends it and leaves a core. "
        "Watchdogs do so when a program does not answer in time. The core shows what it did at that moment alone."
    ),
    remedy=(
        "Look at who sent the signal (its pid is named here; its log says why), and at where the main thread was. To see "
        "more than one moment, let the watchdog run `postmortem capture --pid PID` before it sends the signal."
    ),
    needs=("cores",),
    yields=True,
    references=("https://man7.org/linux/man-pages/man7/signal.7.html",),
)


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash: a match if a signal was sent."""
    for found in crashes(view):
        what = kind(found)
        if what in ("outside", "inside", "hidden"):
            yield _match(view, found, what)
        elif what == "itself":
            own = own_frame(found.below)
            yield No(f"{found.who} ended its process itself, with {found.signal}{f' at {short(own)}' if own else ''}")
        elif what is None:
            yield CannotTell((f"who sent {found.signal}: a core of the kernel's tells (ulimit -c unlimited)",))


def _match(view: View, found: Crashed, what: str) -> Match:
    main = view.main(found.process) or found.thread
    who, sure = _who(found, what)
    frame = own_frame(_frames(main)) if main is not None else None
    at = f"; {label(main)} was at {short(frame)}" if main is not None and frame is not None else ""
    return Match(
        confidence="proven" if sure else "likely",
        summary=f"{who} ended process {found.process.pid} with {found.signal}{at}",
        evidence=tuple(_facts(found, who, main)),
        culprits=tuple(dict.fromkeys(c for t in _looked_at(view, found, main) for c in _lines(view, found, t))),
        because_of=ANYTHING,
        pid=found.process.pid,
    )


def _who(found: Crashed, what: str) -> Tuple[str, bool]:
    """Return the sender of the signal, for the reader, and whether it is certain."""
    if what == "hidden":
        return "somebody (a handler such as faulthandler's raised the signal anew, which hides who)", False
    if found.crash.code_name == "SI_KERNEL":
        return "the kernel (a terminal's quit key, or a limit on its resources)", True
    if what == "outside":
        return found.sender_name, True
    if found.thread is not None and interrupted(found.thread):
        return f"a signal handler of the program's own, called while {found.who} did something else,", False
    sender = _sender(found)
    return (f"its own {label(sender)}", True) if sender is not None else ("another thread of the program", False)


def _sender(found: Crashed) -> Optional[Thread]:
    """Return another thread of the process that is sending a signal; None if there is none."""
    return next((t for t in found.process.threads if t is not found.thread and raises(t)), None)


def _frames(thread: Thread) -> Tuple[PythonFrame, ...]:
    """Return the thread's Python frames, without those of a signal handler."""
    return interrupted(thread) or thread.python


def _looked_at(view: View, found: Crashed, main: Optional[Thread]) -> List[Thread]:
    """Return the main thread, a thread that the signal was sent to, and threads that the main thread waits for."""
    picked = found.thread if found.crash.code_name == "SI_TKILL" else None
    chosen = [t for t in (picked, main) if t is not None]
    awaited = [t for t in found.process.threads if t is not main and main in view.waits_on(found.process, t.tid)]
    return list(dict.fromkeys([*chosen, *awaited[:3]]))


def _lines(view: View, found: Crashed, thread: Thread) -> Iterator[Culprit]:
    """Yield the lines of a thread, the loops around them if it computes, and the line of the main task."""
    yield from lines(view, found._replace(thread=thread), _frames(thread))
    own = own_frame(_frames(thread))
    if own is not None and (thread.wait is None or raises(thread)):  # it computes: add the loops around its line
        yield from (view.culprit(found.process, f, thread) for f in view.loops_around([own])[1:3])
    loops = {loop.id: loop.main_task for loop in found.process.loops if loop.tid == thread.tid}
    for task in found.process.tasks:
        frame = own_frame(task.stack) if task.id in loops.values() else None
        if frame is not None:
            yield view.culprit(found.process, frame, thread, task.name)


def _facts(found: Crashed, who: str, main: Optional[Thread]) -> Iterator[str]:
    code = f" ({found.crash.code_name})" if found.crash.code_name else ""
    yield f"{found.signal}{code} was sent by {who.rstrip(',')}; {found.who} got it"
    if main is None:
        return
    if main.wait is not None and not raises(main):
        what = main.wait.phrase or main.wait.syscall or main.wait.kind
        yield f"{label(main)} waited: {what}"
    elif main.wait is None or main is found.thread:
        yield f"{label(main)} was in no other system call: it was computing"
    yield "it is one moment only: whether it was stuck there or passed by, a core does not tell"
