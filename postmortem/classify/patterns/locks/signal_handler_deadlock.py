"""A Python signal handler wants a lock that the code it interrupted holds.

**What it looks like.** The main thread waits for a lock; further down its own stack the same lock is held, and between the
two is a signal handler, which no code called explicitly.

**Easily mistaken for** `self-deadlock`, where the program itself makes the second call.

**Why it hangs.** Python runs signal handlers in the main thread, between any two instructions, also inside a `with lock:`
block. The handler waits for code that cannot go on before the handler returns.

**Remedy.** Let the handler only set a flag or an Event that is checked elsewhere.
"""

from __future__ import annotations

from typing import Iterator

from ....evidence import PythonFrame
from ....findings import Template
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, Pattern
from .reentry import Interrupted, Reentry, interrupted, reentries

PATTERN = Pattern(
    id="signal-handler-deadlock",
    tier="specific",
    title="a signal handler wants a lock that the interrupted code holds",
    explanation=(
        "The signal came while the main thread held the lock. Its handler runs in the same thread and waits for the lock, "
        "and the code that holds it cannot go on before the handler returns."
    ),
    remedy="Only set a flag or an Event in the handler (or use signal.set_wakeup_fd); acquire no locks, and do not log.",
    needs=("python",),
    references=("https://docs.python.org/3/library/signal.html#note-on-signal-handlers-and-exceptions",),
)

_SUMMARY = Template("the signal handler {handler} wants {lock}, which the code that it interrupted holds")
_SUPPOSED = Template("the signal handler {handler} wants {lock}, which only the code that it interrupted can hold")
_WAS_IN = Template("the signal interrupted {below}, which acquires or releases the lock")
_WANTS = Template("{thread} waits for it{at}")
_NOBODY_ELSE = Template("no frame of another thread shows that it holds the lock")
_BEGAN = Template("a signal came, and its handler {handler} interrupted the code that holds the lock")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each thread that waits, in a signal handler, for a lock that it holds."""
    for found in reentries(view):
        if found.via == "signal" and found.entered is not None:
            yield _match(view, found, found.entered)
    for one in interrupted(view):
        yield _supposed(view, one)


def _match(view: View, found: Reentry, handler: PythonFrame) -> Match:
    thread, held = found.thread, found.held
    again = own_frame(thread.python)
    return Match(
        confidence="proven" if found.sure else "likely",
        summary=_SUMMARY(handler=handler, lock=found.resource.description),
        evidence=(found.taken, _BEGAN(handler=handler), found.wanted_again),
        culprits=tuple(
            dict.fromkeys(view.culprit(found.process, f, thread) for f in (again, handler, held.frame) if f)
        ),
        pid=found.process.pid,
    )


def _supposed(view: View, found: Interrupted) -> Match:
    """Return the match of a lock whose holder no frame shows: the interrupted code, by elimination."""
    again, below = own_frame(found.thread.python), own_frame(found.below)
    places = (again, found.handler, below)
    return Match(
        confidence="likely",
        summary=_SUPPOSED(handler=found.handler, lock=found.resource.description),
        evidence=(
            _BEGAN(handler=found.handler),
            _WAS_IN(below=found.below[0]),
            _WANTS(thread=clauses.named(found.thread), at=clauses.at(again)),
            _NOBODY_ELSE(),
        ),
        culprits=tuple(dict.fromkeys(view.culprit(found.process, f, found.thread) for f in places if f is not None)),
        pid=found.process.pid,
    )
