"""Discovery of the interpreter in a process: its ``_PyRuntime``, version and layout.

``candidates`` lists possible addresses. One is accepted if
- its list of interpreters leads to a thread state that points back to its interpreter, and
- ``sys.hexversion`` of that interpreter, if readable, is the version whose layout led there.
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
#: Most candidates checked: a hostile core may contain any number.
MAX_CANDIDATES = 10_000
#: Most consecutive sub-interpreters without a thread.
MAX_WITHOUT_THREADS = 1_000


class NoInterpreter(Exception):
    """No CPython was found.

    ``python_file``: mapped file that suggests an interpreter; ``remedy``: advice. Either may be None.
    """

    def __init__(self, message: str, python_file: Optional[str] = None, remedy: Optional[str] = None) -> None:
        super().__init__(message)
        self.python_file = python_file
        self.remedy = remedy


@dataclass(frozen=True)
class Runtime:
    """Address and layout of an interpreter."""

    address: int  # of _PyRuntime
    version: Version  # micro is UNKNOWN_MICRO if sys is unreadable: at start-up, at exit, or its page is missing
    version_text: str  # without an unknown micro version
    layout: Layout
    path: str  # file that contains it
    free_threaded: bool
    found_by: str  # "symbol" | "section" | "cookie" | "pointers"
    warnings: Tuple[str, ...] = ()
    alone: bool = True  # no other interpreter in the process


class _Reading(NamedTuple):
    """One interpretation of a candidate."""

    version: Version
    layout: Layout
    free_threaded: bool
    warnings: Tuple[str, ...]
    certain: bool  # the version was read, not guessed


def find_runtime(image: Image) -> Runtime:
    """Return the first running interpreter of the process; its warnings name any others.

    Raises: NoInterpreter with the reason.
    """
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
    if not found:  # no file names one: search the data
        looks = (_believed(image, candidate) for candidate in islice(scanned(image, _heads()), MAX_CANDIDATES))
        found = list(islice((runtime for runtime in looks if runtime is not None), 1))
    if found:
        return _with_others(found)
    absence = explain(image, doubted)
    raise NoInterpreter(absence.reason, absence.python_file, absence.remedy)


def _heads() -> Tuple[int, ...]:
    return tuple(sorted({row.rt_interpreters_head for row in LAYOUTS.values()}))


def _believed(image: Image, candidate: Candidate) -> Optional[Runtime]:
    """Return the runtime of a candidate that passes the checks; None otherwise."""
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
    """Yield interpretations: the published offsets alone, else the file's version, then every release."""
    account = describe(image, candidate.address)
    if account is not None:
        yield _Reading(account.version, account.layout, account.free_threaded, account.warnings, True)
        return
    if candidate.version is not None and candidate.version[:2] in LAYOUTS:
        warnings: Tuple[str, ...] = ()
        if candidate.version >= (3, 13):
            warnings = (
                "the interpreter's own table of offsets could not be read; the offsets of the release were used",
            )
        if candidate.version[:2] in FREE_THREADED:
            yield _Reading(candidate.version, FREE_THREADED[candidate.version[:2]], True, warnings, False)
        # A pair of pointers is not enough without the interpreter's own sys.hexversion.
        certain = candidate.found_by != "pointers"
        yield _Reading(candidate.version, LAYOUTS[candidate.version[:2]], False, warnings, certain)
    for minor in sorted(LAYOUTS, reverse=True):
        if candidate.version is None or minor != candidate.version[:2]:
            yield _Reading((*minor, UNKNOWN_MICRO), LAYOUTS[minor], False, (), False)


def _checked(image: Image, address: int, reading: _Reading) -> Optional[Version]:
    """Return the exact version if the reading leads to an interpreter; None otherwise."""
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
    """Return whether this layout has the pair of equal pointers (first and main interpreter) where the scan found it.

    Its offset differs between releases, by as little as 8 bytes.
    """
    try:
        return image.u64(address + layout.rt_interpreters_head) == image.u64(address + layout.rt_interpreters_main)
    except Fault:
        return False


def _at_work(image: Image, interpreter: int, layout: Layout) -> Optional[int]:
    """Return the first interpreter with a thread state, provided that points back to it. Raises Fault.

    Sub-interpreters may have no thread state, and the newest interpreter comes first.
    """
    for _ in range(MAX_WITHOUT_THREADS):
        if not interpreter:
            return None
        tstate = image.u64(interpreter + layout.is_threads_head)
        if tstate:
            return interpreter if image.u64(tstate + layout.ts_interp) == interpreter else None
        interpreter = image.u64(interpreter + layout.is_next)
    return None


def _said(image: Image, interpreter: int, layout: Layout) -> Optional[Version]:
    """Return ``sys.hexversion``; None if unreadable."""
    objects = Objects(image, layout)
    try:
        value = objects.lookup(image.u64(interpreter + layout.is_sysdict), "hexversion")
        return hex_version(objects.integer(value)) if value else None
    except (Fault, NotThat):
        return None


def _with_others(found: List[Runtime]) -> Runtime:
    """Return the first runtime with a warning that names the others, each in a library of its own."""
    first = found[0]
    others = ", ".join(f"CPython {r.version_text} in {r.path}" for r in found[1:])
    if not others:
        return first
    warning = f"more than one interpreter runs in this process; not shown: {others}"
    return replace(first, alone=False, warnings=(*first.warnings, warning))
