"""Exceptions are kept alive, with their frames and all variables in them.

**What it looks like.** Memory holds dozens of exceptions, or a few that are large, beyond those that are being handled. Each
has a traceback, the traceback has frames, and the frames have variables with megabytes in them.

**Easily mistaken for** a cache; a leak of the large objects themselves, which no variable of a living function refers to.

**Why it hurts.** `exception.__traceback__` refers to every frame that the exception came through, and each frame to all its
variables, for as long as the exception is kept: in a list of errors, an attribute, a Future. Where one of these variables
refers to the exception again (`error = exc`), the reference cycle stays until the cyclic collector runs, and forever if that
is switched off.

**Remedy.** Keep what is needed of it, as text (`traceback.format_exception`), or `exc.with_traceback(None)`; delete the
variable (`del error`, `try`/`finally`).
"""

from __future__ import annotations

from typing import Iterator, List

from ....evidence import KeptException, Process, PythonFrame
from ....findings import Template
from ...facts.knowledge import is_library
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="traceback-cycle-leak",
    tier="resource",
    title="exceptions are kept alive, with their frames and variables",
    explanation=(
        "An exception remembers its traceback: every function that it came through, with all variables as they were. As long "
        "as the exception is kept somewhere, or refers to itself through one of these variables, none of that memory is freed."
    ),
    remedy=(
        "Keep the text of the error instead of the exception (traceback.format_exception), or drop what it keeps alive: "
        "exc.with_traceback(None), traceback.clear_frames(exc.__traceback__); delete variables that refer to the exception "
        "before the function ends."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/reference/datamodel.html#traceback-objects",
        "https://docs.python.org/3/library/traceback.html#traceback.clear_frames",
    ),
)  # fmt: skip

#: Bytes kept by the variables of one kind of exception, and number of exceptions of that kind. A program that has handled its
#: errors keeps none, one with retries and logs a handful of some kilobytes.
MUCH, SOME = 4 << 20, 1 << 20
FEW = 3

_SUMMARY = Template("{count} {type}{count:v |s} are kept alive{by}{raised}, and {size:.1f} MB of variables with them")
_BY = Template(" by {keepers: and }")
_RAISED = Template(", raised at {frame}")
_COUNT = Template("{count} {type}{count:v |s}{raised}, with {frames:n frame} in their tracebacks")
_SIZE = Template("the variables of these frames keep at least {size:.1f} MB alive{most}")
_MOST = Template("; largest share: {variable}")
_REACHED = Template("they are reached through {keepers}")
_CYCLIC = Template(
    "{count} of them {count:v is|are} in a reference cycle: a variable of {count:v its|their} own traceback refers to "
    "{count:v it|them}"
)
_UNREACHED = Template(
    "no variable that was examined leads to them: they are kept by a reference cycle, or by something that was not examined"
)
_LIKEWISE = Template("likewise {count} {type}{count:v |s}, {size:.1f} MB")
_LITTLE = Template("{count:n exception} of process {pid} {count:v is|are} kept, but with little memory")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each process with kept exceptions."""
    for process in view.pythons:
        heavy = [kept for kept in process.kept_exceptions if _is_much(kept)]
        if not heavy:
            if process.kept_exceptions:
                count = sum(kept.count for kept in process.kept_exceptions)
                yield No(_LITTLE(count=count, pid=process.pid))
            continue
        yield _match(view, process, heavy[0], heavy)


def _is_much(kept: KeptException) -> bool:
    """Return whether exceptions of one kind keep enough memory to report."""
    return (kept.bytes or 0) >= SOME and kept.count >= FEW


def _match(view: View, process: Process, kept: KeptException, several: List[KeptException]) -> Match:
    size = (kept.bytes or 0) / (1 << 20)
    raised = _RAISED(frame=kept.place) if kept.place is not None else None
    by = _BY(keepers=kept.keepers[:2]) if kept.keepers else None
    facts = [
        _COUNT(count=kept.count, type=kept.type, raised=raised, frames=kept.frames),
        _SIZE(size=size, most=_MOST(variable=kept.variable) if kept.variable else None),
    ]
    if kept.keepers:
        facts.append(_REACHED(keepers=kept.keepers))
    if kept.cyclic:
        facts.append(_CYCLIC(count=kept.cyclic))
    elif not kept.keepers:
        facts.append(_UNREACHED())
    for other in several[1:3]:
        facts.append(_LIKEWISE(count=other.count, type=other.type, size=(other.bytes or 0) / (1 << 20)))
    return Match(
        confidence="likely" if (kept.bytes or 0) >= MUCH else "possible",
        summary=_SUMMARY(count=kept.count, type=kept.type, by=by, raised=raised, size=size),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, frame) for frame in _places(kept)),
        pid=process.pid,
    )


def _places(kept: KeptException) -> List[PythonFrame]:
    """Return the lines that store the exceptions; if unknown, the lines that caught and raised them."""
    stored = [f for f in kept.stored_at if not is_library(f)] or list(kept.stored_at)
    found = stored or [f for f in (kept.caught, kept.place) if f is not None]
    return list(dict.fromkeys(found))[:4]
