"""The variable at an address, by name, and where the function at an address begins: from symbol and unwind tables.

C++ names are demangled only if they are plain nested names, without templates or arguments: ``_ZN5cache4lockE`` is
``cache::lock``; the guard of a function's static (``_ZGVZ…E8instance``) is named after that static.

Source: Itanium C++ ABI, 5.1 (nested-name, source-name, local-name, special-name).
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from typing import List, NamedTuple, Optional, Tuple

from .base import Image, MappedFile
from .elf import PT_LOAD, SHT_DYNSYM, SHT_SYMTAB, Elf, Section

_STT_OBJECT, _MAX_NAME = 1, 4096
#: Largest distance of a variable behind its file's mapping, in bytes: .bss may lie in anonymous memory there.
_MAX_BEHIND = 64 << 20
_SOURCE_NAME = re.compile(r"(\d+)")
_ANONYMOUS = "_GLOBAL__N_"
#: Discriminator after a static's name, absent for the first static of that name.
_DISCRIMINATOR = re.compile(r"_\d$|__\d+_$")


#: .eh_frame_hdr (LSB Core, 10.6): version 1; a 4-byte pointer relative to itself (DW_EH_PE_pcrel|sdata4); a count
#: (udata4); a sorted table of pairs relative to the start of the header (datarel|sdata4).
PT_GNU_EH_FRAME = 0x6474E550
_EH_HEADER, _EH_ENCODINGS, _MAX_FUNCTIONS = struct.Struct("<BBBBiI"), (1, 0x1B, 0x03, 0x3B), 2_000_000


class Variable(NamedTuple):
    """A variable of a mapped file.

    ``file``: path as the target names it. ``name``: None if no symbol covers the address.
    """

    file: str
    name: Optional[str]


def variable_at(image: Image, address: int) -> Optional[Variable]:
    """Return the variable at an address; None outside of files' data, as on the heap or a stack.

    Its name is None if the file is unavailable or stripped.
    """
    for path, base in _candidates(image.files, address):
        elf = image.elf(path)
        if elf is None:
            continue
        link_address = address - base + elf.first_vaddr
        if any(s.type == PT_LOAD and s.vaddr <= link_address < s.vaddr + s.memsz for s in elf.segments):
            return Variable(path, _object_at(elf, link_address))
    return next((Variable(f.path, None) for f in image.files if f.start <= address < f.end), None)


def _object_at(elf: Elf, link_address: int) -> Optional[str]:
    """Return the name of the data symbol that covers an address; None if there is none."""
    sections = elf.sections()
    for wanted in (SHT_SYMTAB, SHT_DYNSYM):
        for table in sections:
            if table.type == wanted and 0 < table.link < len(sections):
                found = _covering(elf, table, sections[table.link], link_address)
                if found is not None:
                    return found
    return None


def _covering(elf: Elf, table: Section, strings: Section, link_address: int) -> Optional[str]:
    """Return the name of the data symbol of one table that covers an address; None if there is none."""
    for name_at, info, _other, section, value, length in elf.entries(table):
        if info & 0xF == _STT_OBJECT and section and value <= link_address < value + length:
            start, end = strings.offset + name_at, strings.offset + min(strings.size, name_at + _MAX_NAME)
            name = elf.data[start:end].split(b"\0", 1)[0].decode("utf-8", "replace")
            return name or None
    return None


def function_at(image: Image, address: int) -> Optional[Tuple[str, int]]:
    """Return (file, start of the function) for an instruction's address, from the unwind tables.

    Stripped files keep these tables. Without them None: two addresses then cannot be attributed to one function.
    """
    for path, base in _candidates(image.files, address)[:1]:
        elf = image.elf(path)
        start = _function_start(elf, address - base + elf.first_vaddr) if elf is not None else None
        if start is not None:
            return path, start
    return None


def _function_start(elf: Elf, link_address: int) -> Optional[int]:
    """Return the link-time address at which the function around an address starts; None if unknown."""
    header = next((s for s in elf.segments if s.type == PT_GNU_EH_FRAME), None)
    if header is None:
        return None
    raw = elf.table(header.offset, header.filesz)
    if len(raw) < _EH_HEADER.size or tuple(raw[:4]) != _EH_ENCODINGS:
        return None
    count = min(_EH_HEADER.unpack_from(raw)[5], (len(raw) - _EH_HEADER.size) // 8, _MAX_FUNCTIONS)
    table = struct.unpack_from(f"<{2 * count}i", raw, _EH_HEADER.size)
    index = bisect_right(table[::2], link_address - header.vaddr) - 1
    return table[2 * index] + header.vaddr if index >= 0 else None


def _candidates(files: List[MappedFile], address: int) -> List[Tuple[str, int]]:
    """Return (path, address of its first byte) of up to three files that may contain an address, nearest first."""
    bases = [(f.path, f.start) for f in files if f.offset == 0 and f.start <= address]
    ends = {f.path: f.end for f in files}
    near = [(path, base) for path, base in reversed(bases) if address < ends[path] + _MAX_BEHIND]
    return near[:3]


def readable(symbol: str) -> str:
    """Demangle a C++ name; return it unchanged if it is more than nested names."""
    if symbol.startswith(("_ZGVZ", "_ZZ")):
        return _last_name(symbol) or symbol
    for prefix in ("_ZGV", "_Z"):
        if symbol.startswith(prefix):
            return _nested(symbol[len(prefix) :]) or symbol
    return symbol


def _nested(text: str) -> Optional[str]:
    """Demangle ``N5cache4lockE``, ``L10table_lock`` or ``10table_lock``; None if it is anything else."""
    names: List[str] = []
    at = 1 if text[:1] in ("N", "L") else 0
    while at < len(text) and text[at] != "E":
        at += text[at] in "LK"
        match = _SOURCE_NAME.match(text, at)
        if match is None or match.end() + int(match.group()[:4]) > len(text):
            return None
        at = match.end() + int(match.group())
        name = text[match.end() : at]
        names.append("(anonymous namespace)" if name.startswith(_ANONYMOUS) else name)
    return "::".join(names) if names and text[at:] in ("", "E") else None


def _last_name(symbol: str) -> Optional[str]:
    """Return the name at the end of a mangled local name; its length precedes it."""
    text = _DISCRIMINATOR.sub("", symbol)
    for match in reversed(list(_SOURCE_NAME.finditer(text))):
        for start in range(match.start(), match.end()):  # other digits may precede the length
            if match.end() - start < 5 and match.end() + int(text[start : match.end()]) == len(text):
                return text[match.end() :]
    return None
