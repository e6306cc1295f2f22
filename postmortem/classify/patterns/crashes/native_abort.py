"""A library ended the process on purpose: it called abort().

**What it looks like.** A core with SIGABRT that the process sent to itself; below `abort` on the stack there is a library: a
failed assertion, `std::terminate`, a panic of Rust, a check of its own. stderr mostly has its last line.

**Easily mistaken for** `heap-corruption`, where the allocator aborts; `fatal-python-error`, where the interpreter does; `killed`,
where SIGABRT came from another process; `native-crash`, where an instruction failed.

**Why it crashes.** The library found a state in which it cannot go on, or an error that none of its callers handles. Errors of
native code do not become Python exceptions by themselves, so that no `except` sees this one.

**Remedy.** What the message says, at the line that called the library: mostly an argument, an order of calls, or a resource that
ran out. A library that aborts on wrong input has a defect, too.
"""

from __future__ import annotations

import re
from typing import Iterator, Optional, Tuple

from ....evidence import Abort, NativeFrame
from ....findings import Confidence, Template, Text
from ....findings.found import Said
from ...facts import native
from ...facts.knowledge import own_frame
from ...facts.leaving import leaving
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .crashing import Crashed, crashes, kind, lines, whereabouts

PATTERN = Pattern(
    id="native-abort",
    tier="crash",
    title="a library ended the process on purpose",
    explanation=(
        "Native code called abort(): it found a state in which it cannot go on (a failed assertion or check), a C++ exception "
        "that no code caught, or a panic of Rust code. No instruction failed, and nobody killed the process from outside."
    ),
    remedy=(
        "Read the message: it names what the library objected to. Check what the line named here passes to it, the order of its "
        "calls, and whether a resource ran out. If wrong input alone ends the process, report that to the library's maintainers."
    ),
    needs=("cores",),
    references=(
        "https://man7.org/linux/man-pages/man3/abort.3.html",
        "https://en.cppreference.com/w/cpp/error/terminate",
        "https://doc.rust-lang.org/reference/panic.html",
    ),
)

#: Functions between abort() and the code that gave up: of C++ (libsupc++, libc++abi), Rust (std and core), glibc's assert.
_MACHINERY = re.compile(
    r"(std::(terminate|__terminate|unexpected)|__cxxabiv1::|__gnu_cxx::|__cxa_|__clang_call_terminate"
    r"|std::__throw_|std::__glibcxx_assert_fail"
    r"|(core|std|alloc)::(panicking|rt|sys|sys_common|process|result|option|alloc)\b|_*rust_|<?std::|panic_abort::|__rustc::"
    r"|(__GI_)?__assert\w*)"
)
#: What glibc's assert() writes: "PROGRAM: FILE:LINE: FUNCTION: Assertion `…' failed."
_ASSERTED = re.compile(r"Assertion .* failed\.?$", re.DOTALL)

_OTHERWISE = Template("no library called abort(): {thread} received {signal} for another reason")
_ASSERTION = Template('a check in {library} failed{called}: "{message}"')
_EXCEPTION = Template(
    "nothing caught the C++ exception {exception}{message}, so that {library} ended the process{called}"
)
_TERMINATE = Template("{library} ended the process by std::terminate, without an exception{called}{message}")
_PANIC = Template("Rust code of {library}{called} panicked and ended the process{message}")
_CALL = Template("{library} called abort(){called}{message}")
_MESSAGE = Template(': "{message}"')
_IN_BRACKETS = Template(' ("{message}")')
_CALLED_AT = Template(", called at {frame},")
_CALLED_LAST = Template(", called at {frame}")
_NATIVE_CODE = Template("native code of {thread}")
_RECORDED = Template('the C library recorded before it aborted: "{message}"')
_THROWN = Template("the exception that was never caught is still in memory: {exception}{message}")
_PANICKED = Template("Rust code panicked at {place}{message}")
_PRINTED = Template('a line printed to stderr shortly before was found on the unused part of the stack: "{message}"')
_UNREAD = Template("what it printed before could not be found in memory: stderr has it, if anything was printed")
_NO_EXCEPTION = Template(
    "std::terminate without an exception: a std::thread was destroyed while it could still be joined, a pure virtual function "
    "was called, or noexcept code threw"
)
_LED_THERE = Template("native code that led there: {calls}")
_LEAVING = Template("the program had ended: {thread} ran exit handlers and destructors of libraries")
_NO_PYTHON = Template("no Python code is below it: {thread} was started by native code, or its Python stack is gone")
_INNERMOST = Template("the innermost Python frame is {frame}")
_MEMORY = Template(
    "Memory ran out, or an absurd amount of it was requested: check the sizes that the line named here passes, and the limits "
    "(ulimit -v, the control group's memory.max)."
)
_NO_THREAD = Template(
    "No further thread could be started: look at the limits (ulimit -u, pids.max of the control group), at the number of "
    "threads, and at pools that are made again and again."
)


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash by SIGABRT: a match if a library called abort()."""
    for found in crashes(view):
        what = kind(found)
        if what in ("assertion", "gave up"):
            yield _match(view, found)
        elif what in ("allocator", "interpreter", "smashed", "outside", "inside", "itself"):
            yield No(_OTHERWISE(thread=found.who, signal=found.signal))


def _match(view: View, found: Crashed) -> Match:
    told = found.crash.abort
    return Match(
        confidence=_confidence(found, told),
        summary=_summary(found, told),
        evidence=tuple(_facts(found, told)),
        culprits=tuple(c for c in lines(view, found) if not _MACHINERY.match(c.function)),
        remedy=_remedy(told),
        pid=found.process.pid,
    )


def _confidence(found: Crashed, told: Optional[Abort]) -> Confidence:
    """Return *proven* if the library is known and the runtime of its language recorded why it gave up."""
    if _library(found) is None:
        return "likely"
    if told is None:
        return "proven" if found.crash.message is not None and _ASSERTED.search(found.crash.message) else "likely"
    known = told.basis == "recorded" and (told.exception is not None or (told.kind == "panic" and told.message))
    return "proven" if known else "likely"


def _library(found: Crashed) -> Optional[NativeFrame]:
    """Return the innermost frame of the code that gave up; None if that is unknown."""
    above = [
        f for f in found.natives if f.module is not None and not native.is_interpreter(f) and not native.is_bridge(f)
    ]
    own = [f for f in above if native.is_program(f)]
    named = next((f for f in own if f.function is not None and not _MACHINERY.match(f.function)), None)
    if named is not None or own:
        return named or own[0]
    runtime = (
        f for f in above if f.function and not _MACHINERY.match(f.function) and "libc.so" not in (f.module or "")
    )
    return next(runtime, next((f for f in above if f.function and "std::" in f.function), None))


def _summary(found: Crashed, told: Optional[Abort]) -> Text:
    frame, own = _library(found), own_frame(found.below)
    library: Said = native.located(frame) if frame is not None else _NATIVE_CODE(thread=found.who)
    last = _CALLED_LAST(frame=own) if own is not None else None
    if told is None:
        return _ASSERTION(library=library, called=last, message=found.crash.message)
    message = _MESSAGE(message=told.message) if told.message else None
    if told.kind == "exception":
        brackets = _IN_BRACKETS(message=told.message) if told.message else None
        return _EXCEPTION(library=library, called=last, exception=told.exception, message=brackets)
    if told.kind == "panic":
        return _PANIC(library=library, called=_CALLED_AT(frame=own) if own is not None else None, message=message)
    return (_TERMINATE if told.kind == "terminate" else _CALL)(library=library, called=last, message=message)


def _facts(found: Crashed, told: Optional[Abort]) -> Iterator[Text]:
    yield from _said(found, told)
    frame = _library(found)
    calls = native.chain(found.natives[found.natives.index(frame) :]) if frame is not None else None
    if calls is not None:
        yield _LED_THERE(calls=calls)
    if found.below:
        yield _INNERMOST(frame=found.below[0])
    elif found.thread is not None and leaving(found.thread) is not None:
        yield _LEAVING(thread=found.who)
    else:
        yield _NO_PYTHON(thread=found.who)
    yield from whereabouts(found)


def _said(found: Crashed, told: Optional[Abort]) -> Tuple[Text, ...]:
    """Return the facts on what was said before the end."""
    if told is None:
        return (_RECORDED(message=found.crash.message),) if found.crash.message else (_UNREAD(),)
    message = _MESSAGE(message=told.message) if told.message else None
    if told.kind == "exception":
        return (_THROWN(exception=told.exception, message=message),)
    if told.kind == "panic" and told.place is not None:
        return (_PANICKED(place=told.place, message=message),)
    printed = _PRINTED(message=told.message) if told.message else _UNREAD()
    return (_NO_EXCEPTION(), printed) if told.kind == "terminate" else (printed,)


def _remedy(told: Optional[Abort]) -> Optional[Text]:
    """Return the remedy for resources that ran out; None for the pattern's own."""
    if told is None or told.exception is None:
        return None
    if told.exception in ("std::bad_alloc", "std::bad_array_new_length"):
        return _MEMORY()
    if told.exception == "std::system_error" and "Resource temporarily unavailable" in (told.message or ""):
        return _NO_THREAD()
    return None
