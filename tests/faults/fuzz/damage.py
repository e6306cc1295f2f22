"""What is done to a core: bytes laid over it and an earlier end. It is laid over the mapped file, page by page as the
kernel copies on write, or, for gdb, over a sparse copy."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from postmortem.memory import NotElf, elfcore
from postmortem.memory.elf import EHDR, NHDR, PHDR, PT_LOAD, PT_NOTE, Segment, map_file, parse_header, parse_segments

from .bases import stored_ranges


@dataclass
class Damage:
    """``patches``: (offset into the file, bytes); ``end``: bytes that are left of it, None for all. ``said``: in words."""

    patches: List[Tuple[int, bytes]] = field(default_factory=list)
    end: Optional[int] = None
    said: List[str] = field(default_factory=list)

    def to_json(self) -> Dict[str, Any]:
        return {"patches": [[at, data.hex()] for at, data in self.patches], "end": self.end, "said": self.said}

    @classmethod
    def from_json(cls, found: Dict[str, Any]) -> Damage:
        return cls([(at, bytes.fromhex(data)) for at, data in found["patches"]], found["end"], found["said"])


class Map(NamedTuple):
    """Where things lie in a clean core's file."""

    size: int
    segments: List[Segment]
    loads: List[Segment]  # that have bytes, by address
    notes: List[range]  # offsets of whole notes, header included
    headers: int  # everything before the first byte of memory or notes
    stored: List[range]  # of the loads, without holes

    def offset(self, address: int) -> Optional[int]:
        """Where in the file an address lies; None when the core does not hold it."""
        for load in self.loads:
            if load.vaddr <= address < load.vaddr + load.filesz:
                return load.offset + address - load.vaddr
        return None


def map_of(core: Path) -> Map:
    with core.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as data:
        _t, _m, _e, phoff, phnum, _s, _n, _x = parse_header(data[: EHDR.size])
        segments = parse_segments(data, phoff, phnum)
        notes = [note for s in segments if s.type == PT_NOTE for note in _notes(data, s)]
        size = len(data)
    loads = sorted((s for s in segments if s.type == PT_LOAD and s.filesz), key=lambda s: s.vaddr)
    stored = [
        range(max(part.start, load.offset), min(part.stop, load.offset + load.filesz))
        for part in stored_ranges(core)
        for load in loads
        if max(part.start, load.offset) < min(part.stop, load.offset + load.filesz)
    ]
    return Map(size, segments, loads, notes, EHDR.size + PHDR.size * len(segments), stored)


def _notes(data: mmap.mmap, segment: Segment) -> List[range]:
    found, at, end = [], segment.offset, segment.offset + segment.filesz
    while at + NHDR.size <= end:
        namesz, descsz, _kind = NHDR.unpack_from(data, at)
        after = at + NHDR.size + (namesz + 3 & ~3) + (descsz + 3 & ~3)
        found.append(range(at, min(after, end)))
        at = after
    return found


def lay_over(core: Path, damage: Damage) -> None:
    """From now on, in this process, the core reads as damaged; the file stays as it is."""
    plain = map_file

    def damaged(path: str) -> mmap.mmap:
        if path != str(core):
            return plain(path)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            kept = size if damage.end is None else min(size, damage.end)
            if kept < EHDR.size:
                raise NotElf("too short for an ELF header")
            data = mmap.mmap(fd, kept, access=mmap.ACCESS_COPY)
        finally:
            os.close(fd)
        for at, patch in damage.patches:
            part = patch[: max(0, kept - at)]
            data[at : at + len(part)] = part
        return data

    setattr(elfcore, "map_file", damaged)  # noqa: B010 - a plain assignment is refused: it is imported there


def write_damaged(core: Path, damage: Damage, to: Path) -> None:
    """A sparse copy with the damage in it."""
    size = core.stat().st_size
    kept = size if damage.end is None else min(size, damage.end)
    with core.open("rb") as source, to.open("wb") as copy:
        copy.truncate(kept)
        for part in stored_ranges(core):
            for at in range(part.start, min(part.stop, kept), 1 << 20):
                data = os.pread(source.fileno(), min(1 << 20, part.stop - at, kept - at), at)
                os.pwrite(copy.fileno(), data, at)
        for at, patch in damage.patches:
            if at < kept:
                os.pwrite(copy.fileno(), patch[: kept - at], at)
