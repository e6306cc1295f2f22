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

from ...facts import native
from ...facts.knowledge import own_frame, short
from ...facts.view import View
from ...pattern import ANYTHING, Answer, Match, Pattern
from .crashing import Crashed, crashes, gave_up_unnamed, kind, lines, said, whereabouts
from .fatalwords import Meaning, meaning

PATTERN = Pattern(
    id="fatal-python-error",
    title="the interpreter gave up: a fatal Python error",
    explanation=(
        "The interpreter found itself in a state that it cannot go on from and cannot report as an exception, and ended the "
        "process on purpose. Python code alone seldom gets there: mostly native code (an extension, ctypes, a program that "
        "embeds Python) has broken a rule of Python's C API, and the function named here is the one that noticed."
    ),
    remedy=(
        "Look up the message in the interpreter's sources: it names the function that noticed and the rule. Check the "
        "native code that the line named here calls."
    ),
    needs=("cores",),
    outranks=(*ANYTHING, "stack-overflow", "native-crash", "killed"),
    references=(
        "https://docs.python.org/3/c-api/sys.html#c.Py_FatalError",
        "https://docs.python.org/3/c-api/init.html#thread-state-and-the-global-interpreter-lock",
    ),
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each crash by Py_FatalError."""
    for found in crashes(view):
        if kind(found) == "interpreter" or (kind(found) == "allocator" and found.crash.python_error is not None):
            yield _match(view, found)


def _match(view: View, found: Crashed) -> Match:
    crash = found.crash
    own = own_frame(found.below)
    known = meaning(crash.python_error_function, crash.python_error) if crash.python_error is not None else None
    function = f"{crash.python_error_function}: " if crash.python_error_function else ""
    words = f'"Fatal Python error: {function}{said(crash.python_error)}"' if crash.python_error is not None else None
    at = f" at {short(own)}" if own else ""
    return Match(
        confidence="likely" if words is None and gave_up_unnamed(found) else "proven",
        summary=f"the interpreter gave up in {found.who}{at}"
        + (f": {known.words}" if known else "")
        + (f" ({words})" if words else ", its message could not be read"),
        evidence=tuple(_facts(found, words, known)),
        culprits=lines(view, found),
        remedy=known.remedy if known else None,
        because_of=("heap-corruption",),
        pid=found.process.pid,
    )


def _facts(found: Crashed, words: Optional[str], known: Optional[Meaning]) -> Iterator[str]:
    crash = found.crash
    if words is not None:
        by = "" if crash.python_error_basis == "recorded" else " (found by the texts that its stack points to)"
        yield f"it said: {words}{by}"
    elif gave_up_unnamed(found):
        yield "the interpreter called abort(), and no Python code had asked for it; stderr has the message"
    else:
        yield "its function for fatal errors stands below abort() on the thread's stack; stderr has the message"
    if known is not None:
        yield f"which means that {known.words}"
    if crash.holds_gil is not None:
        yield f"{found.who} {'held' if crash.holds_gil else 'did not hold'} the GIL"
    calls = native.led_there(found.natives)
    if calls is not None:
        yield f"native code that led there: {calls}"
    if not found.below:
        yield f"{found.who} has no Python frame: it was started by native code, or its state was being taken down"
    recursion = found.thread.recursion if found.thread is not None else None
    if recursion is not None and recursion.cycle:
        names = " → ".join(dict.fromkeys(f.function for f in reversed(recursion.cycle)))
        yield f"its stack has {recursion.depth} Python frames: {names}, {recursion.times} times"
    if whereabouts(found):
        yield whereabouts(found)
