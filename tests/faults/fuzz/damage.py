"""What is done to a core: bytes laid over it and an earlier end. It is laid over what is read of the file or, for gdb, over a
sparse copy."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from postmortem.foreign.files import FileView, open_regular
from postmortem.memory import NotElf, elfcore
from postmortem.memory.elf import EHDR, NHDR, PHDR, PT_LOAD, PT_NOTE, Segment, open_elf, parse_header, parse_segments

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
        segments = parse_segments(data, phoff, phnum)  # type: ignore[arg-type] # a map is read as bytes are
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


class _Damaged(FileView):
    """A file that reads as damaged."""

    def __init__(self, descriptor: int, damage: Damage) -> None:
        super().__init__(descriptor)
        self._patches = damage.patches
        if damage.end is not None:
            self._size = min(self._size, damage.end)

    def read(self, start: int, size: int) -> bytes:
        data = super().read(start, size)
        for at, patch in self._patches:
            low, high = max(at, start), min(at + len(patch), start + len(data))
            if low < high:
                data = data[: low - start] + patch[low - at : high - at] + data[high - start :]
        return data


def lay_over(core: Path, damage: Damage) -> None:
    """From now on, in this process, the core reads as damaged; the file stays as it is."""

    def damaged(path: str, descriptor: Optional[int] = None) -> FileView:
        if path != str(core):
            return open_elf(path, descriptor)
        view = _Damaged(open_regular(path), damage)
        if len(view) < EHDR.size:
            raise NotElf("too short for an ELF header")
        return view

    setattr(elfcore, "open_elf", damaged)  # noqa: B010 - a plain assignment is refused: it is imported there


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
