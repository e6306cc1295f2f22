"""The allocator found its memory damaged, and ended the process.

**What it looks like.** A core with SIGABRT and a message of the C library's allocator ("free(): invalid pointer", "double free or
corruption"), or of Python's debug allocator ("bad trailing pad byte").

**Easily mistaken for** `native-crash`: the same damage, if it causes a fault before the allocator detects it; the program's
own call of `abort()`.

**Why it crashes.** Native code wrote beyond a block, freed one twice, or freed what was never allocated. The allocator keeps
its records beside the blocks and detects the damage only when it reads them: often long after, and in a call that is not at
fault.

**Remedy.** Detect the damage where it is done: `PYTHONMALLOC=debug`, AddressSanitizer, valgrind.
"""

from __future__ import annotations

import re
from typing import Iterator, Optional

from ....findings import Template, Text
from ...facts import clauses, native
from ...facts.knowledge import own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .crashing import Crashed, crashes, kind, lines, said, whereabouts, which_means

PATTERN = Pattern(
    id="heap-corruption",
    tier="corruption",
    title="the allocator found its memory damaged",
    explanation=(
        "The allocator (malloc and free of the C library, or Python's own) checks its records now and then, and ends the process "
        "when they are no longer consistent. Some code has written outside its memory, or freed memory that it did not own. "
        "Only native code can do that; calls through ctypes count as native code."
    ),
    remedy=(
        "The line named here is where the damage was noticed. Run it again with PYTHONMALLOC=debug (and PYTHONDEVMODE=1), "
        "MALLOC_CHECK_=3 or under valgrind: these notice it near where it is done. Check sizes and lengths handed to "
        "native code, and which code frees what."
    ),
    needs=("cores",),
    references=(
        "https://docs.python.org/3/using/cmdline.html#envvar-PYTHONMALLOC",
        "https://sourceware.org/glibc/wiki/MallocInternals",
    ),
)

#: The meaning of each message. glibc 2.17 to 2.41, malloc/malloc.c; CPython 3.8 to 3.15, Objects/obmalloc.c.
_MEANS = (
    (r"double free", Template("a block was freed that was already free")),
    (r"^(free|munmap_chunk)\(\): invalid (pointer|size)",
     Template("something was freed that malloc never allocated, or whose header is damaged")),
    (r"^realloc\(\): invalid pointer", Template("realloc was called for memory that malloc never allocated")),
    (r"invalid next size|corrupted size|corrupted top size|malloc assertion failure in sysmalloc|sysmalloc: Assert"
     r"|^malloc\(\): invalid size",
     Template("the record before or after a block was overwritten: something wrote beyond the end of a block")),
    (r"unaligned|corrupted (double-linked|unsorted)|tcache|fastbin|chunk", Template("a freed block was written to")),
    (r"bad trailing pad byte", Template("the bytes after a block were overwritten: something wrote beyond its end")),
    (r"bad leading pad byte", Template("the bytes before a block were overwritten, or it was freed with another address")),
    (r"bad ID", Template("a block was allocated by one of Python's allocators and freed by another one")),
)  # fmt: skip
#: Messages about the very block that is being freed, so that the damage is not older.
_AT_ONCE = re.compile(r"double free|invalid pointer|bad ID|bad (leading|trailing) pad")

_NOT_OF_ALLOCATOR = Template('the message of the C library is not from its allocator: "{message}"')
_SUMMARY = Template('{allocator} found its memory damaged{at}: "{message}"{meaning}')
_OF_LIBC = Template("the C library's allocator")
_OF_PYTHON = Template("Python's debug allocator")
_IN_BRACKETS = Template(" ({meaning})")
_SAID = Template('{allocator} reported before it ended the process: "{message}"')
_BY_THE_STACK = Template("the message was found among the strings that the thread's stack points to")
_CALLED_BY = Template("native code that called the allocator: {calls}")
_OLDER = Template("the damage is older than this call: the next call of the allocator was bound to detect it")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash by a failed check of native code: a match if it was an allocator's."""
    for found in crashes(view):
        what = kind(found)
        if what == "allocator":
            yield _match(view, found)
        elif what in ("assertion", "smashed"):
            yield No(_NOT_OF_ALLOCATOR(message=found.crash.message))


def _match(view: View, found: Crashed) -> Match:
    crash = found.crash
    message = crash.message if crash.message is not None else said(crash.python_error or "")
    allocator = _OF_LIBC() if crash.message is not None else _OF_PYTHON()
    meaning = next((means() for pattern, means in _MEANS if re.search(pattern, message)), None)
    return Match(
        confidence="proven",
        summary=_SUMMARY(
            allocator=allocator,
            at=clauses.at(own_frame(found.below)),
            message=message,
            meaning=_IN_BRACKETS(meaning=meaning) if meaning else None,
        ),
        evidence=(_SAID(allocator=allocator, message=message), *_facts(found, message, meaning)),
        culprits=lines(view, found),
        pid=found.process.pid,
    )


def _facts(found: Crashed, message: str, meaning: Optional[Text]) -> Iterator[Text]:
    """Yield what is known beside the message."""
    yield from which_means(meaning)
    if found.crash.python_error_basis == "inferred" and found.crash.message is None:
        yield _BY_THE_STACK()
    calls = native.chain(found.natives)
    if calls is not None:
        yield _CALLED_BY(calls=calls)
    yield from whereabouts(found)
    if not _AT_ONCE.search(message):
        yield _OLDER()
