"""The program is still importing, and makes progress.

**What it looks like.** In most samples the main thread, or one that it waits for, is inside an `import` statement, each time
in another module, and it uses the CPU or reads files.

**Easily mistaken for** `python-busy-loop` at module level, where one module never finishes; `import-deadlock`;
a module that waits for the network while it is imported.

**Why it is slow.** An import runs all code of a module, and of all that it imports. One line at the top of a file may
import thousands of modules; plug-ins that are discovered and loaded automatically add theirs, whether they are needed or not.

**Remedy.** Import the heavy part where it is used, leave out plug-ins that are not needed, and look at
`python -X importtime`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from functools import lru_cache
from typing import Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .... import sourcepaths
from ....evidence import Process, PythonFrame, Thread
from ....findings import Template
from ...facts.clauses import named
from ...facts.knowledge import is_library
from ...facts.view import COMPUTING_SHARE, View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="slow-import",
    tier="resource",
    title="start-up: still importing, and making progress",
    explanation=(
        "The program has not begun its work: it is still executing `import` statements, one module after another. That is not "
        "a hang, but it takes longer than the time allowed."
    ),
    remedy=(
        "Move the import named here into the function that needs it, or do without the plug-in that imports it; "
        "`python -X importtime` shows what each module costs."
    ),
    needs=("window",),
    references=("https://docs.python.org/3/using/cmdline.html#cmdoption-X",),
)

#: Least share of a thread's samples inside an import.
MIN_SHARE = 0.6
#: Number of modules seen at work in the samples: from MIN_MODULES on the match is likely, from FEW_MODULES on possible.
MIN_MODULES, FEW_MODULES = 4, 2
#: From this number on the match is likely for another thread, which may import now and then while it works.
MANY_MODULES = 16
_MACHINERY = ("<frozen importlib", "importlib/_bootstrap", "importlib/__init__.py", "<frozen zipimport>")

_SUMMARY = Template(
    "{thread} is still importing (begun at {frame}): {modules:n module} in {seconds:.1f} s, and not finished"
)
_SHARE = Template("in {share:.0%} of the samples {thread} was inside an import")
_MODULES = Template("the samples show {count:n module} being imported, one after another")
_STATEMENTS = Template("the import statements that take the time: {lines:; }")
_LINE = Template("{frame} ({share:.0%})")
_CPU = Template("it used {share:.0%} of a core meanwhile")
_NO_WINDOW = Template("an observation window: does the import move from module to module?")
_ONE_MODULE = Template("{thread} is inside an import, but stays in one module")


class Import(NamedTuple):
    """A sample inside an import."""

    asked: PythonFrame  # the program's outermost line that imports
    chain: Tuple[PythonFrame, ...]  # further lines that import, inwards
    module: str  # file of the module that was executed or loaded


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread that imports: the main thread, or another one, which may do so beside the work."""
    for process in view.pythons:
        for thread in process.threads:
            if not thread.python:
                continue
            if thread.samples:
                yield from _answer(view, process, thread)
            elif not thread.is_main and not view.matters(process, thread):
                continue
            elif _inside(thread.python) is not None and thread.wait is None:
                yield CannotTell((_NO_WINDOW(),))


def _answer(view: View, process: Process, thread: Thread) -> Iterator[Answer]:
    total = 0
    seen: Counter[Import] = Counter()
    for count, frames in view.samples(thread):
        total += count
        found = _inside(frames)
        if found is not None:
            seen[found] += count
    share = sum(seen.values()) / total
    if share < MIN_SHARE:
        return
    modules = {one.module for one in seen}
    if len(modules) < FEW_MODULES and not (all(map(_is_installed, modules)) and _computes(view, thread)):
        yield No(_ONE_MODULE(thread=named(thread)))
        return
    yield _match(view, process, thread, seen, share, modules)


def _computes(view: View, thread: Thread) -> bool:
    """Return whether the thread computes, at changing places of libraries: the top level of one module takes so long."""
    places = {frames for _count, frames in view.samples(thread)}
    if any(
        sourcepaths.is_program(frame.file) for frames in places for frame in itertools.takewhile(_is_outside, frames)
    ):
        return False
    return (view.wanted_share(thread) or 0.0) >= COMPUTING_SHARE and len(places) >= MIN_MODULES


def _inside(frames: Sequence[PythonFrame]) -> Optional[Import]:
    """Return the import of a stack, most recent call first; None if there is none."""
    outward = list(reversed(frames))
    marks = [i for i, f in enumerate(outward) if _is_machinery(f)]
    if not marks:
        return None
    lines = [outward[i - 1] for i in marks if i > 0 and not _is_machinery(outward[i - 1])]
    if not lines:
        return None
    after = [f for f in outward[marks[-1] + 1 :] if f.function == "<module>"]
    module = (after or lines[-1:])[-1].file
    return Import(lines[0], tuple(lines[1:6]), module)


@lru_cache(maxsize=8192)
def _imports(file: str) -> bool:
    return any(part in file for part in _MACHINERY)


def _is_machinery(frame: PythonFrame) -> bool:
    return _imports(frame.file)


def _is_outside(frame: PythonFrame) -> bool:
    return not _is_machinery(frame)


def _match(
    view: View, process: Process, thread: Thread, seen: Counter[Import], share: float, modules: Set[str]
) -> Match:
    lines = _lines(seen)
    total = sum(seen.values())
    facts = [
        _SHARE(share=share, thread=named(thread)),
        _MODULES(count=len(modules)),
        _STATEMENTS(lines=tuple(_LINE(frame=frame, share=count / total) for frame, count in lines[:3])),
    ]
    cpu = view.cpu_share(thread)
    facts += [_CPU(share=cpu)] if cpu is not None else []
    least = MIN_MODULES if thread.is_main else MANY_MODULES
    sure = len(modules) >= least or len(modules) < FEW_MODULES
    return Match(
        confidence="likely" if sure and (thread.is_main or view.matters(process, thread)) else "possible",
        summary=_SUMMARY(thread=named(thread), frame=lines[0][0], modules=len(modules), seconds=view.window or 0),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, frame, thread) for frame, _count in lines[:4]),
        pid=process.pid,
    )


def _is_installed(module: str) -> bool:
    """Return whether a file is not the program's own."""
    return not sourcepaths.is_program(module)


def _lines(seen: Counter[Import]) -> List[Tuple[PythonFrame, int]]:
    """Return the program's lines that import, with their samples: the outermost ones first."""
    counted: Counter[PythonFrame] = Counter()
    began: Counter[PythonFrame] = Counter()
    for one, count in seen.items():
        began[one.asked] += count
        for frame in dict.fromkeys(one.chain):
            if not is_library(frame):
                counted[frame] += count
    total = sum(began.values())
    inner = [(f, n) for f, n in counted.most_common(4) if n >= 0.3 * total and f not in began]
    return [*began.most_common(2), *inner]
