"""The format of an ELF core file: notes, program headers, file offsets.

Layouts: <linux/elfcore.h> (elf_prstatus, elf_prpsinfo), fs/binfmt_elf.c (NT_FILE), <elf.h>.
"""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ..procfs.parsers import Mapping
from .pages import PAGE
from .segments import Segment
from .stop import Registers

#: uname's machine → e_machine.
MACHINES = {"x86_64": 62, "aarch64": 183}
#: Most PT_LOAD headers: e_phnum has 16 bits, of which 0xFFFF means PN_XNUM, and one header is PT_NOTE. By default a
#: process has at most 65530 mappings.
MAX_SEGMENTS = 0xFFFE - 1

_NT_PRSTATUS, _NT_PRPSINFO, _NT_AUXV = 1, 3, 6
_NT_FPREGSET = 2
_NT_SIGINFO, _NT_FILE = 0x53494749, 0x46494C45
_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_ET_CORE, _PT_LOAD, _PT_NOTE = 4, 1, 4


class Identity(NamedTuple):
    """The content of NT_PRPSINFO and NT_PRSTATUS that describes the process."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    uid: int
    gid: int
    state: str
    nice: int
    flags: int
    comm: bytes
    args: bytes  # NUL-separated, as /proc/PID/cmdline


def notes(who: Identity, threads: Sequence[Registers], auxv: bytes, mappings: Sequence[Mapping]) -> bytes:
    """Return the content of PT_NOTE, in the kernel's order: first thread, process, other threads."""
    blocks: List[bytes] = []
    for position, thread in enumerate(threads):
        blocks.append(_note(b"CORE", _NT_PRSTATUS, _prstatus(who, thread)))
        if position == 0:
            blocks.append(_note(b"CORE", _NT_PRPSINFO, _prpsinfo(who)))
            blocks.append(_note(b"CORE", _NT_SIGINFO, bytes(128)))  # no signal: the process did not die
            blocks.append(_note(b"CORE", _NT_AUXV, auxv))
            blocks.append(_note(b"CORE", _NT_FILE, _files(mappings)))
        for kind, content in thread.sets.items():
            blocks.append(_note(b"CORE" if kind == _NT_FPREGSET else b"LINUX", kind, content))
    return b"".join(blocks)


def layout(segments: Sequence[Segment], notes_size: int) -> Tuple[Dict[int, int], int]:
    """Return (start of each stored segment → its offset in the file, size of the file)."""
    position = _aligned(_EHDR.size + (len(segments) + 1) * _PHDR.size + notes_size)
    offsets = {}
    for segment in segments:
        if segment.stored:
            offsets[segment.start] = position
            position += segment.stored
    return offsets, position


def head(machine: str, segments: Sequence[Segment], note_data: bytes, offsets: Dict[int, int]) -> bytes:
    """Return everything before the memory: the ELF header, the program headers, the notes."""
    count = len(segments) + 1
    first_note = _EHDR.size + count * _PHDR.size
    ident = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)  # 64 bits, little endian, version 1, System V
    parts = [
        _EHDR.pack(ident, _ET_CORE, MACHINES[machine], 1, 0, _EHDR.size, 0, 0, _EHDR.size, _PHDR.size, count, 0, 0, 0),
        _PHDR.pack(_PT_NOTE, 0, first_note, 0, 0, len(note_data), 0, 4),
    ]
    end_of_head = _aligned(first_note + len(note_data))
    for segment in segments:
        offset = offsets.get(segment.start, end_of_head) if segment.stored else end_of_head
        size = segment.end - segment.start
        parts.append(_PHDR.pack(_PT_LOAD, segment.flags, offset, segment.start, 0, segment.stored, size, PAGE))
    parts.append(note_data)
    return b"".join(parts)


def _note(name: bytes, kind: int, content: bytes) -> bytes:
    padded = name + b"\0" * (-len(name) % 4 or 4)
    return struct.pack("<III", len(name) + 1, len(content), kind) + padded + content + b"\0" * (-len(content) % 4)


def _prstatus(who: Identity, thread: Registers) -> bytes:
    head_part = struct.pack("<iiihxxQQiiii", 0, 0, 0, 0, 0, 0, thread.tid, who.ppid, who.pgid, who.sid)
    times = bytes(64)  # user, system, and the children's: window.json has more precise times
    return head_part + times + thread.general + struct.pack("<ixxxx", 1 if _NT_FPREGSET in thread.sets else 0)


def _prpsinfo(who: Identity) -> bytes:
    number = "RSDTZW".find(who.state)
    return struct.pack(
        "<BcBbxxxxQIIiiii16s80s",
        max(number, 0),
        who.state.encode("ascii")[:1],
        who.state == "Z",
        max(-128, min(127, who.nice)),
        who.flags,
        who.uid & 0xFFFFFFFF,
        who.gid & 0xFFFFFFFF,
        who.pid,
        who.ppid,
        who.pgid,
        who.sid,
        who.comm[:15],
        who.args.replace(b"\0", b" ").rstrip()[:79],
    )


def _files(mappings: Sequence[Mapping]) -> bytes:
    mapped = [m for m in mappings if m.name.startswith(b"/") and m.inode]
    parts = [struct.pack("<QQ", len(mapped), PAGE)]
    parts += [struct.pack("<QQQ", m.start, m.end, m.offset // PAGE) for m in mapped]
    parts += [m.name + b"\0" for m in mapped]
    return b"".join(parts)


def _aligned(position: int) -> int:
    return -(-position // PAGE) * PAGE
