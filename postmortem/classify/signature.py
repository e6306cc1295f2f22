"""A short string that is the same for the same hang on another day, machine or interpreter.

It is made of the pattern and of *where to change the code*, each place once: a file without the folders that differ from
one checkout to the next, and a function without its line. So another checkout or virtual environment, shifted lines, other
thread ids, more workers or another order of them give the same one; another function, package or pattern another one.
Of threads that move only the functions count that they are in most of the time, if there are such.

The name of a function is ``co_name``, which every interpreter has, and not the qualified one, which is known from 3.11 on.
Comprehensions are functions of their own up to 3.11 (PEP 709), generator expressions on all releases, and all have the same
name: they count as the function around them. Native places count only where there is nothing else, because a function in C
has a name only where symbols are installed.

VERSION is a part of the string and changes with the recipe: signatures of different versions are not to be compared.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ..evidence import Evidence, Process, PythonFrame, Thread
from ..findings import Culprit, Finding
from .facts.knowledge import is_library, is_stdlib

VERSION = "2"

#: Of a thread's samples: a function that is in fewer is met by chance. Of what 170 cases and 50 repeated runs on three
#: interpreters blame, functions that alternate are in up to 0.64 of the samples, those that do not in 0.75 and more.
STAYS = 0.7
#: How many functions of a stack tell an unrecognised hang from others.
_DEPTH = 5

_COMPREHENSIONS = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))
#: What is installed is known by its path below these: an egg's or a zip's name has versions in it.
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?:[^/]+\.egg/)?")
_STDLIB = re.compile(r".*(?:/lib(?:64)?/python3\.\d+t?/|/python3\d+\.zip/)")
_NATIVE = re.compile(r"\.(?:so(?:\.[\d.]+)?|c|cc|cpp|cxx|h|hpp|rs|pyx|S)$")
#: A module's name alone: `_speedups.cpython-312-x86_64-linux-gnu.so`, `libssl.so.3`, `libfoo-1.2.so`.
_MODULE = re.compile(r"(?:-[\d.]+)?(?:\.cpython-[^/]*|\.abi3)?\.so(?:\.[\d.]+)?$")
#: What is made anew in each run: tempfile's names, notebooks' cells, hashes of generated code.
_PASSING = (
    (re.compile(r"^<ipython-input-.*>$"), "<ipython-input>"),
    (re.compile(r".*/ipykernel_\d+/\d+\.py$"), "<ipython-input>"),
    (re.compile(r"^tmp(?:[a-z0-9_]{8}|\.[A-Za-z0-9]{6,})(?=\.|$)"), "tmp"),
    (re.compile(r"(?<![A-Za-z0-9])(?=[a-z]*\d)[0-9a-f]{8,}(?![A-Za-z0-9])"), "#"),
    (re.compile(r"0x[0-9a-f]+"), "#"),
)
_PACKAGE_FILES = ("__init__.py", "__main__.py")


def signature(evidence: Evidence, leading: Optional[Finding]) -> str:
    """``gil-thrash-2-5f3a9c0d2b71``; of an unrecognised hang, what its main threads and tasks are in the middle of."""
    if leading is not None:
        name, places = leading.pattern, _to_change(evidence, leading)
    else:
        name, places = "unknown", sorted(set(_resting_places(evidence.processes)))
    text = "\n".join([VERSION, name, *(places or _programs(evidence))])
    return f"{name}-{VERSION}-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def _to_change(evidence: Evidence, finding: Finding) -> List[str]:
    threads: Dict[Tuple[int, Optional[int]], Thread] = {
        (p.pid, t.tid): t for p in evidence.processes for t in p.threads
    }
    python = [(c, _function(evidence, c)) for c in finding.culprits if not _NATIVE.search(c.file)]
    if python:
        stays = [one for one in python if _stays(threads.get((one[0].pid, one[0].tid)), *one)]
        return sorted({f"{stable_file(c.file)}:{function}" for c, function in stays or python})
    victims = {(v.pid, v.tid) for v in finding.victims} | {(c.pid, c.tid) for c in finding.culprits}
    resting = [_resting_place(thread) for who, thread in threads.items() if who in victims]
    return sorted({stable_file(c.file) for c in finding.culprits} | {place for place in resting if place})


def _stays(thread: Optional[Thread], culprit: Culprit, function: str) -> bool:
    """Of a thread that moves, which functions it was sampled in is chance, but for those that it is in most of the time. A
    task is in its loop's samples now and then, whatever it does."""
    looks = sum(sample.count for sample in thread.samples) if thread is not None else 0
    if thread is None or not looks or culprit.task is not None:
        return True
    place = (culprit.file, culprit.function), (culprit.file, function)
    return sum(s.count for s in thread.samples if any((f.file, f.function) in place for f in s.frames)) >= STAYS * looks


@lru_cache(maxsize=8192)
def stable_file(path: str) -> str:
    """A file's name without what differs between machines, releases of Python and runs."""
    path = path.replace("\\", "/")
    for known in (_INSTALLED, _STDLIB):
        if known.match(path):
            return _MODULE.sub("", known.sub("", path))
    for passing, instead in _PASSING[:2]:
        if passing.match(path):
            return instead
    folder, _slash, name = path.rpartition("/")
    if name in _PACKAGE_FILES:  # of which every package has one
        return f"{folder.rpartition('/')[2]}/{name}"
    name = _MODULE.sub("", name)
    for passing, instead in _PASSING[2:]:
        name = passing.sub(instead, name)
    return name


def _function(evidence: Evidence, culprit: Culprit) -> str:
    """Its plain name; of a comprehension the function that it stands in."""
    if culprit.function not in _COMPREHENSIONS:
        return culprit.function.rpartition(".")[2] or culprit.function
    for frames in _stacks(evidence):
        for i, frame in enumerate(frames):
            if (frame.file, frame.line, frame.function) == (culprit.file, culprit.line, culprit.function):
                around = (
                    f.function for f in frames[i:] if f.file == culprit.file and f.function not in _COMPREHENSIONS
                )
                return next(around, culprit.function)
    return culprit.function


def _stacks(evidence: Evidence) -> Iterator[Sequence[PythonFrame]]:
    for process in evidence.processes:
        for thread in process.threads:
            yield thread.python
            yield from (sample.frames for sample in thread.samples)
        yield from (task.stack for task in process.tasks)


# ---------------------------------------------------------------------- without anything to change


def _resting_places(processes: Iterable[Process]) -> Iterator[str]:
    """Of every process its main thread, and its tasks: how many there are of either says nothing."""
    for process in processes:
        main = next((t for t in process.threads if t.is_main), next(iter(process.threads), None))
        place = _resting_place(main) if main is not None else None
        if place:
            yield place
        for task in process.tasks:
            yield _chain(_functions(task.stack))


def _resting_place(thread: Thread) -> Optional[str]:
    """The functions that it is in most of the time that it was watched; from a lone core, those of that moment."""
    looks = [(sample.count, _functions(sample.frames)) for sample in thread.samples if sample.frames]
    looks = looks or [(1, _functions(thread.python))]
    stays: List[str] = []
    while True:
        seen: Counter[str] = Counter()
        for count, stack in looks:
            if stack[: len(stays)] == stays:
                seen[stack[len(stays)] if len(stack) > len(stays) else ""] += count
        ((function, count),) = seen.most_common(1)
        if not function or count < STAYS * sum(count for count, _stack in looks):
            return _chain(stays) or None
        stays.append(function)


def _functions(frames: Sequence[PythonFrame]) -> List[str]:
    """Oldest first; the program's own, else those of packages, else all; what calls itself once. And what the innermost of
    them has called: `Thread.join` tells more than the `main` that called it, what is below that differs between releases."""
    own = [i for i, f in enumerate(frames) if not is_library(f)] or [
        i for i, f in enumerate(frames) if not is_stdlib(f)
    ]
    chosen = [frames[i] for i in own] or list(frames)
    if own and own[0] > 0:
        chosen.insert(0, frames[own[0] - 1])
    names = [f"{stable_file(f.file)}:{f.function}" for f in reversed(chosen) if f.function not in _COMPREHENSIONS]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def _chain(functions: Sequence[str]) -> str:
    return "<".join(reversed(functions[-_DEPTH:]))


def _programs(evidence: Evidence) -> Tuple[str, ...]:
    """What was run, where not even a stack is known."""
    return tuple(sorted({_program(process.argv) for process in evidence.processes}))


def _program(argv: Sequence[str]) -> str:
    name = stable_file(argv[0]) if argv else ""
    if not name.startswith(("python", "pypy")):
        return name
    following = (
        argv[argv.index("-m") + 1 :] if "-m" in argv else [word for word in argv[1:] if not word.startswith("-")]
    )
    return stable_file(following[0]) if following else "python"
