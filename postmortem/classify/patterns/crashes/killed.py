"""Ended by a signal that was sent to the process, and left a core.

**What it looks like.** A core with SIGABRT, SIGQUIT or another signal that a process sent (a supervisor's watchdog, a person with
`kill`, a terminal); or that a watchdog thread or an alarm of the program itself sent, while the receiving thread did
something else.

**Easily mistaken for** a crash: no instruction of the program failed. The program's own `os.abort()` is neither.

**Why.** Mostly because the program did not answer in time, so that a watchdog or a person assumed that it hung. What it did at
that moment is diagnosed like a hang; a finding about that comes before this one.

**Remedy.** Find out why it took so long, at the line where the main thread was; or give it more time.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import PythonFrame, Thread
from ....findings import Culprit, Template, Text
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import ANYTHING, Answer, CannotTell, Match, No, Pattern
from .crashing import Crashed, crashes, interrupted, kind, lines, raises

PATTERN = Pattern(
    id="killed",
    tier="symptom",
    title="ended from outside, by a signal",
    explanation=(
        "No instruction of the program failed: the process was sent a signal that ends it and leaves a core. "
        "Watchdogs do that when a program does not answer in time. The core shows only what it did at that moment."
    ),
    remedy=(
        "Look at the sender of the signal (its PID is named here; its log says why), and at where the main thread was. To see "
        "more than one moment, let the watchdog run `postmortem capture --pid PID` before it sends the signal."
    ),
    needs=("cores",),
    yields=True,
    references=("https://man7.org/linux/man-pages/man7/signal.7.html",),
)

_ENDED_ITSELF = Template("{thread} ended its process itself, with {signal}{at}")
_WHO_SENT = Template("which process sent {signal}: a core written by the kernel records that (ulimit -c unlimited)")
_SUMMARY = Template("{sender}{pause} ended process {pid} with {signal}{main}")
_MAIN_AT = Template("; {thread} was at {frame}")
_SOMEBODY = Template(
    "an unknown sender (a handler such as faulthandler's raised the signal again, which hides the sender)"
)
_KERNEL = Template("the kernel (a terminal's quit key, or a resource limit)")
_OUTSIDER = Template("a process outside of its container")
_PARENT = Template("its parent, process {pid}{user}")
_PROCESS = Template("process {pid}{user}")
_USER = Template(" (user {uid})")
_HANDLER = Template("the program's own signal handler, called while {thread} did something else")
_OWN_THREAD = Template("its own {thread}")
_ANOTHER_THREAD = Template("another thread of the program")
_SENT = Template("{signal}{code} was sent by {sender}; {thread} received it")
_WAITED = Template("{thread} waited: {what}")
_COMPUTED = Template("{thread} was in no other system call: it was computing")
_ONE_MOMENT = Template("one moment only: a core does not show whether it was stuck there or only passing")


class Sender(NamedTuple):
    """Whoever sent the signal."""

    words: Text
    sure: bool
    pause: bool = False  # its words end with an inserted clause, so that a comma follows in the middle of a sentence


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash: a match if a signal was sent."""
    for found in crashes(view):
        what = kind(found)
        if what in ("outside", "inside", "hidden"):
            yield _match(view, found, what)
        elif what == "itself":
            yield No(_ENDED_ITSELF(thread=found.who, signal=found.signal, at=clauses.at(own_frame(found.below))))
        elif what is None:
            yield CannotTell((_WHO_SENT(signal=found.signal),))


def _match(view: View, found: Crashed, what: str) -> Match:
    main = view.main(found.process) or found.thread
    sender = _sender(found, what)
    frame = own_frame(_frames(main)) if main is not None else None
    return Match(
        confidence="proven" if sender.sure else "likely",
        summary=_SUMMARY(
            sender=sender.words,
            pause="," if sender.pause else None,
            pid=found.process.pid,
            signal=found.signal,
            main=_MAIN_AT(thread=clauses.named(main), frame=frame) if main is not None and frame is not None else None,
        ),
        evidence=tuple(_facts(found, sender, main)),
        culprits=tuple(dict.fromkeys(c for t in _looked_at(view, found, main) for c in _lines(view, found, t))),
        because_of=ANYTHING,
        pid=found.process.pid,
    )


def _sender(found: Crashed, what: str) -> Sender:
    """Return the sender of the signal."""
    if what == "hidden":
        return Sender(_SOMEBODY(), sure=False)
    if found.crash.code_name == "SI_KERNEL":
        return Sender(_KERNEL(), sure=True)
    if what == "outside":
        return _sending_process(found)
    if found.thread is not None and interrupted(found.thread):
        return Sender(_HANDLER(thread=found.who), sure=False, pause=True)
    thread = _sending_thread(found)
    if thread is not None:
        return Sender(_OWN_THREAD(thread=clauses.named(thread)), sure=True)
    return Sender(_ANOTHER_THREAD(), sure=False)


def _sending_process(found: Crashed) -> Sender:
    """Return the other process that sent the signal."""
    pid, uid = found.crash.sender_pid, found.crash.sender_uid
    if pid == 0:
        return Sender(_OUTSIDER(), sure=True)
    user = _USER(uid=uid) if uid is not None else None
    parent = pid == found.process.ppid
    return Sender((_PARENT if parent else _PROCESS)(pid=pid, user=user), sure=True, pause=parent)


def _sending_thread(found: Crashed) -> Optional[Thread]:
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
    return list({t.tid: t for t in (*chosen, *awaited[:3])}.values())


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


def _facts(found: Crashed, sender: Sender, main: Optional[Thread]) -> Iterator[Text]:
    yield _SENT(signal=found.signal, code=found.code, sender=sender.words, thread=found.who)
    if main is None:
        return
    if main.wait is not None and not raises(main):
        what = main.wait.phrase or main.wait.syscall or main.wait.kind
        yield _WAITED(thread=clauses.named(main), what=what)
    elif main.wait is None or main is found.thread:
        yield _COMPUTED(thread=clauses.named(main))
    yield _ONE_MOMENT()
