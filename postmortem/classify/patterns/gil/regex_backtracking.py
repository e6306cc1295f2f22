"""A regular expression tries far too many ways to match a text.

**What it looks like.** A thread uses a whole core at one line of Python: a `match`, `search` or `sub` of a compiled pattern, and
it is the same call from the beginning of the window to its end. The text is short. No other thread gets the GIL meanwhile.

**Easily mistaken for** `python-busy-loop`; a pattern that goes through megabytes of text once, or is applied to every line
of a file: those calls return.

**Why it hangs.** `re` tries every way to divide the text among the repetitions of a pattern before it gives up. Where one
repetition is nested inside another, or two adjacent ones can match the same characters (`(a+)+$`, `.*.*=`), their number
doubles with each character. The call cannot be interrupted, and it keeps the GIL.

**Remedy.** Write the pattern so that each character can be matched in one way only, reject long input before the match, or use an
engine that does not backtrack.
"""

from __future__ import annotations

import itertools
from pathlib import PurePath
from typing import Iterator, Optional

from ....evidence import Process, PythonFrame, Thread
from ....findings import Confidence, Template
from ...facts.clauses import named
from ...facts.knowledge import in_table, own_frame
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="regex-backtracking",
    tier="specific",
    title="a regular expression tries too many ways to match",
    explanation=(
        "The regular expression engine tries one way after another to divide the text among the repetitions of the pattern, "
        "and their number doubles with every character. It is inside one call in C: it cannot be interrupted by Python, and "
        "keeps the GIL (the interpreter lock) from all other threads."
    ),
    remedy=(
        "Rewrite the pattern so that no two repetitions can match the same characters (`[^=]*=` for `.*=`, atomic groups and "
        "possessive quantifiers from Python 3.11 on), bound the length of the text before it is matched, or use an engine "
        "that does not backtrack (the package google-re2)."
    ),
    needs=("python",),
    references=(
        "https://docs.python.org/3/library/re.html",
        "https://owasp.org/www-community/attacks/Regular_expression_Denial_of_Service_-_ReDoS",
    ),
)  # fmt: skip

#: Least characters a second of a linear match: 20-200 million measured, 2 million for nested sets.
LINEAR_PACE = 1_000_000

_VERBS = ("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer", "scanner")
_CALLS = frozenset(f"{cls}.{verb}" for cls in ("re.Pattern", "_sre.SRE_Pattern", "_sre.SRE_Scanner") for verb in _VERBS)
#: Modules/_sre.c; Modules/_sre/sre_lib.h since 3.11.
_ENGINE = ("sre_", "_sre_", "pattern_")
#: How the file name of the extension module of the package regex begins, on PyPI: mrab-regex (2013-2025).
_PACKAGE = "_regex."
#: Frames below the call, or the only ones if no call is in progress (Python/ceval.c). A stripped interpreter exports these names
#: but not those of the engine.
_INTERPRETER = ("_PyEval_", "PyEval_")
#: re.match(pattern, text) and the like, whose own frame is the innermost one.
_MODULE = tuple((file, verb) for file in ("/re.py", "/re/__init__.py") for verb in _VERBS)

_SUMMARY = Template("{thread} has been inside one regular expression{pattern} at {frame}{lasting}")
_PATTERN = Template(" with the {detail}")
_LASTING = Template(" for {seconds:.1f} s and more")
_IS_IN = Template("{thread} is in {function}() of a regular expression{pattern}, called at {frame}")
_IN_PACKAGE = Template("{thread} is in the engine of the package regex, called at {frame}")
_SIZE = Template("the longest text that it was given has {size:n character}")
_ONE_MOMENT = Template("one moment only: a capture of the running process shows whether the call ends")
_USED = Template("it used {share:.0%} of a core over {seconds:.1f} s, in this one call")
_LONG_TEXT = Template("the text is so long that going through it once takes as much time")
_WAITING = Template("{count:n thread} {count:v wait} for the GIL meanwhile")
_NO_STACK = Template("the Python stack of {thread}")
_COMES_BACK = Template("{thread} returns from regular expressions again and again")
_NO_WINDOW = Template("an observation window: does the match end?")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread that computes in a regular expression."""
    for process in view.pythons:
        for thread in process.threads:
            if not _matches(thread):
                continue
            if thread.wait is not None or view.computes(thread) is False:
                continue
            yield _answer(view, process, thread, view.cpu_share(thread))


def _matches(thread: Thread) -> bool:
    """Return whether a thread is in the engine, by its Python call and, if these have names, by native frames."""
    if _in_package(thread):
        return True
    frames = thread.python[:1]
    called = thread.calling is not None and thread.calling.function in _CALLS
    if not called and not any(in_table(frame, _MODULE) for frame in frames):
        return False
    native = [frame.function for frame in thread.native[:8]]
    above = list(itertools.takewhile(lambda name: not (name or "").startswith(_INTERPRETER), native))
    return not native or None in above or any(name.startswith(_ENGINE) for name in above if name)


def _in_package(thread: Thread) -> bool:
    """Return whether a thread is in the engine of the package regex, which is an extension module of its own."""
    above = itertools.takewhile(lambda frame: not (frame.function or "").startswith(_INTERPRETER), thread.native)
    return any(PurePath(frame.module or "").name.startswith(_PACKAGE) for frame in above)


def _answer(view: View, process: Process, thread: Thread, share: Optional[float]) -> Answer:
    frame = own_frame(thread.python)
    if frame is None:
        return CannotTell((_NO_STACK(thread=named(thread)),))
    call = thread.calling
    lasts = call.lasts_s if call is not None else None
    if share is not None and lasts is None and not _stays(view, thread):
        return No(_COMES_BACK(thread=named(thread)))
    if share is None and thread.gil != "holds" and process.gil is not None:
        return CannotTell((_NO_WINDOW(),))
    return _match(view, process, thread, frame, share)


def _stays(view: View, thread: Thread) -> bool:
    """Return whether all samples were at one line, if the duration of the call is unknown."""
    lines = {frames[:1] for _count, frames in view.samples(thread)}
    return len(lines) == 1


def _match(view: View, process: Process, thread: Thread, frame: PythonFrame, share: Optional[float]) -> Match:
    call, window = thread.calling, view.window or 0.0
    pattern = _PATTERN(detail=call.detail) if call is not None and call.detail else None
    size = call.text if call is not None else None
    if call is None and _in_package(thread):
        facts = [_IN_PACKAGE(thread=named(thread), frame=frame)]
    else:
        function = call.function.rsplit(".", 1)[-1] if call is not None else "re." + thread.python[0].function
        facts = [_IS_IN(thread=named(thread), function=function, pattern=pattern, frame=frame)]
    if size is not None:
        facts.append(_SIZE(size=size))
    if share is None:
        facts.append(_ONE_MOMENT())
        how: Confidence = "possible"
    else:
        facts.append(_USED(share=view.cpu_share(thread) or 0, seconds=window))
        slow = size is None or size < LINEAR_PACE * window
        how = "likely" if slow and call is not None and call.lasts_s is not None else "possible"
        if not slow:
            facts.append(_LONG_TEXT())
    waiting = [t for t in process.threads if t.gil == "waits"]
    if waiting:
        facts.append(_WAITING(count=len(waiting)))
    return Match(
        confidence=how,
        summary=_SUMMARY(
            thread=named(thread),
            pattern=pattern,
            frame=frame,
            lasting=_LASTING(seconds=window) if how == "likely" else None,
        ),
        evidence=tuple(facts),
        culprits=(view.culprit(process, frame, thread),),
        victims=tuple(view.victim(process, t) for t in waiting),
        pid=process.pid,
    )
