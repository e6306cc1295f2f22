"""The signature: a short string that is equal for the same hang on another day, machine or interpreter.

It is derived from the pattern and the set of places to change: each a file, without the directories that differ between
checkouts, and a function, without its line.

- Equal for another checkout or virtual environment, shifted lines, other thread ids, more workers or another order.
- Different for another function, package or pattern.
- For threads that move, only functions that they are in most of the time count, if there are any.

A function's name is ``co_name``, which every interpreter has, not the qualified name, known only from 3.11 on.
Comprehensions are separate functions up to 3.11 (PEP 709), generator expressions on all releases; each counts as the
enclosing function. Native places count only if there are no others, because a C function has a name only if symbols
are installed.

VERSION is part of the string and changes with the recipe: signatures of different versions are not comparable.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ..evidence import Evidence, Process, PythonFrame, Thread
from ..findings import Culprit, Found
from .facts.knowledge import is_library, is_stdlib

VERSION = "2"

#: Least share of a thread's samples that contain a function; a smaller share is chance. Among the culprits of 170 cases and
#: 50 repeated runs on three interpreters, alternating functions are in up to 0.64 of the samples, the others in 0.75 or more.
STAYS = 0.7
#: Number of functions of a stack that identify an unrecognised hang.
_DEPTH = 5

_COMPREHENSIONS = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))
#: Installed files are named relative to these directories; the name of an egg or zip contains versions.
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?:[^/]+\.egg/)?")
_STDLIB = re.compile(r".*(?:/lib(?:64)?/python3\.\d+t?/|/python3\d+\.zip/)")
_NATIVE = re.compile(r"\.(?:so(?:\.[\d.]+)?|c|cc|cpp|cxx|h|hpp|rs|pyx|S)$")
#: Suffixes after a module's name: `_speedups.cpython-312-x86_64-linux-gnu.so`, `libssl.so.3`, `libfoo-1.2.so`.
_MODULE = re.compile(r"(?:-[\d.]+)?(?:\.cpython-[^/]*|\.abi3)?\.so(?:\.[\d.]+)?$")
#: Names that differ in each run: tempfile's, notebook cells', hashes of generated code.
_PASSING = (
    (re.compile(r"^<ipython-input-.*>$"), "<ipython-input>"),
    (re.compile(r".*/ipykernel_\d+/\d+\.py$"), "<ipython-input>"),
    (re.compile(r"^tmp(?:[a-z0-9_]{8}|\.[A-Za-z0-9]{6,})(?=\.|$)"), "tmp"),
    (re.compile(r"(?<![A-Za-z0-9])(?=[a-z]*\d)[0-9a-f]{8,}(?![A-Za-z0-9])"), "#"),
    (re.compile(r"0x[0-9a-f]+"), "#"),
)
_PACKAGE_FILES = ("__init__.py", "__main__.py")


def signature(evidence: Evidence, leading: Optional[Found]) -> str:
    """Return ``gil-thrash-2-5f3a9c0d2b71``, from the pattern and its places.

    For an unrecognised hang the places are those of main threads and tasks.
    """
    if leading is not None:
        name, places = leading.pattern, _to_change(evidence, leading)
    else:
        name, places = "unknown", sorted(set(_resting_places(evidence.processes)))
    text = "\n".join([VERSION, name, *(places or _programs(evidence))])
    return f"{name}-{VERSION}-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def _to_change(evidence: Evidence, finding: Found) -> List[str]:
    """Return the places of a finding: functions of culprits, else native files and the functions where victims wait."""
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
    """Return whether a thread is in a culprit's function in most of its samples.

    True if it has no samples, and for a task, which is in its loop's samples only occasionally.
    """
    looks = sum(sample.count for sample in thread.samples) if thread is not None else 0
    if thread is None or not looks or culprit.task is not None:
        return True
    place = (culprit.file, culprit.function), (culprit.file, function)
    return sum(s.count for s in thread.samples if any((f.file, f.function) in place for f in s.frames)) >= STAYS * looks


@lru_cache(maxsize=8192)
def stable_file(path: str) -> str:
    """Return a file's name without the parts that differ between machines, Python releases and runs."""
    path = path.replace("\\", "/")
    for known in (_INSTALLED, _STDLIB):
        if known.match(path):
            return _MODULE.sub("", known.sub("", path))
    for passing, instead in _PASSING[:2]:
        if passing.match(path):
            return instead
    folder, _slash, name = path.rpartition("/")
    if name in _PACKAGE_FILES:  # a name that every package has
        return f"{folder.rpartition('/')[2]}/{name}"
    name = _MODULE.sub("", name)
    for passing, instead in _PASSING[2:]:
        name = passing.sub(instead, name)
    return name


def _function(evidence: Evidence, culprit: Culprit) -> str:
    """Return a culprit's plain function name; for a comprehension that of the enclosing function."""
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
    """Yield every Python stack and sample of all threads and tasks."""
    for process in evidence.processes:
        for thread in process.threads:
            yield thread.python
            yield from (sample.frames for sample in thread.samples)
        yield from (task.stack for task in process.tasks)


# ---------------------------------------------------------------------- hangs without a place to change


def _resting_places(processes: Iterable[Process]) -> Iterator[str]:
    """Yield the places of each process's main thread and of its tasks; their number is irrelevant to the signature."""
    for process in processes:
        main = next((t for t in process.threads if t.is_main), next(iter(process.threads), None))
        place = _resting_place(main) if main is not None else None
        if place:
            yield place
        for task in process.tasks:
            yield _chain(_functions(task.stack))


def _resting_place(thread: Thread) -> Optional[str]:
    """Return the functions that a thread is in most of the window; from a lone core, those of its stack."""
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
    """Return the functions of a stack, oldest first: the program's own, else those of packages, else all.

    Repeated calls count once. The function called by the innermost of them is included: `Thread.join` identifies a hang
    better than the `main` that called it. Frames above it differ between releases.
    """
    own = [i for i, f in enumerate(frames) if not is_library(f)] or [
        i for i, f in enumerate(frames) if not is_stdlib(f)
    ]
    chosen = [frames[i] for i in own] or list(frames)
    if own and own[0] > 0:
        chosen.insert(0, frames[own[0] - 1])
    names = [f"{stable_file(f.file)}:{f.function}" for f in reversed(chosen) if f.function not in _COMPREHENSIONS]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def _chain(functions: Sequence[str]) -> str:
    """Join the innermost functions, most recent call first."""
    return "<".join(reversed(functions[-_DEPTH:]))


def _programs(evidence: Evidence) -> Tuple[str, ...]:
    """Return the names of the programs, for processes without any stack."""
    return tuple(sorted({_program(process.argv) for process in evidence.processes}))


def _program(argv: Sequence[str]) -> str:
    """Return the name of the script or module of a command line."""
    name = stable_file(argv[0]) if argv else ""
    if not name.startswith(("python", "pypy")):
        return name
    following = (
        argv[argv.index("-m") + 1 :] if "-m" in argv else [word for word in argv[1:] if not word.startswith("-")]
    )
    return stable_file(following[0]) if following else "python"
