"""Possible addresses of ``_PyRuntime``, likeliest first; ``discovery`` checks them.

Found by:
- symbol, dynamic or static.
- section ``.PyRuntime`` (3.10+, Include/internal/pycore_runtime.h, GENERATE_DEBUG_SECTION).
- cookie of its debug offsets (3.13+) in writable memory.
- two adjacent equal pointers, as ``interpreters.head`` and ``interpreters.main`` are with one interpreter, in the
  writable memory of a program or library.

The last two need neither symbols, nor sections, nor the file.
"""

from __future__ import annotations

import re
from array import array
from itertools import islice
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...memory import Elf, Fault, Image
from ...memory.elf import PF_W, PT_LOAD
from .debugoffsets import DEBUG_COOKIE

#: The interpreter's file itself, not what lies in a directory of that name.
_PYTHON_FILE = re.compile(r"(?:^|/)(?:lib)?python(\d)\.(\d+)[^/]*$")
#: A file, or a directory that contains it.
_OF_PYTHON = re.compile(r"(?:^|/)(?:lib)?python3\.\d+")
#: Largest data and bss area, in bytes: CPython's has 3 MB; a larger area behind a file is a heap.
_MAX_AREA = 64 << 20
_PIECE = 1 << 20
#: Most pairs of pointers in one area. An interpreter's own data has fewer than a hundred; a heap that happens to follow
#: a file's data has any number and must not exhaust the limit of the others.
_MAX_TWINS = 500
_SECTION = ".PyRuntime"
#: Micro version of a version of which only major and minor are known.
UNKNOWN_MICRO = -1


class Candidate(NamedTuple):
    """A possible address of ``_PyRuntime``."""

    address: int
    path: str  # file that contains it; "" if unknown
    found_by: str  # "symbol" | "section" | "cookie" | "pointers"
    version: Optional[Tuple[int, int, int]] = None  # according to the file


def named(image: Image) -> Iterator[Candidate]:
    """Yield the candidates that files name: by symbol in every file, then by section."""
    bases = _bases(image)
    opened = _opened(image)
    for path, elf in opened:
        value = elf.symbol("_PyRuntime")
        if value is not None:
            yield _in_file(image, path, elf, bases[path] - elf.first_vaddr, value, "symbol")
    for path, elf in opened:
        section = elf.section(_SECTION)
        if section is not None and section.address:
            yield _in_file(image, path, elf, bases[path] - elf.first_vaddr, section.address, "section")


def scanned(image: Image, heads: Tuple[int, ...]) -> Iterator[Candidate]:
    """Yield the candidates found in data, by cookie, then by pointers.

    ``heads``: offsets of ``interpreters.head`` in the known versions.
    """
    for area in data_areas(image):
        for address in _find(image, area, DEBUG_COOKIE):
            yield Candidate(address, area.path, "cookie", name_version(area.path))
    opened = dict(_opened(image))
    for area in data_areas(image):
        if _may_be_python(opened.get(area.path)):
            for address in islice(_twins(image, area, heads), _MAX_TWINS * len(heads)):
                yield Candidate(address, area.path, "pointers", name_version(area.path))


def _bases(image: Image) -> Dict[str, int]:
    """Map each mapped file to its lowest address at offset 0."""
    return {f.path: f.start for f in reversed(image.files) if f.offset == 0}


def _opened(image: Image) -> List[Tuple[str, Elf]]:
    """Return the available mapped programs and libraries, those named like an interpreter first."""
    bases = _bases(image)
    ordered = sorted(bases, key=lambda path: (not _PYTHON_FILE.search(path), bases[path]))
    return [(path, elf) for path, elf in ((p, image.elf(p)) for p in ordered) if elf is not None]


def _in_file(image: Image, path: str, elf: Elf, bias: int, value: int, found_by: str) -> Candidate:
    """Build a candidate from a file's symbol or section.

    Its version is that of ``Py_Version`` (a constant since 3.11, Python/getversion.c), else that in the file's name.
    """
    version = None
    symbol = elf.symbol("Py_Version")
    if symbol is not None:
        try:
            version = hex_version(image.u64(symbol + bias))
        except Fault:
            version = None
    return Candidate(value + bias, path, found_by, version or name_version(path))


def hex_version(value: int) -> Optional[Tuple[int, int, int]]:
    """Decode PY_VERSION_HEX (Include/patchlevel.h) to (3, minor, micro); None if it is not a Python 3's."""
    major, minor, micro = value >> 24 & 0xFF, value >> 16 & 0xFF, value >> 8 & 0xFF
    return (major, minor, micro) if major == 3 and value >> 32 == 0 else None


def name_version(path: str) -> Optional[Tuple[int, int, int]]:
    """Return the version in a name like ``python3.9`` or ``libpython3.9.so.1.0``, micro unknown; None if none."""
    match = _PYTHON_FILE.search(path)
    return (int(match[1]), int(match[2]), UNKNOWN_MICRO) if match else None


def is_of_python(path: str) -> bool:
    """Return whether a mapped file suggests Python: an interpreter, its library, or one of its modules."""
    return _OF_PYTHON.search(path) is not None


class Area(NamedTuple):
    """Writable memory [start, end) of a mapped file."""

    start: int
    end: int
    path: str


def data_areas(image: Image) -> List[Area]:
    """Return the writable memory of mapped files: their data, and the bss right behind it."""
    files = image.files
    found: List[Area] = []
    for start, end in image.writable:
        if end - start > _MAX_AREA:
            continue
        owner = next((f.path for f in files if f.start <= start < f.end or f.end == start), None)
        if owner is None and found and found[-1].end == start:
            owner = found[-1].path
        if owner is not None:
            found.append(Area(start, end, owner))
    return sorted(found, key=lambda area: (not _PYTHON_FILE.search(area.path), area.start))


def data_segments(image: Image) -> List[Tuple[int, int]]:
    """Return where the data and bss of mapped files begin and end, from their program headers; ordered.

    Of a file that is unavailable only what is mapped from it is known: its bss is missing.
    """
    found: List[Tuple[int, int]] = []
    for path, base in _bases(image).items():
        elf = image.elf(path)
        if elf is None:
            mapped = [(file.start, file.end) for file in image.files if file.path == path]
            found += [
                (max(start, a), min(end, b))
                for start, end in mapped
                for a, b in image.writable
                if a < end and start < b
            ]
            continue
        bias = base - elf.first_vaddr
        data = [one for one in elf.segments if one.type == PT_LOAD and one.flags & PF_W]
        found += [(one.vaddr + bias, one.vaddr + bias + one.memsz) for one in data]
    return sorted(found)


def _may_be_python(elf: Optional[Elf]) -> bool:
    """Return whether a file may contain an interpreter; True if it is unavailable.

    Excludes the C library, whose data is full of adjacent equal pointers.
    """
    return elf is None or elf.data.find(b"PYTHONHOME") >= 0


def _pieces(image: Image, area: Area) -> Iterator[Tuple[int, bytes]]:
    """Yield (address, bytes) in large pieces, or page by page where a page is missing."""
    for start in range(area.start, area.end, _PIECE):
        size = min(_PIECE, area.end - start)
        try:
            yield start, image.read(start, size)
        except Fault:
            for page in range(start, start + size, 4096):
                try:
                    yield page, image.read(page, min(4096, start + size - page))
                except Fault:
                    continue


def _find(image: Image, area: Area, pattern: bytes) -> Iterator[int]:
    """Yield the addresses, multiples of 8, of a pattern."""
    for start, data in _pieces(image, area):
        at = data.find(pattern)
        while at >= 0:
            if (start + at) % 8 == 0:
                yield start + at
            at = data.find(pattern, at + 1)


def _twins(image: Image, area: Area, heads: Tuple[int, ...]) -> Iterator[int]:
    """Yield the addresses of ``_PyRuntime`` that pairs of adjacent equal pointers would imply, one for each known layout.

    The pointers lead into writable memory, but not to within 64 bytes of the pair.
    """
    ranges = image.writable
    lowest, highest = ranges[0][0], ranges[-1][1]
    for start, data in _pieces(image, area):
        words = array("Q", data[: len(data) // 8 * 8])
        for index in range(len(words) - 1):
            word = words[index]
            if word == words[index + 1] and lowest <= word < highest and word & 7 == 0:
                place = start + 8 * index
                if not place - 64 <= word <= place + 64:
                    for offset in heads:
                        yield place - offset
