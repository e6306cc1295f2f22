"""ELF core files: memory, threads with their registers, and mapped files.

- Pages are read on demand; the core is neither mapped nor read whole.
- What a core omits because a file holds it (clean private file mappings) is read from that file if its build-id matches
  the one in the core.
- A truncated core opens; reading what is cut off faults.

Source of what the kernel omits: fs/coredump.c, vma_dump_size().
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

from ..foreign.files import Unfit
from .base import MAX_READ, Fault, Image, MappedFile
from .elf import (
    EHDR,
    ELF_MAGIC,
    ET_CORE,
    MACHINES,
    MOST_PARTS,
    PF_W,
    PF_X,
    PHDR,
    PT_LOAD,
    PT_NOTE,
    Elf,
    NotElf,
    Segment,
    build_id_of,
    count_segments,
    data_of,
    open_elf,
    parse_header,
    parse_segments,
)
from .linkmap import Locate, linked_files, opened, program_files
from .notes import CoreThread, Notes

_U64 = struct.Struct("<Q")
_PAGE = 4096
_IN_PAGE = _PAGE - 1
#: Most pages in the cache: 64 MB.
_MOST_PAGES = 1 << 14
#: Suffix that the kernel appends to the path of a mapped file that was unlinked or replaced.
DELETED = " (deleted)"


class Mapping(NamedTuple):
    """[start, end) of a segment; ``flags`` 0 means no access, as for a guard page."""

    start: int
    end: int
    flags: int


class Unusable(NamedTuple):
    """The reason why a file of this machine cannot stand for a mapped one."""

    text: str
    is_elf: bool = True  # False: no file with code, such as a font or a device


NO_ELF = Unusable("not an ELF file", False)


class ElfCore(Image):
    """An ELF core file, opened by path or descriptor.

    Parameters:
    - ``path``: name of the core.
    - ``locate``: maps a file that the core names to its location here (a sysroot); None: its own path.
    - ``descriptor``: open core, which is taken over; ``path`` is then only a name.

    Raises: OSError; NotElf with a description of what was found.
    """

    def __init__(self, path: str, locate: Optional[Locate] = None, *, descriptor: Optional[int] = None) -> None:
        self.path = path
        self._locate: Locate = locate or (lambda name: name)
        self._stand_ins: Dict[str, str] = {}
        self._data = open_elf(path, descriptor)
        try:
            self._begin()
        except NotElf:
            self._data.close()
            raise

    def _begin(self) -> None:
        """Read headers, notes and mapped files. Raises NotElf."""
        kind, self.machine, _entry, phoff, phnum, shoff, _n, _x = parse_header(self._data[: EHDR.size])
        if kind != ET_CORE:
            raise NotElf("an ELF file, but a program or library, not a core")
        wanted = count_segments(self._data, phnum, shoff)
        segments = parse_segments(self._data, phoff, wanted)
        size = len(self._data)
        #: True if the file ends before what its headers announce.
        self.truncated = phoff + wanted * PHDR.size > size or any(
            s.filesz and s.offset + s.filesz > size for s in segments
        )
        self._index(segments, size)
        self._elves: Dict[str, Optional[Elf]] = {}
        #: Files that were needed but cannot be used: path → reason.
        self.unusable: Dict[str, Unusable] = {}
        notes = Notes(self.machine)
        for segment in segments:
            if segment.type == PT_NOTE:
                notes.add(self._data, segment.offset, segment.offset + segment.filesz)
        self.threads: List[CoreThread] = notes.threads
        self.auxv = notes.auxv
        self.argv, self.pid, self.ppid, self.uid = notes.argv, notes.pid, notes.ppid, notes.uid
        self.siginfo, self.fault_address, self.cause = notes.siginfo, notes.fault_address, notes.cause
        self._know_files(notes.files)
        if not notes.files:
            self._know_files(linked_files(self, self._starts, self._locate))
        # Without bit 0 of coredump_filter a core omits private anonymous pages, and so written pages of mapped files: a
        # file's contents then do not prove what memory held.
        anonymous = [s for s in self._loads if s.flags & PF_W and self.mapped_file(s.vaddr) is None]
        self._drops_written = bool(anonymous) and not any(s.filesz for s in anonymous)

    def _know_files(self, files: List[MappedFile]) -> None:
        """Set the mapped files and their indices by address and path."""
        self._files = files
        self._file_starts = [f.start for f in files]
        self._bases = {f.path: f.start for f in reversed(files) if f.offset == 0}

    def _index(self, segments: List[Segment], size: int) -> None:
        """Build parallel lists by address: segment start, end of its stored bytes, shift from address to offset."""
        self._loads = sorted((s for s in segments if s.type == PT_LOAD and s.memsz), key=lambda s: s.vaddr)
        self._starts = [s.vaddr for s in self._loads]
        self._ends = [s.vaddr + min(s.filesz, s.memsz, max(0, size - s.offset)) for s in self._loads]
        self._shifts = [s.offset - s.vaddr for s in self._loads]
        self._kept: Dict[int, bytes] = {}  # page cache: page number → its bytes

    @property
    def files(self) -> List[MappedFile]:
        """Mapped files, ordered by address."""
        return self._files

    @property
    def writable(self) -> List[Tuple[int, int]]:
        """(start, end) of the writable segments, ordered by address."""
        return [(s.vaddr, s.vaddr + s.memsz) for s in self._loads if s.flags & PF_W]

    def mapping(self, address: int) -> Optional[Mapping]:
        """Return the mapping that contains an address; None if the core lists none."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        found = self._loads[index]
        return (
            Mapping(found.vaddr, found.vaddr + found.memsz, found.flags)
            if address < found.vaddr + found.memsz
            else None
        )

    @property
    def is_whole(self) -> bool:
        """Whether the core contains every byte of writable memory that is not backed by a file."""
        memory = (s for s in self._loads if s.flags & PF_W and self.mapped_file(s.vaddr) is None)
        return not self.truncated and all(s.filesz >= s.memsz for s in memory)

    @property
    def written(self) -> List[Tuple[int, int]]:
        """Ranges of the writable segments that the core stores, without the file's holes."""
        parts = data_of(self._data)
        stops = [stop for _start, stop in parts]
        found: List[Tuple[int, int]] = []
        for segment, end in zip(self._loads, self._ends):
            shift = segment.vaddr - segment.offset
            first, last = segment.offset, end - shift
            index = bisect_right(stops, first) if segment.flags & PF_W else len(parts)
            while index < len(parts) and parts[index][0] < last and len(found) < MOST_PARTS:
                found.append((max(parts[index][0], first) + shift, min(parts[index][1], last) + shift))
                index += 1
        return found

    @property
    def machine_name(self) -> str:
        """Name of the core's machine, such as ``x86-64``."""
        return MACHINES.get(self.machine, f"ELF machine {self.machine}")

    # ------------------------------------------------------------------ memory

    def read(self, address: int, size: int) -> bytes:
        """Return exactly ``size`` bytes. Raises Fault."""
        page, start = self._kept.get(address >> 12), address & _IN_PAGE
        if page is None or not 0 <= size <= _PAGE - start:
            return self._read_anywhere(address, size)
        return page[start : start + size]

    def u64(self, address: int) -> int:
        """Return an unsigned 64-bit integer. Raises Fault."""
        page, start = self._kept.get(address >> 12), address & _IN_PAGE  # hot path: millions of calls
        if page is None or start > _PAGE - 8:
            return int(_U64.unpack(self._read_anywhere(address, 8))[0])
        value: int = _U64.unpack_from(page, start)[0]
        return value

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        """Return ``count`` unsigned 64-bit words. Raises Fault."""
        page, start = self._kept.get(address >> 12), address & _IN_PAGE
        if page is None or not 0 < 8 * count <= _PAGE - start:
            return super().words(address, count)
        return struct.unpack_from(f"<{count}Q", page, start)

    def _read_anywhere(self, address: int, size: int) -> bytes:
        """Read from the page cache, from the core, or from the files behind it.

        Reads within a page fill the cache; longer ones bypass it, because a search of all memory reads in large pieces.
        """
        start = address & _IN_PAGE
        if 0 <= size <= _PAGE - start:
            page = self._kept.get(address >> 12) or self._take(address >> 12)
            if page:
                return page[start : start + size]
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address + size <= self._ends[index] and 0 <= size <= MAX_READ:
            data = self._data.read(address + self._shifts[index], size)
            if len(data) == size:
                return data
        return self._read_slowly(address, size)

    def _take(self, number: int) -> bytes:
        """Read a page that the core stores completely into the cache; empty if it does not."""
        address = number * _PAGE
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address + _PAGE > self._ends[index]:
            return b""
        page = self._data.read(address + self._shifts[index], _PAGE)
        if len(page) < _PAGE:
            return b""
        if len(self._kept) >= _MOST_PAGES:
            self._kept.clear()
        self._kept[number] = page
        return page

    def _read_slowly(self, address: int, size: int) -> bytes:
        """Read across segment borders, and from the files behind pages that the core omits. Raises Fault."""
        if not 0 <= size <= MAX_READ or not 0 <= address < 1 << 64:
            raise Fault(address, size, "not an address, or not a size")
        parts = []
        at, left = address, size
        while left > 0:
            piece = self._piece(at, left)
            if isinstance(piece, str):
                raise Fault(address, size, piece if at == address else f"{piece}, from {at:#x} on")
            parts.append(piece)
            at += len(piece)
            left -= len(piece)
        return b"".join(parts)

    def _piece(self, address: int, size: int) -> Union[bytes, str]:
        """Return at least one byte from an address on; a string with the reason if there is none."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return self._from_file(address, size, False)
        segment = self._loads[index]
        if address < segment.vaddr + segment.filesz:
            return self._stored(address, size) or "cut off: the core is truncated"
        within = address < segment.vaddr + segment.memsz
        if index + 1 < len(self._starts):
            size = min(size, self._starts[index + 1] - address)
        return self._from_file(address, size, within and bool(segment.flags & PF_W))

    def mapped_file(self, address: int) -> Optional[MappedFile]:
        """Return the mapped file at an address; None if there is none."""
        index = bisect_right(self._file_starts, address) - 1
        if index >= 0 and address < self._files[index].end:
            return self._files[index]
        return None

    def _from_file(self, address: int, size: int, writable: bool) -> Union[bytes, str]:
        """Read from the file mapped at an address; a string with the reason if that is impossible."""
        mapped = self.mapped_file(address)
        if mapped is None:
            return "not in the core"
        if writable and self._drops_written:
            return f"left out of the core, and {mapped.path} has only its initial content"
        elf = self.elf(mapped.path)
        if elf is None:
            return f"left out of the core, and {mapped.path} cannot be used here"
        base = self._bases.get(mapped.path)
        link_address = None if base is None else address - base + elf.first_vaddr
        data = elf.loaded(mapped.offset + address - mapped.start, link_address, min(size, mapped.end - address))
        return data or f"past the end of {mapped.path}"

    # ------------------------------------------------------------------ files

    def base(self, path: str) -> Optional[int]:
        """Return the address of offset 0 of a mapped file; None if it is not mapped."""
        return self._bases.get(path)

    def is_program(self, path: str) -> bool:
        """Return whether a mapped file is a program or a library, as far as the core shows.

        It is if its first bytes in the core are ELF's magic, or if part of it was mapped executable. No stand-in is
        possible for other files: their contents are data.
        """
        base = self._bases.get(path)
        if base is not None and self._stored(base, len(ELF_MAGIC)) == ELF_MAGIC:
            return True
        ranges = [(f.start, f.end) for f in self._files if f.path == path]
        return any(s.flags & PF_X and start <= s.vaddr < end for s in self._loads for start, end in ranges)

    def build_id(self, path: str) -> Optional[str]:
        """Return the build-id on a mapped file's first page in the core; None if it is not there."""
        base = self._bases.get(path)
        page = self._stored(base, _PAGE) if base is not None else b""
        try:
            _k, _m, _e, phoff, phnum, _s, _n, _x = parse_header(page)
        except NotElf:
            return None
        for segment in parse_segments(page, phoff, phnum):
            if segment.type == PT_NOTE and base is not None:
                found = build_id_of(self._stored(base + segment.offset, min(segment.filesz, _PAGE)))
                if found:
                    return found
        return None

    def _stored(self, address: int, size: int) -> bytes:
        """Return what the core itself holds from an address on, at most ``size`` bytes of one segment."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._ends[index]:
            return b""
        at = address + self._shifts[index]
        return self._data[at : at + min(size, self._ends[index] - address)]

    def place_program(self, here: str) -> None:
        """Set the main program's file for a core without a list of mapped files, as qemu-user writes it.

        The file is used if it fits the auxiliary vector; the libraries then follow from its loader's list.
        """
        if not self._files:
            pieces = program_files(here, self.auxv)
            self._know_files(pieces)
            self._stand_ins[here] = here
            found = linked_files(self, [p.start for p in pieces if p.offset == 0], self._locate)
            self._know_files(sorted([*pieces, *found]))

    def has_stand_in(self, path: str) -> bool:
        """Return whether a file of this machine has been set for a mapped path."""
        return path in self._stand_ins

    def look_up(self, name: str) -> Optional[Elf]:
        """Open a file by a name that is not among the mappings; None if unavailable. The caller closes it."""
        try:
            here = self._locate(name)
            return opened(name, here) if here is not None else None
        except (OSError, NotElf, ValueError):
            return None

    def stand_in(self, path: str, here: str) -> None:
        """Set the file of this machine to use for a mapped path, if it is of the same build."""
        self._stand_ins[path] = here
        self._elves.pop(path, None)
        self.unusable.pop(path, None)

    def elf(self, path: str) -> Optional[Elf]:
        """Return the file on this machine behind a mapped path if it is the same build.

        None otherwise; ``unusable`` then has the reason.
        """
        if path not in self._elves:
            found = self._open(path)
            if isinstance(found, Unusable):
                self.unusable[path] = found
            self._elves[path] = found if isinstance(found, Elf) else None
        return self._elves[path]

    def _open(self, path: str) -> Union[Elf, Unusable]:
        """Return the file, or the reason why it cannot be used.

        A file that was deleted or replaced since counts only if its build-id is the core's.
        """
        wanted = self.build_id(path)
        name, replaced = path, False
        if path.endswith(DELETED) and path not in self._stand_ins:
            name, replaced = path[: -len(DELETED)], True
            if wanted is None:
                return Unusable("deleted or replaced while it ran, and the core does not show its build-id")
        try:
            here = self._stand_ins.get(path) or self._locate(name)
            if here is None:
                return Unusable("not found")
            elf = opened(name, here)
        except Unfit:
            return NO_ELF
        except OSError as exc:
            return Unusable(exc.strerror or "cannot be opened")
        except (NotElf, ValueError):
            return NO_ELF
        if elf.machine != self.machine:
            elf.close()
            machine = MACHINES.get(elf.machine, "another machine")
            return Unusable(f"a file of {machine}, not of the core's machine")
        if wanted and (elf.build_id or replaced) and wanted != elf.build_id:
            elf.close()
            return Unusable("a different build than in the core (build-ids differ)")
        return elf

    @property
    def descriptor(self) -> int:
        """Descriptor of the core, valid until ``close``.

        Other readers use it to read the same file, whatever its path leads to by then.
        """
        return self._data.descriptor

    @property
    def altered(self) -> List[str]:
        """Names of files (the core or mapped ones) that changed while they were read and may be inconsistent."""
        own = [self.path] if self._data.altered else []
        return own + sorted(path for path, elf in self._elves.items() if elf is not None and elf.data.altered)

    def close(self) -> None:
        """Close the core and all files opened for it; nothing can be read afterwards."""
        for elf in self._elves.values():
            if elf is not None:
                elf.close()
        self._elves.clear()
        self._kept.clear()
        self._data.close()
