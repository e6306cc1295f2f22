"""What glibc said before it aborted."""

from __future__ import annotations

import struct
from typing import Dict, List, Optional

import pytest

from postmortem.libc.aborts import NoAbortMessage, abort_message
from postmortem.memory import Elf, Image, MappedFile, Segments

BASE, SYMBOL, TEXT = 0x7F00_0000_0000, 0x1D8000, 0x7F00_1000_0000


class Libc:
    first_vaddr = 0

    def symbol(self, name: str) -> Optional[int]:
        return SYMBOL if name == "__abort_msg" else None


class Process(Segments, Image):
    def __init__(
        self, parts: Dict[int, bytes], path: str = "/lib/x86_64-linux-gnu/libc.so.6", here: bool = True
    ) -> None:
        super().__init__(parts)
        self._path, self._here = path, here

    @property
    def files(self) -> List[MappedFile]:
        return [MappedFile(BASE, BASE + 0x200000, 0, self._path)]

    def elf(self, path: str) -> Optional[Elf]:
        return Libc() if self._here else None  # type: ignore[return-value]


def said(text: bytes, size: int = 4096) -> Dict[int, bytes]:
    return {BASE + SYMBOL: struct.pack("<Q", TEXT), TEXT: (struct.pack("<I", size) + text).ljust(4096, b"\0")}


def test_the_message_is_followed() -> None:
    """Through the pointer, without the newline that it was printed with."""
    assert abort_message(Process(said(b"double free or corruption (!prev)\n"))) == "double free or corruption (!prev)"


def test_nothing_was_said() -> None:
    """A null pointer, a C library that is not glibc, an empty text: no message, and nothing is missing."""
    assert abort_message(Process({BASE + SYMBOL: bytes(8)})) is None
    assert abort_message(Process(said(b"x"), path="/lib/ld-musl-x86_64.so.1")) is None
    assert abort_message(Process(said(b"\n"))) is None


def test_a_length_is_not_believed() -> None:
    """The text ends with its first NUL, or after some pages, or with the memory."""
    assert abort_message(Process(said(b"x" * 100, size=0))) is None
    assert abort_message(Process(said(b"odd \xff\n", size=1 << 31))) == "odd \\xff"


@pytest.mark.parametrize(
    "image", [Process({}), Process({BASE + SYMBOL: struct.pack("<Q", 8)}), Process(said(b"x"), here=False)]
)
def test_what_cannot_be_read_says_why(image: Process) -> None:
    """Memory that is not in the core, a pointer that leads nowhere, a file that is not here."""
    with pytest.raises(NoAbortMessage, match=r".+"):
        abort_message(image)
