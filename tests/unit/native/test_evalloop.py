"""The loop that a compiler split, found in a synthetic program without its symbol."""

from __future__ import annotations

import struct
from typing import Dict, List, Optional, Tuple

import pytest

from postmortem.evidence import NativeFrame
from postmortem.memory import Elf, Fault, Image, MappedFile, Segments
from postmortem.memory.elf import Section
from postmortem.native.evalloop import LOOP, find_loop, named

PROGRAM = "/usr/bin/python3.14"
BIAS = 0x10_0000
#: Link-time addresses: the exported part, another function, what was split off, and whatever is behind it.
HOT, OTHER, COLD, BEHIND = 0x2000, 0x3000, 0x8000, 0x18000
HEADER, TABLE = 0x20000, 0x30000


class _Elf:
    """As much of an ELF file as is asked for."""

    def __init__(self, starts: Tuple[int, ...]) -> None:
        self.first_vaddr = 0
        rows = b"".join(struct.pack("<ii", start - HEADER, 0) for start in starts)
        self.data = struct.pack("<BBBBiI", 1, 0x1B, 0x03, 0x3B, 0, len(starts)) + rows
        self.sections = {
            ".eh_frame_hdr": Section(".eh_frame_hdr", 1, HEADER, 0, len(self.data), 0, 0),
            ".rodata": Section(".rodata", 1, TABLE, 0, 0x2000, 0, 0),
        }

    def section(self, name: str) -> Optional[Section]:
        return self.sections.get(name)

    def table(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]

    def symbol(self, name: str) -> Optional[int]:
        return HOT if name == LOOP else None


class _Process(Image):
    def __init__(self, jump_to: int, targets: int) -> None:
        code = b"\x90" * 100 + b"\xe9" + struct.pack("<i", jump_to - (HOT + 105))
        self.parts = Segments({BIAS + HOT: code.ljust(0x1000, b"\xcc"), BIAS + TABLE: b"\0" * 0x2000})
        self.parts.put_words(BIAS + TABLE + 0x800, *(BIAS + COLD + 16 * n for n in range(targets)))
        self.file: object = _Elf((HOT, OTHER, COLD, BEHIND))

    def read(self, address: int, size: int) -> bytes:
        return self.parts.read(address, size)

    @property
    def files(self) -> List[MappedFile]:
        return [MappedFile(BIAS, BIAS + 0x40000, 0, PROGRAM)]

    def elf(self, path: str) -> Optional[Elf]:
        return self.file if path == PROGRAM else None  # type: ignore[return-value]


def test_the_part_that_is_jumped_to_and_has_the_table_is_the_loop() -> None:
    """Exactly the function that the exported one jumps to and that 256 neighbouring pointers lead into."""
    assert find_loop(_Process(COLD + 64, 256), PROGRAM) == [(BIAS + COLD, BIAS + BEHIND)]


@pytest.mark.parametrize(("jump_to", "targets"), [(OTHER, 256), (COLD + 64, 200), (HOT + 4, 256), (0x7000_0000, 256)])
def test_less_is_not_believed(jump_to: int, targets: int) -> None:
    """A table that nobody jumps to, a jump without a table of that size, a loop that was not split."""
    assert find_loop(_Process(jump_to, targets), PROGRAM) == []


def test_a_damaged_or_missing_file_finds_nothing() -> None:
    """Tables of another encoding, of a false length, no file, no code in the core: nothing, and no exception."""
    process = _Process(COLD + 64, 256)
    assert find_loop(process, "/usr/bin/elsewhere") == []
    elf = _Elf((HOT, COLD))
    for data in (b"\2" + elf.data[1:], elf.data[:8] + b"\xff\xff\xff\x7f" + elf.data[12:], b""):
        elf.data = data
        process.file = elf
        assert find_loop(process, PROGRAM) == []
    gone = _Process(COLD + 64, 256)
    gone.parts = Segments({})
    with pytest.raises(Fault):
        gone.read(BIAS + HOT, 8)
    assert find_loop(gone, PROGRAM) == []


def test_only_frames_without_a_name_get_one() -> None:
    """A frame of that part is the loop; a name that gdb knew stays, as do frames elsewhere."""
    stack = (
        NativeFrame("PyObject_CallOneArg", PROGRAM, BIAS + COLD + 8),
        NativeFrame(None, PROGRAM, BIAS + COLD + 99),
        NativeFrame(None, PROGRAM, BIAS + OTHER),
    )
    found: Dict[int, Tuple[NativeFrame, ...]] = named({7: stack}, _Process(COLD + 64, 256))
    assert [frame.function for frame in found[7]] == ["PyObject_CallOneArg", f"{LOOP}.cold", None]
    assert named({7: stack}, _Process(OTHER, 256)) == {7: stack}
