"""ELF64 little-endian files: segments, sections, symbols, notes and build-ids.

Every offset in a file may be malicious: slices are bounded by the file, and a table that does not fit counts as absent.

Sources: System V ABI, chapters 4 and 5; <elf.h>.
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

#: File contents in memory or in a file; both support slicing.
Blob = Union[bytes, FileView]

ELF_MAGIC = b"\x7fELF"
ET_EXEC, ET_DYN, ET_CORE = 2, 3, 4
PT_LOAD, PT_NOTE = 1, 4
PF_X, PF_W = 1, 2
#: Value of e_phnum if the count does not fit: it then stands in sh_info of section header 0 (<elf.h>, PN_XNUM).
PN_XNUM = 0xFFFF
NT_GNU_BUILD_ID = 3
MAX_NOTE_NAME = 256  # bytes; "CORE", "GNU"
MAX_NOTE = 64 << 20  # bytes: the size of NT_FILE for about a million mappings
MAX_SEGMENTS = 1_000_000  # vm.max_map_count defaults to 65530
#: Largest table (symbols, names) that is read, in bytes: ten times that of the largest programs with debug symbols. A
#: sparse file may announce any size.
MAX_TABLE = 256 << 20
_NOTES_AT_ONCE = 1 << 18
SHT_SYMTAB, SHT_DYNSYM = 2, 11

#: e_machine (<linux/elf-em.h>) → name of the 64-bit little-endian variant; below, names of the others where they
#: differ.
MACHINES = {
    3: "i386", 8: "mips64el", 20: "ppc", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86-64", 183: "aarch64",
    243: "riscv64", 258: "loongarch64",
}  # fmt: skip
_OTHERWISE = {8: "mips", 21: "ppc64", 243: "riscv", 258: "loongarch"}


class NotElf(Exception):
    """Not an ELF64 little-endian file; the message describes what was found."""


class OtherWidth(NotElf):
    """A 32-bit or big-endian ELF file.

    ``kind``: its e_type; ``machine``: name, width and byte order.
    """

    def __init__(self, kind: int, machine: int, width: str, order: str) -> None:
        super().__init__(f"not 64-bit little-endian but {width} {order}")
        name = _OTHERWISE.get(machine) or MACHINES.get(machine, f"ELF machine {machine}")
        self.kind, self.machine = kind, f"{name} ({width} {order})"


class Segment(NamedTuple):
    """A program header; addresses, offsets and sizes are in bytes."""

    type: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int


class Section(NamedTuple):
    """A section header; ``link`` is the index of an associated section."""

    name: str
    type: int
    address: int
    offset: int
    size: int
    link: int
    entsize: int


def parse_header(data: bytes) -> Tuple[int, int, int, int, int, int, int, int]:
    """Return (type, machine, entry, phoff, phnum, shoff, shnum, shstrndx).

    Raises: NotElf; OtherWidth for 32-bit and big-endian files.
    """
    if len(data) < EHDR.size:
        raise NotElf("too short for an ELF header")
    ident, kind, machine, _v, entry, phoff, shoff, _f, _eh, phsize, phnum, shsize, shnum, shstr = EHDR.unpack_from(data)
    if ident[:4] != ELF_MAGIC:
        raise NotElf("no ELF magic at its start")
    if ident[4] != 2 or ident[5] != 1:
        width = {1: "32-bit", 2: "64-bit"}.get(ident[4], "neither 32-bit nor 64-bit")
        order = {1: "little-endian", 2: "big-endian"}.get(ident[5], "of unknown byte order")
        if ident[4] not in (1, 2) or ident[5] not in (1, 2):
            raise NotElf(f"not 64-bit little-endian but {width} {order}")
        kind, machine = struct.unpack_from("<HH" if ident[5] == 1 else ">HH", data, 16)
        raise OtherWidth(kind, machine, width, order)
    if (phnum and phsize != PHDR.size) or (shnum and shsize != _SHDR.size):
        raise NotElf("header sizes that ELF64 does not have")
    return kind, machine, entry, phoff, phnum, shoff, shnum, shstr


def count_segments(data: Blob, phnum: int, shoff: int) -> int:
    """Return the number of program headers; section header 0 holds it if it exceeds 16 bits."""
    if phnum != PN_XNUM or not 0 < shoff <= len(data) - _SHDR.size:
        return phnum
    header = data[shoff : shoff + _SHDR.size]
    return (int(_SHDR.unpack(header)[7]) if len(header) == _SHDR.size else 0) or phnum


def parse_segments(data: Blob, phoff: int, phnum: int) -> List[Segment]:
    """Return the program headers that lie within ``data``, at most MAX_SEGMENTS; empty ones are left out."""
    table = data[phoff : phoff + min(phnum, MAX_SEGMENTS) * PHDR.size]
    rows = PHDR.iter_unpack(table[: len(table) // PHDR.size * PHDR.size])
    return [
        Segment(kind, flags, offset, vaddr, filesz, memsz)
        for kind, flags, offset, vaddr, _p, filesz, memsz, _a in rows
        if kind
    ]


def iter_notes(data: Blob, at: int = 0, end: Optional[int] = None) -> Iterator[Tuple[bytes, int, bytes]]:
    """Yield (name, type, descriptor) of each complete note in data[at:end]; an all-zero note ends them."""
    end = len(data) if end is None else min(end, len(data))
    window, begin = b"", at  # a piece of the data, and its offset
    while at + NHDR.size <= end:
        if at + NHDR.size + MAX_NOTE_NAME > begin + len(window):
            window, begin = data[at : min(end, at + _NOTES_AT_ONCE)], at
            if len(window) < NHDR.size:
                return  # the file was truncated meanwhile
        namesz, descsz, kind = NHDR.unpack_from(window, at - begin)
        name_at = at + NHDR.size
        desc_at = name_at + (namesz + 3 & ~3)
        if desc_at + descsz > end or namesz > MAX_NOTE_NAME or descsz > MAX_NOTE or not (namesz or descsz or kind):
            return  # cut off, damaged, or padding: a bogus segment may hold gigabytes of it
        name = window[name_at - begin : name_at - begin + namesz].rstrip(b"\0")
        desc = window[desc_at - begin : desc_at - begin + descsz]
        yield name, kind, desc if len(desc) == descsz else data[desc_at : desc_at + descsz]
        at = desc_at + (descsz + 3 & ~3)


def build_id_of(notes: bytes) -> Optional[str]:
    """Return the GNU build-id among notes, in hexadecimal; None if there is none."""
    for name, kind, desc in iter_notes(notes):
        if name == b"GNU" and kind == NT_GNU_BUILD_ID and desc:
            return desc.hex()
    return None


def open_elf(path: str, descriptor: Optional[int] = None) -> FileView:
    """Open a file that may be ELF.

    With a descriptor, which is taken over, ``path`` is only a name. Other than regular files are refused: a core may
    name a FIFO, which would block forever, or a device, which may act on being opened.

    Raises: OSError; NotElf if too short or not a regular file.
    """
    try:
        view = FileView(open_regular(path) if descriptor is None else _plain(path, descriptor))
    except Unfit:
        raise NotElf("not a plain file") from None
    if len(view) < EHDR.size:
        view.close()
        raise NotElf("too short for an ELF header")
    return view


def _plain(path: str, descriptor: int) -> int:
    """Return the descriptor if it is a regular file; close it otherwise.

    Raises: as ``open_regular``: IsADirectoryError, Unfit.
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise Unfit("is not a regular file", path)


#: Most data ranges of a file: about a dozen in the core of a small program, some ten thousand in a core written page by
#: page.
MOST_PARTS = 1 << 20


def data_of(view: FileView) -> List[Tuple[int, int]]:
    """Return (start, end) of the data ranges between a file's holes, in order.

    The whole file if its file system does not report holes (lseek(2), SEEK_DATA).
    """
    found: List[Tuple[int, int]] = []
    try:
        at, size = 0, len(view)
        while at < size and len(found) < MOST_PARTS:
            start = os.lseek(view.descriptor, at, os.SEEK_DATA)
            at = os.lseek(view.descriptor, start, os.SEEK_HOLE)
            found.append((start, at))
    except OSError as exc:
        if exc.errno != errno.ENXIO:  # ENXIO: only a hole up to the end
            found.append((found[-1][1] if found else 0, size))
    return found


#: Symbol look-ups shared by all copies of a file, as in a tree of processes. The key is build-id, size and header: a
#: file may be replaced while in use, or stripped.
_SYMBOLS: Dict[Tuple[str, int, bytes], Dict[str, Optional[int]]] = {}
_MOST_FILES = 256


def _symbols_of(elf: Elf) -> Dict[str, Optional[int]]:
    """Return the mutable cache of symbol look-ups for a file's build; an unshared one without a build-id."""
    build_id = elf.build_id
    if build_id is None:
        return {}
    if len(_SYMBOLS) >= _MOST_FILES:
        _SYMBOLS.clear()
    return _SYMBOLS.setdefault((build_id, len(elf.data), bytes(elf.data[: EHDR.size])), {})


class Elf:
    """An ELF file.

    With a descriptor, which is taken over, ``path`` is only a name.

    Raises: OSError, NotElf.
    """

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
        """GNU build-id in hexadecimal; None if there is none."""
        for segment in self.segments:
            if segment.type == PT_NOTE:
                found = build_id_of(self.data[segment.offset : segment.offset + min(segment.filesz, 1 << 16)])
                if found:
                    return found
        return None

    def sections(self) -> List[Section]:
        """Return the sections, read once; empty if their table does not fit."""
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
        """Return bytes of the file: none if ``size`` exceeds MAX_TABLE, fewer at the file's end."""
        return self.data[offset : offset + size] if size <= MAX_TABLE else b""

    def section(self, name: str) -> Optional[Section]:
        """Return the section of a name; None if there is none."""
        return next((s for s in self.sections() if s.name == name), None)

    def entries(self, table: Section) -> Iterator[Tuple[int, int, int, int, int, int]]:
        """Yield the complete rows of a symbol table: st_name, st_info, st_other, st_shndx, st_value, st_size."""
        rows = self.table(table.offset, table.size)
        return _SYM.iter_unpack(rows[: len(rows) // _SYM.size * _SYM.size])

    def symbol(self, name: str) -> Optional[int]:
        """Return the link-time address of a defined symbol in .dynsym or .symtab; None if there is none."""
        if name not in self._symbols:
            found = self._find_symbol(name.encode())
            if self.data.short and found is None:
                self._symbols = dict(self._symbols)  # truncated: no conclusion for other copies
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
        """Find a symbol through the string table: one memchr instead of up to 100,000 tuples."""
        texts = self.table(strings.offset, strings.size)
        at = texts.find(name + b"\0")  # linkers share the tails of names
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
        """Return up to ``size`` bytes of a mapping of this file, as the loader leaves them; empty past its end.

        ``offset``: into the file. ``link_address``: of the same byte; None if unknown. With it, bytes behind a
        segment's p_filesz, up to p_memsz (the first part of .bss), are zeros: the loader clears them, while the file
        has other data there.
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
        """Close the file."""
        self.data.close()
