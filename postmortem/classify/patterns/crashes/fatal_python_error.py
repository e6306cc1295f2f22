"""The interpreter gave up: Py_FatalError.

**What it looks like.** A core with SIGABRT; on top of the thread's stack the interpreter's own function for errors that it cannot
raise; "Fatal Python error: …" on stderr.

**Easily mistaken for** an uncaught exception, which ends a program in an orderly way; `heap-corruption`, when it was Python's
debug allocator that gave up; `killed`, where another process sent SIGABRT.

**Why it crashes.** The interpreter found itself in an invalid state: mostly because native code has broken a rule of the C
API, such as holding the GIL around each call.

**Remedy.** It depends on the message, which names the function that gave up and the rule that was broken.
"""

from __future__ import annotations

from typing import Iterator, Optional

from ....findings import Template, Text
from ...facts import clauses
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, Pattern
from .crashing import Crashed, crashes, gave_up_unnamed, kind, led_there, lines, said, whereabouts, which_means
from .fatalwords import Meaning, meaning

PATTERN = Pattern(
    id="fatal-python-error",
    tier="crash",
    title="the interpreter gave up: a fatal Python error",
    explanation=(
        "The interpreter reached a state in which it cannot continue and which it cannot report as an exception, and ended the "
        "process on purpose. Python code alone seldom causes that: mostly native code (an extension, ctypes, a program that "
        "embeds Python) has broken a rule of Python's C API, and the function named here is the one that detected it."
    ),
    remedy=(
        "Look up the message in the interpreter's sources: it names the function that detected the error, and the rule. Check "
        "the native code that the line named here calls."
    ),
    needs=("cores",),
    references=(
        "https://docs.python.org/3/c-api/sys.html#c.Py_FatalError",
        "https://docs.python.org/3/c-api/init.html#thread-state-and-the-global-interpreter-lock",
    ),
)

_SUMMARY = Template("the interpreter gave up in {thread}{at}{meaning}{message}")
_MEANING = Template(": {meaning}")
_IN_BRACKETS = Template(" ({message})")
_UNREAD = Template("; its message could not be read")
_MESSAGE = Template('"Fatal Python error: {function}{message}"')
_IN_FUNCTION = Template("{name}: ")
_SAID = Template("it reported: {message}{basis}")
_BY_ITS_STACK = Template(" (found among the strings that its stack points to)")
_CALLED_ABORT = Template(
    "the interpreter called abort(), and no Python code had requested that; stderr has the message"
)
_BELOW_ABORT = Template("its function for fatal errors is below abort() on the thread's stack; stderr has the message")
_HELD_GIL = Template("{thread} held the GIL")
_HELD_NO_GIL = Template("{thread} did not hold the GIL")
_NO_PYTHON = Template(
    "{thread} has no Python frame: it was started by native code, or its thread state was being deleted"
)
_DEEP = Template("its stack has {depth} Python frames: {names: → }, {times} times")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each crash by Py_FatalError."""
    for found in crashes(view):
        if kind(found) == "interpreter" or (kind(found) == "allocator" and found.crash.python_error is not None):
            yield _match(view, found)


def _match(view: View, found: Crashed) -> Match:
    crash = found.crash
    own = own_frame(found.below)
    known = meaning(crash.python_error_function, crash.python_error) if crash.python_error is not None else None
    message = _message(found)
    return Match(
        confidence="likely" if message is None and gave_up_unnamed(found) else "proven",
        summary=_SUMMARY(
            thread=found.who,
            at=clauses.at(own),
            meaning=_MEANING(meaning=known.words) if known else None,
            message=_IN_BRACKETS(message=message) if message else _UNREAD(),
        ),
        evidence=tuple(_facts(found, message, known)),
        culprits=lines(view, found),
        remedy=known.remedy if known else None,
        because_of=("heap-corruption",),
        pid=found.process.pid,
    )


def _message(found: Crashed) -> Optional[Text]:
    """Return the message as the interpreter prints it; None if it could not be read."""
    crash = found.crash
    if crash.python_error is None:
        return None
    function = _IN_FUNCTION(name=crash.python_error_function) if crash.python_error_function else None
    return _MESSAGE(function=function, message=said(crash.python_error))


def _facts(found: Crashed, message: Optional[Text], known: Optional[Meaning]) -> Iterator[Text]:
    crash = found.crash
    if message is not None:
        yield _SAID(message=message, basis=None if crash.python_error_basis == "recorded" else _BY_ITS_STACK())
    else:
        yield _CALLED_ABORT() if gave_up_unnamed(found) else _BELOW_ABORT()
    yield from which_means(known.words if known else None)
    if crash.holds_gil is not None:
        yield (_HELD_GIL if crash.holds_gil else _HELD_NO_GIL)(thread=found.who)
    yield from led_there(found)
    if not found.below:
        yield _NO_PYTHON(thread=found.who)
    recursion = found.thread.recursion if found.thread is not None else None
    if recursion is not None and recursion.cycle:
        names = tuple(dict.fromkeys(f.function for f in reversed(recursion.cycle)))
        yield _DEEP(depth=recursion.depth, names=names, times=recursion.times)
    yield from whereabouts(found)
