"""ELF64 little-endian files, as far as finding symbols, sections and build-ids needs.

Every offset in a file may be wrong on purpose: slices are bounded by the file, and a table that does not fit
is treated as absent. Layout: System V ABI, chapters 4 and 5; <elf.h>.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..foreign.files import FileView, Unfit, open_regular

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = struct.Struct("<IBBHQQ")
NHDR = struct.Struct("<III")

#: Bytes, or a file: both are sliced alike.
Blob = Union[bytes, FileView]

ELF_MAGIC = b"\x7fELF"
ET_EXEC, ET_DYN, ET_CORE = 2, 3, 4
PT_LOAD, PT_NOTE = 1, 4
PF_X, PF_W = 1, 2
#: e_phnum when the count does not fit: it is then sh_info of section header 0 (<elf.h>, PN_XNUM).
PN_XNUM = 0xFFFF
NT_GNU_BUILD_ID = 3
MAX_NOTE_NAME = 256  # bytes; "CORE", "GNU"
MAX_NOTE = 64 << 20  # bytes: NT_FILE of a million mappings is as large
MAX_SEGMENTS = 1_000_000  # vm.max_map_count is 65530 unless somebody raised it
#: Bytes of a table in a file (symbols, names): the largest programs with debug symbols have a tenth of it. A sparse file may
#: announce any size.
MAX_TABLE = 256 << 20
_NOTES_AT_ONCE = 1 << 18
SHT_SYMTAB, SHT_DYNSYM = 2, 11

#: e_machine (<linux/elf-em.h>) → name of the 64-bit little-endian one; of the others where that differs.
MACHINES = {
    3: "i386", 8: "mips64el", 20: "ppc", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86-64", 183: "aarch64",
    243: "riscv64", 258: "loongarch64",
}  # fmt: skip
_OTHERWISE = {8: "mips", 21: "ppc64", 243: "riscv", 258: "loongarch"}


class NotElf(Exception):
    """Not an ELF64 little-endian file; the message says what it is instead."""


class OtherWidth(NotElf):
    """An ELF file of 32 bits, or big-endian. ``kind``: its e_type; ``machine``: a name, with what is different."""

    def __init__(self, kind: int, machine: int, width: str, order: str) -> None:
        super().__init__(f"not 64-bit little-endian but {width} {order}")
        name = _OTHERWISE.get(machine) or MACHINES.get(machine, f"ELF machine {machine}")
        self.kind, self.machine = kind, f"{name} ({width} {order})"


class Segment(NamedTuple):
    type: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int


class Section(NamedTuple):
    name: str
    type: int
    address: int
    offset: int
    size: int
    link: int
    entsize: int


def parse_header(data: bytes) -> Tuple[int, int, int, int, int, int, int, int]:
    """(type, machine, entry, phoff, phnum, shoff, shnum, shstrndx), or NotElf."""
    if len(data) < EHDR.size:
        raise NotElf("too short for an ELF header")
    ident, kind, machine, _v, entry, phoff, shoff, _f, _eh, phsize, phnum, shsize, shnum, shstr = EHDR.unpack_from(data)
    if ident[:4] != ELF_MAGIC:
        raise NotElf("no ELF magic at its start")
    if ident[4] != 2 or ident[5] != 1:
        width = {1: "32-bit", 2: "64-bit"}.get(ident[4], "neither 32-bit nor 64-bit")
        order = {1: "little-endian", 2: "big-endian"}.get(ident[5], "of no byte order")
        if ident[4] not in (1, 2) or ident[5] not in (1, 2):
            raise NotElf(f"not 64-bit little-endian but {width} {order}")
        kind, machine = struct.unpack_from("<HH" if ident[5] == 1 else ">HH", data, 16)
        raise OtherWidth(kind, machine, width, order)
    if (phnum and phsize != PHDR.size) or (shnum and shsize != _SHDR.size):
        raise NotElf("header sizes that ELF64 does not have")
    return kind, machine, entry, phoff, phnum, shoff, shnum, shstr


def count_segments(data: Blob, phnum: int, shoff: int) -> int:
    """How many program headers there are; more than 16 bits can tell are counted in section header 0."""
    if phnum != PN_XNUM or not 0 < shoff <= len(data) - _SHDR.size:
        return phnum
    header = data[shoff : shoff + _SHDR.size]
    return (int(_SHDR.unpack(header)[7]) if len(header) == _SHDR.size else 0) or phnum


def parse_segments(data: Blob, phoff: int, phnum: int) -> List[Segment]:
    """Program headers that lie within ``data``, empty ones left out; at most MAX_SEGMENTS are looked at."""
    table = data[phoff : phoff + min(phnum, MAX_SEGMENTS) * PHDR.size]
    rows = PHDR.iter_unpack(table[: len(table) // PHDR.size * PHDR.size])
    return [
        Segment(kind, flags, offset, vaddr, filesz, memsz)
        for kind, flags, offset, vaddr, _p, filesz, memsz, _a in rows
        if kind
    ]


def iter_notes(data: Blob, at: int = 0, end: Optional[int] = None) -> Iterator[Tuple[bytes, int, bytes]]:
    """(name, type, descriptor) of each whole note between two offsets of ``data``; zeros end them."""
    end = len(data) if end is None else min(end, len(data))
    window, begin = b"", at  # a piece of the data, and where it begins
    while at + NHDR.size <= end:
        if at + NHDR.size + MAX_NOTE_NAME > begin + len(window):
            window, begin = data[at : min(end, at + _NOTES_AT_ONCE)], at
            if len(window) < NHDR.size:
                return  # the file has been cut off meanwhile
        namesz, descsz, kind = NHDR.unpack_from(window, at - begin)
        name_at = at + NHDR.size
        desc_at = name_at + (namesz + 3 & ~3)
        if desc_at + descsz > end or namesz > MAX_NOTE_NAME or descsz > MAX_NOTE or not (namesz or descsz or kind):
            return  # cut off, damaged, or padding: a segment that is none may be gigabytes of it
        name = window[name_at - begin : name_at - begin + namesz].rstrip(b"\0")
        desc = window[desc_at - begin : desc_at - begin + descsz]
        yield name, kind, desc if len(desc) == descsz else data[desc_at : desc_at + descsz]
        at = desc_at + (descsz + 3 & ~3)


def build_id_of(notes: bytes) -> Optional[str]:
    """The GNU build-id among notes, in hex."""
    for name, kind, desc in iter_notes(notes):
        if name == b"GNU" and kind == NT_GNU_BUILD_ID and desc:
            return desc.hex()
    return None


def open_elf(path: str, descriptor: Optional[int] = None) -> FileView:
    """A file that may be ELF. With a descriptor, which is taken over, nothing is looked up by the path. Raises OSError, or
    NotElf for what is too short or no plain file: a core may name a FIFO, which nobody ever opens at its other end, or a
    device, which does things when it is opened."""
    try:
        view = FileView(open_regular(path) if descriptor is None else _plain(path, descriptor))
    except Unfit:
        raise NotElf("not a plain file") from None
    if len(view) < EHDR.size:
        view.close()
        raise NotElf("too short for an ELF header")
    return view


def _plain(path: str, descriptor: int) -> int:
    """The descriptor, when a plain file is behind it; else it is closed. Raises as open_regular."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise Unfit("is not a regular file", path)


#: A core of a small program has a dozen of them, one that was written page by page some ten thousand.
MOST_PARTS = 1 << 20


def data_of(view: FileView) -> List[Tuple[int, int]]:
    """(start, end) of the parts of a file that are no holes, in order; the whole file where its system cannot tell
    (lseek(2), SEEK_DATA)."""
    found: List[Tuple[int, int]] = []
    try:
        at, size = 0, len(view)
        while at < size and len(found) < MOST_PARTS:
            start = os.lseek(view.descriptor, at, os.SEEK_DATA)
            at = os.lseek(view.descriptor, start, os.SEEK_HOLE)
            found.append((start, at))
    except OSError as exc:
        if exc.errno != errno.ENXIO:  # nothing but a hole up to the end
            found.append((found[-1][1] if found else 0, size))
    return found


#: Of a tree of five hundred processes all map the same files: what was looked up in one of them is known of all. By
#: build-id, size and header: a file may be replaced while it is in use, and stripped of its symbols.
_SYMBOLS: Dict[Tuple[str, int, bytes], Dict[str, Optional[int]]] = {}
_MOST_FILES = 256


def _symbols_of(elf: Elf) -> Dict[str, Optional[int]]:
    """Names that were looked up before in this file, or another copy of it; to be added to."""
    build_id = elf.build_id
    if build_id is None:
        return {}
    if len(_SYMBOLS) >= _MOST_FILES:
        _SYMBOLS.clear()
    return _SYMBOLS.setdefault((build_id, len(elf.data), bytes(elf.data[: EHDR.size])), {})


class Elf:
    """An ELF file. Raises OSError or NotElf. ``path`` is what it is called; with a descriptor, which is taken over, nothing is
    looked up by it."""

    def __init__(self, path: str, descriptor: Optional[int] = None) -> None:
        self.path = path
        self.data = open_elf(path, descriptor)
        try:
            header = parse_header(self.data[: EHDR.size])
        except NotElf:
            self.data.close()
            raise
        self.type, self.machine, self.entry, phoff, phnum, self._shoff, self._shnum, self._shstr = header
        self.segments = parse_segments(self.data, phoff, phnum)
        self._sections: Optional[List[Section]] = None
        self._symbols = _symbols_of(self)

    @property
    def first_vaddr(self) -> int:
        """Link-time address of the first loaded byte, rounded down to a page: load bias = base - this."""
        loads = [s.vaddr - s.offset for s in self.segments if s.type == PT_LOAD]
        return min(loads) & ~0xFFF if loads else 0

    @property
    def build_id(self) -> Optional[str]:
        for segment in self.segments:
            if segment.type == PT_NOTE:
                found = build_id_of(self.data[segment.offset : segment.offset + min(segment.filesz, 1 << 16)])
                if found:
                    return found
        return None

    def sections(self) -> List[Section]:
        if self._sections is None:
            self._sections = list(self._read_sections())
        return self._sections

    def _read_sections(self) -> Iterator[Section]:
        end = self._shoff + self._shnum * _SHDR.size
        if not self._shnum or end > len(self.data) or self._shstr >= self._shnum:
            return
        table = self.data[self._shoff : end]
        if len(table) != self._shnum * _SHDR.size:
            return
        rows = list(_SHDR.iter_unpack(table))
        names = self.table(rows[self._shstr][4], rows[self._shstr][5])
        for name, kind, _flags, address, offset, size, link, _info, _align, entsize in rows:
            text = names[name : names.find(b"\0", name)].decode("ascii", "replace")
            yield Section(text, kind, address, offset, size, link, entsize)

    def table(self, offset: int, size: int) -> bytes:
        """Bytes of the file; none of what is larger than any table is, fewer past its end."""
        return self.data[offset : offset + size] if size <= MAX_TABLE else b""

    def section(self, name: str) -> Optional[Section]:
        return next((s for s in self.sections() if s.name == name), None)

    def entries(self, table: Section) -> Iterator[Tuple[int, int, int, int, int, int]]:
        """The whole rows of a symbol table: st_name, st_info, st_other, st_shndx, st_value, st_size."""
        rows = self.table(table.offset, table.size)
        return _SYM.iter_unpack(rows[: len(rows) // _SYM.size * _SYM.size])

    def symbol(self, name: str) -> Optional[int]:
        """Link-time address of a defined symbol, from .dynsym or .symtab; None when it has none."""
        if name not in self._symbols:
            found = self._find_symbol(name.encode())
            if self.data.short and found is None:
                self._symbols = dict(self._symbols)  # it says nothing of other copies
            self._symbols[name] = found
        return self._symbols[name]

    def _find_symbol(self, name: bytes) -> Optional[int]:
        sections = self.sections()
        for wanted in (SHT_DYNSYM, SHT_SYMTAB):
            for table in sections:
                if table.type != wanted or not 0 < table.link < len(sections):
                    continue
                found = self._search(table, sections[table.link], name)
                if found is not None:
                    return found
        return None

    def _search(self, table: Section, strings: Section, name: bytes) -> Optional[int]:
        """Looks the name up in the string table first: that is one memchr, symbols are 100,000 tuples."""
        texts = self.table(strings.offset, strings.size)
        at = texts.find(name + b"\0")  # linkers store a name that ends another one as its tail
        indices = set()
        while at >= 0:
            indices.add(at)
            at = texts.find(name + b"\0", at + 1)
        if not indices:
            return None
        for st_name, _info, _other, shndx, value, _size in self.entries(table):
            if st_name in indices and shndx and value:
                return int(value)
        return None

    def loaded(self, offset: int, link_address: Optional[int], size: int) -> bytes:
        """Up to ``size`` bytes of a mapping of this file, as the loader leaves them; empty past the file's end.

        offset: into the file. link_address: of the same byte, None when unknown. Past a segment's p_filesz the loader
        clears memory up to p_memsz (the first part of .bss), though the file goes on there with other things.
        """
        for segment in self.segments if link_address is not None else ():
            within = link_address - segment.vaddr if link_address is not None else 0
            if segment.type != PT_LOAD or not 0 <= within < segment.memsz:
                continue
            if within >= segment.filesz:
                return bytes(min(size, segment.memsz - within))
            size = min(size, segment.filesz - within)
        if offset < 0:
            return b""
        return self.data[offset : offset + size]

    def close(self) -> None:
        self.data.close()
