"""Finds the interpreter in a process: its ``_PyRuntime``, its version, the layout that goes with it.

Order: the dynamic or static symbol ``_PyRuntime``, then the section ``.PyRuntime`` (3.10+). A candidate is
believed only when its list of interpreters leads to a thread state that points back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Iterator, List, Optional, Tuple

from ..memory import Elf, Fault, Image
from .layouts import Layout
from .published import DEBUG_COOKIE, DEBUG_OFFSETS_313
from .releases import LAYOUTS

_PYTHON_FILE = re.compile(r"(?:^|/)(?:lib)?python(\d)\.(\d+)")


class NoInterpreter(Exception):
    """No CPython was found. ``python_file`` names the mapped file that suggests there is one, if any."""

    def __init__(self, message: str, python_file: Optional[str] = None) -> None:
        super().__init__(message)
        self.python_file = python_file


@dataclass(frozen=True)
class Runtime:
    """Where the interpreter is and how to read it."""

    address: int  # of _PyRuntime
    version: Tuple[int, int, int]
    version_text: str
    layout: Layout
    path: str  # the file that holds it
    free_threaded: bool
    found_by: str  # "symbol" | "section"
    warnings: Tuple[str, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    address: int
    path: str
    bias: int
    elf: Elf
    found_by: str


def find_runtime(image: Image) -> Runtime:
    """The interpreter of the process. Raises NoInterpreter with what was tried."""
    tried: List[str] = []
    suspect = None
    for candidate in _candidates(image):
        version = _version(image, candidate)
        if version is None:
            tried.append(f"{candidate.path}: _PyRuntime is there, but not its version")
            continue
        runtime = _describe(image, candidate, version)
        if runtime is None:
            tried.append(f"{candidate.path}: CPython {version[0]}.{version[1]} is not supported yet")
        elif not _plausible(image, runtime):
            tried.append(f"{candidate.path}: _PyRuntime leads to no thread state (not initialised, or its page missing)")
        else:
            return runtime
    for mapped in image.files:
        if _PYTHON_FILE.search(mapped.path) and mapped.offset == 0 and not tried:
            suspect = mapped.path
            tried.append(f"{mapped.path}: no _PyRuntime in it, or the file is not here")
    raise NoInterpreter("; ".join(tried) or "no Python interpreter is mapped", suspect or (tried and tried[0]) or None)


def _candidates(image: Image) -> Iterator[_Candidate]:
    """Files named like an interpreter first, then every other mapped program or library (embedded ones)."""
    bases = {f.path: f.start for f in reversed(image.files) if f.offset == 0}
    ordered = sorted(bases, key=lambda path: (not _PYTHON_FILE.search(path), bases[path]))
    for path in ordered:
        if not (_PYTHON_FILE.search(path) or ".so" in path or path == ordered[0] or _is_first(image, path)):
            continue
        elf = image.elf(path)
        if elf is None:
            continue
        bias = bases[path] - elf.first_vaddr
        value = elf.symbol("_PyRuntime")
        if value is not None:
            yield _Candidate(value + bias, path, bias, elf, "symbol")
            continue
        section = elf.section(".PyRuntime")
        if section is not None and section.address:
            yield _Candidate(section.address + bias, path, bias, elf, "section")


def _is_first(image: Image, path: str) -> bool:
    """Is it the lowest mapping, which is the main program unless it was moved?"""
    return bool(image.files) and image.files[0].path == path


def _version(image: Image, candidate: _Candidate) -> Optional[Tuple[int, int, int]]:
    """From the debug offsets (3.13+), else ``Py_Version`` (3.11+), else the name of the file."""
    try:
        if image.read(candidate.address, 8) == DEBUG_COOKIE:
            return _from_hex(image.u64(candidate.address + 8))
        value = candidate.elf.symbol("Py_Version")
        if value is not None:
            return _from_hex(image.u64(value + candidate.bias))
    except Fault:
        pass
    match = _PYTHON_FILE.search(candidate.path)
    return (int(match[1]), int(match[2]), 0) if match else None


def _from_hex(value: int) -> Optional[Tuple[int, int, int]]:
    major, minor, micro = value >> 24 & 0xFF, value >> 16 & 0xFF, value >> 8 & 0xFF
    return (major, minor, micro) if major == 3 and value >> 32 == 0 else None


def _describe(image: Image, candidate: _Candidate, version: Tuple[int, int, int]) -> Optional[Runtime]:
    layout = LAYOUTS.get(version[:2])
    if layout is None:
        return None
    free_threaded = False
    warnings: List[str] = []
    try:
        if image.read(candidate.address, 8) == DEBUG_COOKIE and version[:2] == (3, 13):
            words = image.words(candidate.address + 8, max(DEBUG_OFFSETS_313) + 1)
            free_threaded = bool(words[1])
            layout = replace(layout, **{name: words[index] for index, name in DEBUG_OFFSETS_313.items()})  # type: ignore[arg-type]
    except Fault:
        warnings.append("the interpreter's own table of offsets could not be read; those of the release were used")
    text = "{}.{}.{}".format(*version)
    return Runtime(
        candidate.address, version, text, layout, candidate.path, free_threaded, candidate.found_by, tuple(warnings)
    )


def _plausible(image: Image, runtime: Runtime) -> bool:
    """Interpreter → thread state → the same interpreter."""
    layout = runtime.layout
    try:
        interpreter = image.u64(runtime.address + layout.rt_interpreters_head)
        tstate = image.u64(interpreter + layout.is_threads_head)
        return image.u64(tstate + layout.ts_interp) == interpreter
    except Fault:
        return False
