"""Finds the interpreter in a process: its ``_PyRuntime``, its version, the layout that goes with it.

``candidates`` says where it may be. One is believed only when its list of interpreters leads to a thread state that
points back to its interpreter, and when ``sys.hexversion`` of that interpreter, where it can be read, is the version
whose layout led there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Iterator, List, NamedTuple, Optional, Tuple

from ...memory import Fault, Image
from ..objects.builtins import NotThat, Objects
from .absence import explain
from .candidates import UNKNOWN_MICRO, Candidate, hex_version, named, scanned
from .debugoffsets import describe
from .layouts import Layout
from .releases import FREE_THREADED, LAYOUTS

Version = Tuple[int, int, int]
#: A pointer scan of a hostile core finds as many candidates as its author likes.
MAX_CANDIDATES = 10_000
#: Sub-interpreters that nobody runs anything in, one after the other.
MAX_WITHOUT_THREADS = 1_000


class NoInterpreter(Exception):
    """No CPython was found. ``python_file`` names the mapped file that suggests there is one, if any; ``remedy`` says
    what would help."""

    def __init__(self, message: str, python_file: Optional[str] = None, remedy: Optional[str] = None) -> None:
        super().__init__(message)
        self.python_file = python_file
        self.remedy = remedy


@dataclass(frozen=True)
class Runtime:
    """Where the interpreter is and how to read it."""

    address: int  # of _PyRuntime
    version: Version  # the last number may be UNKNOWN_MICRO: early at start-up, late at the end, or its page is missing
    version_text: str  # as far as it is known
    layout: Layout
    path: str  # the file that holds it
    free_threaded: bool
    found_by: str  # "symbol" | "section" | "cookie" | "pointers"
    warnings: Tuple[str, ...] = ()
    alone: bool = True  # no other interpreter was found in the process


class _Reading(NamedTuple):
    """One way to understand a candidate."""

    version: Version
    layout: Layout
    free_threaded: bool
    warnings: Tuple[str, ...]
    certain: bool  # the version does not rest on trying


def find_runtime(image: Image) -> Runtime:
    """The interpreter of the process; where it has several, the first that runs, the others named in the warnings.
    Raises NoInterpreter with what was tried."""
    doubted: List[Candidate] = []
    found: List[Runtime] = []
    for candidate in named(image):
        if any(candidate.address == runtime.address for runtime in found):
            continue
        runtime = _believed(image, candidate)
        if runtime is not None:
            found.append(runtime)
        else:
            doubted.append(candidate)
    if not found:  # the files say nothing: look at what is there
        looks = (_believed(image, candidate) for candidate in islice(scanned(image, _heads()), MAX_CANDIDATES))
        found = list(islice((runtime for runtime in looks if runtime is not None), 1))
    if found:
        return _with_others(found)
    absence = explain(image, doubted)
    raise NoInterpreter(absence.reason, absence.python_file, absence.remedy)


def _heads() -> Tuple[int, ...]:
    return tuple(sorted({row.rt_interpreters_head for row in LAYOUTS.values()}))


def _believed(image: Image, candidate: Candidate) -> Optional[Runtime]:
    for reading in _readings(image, candidate):
        if candidate.found_by == "pointers" and not _are_twins(image, candidate.address, reading.layout):
            continue
        exact = _checked(image, candidate.address, reading)
        if exact is not None:
            text = ".".join(str(number) for number in exact if number != UNKNOWN_MICRO)
            return Runtime(
                candidate.address,
                exact,
                text,
                reading.layout,
                candidate.path,
                reading.free_threaded,
                candidate.found_by,
                reading.warnings,
            )
    return None


def _readings(image: Image, candidate: Candidate) -> Iterator[_Reading]:
    """The interpreter's own account, else the row of the version that the file claims, else every row."""
    account = describe(image, candidate.address)
    if account is not None:
        yield _Reading(account.version, account.layout, account.free_threaded, account.warnings, True)
        return
    if candidate.version is not None and candidate.version[:2] in LAYOUTS:
        warnings: Tuple[str, ...] = ()
        if candidate.version >= (3, 13):
            warnings = ("the interpreter's own table of offsets could not be read; those of the release were used",)
        if candidate.version[:2] in FREE_THREADED:
            yield _Reading(candidate.version, FREE_THREADED[candidate.version[:2]], True, warnings, False)
        # A pair of pointers is too little to go by without the interpreter's own word on its version.
        certain = candidate.found_by != "pointers"
        yield _Reading(candidate.version, LAYOUTS[candidate.version[:2]], False, warnings, certain)
    for minor in sorted(LAYOUTS, reverse=True):
        if candidate.version is None or minor != candidate.version[:2]:
            yield _Reading((*minor, UNKNOWN_MICRO), LAYOUTS[minor], False, (), False)


def _checked(image: Image, address: int, reading: _Reading) -> Optional[Version]:
    """The exact version when the reading leads to an interpreter, else None."""
    layout = reading.layout
    try:
        interpreter = _at_work(image, image.u64(address + layout.rt_interpreters_head), layout)
    except Fault:
        return None
    if interpreter is None:
        return None
    said = _said(image, interpreter, layout)
    if said is None:
        return reading.version if reading.certain else None
    return said if said[:2] == reading.version[:2] else None


def _are_twins(image: Image, address: int, layout: Layout) -> bool:
    """Is the pair that the scan found where this layout has it? Versions keep it 8 bytes apart from each other."""
    try:
        return image.u64(address + layout.rt_interpreters_head) == image.u64(address + layout.rt_interpreters_main)
    except Fault:
        return False


def _at_work(image: Image, interpreter: int, layout: Layout) -> Optional[int]:
    """The first of a list of interpreters with a thread state that points back to it: a sub-interpreter may have none,
    and the newest one comes first. Raises Fault."""
    for _ in range(MAX_WITHOUT_THREADS):
        if not interpreter:
            return None
        tstate = image.u64(interpreter + layout.is_threads_head)
        if tstate:
            return interpreter if image.u64(tstate + layout.ts_interp) == interpreter else None
        interpreter = image.u64(interpreter + layout.is_next)
    return None


def _said(image: Image, interpreter: int, layout: Layout) -> Optional[Version]:
    """``sys.hexversion``; None when it cannot be read."""
    objects = Objects(image, layout)
    try:
        value = objects.lookup(image.u64(interpreter + layout.is_sysdict), "hexversion")
        return hex_version(objects.integer(value)) if value else None
    except (Fault, NotThat):
        return None


def _with_others(found: List[Runtime]) -> Runtime:
    """Two interpreters can live in one process, each in a library of its own."""
    first = found[0]
    others = ", ".join(f"CPython {r.version_text} in {r.path}" for r in found[1:])
    if not others:
        return first
    warning = f"more than one interpreter runs in this process; not shown: {others}"
    return replace(first, alone=False, warnings=(*first.warnings, warning))
