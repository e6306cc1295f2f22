"""A seed → damage. Half of it goes exactly where the reader reads; the rest breaks headers, notes, pages, the end."""

from __future__ import annotations

import random
import struct
from mmap import mmap
from typing import Callable, Dict, List, Tuple

from postmortem.memory.elf import PHDR, PN_XNUM, PT_LOAD

from .damage import Damage, Map
from .reads import Slot, Trace

_PAGE = 4096
_TOP = (1 << 64) - 1
#: Words that lengths, counts and pointers should never be, and such as lie at the reader's own bounds.
EXTREMES = (
    0, 1, 2, 7, 8, 0xFF, 0x1000, 4096, 10_000, 99_999, 100_000, 100_001, 400_000, 999_999, 1_000_000, 8 << 20,
    64 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, 1 << 47, (1 << 48) - 8, 1 << 62, (1 << 63) - 1, 1 << 63,
    _TOP - 7, _TOP,
)  # fmt: skip


class Mutator:
    """Makes damage for one clean core. The same seed, core and trace give the same damage."""

    def __init__(self, layout: Map, trace: Trace, data: mmap) -> None:
        self._map = layout
        self.trace = trace
        self._labels = sorted(trace.slots)
        self._data = data  # the clean core

    def byte_at(self, offset: int) -> int:
        return self._data[offset]

    def _word_at(self, offset: int) -> int:
        return int.from_bytes(self._data[offset : offset + 8], "little")

    def damage(self, seed: int) -> Damage:
        """One to four kinds of damage at once; the first alone in most cases, so that nothing hides behind another."""
        rng = random.Random(seed)
        made = Damage()
        for _ in range(rng.choices((1, 2, 3, 4), (6, 2, 1, 1))[0]):
            kind = rng.choices(list(KINDS), [weight for weight, _make in KINDS.values()])[0]
            patches, said = KINDS[kind][1](self, rng, made)
            made.patches += patches
            made.said.append(f"{kind}: {said}")
        return made

    # ------------------------------------------------------------------ where the reader reads

    def _slots(self, rng: random.Random) -> Tuple[str, List[Slot]]:
        """Any line of the reader is as likely as any other, however often it reads."""
        label = rng.choice(self._labels)
        return label, self.trace.slots[label]

    def _word(self, rng: random.Random, slot: Slot) -> Slot:
        """One word of a read that may be larger."""
        if slot.size <= 8:
            return slot
        at = 8 * rng.randrange(slot.size // 8)
        return Slot(slot.address + at, slot.offset + at, 8)

    def _value(self, rng: random.Random, slot: Slot) -> int:
        """What to write instead: an extreme, itself, its own object, somebody else's, garbage, almost the same."""
        choice = rng.randrange(9)
        if choice <= 2:
            return rng.choice(EXTREMES)
        if choice == 3:
            return slot.address - 8 * rng.choice((0, 0, 1, 2, 3, rng.randrange(64)))
        if choice == 4:
            return rng.choice(self.trace.pointers)
        if choice == 5:
            load = rng.choice(self._map.loads)
            return load.vaddr + rng.choice((0, load.filesz - 8, load.filesz, rng.randrange(load.filesz) & ~7))
        if choice == 6:
            return rng.getrandbits(rng.choice((8, 16, 32, 47, 64)))
        known = self._word_at(slot.offset)
        return (known ^ 1 << rng.randrange(64) if choice == 7 else known + rng.choice((-16, -8, -1, 1, 8, 16))) & _TOP

    def overwrite(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        """One word that the reader reads, or a few of one line."""
        label, slots = self._slots(rng)
        patches = []
        for slot in rng.sample(slots, min(len(slots), rng.choice((1, 1, 1, 2, 5)))):
            word = self._word(rng, slot)
            patches.append((word.offset, struct.pack("<Q", self._value(rng, word))[: word.size]))
        return patches, label

    def everywhere(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        """The same word in all that a line reads: every dict is huge, every previous frame the same one."""
        label, slots = self._slots(rng)
        within = 8 * rng.randrange(max(1, slots[0].size // 8))
        value = struct.pack("<Q", self._value(rng, self._word(rng, rng.choice(slots))))
        patches = [(slot.offset + within, value[: min(8, slot.size)]) for slot in slots if within < slot.size]
        return patches, f"{label} +{within}"

    def circle(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        """A word gets the value that the same line reads elsewhere: of a linked list's links, that makes a ring, of
        short and long period, or one that does not lead back to its start."""
        label, slots = self._slots(rng)
        within = 8 * rng.randrange(max(1, slots[0].size // 8))
        usable = [slot for slot in slots if slot.size >= within + 8]
        if not usable:
            return [], label
        patches = []
        for _ in range(rng.choice((1, 1, 3))):
            target, source = rng.choice(usable), rng.choice(usable)
            value = rng.choice((self._word_at(source.offset + within), source.address))
            patches.append((target.offset + within, struct.pack("<Q", value)))
        return patches, f"{label} +{within}"

    def scramble(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        """Whole reads: tables of lines and exceptions, strings, structures, in every possible value."""
        label, slots = self._slots(rng)
        patches = []
        for slot in rng.sample(slots, min(len(slots), rng.choice((1, 3, len(slots))))):
            fill = rng.choice((None, None, 0, 0x3F, 0x40, 0x7F, 0x80, 0xFF))
            size = min(slot.size, _PAGE)
            data = bytes(rng.getrandbits(8) for _ in range(size)) if fill is None else bytes([fill]) * size
            patches.append((slot.offset, data))
        return patches, label

    # ------------------------------------------------------------------ anywhere

    def flip(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        count = rng.choice((1, 20, 400))
        return [(self.anywhere(rng), bytes([rng.getrandbits(8)])) for _ in range(count)], f"{count} bytes"

    def anywhere(self, rng: random.Random) -> int:
        """The offset of any stored byte of memory, each as likely."""
        at = rng.randrange(sum(len(part) for part in self._map.stored))
        for part in self._map.stored:
            if at < len(part):
                return part[at]
            at -= len(part)
        raise AssertionError("beyond the end")

    def pages(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        """Pages that the reader reads from are gone, or are another's."""
        patches = []
        for _ in range(rng.choice((1, 1, 4, 32))):
            _label, slots = self._slots(rng)
            at = rng.choice(slots).offset & ~(_PAGE - 1)
            other = rng.choice(self._slots(rng)[1]).offset & ~(_PAGE - 1)
            patches.append((at, rng.choice((bytes(_PAGE), self._data[other : other + _PAGE], b"\xff" * _PAGE))))
        return patches, f"{len(patches)}"

    # ------------------------------------------------------------------ headers and notes

    def elf_header(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        at, size = rng.choice(((4, 1), (5, 1), (16, 2), (18, 2), (32, 8), (40, 8), (54, 2), (56, 2), (60, 2), (0, 64)))
        value = rng.choice((*EXTREMES, PN_XNUM, rng.getrandbits(64), self._map.size, self._map.size - 56))
        data = bytes(rng.getrandbits(8) for _ in range(64)) if size == 64 else struct.pack("<Q", value)[:size]
        return [(at, data)], f"+{at}"

    def program_headers(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        """A field of some, or two swapped; the fields: <elf.h>, Elf64_Phdr."""
        patches = []
        count = len(self._map.segments)
        for _ in range(rng.choice((1, 1, 3, 20))):
            index = rng.randrange(count)
            start = 64 + index * PHDR.size
            if rng.random() < 0.15:
                other = self._map.segments[rng.randrange(count)]
                data = PHDR.pack(other.type, other.flags, other.offset, other.vaddr, 0, other.filesz, other.memsz, 0)
                patches.append((start, data))
                continue
            at, size = rng.choice(((0, 4), (4, 4), (8, 8), (16, 8), (32, 8), (40, 8)))
            load = rng.choice(self._map.loads)
            value = rng.choice((*EXTREMES, load.vaddr, load.offset, load.filesz, self._map.size, rng.getrandbits(48)))
            value = rng.choice((value, PT_LOAD, 4)) if at == 0 else value
            patches.append((start + at, struct.pack("<Q", value)[:size]))
        return patches, f"{len(patches)}"

    def notes(self, rng: random.Random, _so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        """A note's sizes or type, a word of it (registers, counts and bounds of NT_FILE, auxv), or its bytes."""
        if not self._map.notes:
            return [], "none"
        patches = []
        for _ in range(rng.choice((1, 1, 3, 10))):
            note = rng.choice(self._map.notes)
            choice = rng.randrange(4)
            if choice == 0:
                at = note.start + rng.choice((0, 4, 8))
                patches.append((at, struct.pack("<I", rng.choice(EXTREMES) & 0xFFFFFFFF)))
            elif choice == 1:
                at = min(note.start + 20 + rng.choice((0, 8, 16)), note.stop - 8)
                patches.append((at, struct.pack("<Q", rng.choice(EXTREMES))))
            elif choice == 2:
                at = note.start + 20 + 8 * rng.randrange(max(1, (len(note) - 20) // 8))
                value = rng.choice((rng.choice(EXTREMES), rng.choice(self.trace.pointers), rng.getrandbits(64)))
                patches.append((at, struct.pack("<Q", value)))
            else:
                at = rng.randrange(note.start, note.stop)
                patches.append(
                    (at, bytes(rng.getrandbits(8) for _ in range(min(rng.choice((1, 8, 64)), note.stop - at))))
                )
        return patches, f"{len(patches)}"

    def truncate(self, rng: random.Random, so_far: Damage) -> Tuple[List[Tuple[int, bytes]], str]:
        ends = (
            rng.randrange(self._map.size),
            rng.randrange(self._map.headers + 1),
            rng.choice(self._map.loads).offset,
            rng.choice(self._slots(rng)[1]).offset + rng.randrange(16),
        )
        so_far.end = min(rng.choice(ends), self._map.size if so_far.end is None else so_far.end)
        return [], f"at {so_far.end}"


#: Kind → how likely, and what makes it.
KINDS: Dict[str, Tuple[int, Callable[..., Tuple[List[Tuple[int, bytes]], str]]]] = {
    "overwrite": (26, Mutator.overwrite),
    "everywhere": (14, Mutator.everywhere),
    "circle": (14, Mutator.circle),
    "scramble": (12, Mutator.scramble),
    "flip": (5, Mutator.flip),
    "pages": (7, Mutator.pages),
    "elf header": (3, Mutator.elf_header),
    "program headers": (7, Mutator.program_headers),
    "notes": (7, Mutator.notes),
    "truncate": (5, Mutator.truncate),
}
