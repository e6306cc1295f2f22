"""Notes of a core: threads with their registers, the process, and the mapped files.

gdb's gcore writes the same notes in another order, at the end of the file, and one NT_SIGINFO per thread
(gdb/linux-tdep.c, gdb 13).

Sources, unchanged since Linux 3.7:
- <linux/elfcore.h>: elf_prstatus, elf_prpsinfo.
- fs/binfmt_elf.c: NT_FILE.
- Registers: ``arch.registersets``.
"""

from __future__ import annotations

import os
import struct
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from ..arch.registersets import EM_AARCH64, LAYOUTS, THREAD_POINTER
from ..arch.siginfo import SigInfo, parse
from .base import MappedFile
from .elf import MAX_NOTE, Blob, iter_notes

NT_PRSTATUS, NT_PRPSINFO, NT_AUXV = 1, 3, 6
NT_FILE, NT_SIGINFO, NT_ARM_TLS = 0x46494C45, 0x53494749, 0x401
#: Most notes: eight per thread for 100,000 threads; a hostile core may hold any number of empty ones.
MAX_NOTES = 1_000_000
#: Most notes of unknown origin: more of them mean that this is no list of notes.
MAX_FOREIGN = 1_000
#: Most bytes of all notes; NT_FILE alone may have MAX_NOTE.
MAX_BYTES = 2 * MAX_NOTE

_PRSTATUS_REGS = 112


class CoreThread(NamedTuple):
    """A thread of a core: its TID, its current signal, and its registers by name."""

    tid: int
    signal: int  # pr_cursig: in the first thread, the signal that ended the process
    regs: Dict[str, int]


class Notes:
    """Contents of a core's PT_NOTE segments; damaged and cut-off notes are left out."""

    def __init__(self, machine: int) -> None:
        self._machine = machine
        self._left, self._foreign, self._room = MAX_NOTES, MAX_FOREIGN, MAX_BYTES
        self.threads: List[CoreThread] = []
        self._thread: Optional[CoreThread] = None  # thread to which the current notes belong
        self._known: Set[int] = set()
        self.files: List[MappedFile] = []
        self.auxv: Dict[int, int] = {}
        self.argv = ""
        self.pid: Optional[int] = None
        self.ppid: Optional[int] = None
        #: Real user ID in the process's own user namespace (fs/binfmt_elf.c, fill_psinfo).
        self.uid: Optional[int] = None
        self.siginfo: Optional[Tuple[int, int, int]] = None  # signal, code, errno
        self.fault_address: Optional[int] = None
        self.cause: Optional[SigInfo] = None

    def add(self, data: Blob, start: int, end: int) -> None:
        """Read the notes between two offsets of ``data``."""
        if min(self._left, self._foreign, self._room) < 0:
            return
        for name, kind, desc in iter_notes(data, start, end):
            known = name in (b"CORE", b"LINUX")
            self._left -= 1
            self._foreign -= not known
            self._room -= len(desc)
            if min(self._left, self._foreign, self._room) < 0:
                break
            if known:
                self._note(kind, desc)
        self.files.sort()

    def _note(self, kind: int, desc: bytes) -> None:
        """Decode one note of the kernel's by its type."""
        if kind == NT_PRSTATUS:
            self._prstatus(desc)
        elif kind == NT_PRPSINFO and len(desc) >= 136:
            self.uid, _gid, self.pid, self.ppid = struct.unpack_from("<IIii", desc, 16)
            self.argv = desc[56:136].split(b"\0")[0].decode("utf-8", "backslashreplace").strip()
        elif kind == NT_AUXV:
            self.auxv = dict(struct.iter_unpack("<QQ", desc[: len(desc) // 16 * 16]))
        elif kind == NT_FILE:
            self._files(desc)
        elif kind == NT_ARM_TLS and len(desc) >= 8 and self._thread and self._machine == EM_AARCH64:
            self._thread.regs[THREAD_POINTER] = struct.unpack_from("<Q", desc)[0]
        elif kind == NT_SIGINFO and len(desc) >= 24 and self.siginfo is None:
            signo, errno, code = struct.unpack_from("<iii", desc)
            self.siginfo = (signo, code, errno)
            self.fault_address = struct.unpack_from("<Q", desc, 16)[0]
            self.cause = parse(desc)

    def _prstatus(self, desc: bytes) -> None:
        """Add a thread from NT_PRSTATUS."""
        if len(desc) < 36:
            return
        signal, tid = struct.unpack_from("<h", desc, 12)[0], struct.unpack_from("<i", desc, 32)[0]
        regs: Dict[str, int] = {}
        layout = LAYOUTS.get(self._machine)
        if layout is not None and len(desc) >= _PRSTATUS_REGS + 8 * layout.words:
            values = struct.unpack_from(f"<{layout.words}Q", desc, _PRSTATUS_REGS)
            regs = {name: values[index] for name, index in layout.places.items()}
        self._thread = CoreThread(tid, signal, regs)
        if tid not in self._known:  # a duplicate in a damaged core: the notes that follow it are discarded with it
            self._known.add(tid)
            self.threads.append(self._thread)

    def _files(self, desc: bytes) -> None:
        """Add the mapped files from NT_FILE."""
        if len(desc) < 16:
            return
        count, page = struct.unpack_from("<QQ", desc)
        if 16 + count * 24 > len(desc):
            return
        names = desc[16 + count * 24 :].split(b"\0")
        for index in range(min(count, len(names))):
            start, end, offset = struct.unpack_from("<QQQ", desc, 16 + index * 24)
            if start < end:
                self.files.append(MappedFile(start, end, offset * page, os.fsdecode(names[index])))
