"""The allocator found its memory damaged, and ended the process.

**What it looks like.** A core with SIGABRT and a message of the C library's allocator ("free(): invalid pointer", "double free or
corruption"), or of Python's debug allocator ("bad trailing pad byte").

**Easily mistaken for** `native-crash`: the same damage, if it causes a fault before the allocator detects it; an abort of the
program's own.

**Why it crashes.** Native code wrote beyond a block, freed one twice, or freed what was never allocated. The allocator keeps
its records beside the blocks and detects the damage only when it reads them: often long after, and in a call that is not at
fault.

**Remedy.** Detect the damage where it is done: `PYTHONMALLOC=debug`, AddressSanitizer, valgrind.
"""

from __future__ import annotations

import re
from typing import Iterator

from ...facts import native
from ...facts.knowledge import own_frame, short
from ...facts.view import View
from ...pattern import ANYTHING, Answer, Match, No, Pattern
from .crashing import Crashed, crashes, kind, lines, said, whereabouts

PATTERN = Pattern(
    id="heap-corruption",
    title="the allocator found its memory damaged",
    explanation=(
        "The allocator (malloc and free of the C library, or Python's own) checks its records now and then, and ends the process "
        "when they make no sense any more. Somebody has written where he had no memory, or given memory back that was not his. "
        "Only native code can do that; ctypes counts as such."
    ),
    remedy=(
        "The line named here is where the damage was noticed. Run it again with PYTHONMALLOC=debug (and PYTHONDEVMODE=1), "
        "MALLOC_CHECK_=3 or under valgrind: these notice it near where it is done. Check sizes and lengths handed to "
        "native code, and who frees what."
    ),
    needs=("cores",),
    outranks=(*ANYTHING, "fatal-python-error", "native-crash", "killed"),
    references=(
        "https://docs.python.org/3/using/cmdline.html#envvar-PYTHONMALLOC",
        "https://sourceware.org/glibc/wiki/MallocInternals",
    ),
)

#: The meaning of each message. glibc 2.17 to 2.41, malloc/malloc.c; CPython 3.8 to 3.15, Objects/obmalloc.c.
_MEANS = (
    (r"double free", "a block was freed that was free already"),
    (r"^(free|munmap_chunk)\(\): invalid (pointer|size)", "something was freed that malloc never gave, or whose head is damaged"),
    (r"^realloc\(\): invalid pointer", "something was to grow that malloc never gave"),
    (r"invalid next size|corrupted size|corrupted top size|malloc assertion failure in sysmalloc|sysmalloc: Assert"
     r"|^malloc\(\): invalid size", "the record behind or in front of a block was overwritten: writing went beyond its end"),
    (r"unaligned|corrupted (double-linked|unsorted)|tcache|fastbin|chunk", "a freed block was written to"),
    (r"bad trailing pad byte", "the bytes behind a block were overwritten: writing went beyond its end"),
    (r"bad leading pad byte", "the bytes in front of a block were overwritten, or it was freed with another address"),
    (r"bad ID", "a block was taken from one of Python's allocators and given back to another one"),
)  # fmt: skip
#: Messages about the very block that is being freed, so that the damage is not older.
_AT_ONCE = re.compile(r"double free|invalid pointer|bad ID|bad (leading|trailing) pad")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash by a failed check of native code: a match if it was an allocator's."""
    for found in crashes(view):
        what = kind(found)
        if what == "allocator":
            yield _match(view, found)
        elif what in ("assertion", "smashed"):
            yield No(f'what the C library said is not of its allocator: "{found.crash.message}"')


def _match(view: View, found: Crashed) -> Match:
    crash = found.crash
    text = crash.message if crash.message is not None else said(crash.python_error or "")
    who = "the C library's allocator" if crash.message is not None else "Python's debug allocator"
    means = next((meaning for pattern, meaning in _MEANS if re.search(pattern, text)), None)
    own = own_frame(found.below)
    at = f" at {short(own)}" if own else ""
    facts = [f'{who} said before it ended the process: "{text}"', *([f"which means that {means}"] if means else [])]
    if crash.python_error_basis == "inferred" and crash.message is None:
        facts.append("the message was found by the texts that the thread's stack points to")
    calls = native.led_there(found.natives)
    if calls is not None:
        facts.append(f"native code that called the allocator: {calls}")
    facts += [whereabouts(found)] if whereabouts(found) else []
    if not _AT_ONCE.search(text):
        facts.append("the damage is older than this call: whoever called the allocator next was bound to meet it")
    return Match(
        confidence="proven",
        summary=f'{who} found its memory damaged{at}: "{text}"' + (f" ({means})" if means else ""),
        evidence=tuple(facts),
        culprits=lines(view, found),
        pid=found.process.pid,
    )
