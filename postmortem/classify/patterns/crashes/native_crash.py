"""Native code failed: an instruction that the processor or the kernel refused.

**What it looks like.** A core with SIGSEGV, SIGBUS, SIGILL or SIGFPE, with the address and the instruction that failed; or with
SIGABRT, after the C library found that native code had written beyond a variable.

**Easily mistaken for** `stack-overflow`, whose address lies beyond the end of a stack; `heap-corruption`, where the allocator
detected the damage before it caused a fault; `killed`, where another process sent the same signal; a hang, because the other
threads of the core wait for what the failed one held.

**Why it crashes.** Python checks what it does with memory; native code (a C extension, a library called through ctypes or
cffi) does not. It used an invalid pointer, or an object that no longer existed.

**Remedy.** Check what the line named here passes to native code, and how that is declared; the place in the library tells its
maintainers the rest.
"""

from __future__ import annotations

import signal
from typing import Iterator, Optional

from ...facts import native
from ...facts.knowledge import own_frame, short
from ...facts.view import View
from ...pattern import ANYTHING, Answer, CannotTell, Match, No, Pattern
from .crashing import Crashed, crashes, instruction, kind, lines, place, whereabouts
from .faults import address_of, advice

PATTERN = Pattern(
    id="native-crash",
    title="native code failed: the processor refused an instruction",
    explanation=(
        "An instruction of native code (the interpreter, a C extension or a library) used memory that it may not use, or could "
        "not be carried out, and the kernel ended the process with a signal. The instruction is where the mistake was "
        "noticed; the mistake itself may lie with whoever called the code, and with what."
    ),
    remedy=(
        "Check what the line named here passes to native code: types and sizes, objects that are closed or already gone. "
        "Then report the library, function and instruction named here to the library's maintainers. With "
        "`python -X faulthandler` a crash prints the Python stacks at once."
    ),
    needs=("cores",),
    outranks=(*ANYTHING, "killed"),
    references=(
        "https://docs.python.org/3/library/faulthandler.html",
        "https://man7.org/linux/man-pages/man2/sigaction.2.html",
    ),
)


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash: a match if an instruction or a check of native code failed."""
    for found in crashes(view):
        what = kind(found)
        if what == "fault":
            yield _fault(view, found)
        elif what in ("smashed", "assertion"):
            yield _checked(view, found)
        elif what in ("inside", "hidden", "itself", "outside") and found.crash.signal in _HARD:
            yield No(f"{found.signal} was sent, no instruction of {found.who} caused it")
        elif what is None:
            yield CannotTell((f"the siginfo of the core: why {found.who} got {found.signal}",))


_HARD = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


def _fault(view: View, found: Crashed) -> Match:
    crash = found.crash
    own = own_frame(found.below)
    failed = instruction(crash)
    did = address_of(found)
    facts = [f"{found.who} got {found.signal}{f' ({crash.code_name})' if crash.code_name else ''}: {did}"]
    if failed is not None:
        facts.append(f"the instruction that failed is in {failed}")
    if crash.handler:
        facts.append(
            "a signal handler of the program's own ran for it, and ended the process then: this is what it ran for"
        )
    facts.append("the instruction tells where the mistake was noticed, not who made it: that may be any of its callers")
    return Match(
        confidence="proven" if crash.code_name is not None else "likely",
        summary=f"{found.who} was ended by {found.signal} in {place(crash) or 'code that is not known'}"
        + (f", called at {short(own)}" if own else "")
        + f": {did}",
        evidence=(*facts, *_came_from(found), *_state(found)),
        culprits=lines(view, found),
        remedy=advice(found),
        pid=found.process.pid,
    )


def _checked(view: View, found: Crashed) -> Match:
    """Return the match of a failed check: glibc's of a smashed stack or small buffer, or an assertion of native code."""
    own = own_frame(found.below)
    said = found.crash.message
    return Match(
        confidence="likely",
        summary=f"native code of {found.who} ended the process after a check of its own had failed"
        + (f", called at {short(own)}" if own else "")
        + f': "{said}"',
        evidence=(f'the C library said before it aborted: "{said}"', *_came_from(found), *_state(found)),
        culprits=lines(view, found),
        pid=found.process.pid,
    )


def _came_from(found: Crashed) -> Iterator[str]:
    """Yield sentences on the native and Python code that led to the fault."""
    calls = native.led_there(found.natives)
    if calls is not None:
        yield f"native code that led there: {calls}"
    own: Optional[str] = next((short(f) for f in found.below), None)
    if own is None:
        yield f"no Python code is below it: {found.who} was started by native code, or its Python stack could not be read"
    else:
        yield f"the innermost Python frame is {own}"


def _state(found: Crashed) -> Iterator[str]:
    said = whereabouts(found)
    if said:
        yield said
