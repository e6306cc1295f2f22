"""The interpreter loop of a stripped program in which the compiler has split it.

Distributions build CPython with profiles: code that the profile calls cold is moved away, which is most of a loop with
computed gotos (``_PyEval_EvalFrameDefault.cold``, 84 KB in Debian's 3.14; the exported function keeps 1 KB). The symbol
of that part is local, and missing from a stripped file. It is recognised by its shape: the table of 256 jump targets,
one for each opcode (Python/opcode_targets.h), points into it, and the exported function jumps there. Functions are
delimited by the table for unwinding (.eh_frame_hdr: Linux Standard Base, Exception Frames).
"""

from __future__ import annotations

import re
import struct
from array import array
from bisect import bisect_right
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..evidence import NativeFrame
from ..evidence import replace as changed
from ..memory import Elf, Fault, Image
from .merge import PYTHON_MODULE

LOOP = "_PyEval_EvalFrameDefault"
#: .eh_frame_hdr: version 1, a pointer of 4 bytes, a count of 4 bytes, a table of pairs relative to its own address.
_HEADER = struct.Struct("<BBBBiI")
_ENCODINGS = (1, 0x1B, 0x03, 0x3B)
#: Number of opcodes, and minimum of bytes of code that implement them.
_TARGETS, _LEAST = 256, 16 << 10
#: Parts into which a function may be split.
_MOST_PARTS = 16
_TABLES = (".rodata", ".data.rel.ro", ".data.rel.ro.local", ".data")
#: jmp and jcc with a distance of 32 bits (x86-64).
_JUMP = re.compile(rb"(?:\xe9|\x0f[\x80-\x8f])(....)", re.DOTALL)


class Range(NamedTuple):
    """Addresses of code: [start, end)."""

    start: int
    end: int


def named(stacks: Mapping[int, Tuple[NativeFrame, ...]], image: Image) -> Dict[int, Tuple[NativeFrame, ...]]:
    """Return the stacks with the loop's name on its unnamed frames."""
    nameless = {f.module for frames in stacks.values() for f in frames if f.function is None and f.module}
    loops = [loop for module in nameless if PYTHON_MODULE.search(module) for loop in find_loop(image, module)]
    return (
        {tid: tuple(_named(frame, loops) for frame in frames) for tid, frames in stacks.items()}
        if loops
        else dict(stacks)
    )


def _named(frame: NativeFrame, loops: Sequence[Range]) -> NativeFrame:
    if frame.function is None and any(loop.start <= frame.address < loop.end for loop in loops):
        return changed(frame, function=f"{LOOP}.cold")
    return frame


def find_loop(image: Image, path: str) -> List[Range]:
    """Return the addresses of the loop's parts outside of the exported function.

    Empty when it was not split, when the parts cannot be identified, or without the file.
    """
    elf = image.elf(path)
    base = next((f.start for f in image.files if f.path == path and f.offset == 0), None)
    exported = elf.symbol(LOOP) if elf is not None else None
    if elf is None or base is None or exported is None:
        return []
    bias = base - elf.first_vaddr
    functions = _functions(elf)
    own = _function_at(functions, exported)
    if own is None:
        return []
    jumped = {f for f in _jumps(image, own, bias, functions) if f != own and f.end - f.start >= _LEAST}
    aimed = set(_aimed(image, elf, bias, sorted(jumped)[:_MOST_PARTS]))
    return [Range(f.start + bias, f.end + bias) for f in sorted(aimed)]


def _functions(elf: Elf) -> List[int]:
    """Return the link-time start addresses of functions, in order."""
    section = elf.section(".eh_frame_hdr")
    if section is None or section.size < _HEADER.size:
        return []
    raw = elf.table(section.offset, section.size)
    if len(raw) < _HEADER.size:
        return []
    *encodings, _frames, count = _HEADER.unpack_from(raw)
    if tuple(encodings) != _ENCODINGS or _HEADER.size + 8 * count > len(raw):
        return []
    table = raw[_HEADER.size : _HEADER.size + 8 * count]
    return [section.address + start for start, _entry in struct.iter_unpack("<ii", table)]


def _function_at(functions: List[int], address: int) -> Optional[Range]:
    index = bisect_right(functions, address)
    return Range(functions[index - 1], functions[index]) if 0 < index < len(functions) else None


def _jumps(image: Image, function: Range, bias: int, functions: List[int]) -> Iterator[Range]:
    """Yield the functions that a function's code jumps to.

    Some are false, from bytes that are no jump; ``_aimed`` excludes these.
    """
    try:
        code = image.read(function.start + bias, min(function.end - function.start, 1 << 20))
    except Fault:
        return
    for jump in _JUMP.finditer(code):
        target = function.start + jump.end() + int.from_bytes(jump[1], "little", signed=True)
        found = _function_at(functions, target)
        if found is not None:
            yield found


def _aimed(image: Image, elf: Elf, bias: int, wanted: List[Range]) -> Iterator[Range]:
    """Yield those of the ranges that a table with one pointer for each opcode points into."""
    for section in map(elf.section, _TABLES) if wanted else ():
        if section is None or section.size > 64 << 20:
            continue
        try:
            raw = image.read(section.address + bias, section.size // 8 * 8)
        except Fault:
            continue
        words = array("Q", raw)
        for index in range(0, len(words), _TARGETS // 2):
            for range_ in wanted:
                if _is_table(words, index, Range(range_.start + bias, range_.end + bias)):
                    yield range_


def _is_table(words: array[int], index: int, range_: Range) -> bool:
    """Return whether the word at ``index`` belongs to a run of at least _TARGETS pointers into a range."""
    first = last = index
    least, most = max(-1, index - _TARGETS), min(len(words), index + _TARGETS)
    while first > least and range_.start <= words[first] < range_.end:
        first -= 1
    while last < most and range_.start <= words[last] < range_.end:
        last += 1
    return last - first - 1 >= _TARGETS
