"""ELF64 little-endian files, as far as finding symbols, sections and build-ids needs.

Every offset in a file may be wrong on purpose: slices are bounded by the file, and a table that does not fit
is treated as absent. Layout: System V ABI, chapters 4 and 5; <elf.h>.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import struct
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = struct.Struct("<IBBHQQ")
NHDR = struct.Struct("<III")

#: Bytes, or a mapped file: both are sliced and unpacked from alike.
Blob = Union[bytes, mmap.mmap]

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
    return int(_SHDR.unpack_from(data, shoff)[7]) or phnum


def parse_segments(data: Blob, phoff: int, phnum: int) -> List[Segment]:
    """Program headers that lie within ``data``, empty ones left out; at most MAX_SEGMENTS are looked at."""
    found = []
    fitting = max(0, len(data) - phoff) // PHDR.size
    for index in range(min(phnum, fitting, MAX_SEGMENTS)):
        kind, flags, offset, vaddr, _p, filesz, memsz, _a = PHDR.unpack_from(data, phoff + index * PHDR.size)
        if kind:
            found.append(Segment(kind, flags, offset, vaddr, filesz, memsz))
    return found


def iter_notes(data: Blob, at: int = 0, end: Optional[int] = None) -> Iterator[Tuple[bytes, int, bytes]]:
    """(name, type, descriptor) of each whole note between two offsets of ``data``; zeros end them."""
    end = len(data) if end is None else min(end, len(data))
    while at + NHDR.size <= end:
        namesz, descsz, kind = NHDR.unpack_from(data, at)
        name_at = at + NHDR.size
        desc_at = name_at + (namesz + 3 & ~3)
        if desc_at + descsz > end or namesz > MAX_NOTE_NAME or descsz > MAX_NOTE or not (namesz or descsz or kind):
            return  # cut off, damaged, or padding: a segment that is none may be gigabytes of it
        yield data[name_at : name_at + namesz].rstrip(b"\0"), kind, data[desc_at : desc_at + descsz]
        at = desc_at + (descsz + 3 & ~3)


def build_id_of(notes: bytes) -> Optional[str]:
    """The GNU build-id among notes, in hex."""
    for name, kind, desc in iter_notes(notes):
        if name == b"GNU" and kind == NT_GNU_BUILD_ID and desc:
            return desc.hex()
    return None


def map_file(path: str) -> mmap.mmap:
    """A file that may be ELF, mapped read-only. Raises OSError, or NotElf for what is too short or no plain file: a core
    may name a FIFO, which nobody ever opens at its other end, or a device, which does things when it is opened."""
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise NotElf("not a plain file")
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if os.fstat(fd).st_size < EHDR.size:
            raise NotElf("too short for an ELF header")
        return mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    finally:
        os.close(fd)


#: A core of a small program has a dozen of them, one that was written page by page some ten thousand.
MOST_PARTS = 1 << 20


def data_of(path: str) -> List[Tuple[int, int]]:
    """(start, end) of the parts of a file that are no holes, in order; the whole file where its system cannot tell
    (lseek(2), SEEK_DATA). Raises OSError when it cannot be opened."""
    found: List[Tuple[int, int]] = []
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        at, size = 0, os.fstat(fd).st_size
        while at < size and len(found) < MOST_PARTS:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
            found.append((start, at))
    except OSError as exc:
        if exc.errno != errno.ENXIO:  # nothing but a hole up to the end
            found.append((found[-1][1] if found else 0, size))
    finally:
        os.close(fd)
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
    """An ELF file on disk, mapped read-only. Raises OSError or NotElf."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = map_file(path)
        header = parse_header(self.data[: EHDR.size])
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
        rows = [_SHDR.unpack_from(self.data, self._shoff + i * _SHDR.size) for i in range(self._shnum)]
        names = self.data[rows[self._shstr][4] : rows[self._shstr][4] + rows[self._shstr][5]]
        for name, kind, _flags, address, offset, size, link, _info, _align, entsize in rows:
            text = names[name : names.find(b"\0", name)].decode("ascii", "replace")
            yield Section(text, kind, address, offset, size, link, entsize)

    def section(self, name: str) -> Optional[Section]:
        return next((s for s in self.sections() if s.name == name), None)

    def symbol(self, name: str) -> Optional[int]:
        """Link-time address of a defined symbol, from .dynsym or .symtab; None when it has none."""
        if name not in self._symbols:
            self._symbols[name] = self._find_symbol(name.encode())
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
        texts = self.data[strings.offset : strings.offset + strings.size]
        at = texts.find(name + b"\0")  # linkers store a name that ends another one as its tail
        indices = set()
        while at >= 0:
            indices.add(at)
            at = texts.find(name + b"\0", at + 1)
        if not indices:
            return None
        size = min(table.size, max(0, len(self.data) - table.offset)) // _SYM.size * _SYM.size
        entries = self.data[table.offset : table.offset + size]
        for st_name, _info, _other, shndx, value, _size in _SYM.iter_unpack(entries):
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
