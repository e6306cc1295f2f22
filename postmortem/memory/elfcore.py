"""An ELF core file: memory, threads with their registers, and the files that were mapped.

The core is mapped, never read whole. What a core leaves out because a file holds it (clean private file
mappings) is read from that file when its build-id is the one that the core shows. Layouts: <linux/elfcore.h>
(elf_prstatus, elf_prpsinfo) and fs/binfmt_elf.c (NT_FILE), unchanged since Linux 3.7; x86-64 registers:
<sys/user.h> user_regs_struct.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from .base import Fault, Image, MappedFile
from .elf import (
    EHDR,
    ET_CORE,
    MACHINES,
    PF_W,
    PT_LOAD,
    PT_NOTE,
    Elf,
    NotElf,
    build_id_of,
    iter_notes,
    map_file,
    parse_header,
    parse_segments,
)

NT_PRSTATUS, NT_PRPSINFO, NT_AUXV = 1, 3, 6
NT_FILE, NT_SIGINFO = 0x46494C45, 0x53494749

#: Indices in user_regs_struct of what the classification needs.
_X86_REGS = {
    "rbp": 4, "rbx": 5, "r10": 7, "r9": 8, "r8": 9, "rax": 10, "rcx": 11, "rdx": 12, "rsi": 13, "rdi": 14,
    "orig_rax": 15, "rip": 16, "rsp": 19, "fs_base": 21,
}  # fmt: skip
_X86_REG_COUNT = 27
_PRSTATUS_REGS = 112


class CoreThread(NamedTuple):
    tid: int
    signal: int  # pr_cursig: the signal that ended the process, in its first thread
    regs: Dict[str, int]


class ElfCore(Image):
    """Raises OSError or NotElf (with what it is instead) from the constructor. A core cut short opens: its
    missing parts fault.

    ``locate`` maps a path as the core names it to a path on this machine (a sysroot); None keeps it.
    """

    def __init__(self, path: str, locate: Optional[Callable[[str], Optional[str]]] = None) -> None:
        self.path = path
        self._locate = locate or (lambda name: name)
        self._data = map_file(path)
        kind, self.machine, _entry, phoff, phnum, _s, _n, _x = parse_header(self._data[: EHDR.size])
        if kind != ET_CORE:
            raise NotElf("an ELF file, but a program or library, not a core")
        segments = parse_segments(self._data, phoff, phnum)
        loads = sorted((s for s in segments if s.type == PT_LOAD and s.memsz), key=lambda s: s.vaddr)
        self._loads = loads
        self._starts = [s.vaddr for s in loads]
        self.threads: List[CoreThread] = []
        self._files: List[MappedFile] = []
        self.auxv: Dict[int, int] = {}
        self.argv = ""
        self.pid: Optional[int] = None
        self.ppid: Optional[int] = None
        self.siginfo: Optional[Tuple[int, int, int]] = None  # signal, code, errno or sender
        self.fault_address: Optional[int] = None
        for segment in segments:
            if segment.type == PT_NOTE:
                self._read_notes(self._data[segment.offset : segment.offset + segment.filesz])
        self._file_starts = [f.start for f in self._files]
        self._elves: Dict[str, Optional[Elf]] = {}
        #: Files that were needed and are not usable here: path → why.
        self.unusable: Dict[str, str] = {}
        self.truncated = any(s.offset + s.filesz > len(self._data) for s in segments)

    @property
    def files(self) -> List[MappedFile]:
        return self._files

    @property
    def writable(self) -> List[Tuple[int, int]]:
        return [(s.vaddr, s.vaddr + s.memsz) for s in self._loads if s.flags & PF_W]

    @property
    def machine_name(self) -> str:
        return MACHINES.get(self.machine, f"ELF machine {self.machine}")

    # ------------------------------------------------------------------ notes

    def _read_notes(self, data: bytes) -> None:
        for name, kind, desc in iter_notes(data):
            if name not in (b"CORE", b"LINUX"):
                continue
            if kind == NT_PRSTATUS:
                self._read_prstatus(desc)
            elif kind == NT_PRPSINFO and len(desc) >= 136:
                self.pid, self.ppid = struct.unpack_from("<ii", desc, 24)
                self.argv = desc[56:136].split(b"\0")[0].decode("utf-8", "backslashreplace").strip()
            elif kind == NT_AUXV:
                self.auxv = dict(struct.iter_unpack("<QQ", desc[: len(desc) // 16 * 16]))
            elif kind == NT_FILE:
                self._read_files(desc)
            elif kind == NT_SIGINFO and len(desc) >= 24 and self.siginfo is None:
                signo, errno, code = struct.unpack_from("<iii", desc)
                self.siginfo = (signo, code, errno)
                self.fault_address = struct.unpack_from("<Q", desc, 16)[0]

    def _read_prstatus(self, desc: bytes) -> None:
        if len(desc) < 36:
            return
        signal, tid = struct.unpack_from("<h", desc, 12)[0], struct.unpack_from("<i", desc, 32)[0]
        regs: Dict[str, int] = {}
        if MACHINES.get(self.machine) == "x86-64" and len(desc) >= _PRSTATUS_REGS + 8 * _X86_REG_COUNT:
            values = struct.unpack_from(f"<{_X86_REG_COUNT}Q", desc, _PRSTATUS_REGS)
            regs = {name: values[index] for name, index in _X86_REGS.items()}
        self.threads.append(CoreThread(tid, signal, regs))

    def _read_files(self, desc: bytes) -> None:
        if len(desc) < 16:
            return
        count, page = struct.unpack_from("<QQ", desc)
        if 16 + count * 24 > len(desc):
            return
        names = desc[16 + count * 24 :].split(b"\0")
        for index in range(min(count, len(names))):
            start, end, offset = struct.unpack_from("<QQQ", desc, 16 + index * 24)
            path = os.fsdecode(names[index])
            self._files.append(MappedFile(start, end, offset * page, path))
        self._files.sort()

    # ------------------------------------------------------------------ memory

    def read(self, address: int, size: int) -> bytes:
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            segment = self._loads[index]
            within = address - segment.vaddr
            if within + size <= segment.filesz:
                at = segment.offset + within
                data = self._data[at : at + size]
                if len(data) == size:
                    return data
                raise Fault(address, size, "cut off: the core is truncated")
        return self._read_slowly(address, size)

    def _read_slowly(self, address: int, size: int) -> bytes:
        """Across segment borders, and from the files behind pages that the core left out."""
        if size < 0 or address < 0:
            raise Fault(address, size, "not an address")
        parts = []
        while size > 0:
            piece = self._piece(address, size)
            parts.append(piece)
            address += len(piece)
            size -= len(piece)
        return b"".join(parts)

    def _piece(self, address: int, size: int) -> bytes:
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._loads[index].vaddr + self._loads[index].memsz:
            return self._from_file(address, size)
        segment = self._loads[index]
        within = address - segment.vaddr
        if within < segment.filesz:
            at = segment.offset + within
            data = self._data[at : at + min(size, segment.filesz - within)]
            if not data:
                raise Fault(address, size, "cut off: the core is truncated")
            return data
        return self._from_file(address, min(size, segment.memsz - within))

    def mapped_file(self, address: int) -> Optional[MappedFile]:
        index = bisect_right(self._file_starts, address) - 1
        if index >= 0 and address < self.files[index].end:
            return self.files[index]
        return None

    def _from_file(self, address: int, size: int) -> bytes:
        mapped = self.mapped_file(address)
        if mapped is None:
            raise Fault(address, size)
        elf = self.elf(mapped.path)
        if elf is None:
            raise Fault(address, size, f"left out of the core, and {mapped.path} is not usable here")
        size = min(size, mapped.end - address)
        data = elf.bytes_at(mapped.offset + address - mapped.start, size)
        if data is None:
            raise Fault(address, size, f"past the end of {mapped.path}")
        return data

    # ------------------------------------------------------------------ files

    def base(self, path: str) -> Optional[int]:
        """Where offset 0 of a mapped file lies."""
        return next((f.start for f in self.files if f.path == path and f.offset == 0), None)

    def build_id(self, path: str) -> Optional[str]:
        """The build-id that the core itself shows for a mapped file (its first page), or None."""
        base = self.base(path)
        if base is None:
            return None
        index = bisect_right(self._starts, base) - 1
        if index < 0 or not self._loads[index].filesz or base != self._loads[index].vaddr:
            return None
        page = self._data[self._loads[index].offset : self._loads[index].offset + min(self._loads[index].filesz, 4096)]
        try:
            _k, _m, _e, phoff, phnum, _s, _n, _x = parse_header(page)
        except NotElf:
            return None
        for segment in parse_segments(page, phoff, phnum):
            if segment.type == PT_NOTE and segment.offset + segment.filesz <= len(page):
                found = build_id_of(page[segment.offset : segment.offset + segment.filesz])
                if found:
                    return found
        return None

    def elf(self, path: str) -> Optional[Elf]:
        """The file on this machine behind a mapped path, if it is the same file; None otherwise, the reason
        then stands in ``unusable``."""
        if path not in self._elves:
            self._elves[path] = self._open(path)
        return self._elves[path]

    def _open(self, path: str) -> Optional[Elf]:
        here = self._locate(path)
        if here is None:
            self.unusable[path] = "not found"
            return None
        try:
            elf = Elf(here)
        except OSError as exc:
            self.unusable[path] = exc.strerror or "cannot be opened"
            return None
        except (NotElf, ValueError):
            self.unusable[path] = "not an ELF file"
            return None
        wanted = self.build_id(path)
        if wanted and elf.build_id and wanted != elf.build_id:
            self.unusable[path] = "another build than the one in the core (build-ids differ)"
            return None
        return elf
