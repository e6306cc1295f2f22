"""A thread used up its stack.

**What it looks like.** A core with SIGSEGV whose address lies in the guard below the thread's stack, next to its stack
pointer. Hundreds or thousands of frames repeat one cycle of functions; or one function has variables larger than
the stack of its thread.

**Easily mistaken for** `native-crash`, caused by a stray pointer; RecursionError, with which Python ends a recursion of Python
functions before the stack is used up, unless the limit was raised or the recursion leads through C code that does not count.

**Why it crashes.** Each call takes a piece of the thread's stack, whose size was fixed when the thread started.

**Remedy.** End the recursion (data that is nested too deeply or cyclic); use a loop with a list of what is still to be done; do
not raise `sys.setrecursionlimit`; give threads that need it a larger stack.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

from ....evidence import NativeFrame, PythonFrame
from ....findings import Culprit, Template, Text
from ....findings.found import Said
from ...facts import clauses, native
from ...facts.knowledge import is_library, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .crashing import Crashed, crashes, kind, lines
from .crashing import said as words

PATTERN = Pattern(
    id="stack-overflow",
    tier="crash",
    title="a thread used up its stack",
    explanation=(
        "Every call that has not returned yet keeps a piece of its thread's stack. Here there were so many, or such large ones, "
        "that the stack was used up: the next piece would have been in the guard, an area that is there to detect this. "
        "Python's recursion limit did not prevent it: it counts calls of Python functions, and not the bytes that they need."
    ),
    remedy=(
        "Find out what should end the recursion named here, and why it did not: data nested too deeply, or cyclic. Walk it in "
        "a loop with a list of what is still to be done. Raise neither sys.setrecursionlimit nor the stack's size "
        "instead; where the depth is intended, use threading.stack_size (before the thread starts) or `ulimit -s`."
    ),
    needs=("cores",),
    references=("https://docs.python.org/3/library/threading.html#threading.stack_size",),
)

#: Least number of turns of a recursion; and number of native frames beyond those of an ordinary stack.
DEEP, MANY = 20, 200
#: Number of innermost frames among which a turn may begin; the first ones may be calls made by the last turn.
_FIRST = 40
#: The interpreter's message for a stack that is used up before a fault occurs: Python/ceval.c, 3.14 (measured in kB).
_SAID = "Unrecoverable stack overflow"

_INSIDE = Template("the address lies inside the stack of {thread}, which was not used up")
_SUMMARY = Template("{thread} used up its stack{size}{at}{cause}")
_SIZE = Template(" of {megabytes:.3g} MB")
_REPEATS = Template(": {names: → }{module}, repeated {times} times")
_OF_MODULE = Template(" of {name}")
_BY_CALLS = Template(", in what it calls")
_MESSAGE = Template('the interpreter ended the process: "{message}"')
_IN_GUARD = Template("{signal} for address {address:#x}, in the guard beyond the end of the stack of {thread}")
_BYTES = Template("{used:,}{limit} bytes of the stack are used")
_OF_LIMIT = Template(" of {limit:,}")
_NATIVE_DEPTH = Template("{at_least}{depth} native frames are on it")
_AT_LEAST = Template("at least ")
_DEPTH = Template("{depth} Python frames are on it")
_TURN = Template("what repeats, outermost first: {names: → }, {times} times in the recorded frames")
_NO_TURN = Template(
    "No recursion is visible: look for large variables of one native function, for native code that recurses but cannot "
    "be unwound (does the nesting of its data have a limit?), or give the thread a larger stack (threading.stack_size "
    "before it starts, `ulimit -s`)."
)


class Turn(NamedTuple):
    """The repeating part of a stack, in Python or C."""

    names: Tuple[Said, ...]  # functions, the outermost first
    times: int
    python: Tuple[PythonFrame, ...] = ()
    module: Optional[str] = None  # for a recursion in C


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each crash by a stack overflow, or by a fault inside a stack."""
    for found in crashes(view):
        said = (found.crash.python_error or "").startswith(_SAID)
        if kind(found) == "overflow" or said:
            yield _match(view, found, said)
        elif kind(found) == "fault" and found.crash.stack == "inside":
            yield No(_INSIDE(thread=found.who))


def _turn(found: Crashed) -> Optional[Turn]:
    """Return the repeating part of the stack, in Python or else in C; None if there is none."""
    thread = found.thread
    if thread is None:
        return None
    known = thread.recursion
    if known is not None and known.cycle:
        return Turn(tuple(f.function for f in reversed(known.cycle)), known.times, known.cycle)
    natives = found.natives
    for first in range(min(_FIRST, len(natives))):
        again = [i for i, f in enumerate(natives) if _same(f, natives[first])]
        if len(again) >= DEEP:
            turn = natives[first : again[1]]
            names = tuple(dict.fromkeys(f.function or native.located(f) for f in reversed(turn)))
            return Turn(names[:6], len(again), module=natives[first].module)
    return None


def _same(one: NativeFrame, other: NativeFrame) -> bool:
    """Return whether two native frames are of the same function, or at the same address if it has no name."""
    alike = (one.function, one.module) == (other.function, other.module)
    return alike and (one.function is not None or one.address == other.address)


def _match(view: View, found: Crashed, said: bool) -> Match:
    turn = _turn(found)
    limit = found.crash.stack_limit
    return Match(
        confidence="proven",
        summary=_SUMMARY(
            thread=found.who,
            size=_SIZE(megabytes=limit / (1 << 20)) if limit else None,
            at=clauses.at(own_frame(found.below)),
            cause=_repeats(turn) if turn else _BY_CALLS(),
        ),
        evidence=tuple(_facts(found, turn, said)),
        culprits=tuple(dict.fromkeys((*_recursing(view, found, turn), *lines(view, found)))),
        remedy=None if turn or (found.crash.native_depth or 0) > MANY else _NO_TURN(),
        pid=found.process.pid,
    )


def _repeats(turn: Turn) -> Text:
    """Return ": PARSE → PARSE_LIST, repeated 900 times"."""
    module = _OF_MODULE(name=turn.module.rsplit("/", 1)[-1]) if turn.module else None
    return _REPEATS(names=tuple(dict.fromkeys(turn.names)), module=module, times=turn.times)


def _facts(found: Crashed, turn: Optional[Turn], said: bool) -> Iterator[Text]:
    crash = found.crash
    if said:
        yield _MESSAGE(message=words(crash.python_error or ""))
    elif crash.address is not None:
        yield _IN_GUARD(signal=found.signal, address=crash.address, thread=found.who)
    if crash.stack_used is not None:
        yield _BYTES(used=crash.stack_used, limit=_OF_LIMIT(limit=crash.stack_limit) if crash.stack_limit else None)
    if crash.native_depth is not None:
        yield _NATIVE_DEPTH(at_least=_AT_LEAST() if crash.native_whole is False else None, depth=crash.native_depth)
    depth = found.thread.recursion.depth if found.thread is not None and found.thread.recursion is not None else None
    if depth is not None:
        yield _DEPTH(depth=depth)
    if turn is not None:
        yield _TURN(names=turn.names, times=turn.times)


def _recursing(view: View, found: Crashed, turn: Optional[Turn]) -> List[Culprit]:
    """Return the program's lines of one turn, and the line that began the recursion."""
    if turn is None or not turn.python:
        return []
    mine = [f for f in turn.python if not is_library(f)]
    functions = {(f.file, f.function) for f in turn.python}
    below = found.below
    last = max((i for i, f in enumerate(below) if (f.file, f.function) in functions), default=-1)
    began = own_frame(below[last + 1 :]) if last >= 0 else None
    frames = [*mine[:4], *([began] if began is not None else [])]
    return [view.culprit(found.process, f, found.thread) for f in frames]
