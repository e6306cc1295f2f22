"""Native code failed: an instruction that the processor or the kernel refused.

**What it looks like.** A core with SIGSEGV, SIGBUS, SIGILL or SIGFPE, with the address and the instruction that failed; or with
SIGABRT, after the C library found that native code had written beyond a variable.

**Easily mistaken for** `stack-overflow`, whose address lies beyond the end of a stack; `heap-corruption`, where the allocator
detected the damage before it caused a fault; `native-abort`, where a library ended the process on purpose; `killed`, where
another process sent the same signal; a hang, because the other threads of the core wait for what the failed one held.

**Why it crashes.** Python checks what it does with memory; native code (a C extension, a library called through ctypes or
cffi) does not. It used an invalid pointer, or an object that no longer existed.

**Remedy.** Check what the line named here passes to native code, and how that is declared; the place in the library tells its
maintainers the rest.
"""

from __future__ import annotations

import signal
from typing import Iterator, Optional

from ....findings import Template, Text
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .crashing import Crashed, crashes, kind, led_there, lines, place, whereabouts
from .faults import address_of, advice

PATTERN = Pattern(
    id="native-crash",
    tier="crash",
    title="native code failed: the processor refused an instruction",
    explanation=(
        "An instruction of native code (the interpreter, a C extension or a library) used memory that it may not use, or could "
        "not be executed, and the kernel ended the process with a signal. The instruction is where the mistake was noticed; "
        "the mistake itself may be in the code that called it, and in what that code passed."
    ),
    remedy=(
        "Check what the line named here passes to native code: types and sizes, objects that are closed or already freed. "
        "Then report the library, function and instruction named here to the library's maintainers. With "
        "`python -X faulthandler` a crash prints the Python stacks at once."
    ),
    needs=("cores",),
    references=(
        "https://docs.python.org/3/library/faulthandler.html",
        "https://man7.org/linux/man-pages/man2/sigaction.2.html",
    ),
)

_HARD = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)

_ONLY_SENT = Template("{signal} was sent; no instruction of {thread} caused it")
_ON_PURPOSE = Template("no instruction failed: native code of {thread} called abort()")
_SIGINFO = Template("the siginfo of the core: why {thread} received {signal}")
_FAULT = Template("{thread} was ended by {signal} in {place}{called}: {failure}")
_UNKNOWN_PLACE = Template("unknown code")
_CALLED_AT = Template(", called at {frame}")
_GOT = Template("{thread} received {signal}{code}: {failure}")
_INSTRUCTION = Template("the instruction that failed is in {place}{instruction}")
_IN_BRACKETS = Template(" (`{instruction}`)")
_HANDLED = Template("the program's own signal handler ran for this fault, and then ended the process")
_ONLY_NOTICED = Template(
    "the instruction shows where the mistake was noticed, not what made it: that may be any of its callers"
)
_CHECKED = Template(
    'native code of {thread} ended the process after one of its own checks had failed{called}: "{message}"'
)
_SAID = Template('the C library reported before it aborted: "{message}"')
_NO_PYTHON = Template(
    "no Python code is below it: {thread} was started by native code, or its Python stack could not be read"
)
_INNERMOST = Template("the innermost Python frame is {frame}")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash: a match if an instruction or a check of native code failed."""
    for found in crashes(view):
        what = kind(found)
        if what == "fault":
            yield _fault(view, found)
        elif what == "smashed":
            yield _checked(view, found)
        elif what in ("assertion", "gave up"):
            yield No(_ON_PURPOSE(thread=found.who))
        elif what in ("inside", "hidden", "itself", "outside") and found.crash.signal in _HARD:
            yield No(_ONLY_SENT(signal=found.signal, thread=found.who))
        elif what is None:
            yield CannotTell((_SIGINFO(thread=found.who, signal=found.signal),))


def _fault(view: View, found: Crashed) -> Match:
    return Match(
        confidence="proven" if found.crash.code_name is not None else "likely",
        summary=_FAULT(
            thread=found.who,
            signal=found.signal,
            place=place(found.crash) or _UNKNOWN_PLACE(),
            called=_called(found),
            failure=address_of(found),
        ),
        evidence=(*_failed(found), *_came_from(found)),
        culprits=lines(view, found),
        remedy=advice(found),
        pid=found.process.pid,
    )


def _failed(found: Crashed) -> Iterator[Text]:
    """Yield facts on the instruction that failed."""
    crash = found.crash
    yield _GOT(thread=found.who, signal=found.signal, code=found.code, failure=address_of(found))
    known = place(crash)
    if known is not None:
        code = _IN_BRACKETS(instruction=crash.instruction) if crash.instruction else None
        yield _INSTRUCTION(place=known, instruction=code)
    if crash.handler:
        yield _HANDLED()
    yield _ONLY_NOTICED()


def _checked(view: View, found: Crashed) -> Match:
    """Return the match of glibc's check of a smashed stack or small buffer."""
    message = found.crash.message
    return Match(
        confidence="likely",
        summary=_CHECKED(thread=found.who, called=_called(found), message=message),
        evidence=(_SAID(message=message), *_came_from(found)),
        culprits=lines(view, found),
        pid=found.process.pid,
    )


def _called(found: Crashed) -> Optional[Text]:
    """Return ", called at" the program's line; None without one."""
    own = own_frame(found.below)
    return _CALLED_AT(frame=own) if own is not None else None


def _came_from(found: Crashed) -> Iterator[Text]:
    """Yield facts on the native and Python code that led to the fault, and on what the thread did."""
    yield from led_there(found)
    yield _INNERMOST(frame=found.below[0]) if found.below else _NO_PYTHON(thread=found.who)
    yield from whereabouts(found)
