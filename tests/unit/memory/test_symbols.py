"""Names of variables and beginnings of functions, from a library that is made here byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

import pytest

from postmortem.memory import Elf, Image, MappedFile
from postmortem.memory.symbols import function_at, readable, variable_at

BASE, PATH = 0x7F00_0000_0000, "/opt/app/_tables.so"
TEXT, DATA = 0x1000, 0x4000  # link-time addresses
FILE_SIZE = 0x2000


def library(
    path: Path, variables: Sequence[Tuple[str, int, int]], functions: Sequence[int] = (), encoding: int = 0x3B
) -> Path:
    """One segment that ends in .bss, a symbol table, and the unwind tables' index."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _at, _size in variables)
    symbols, at = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0), 1
    for name, value, size in variables:
        symbols += struct.pack("<IBBHQQ", at, 0x11, 0, 1, value, size)
        at += len(name.encode()) + 1
    index = struct.pack("<BBBBiI", 1, 0x1B, 0x03, encoding, 0, len(functions))
    index += b"".join(struct.pack("<ii", start - 0x800, 0) for start in functions)
    sections = [(0, 0, 0, 0), (2, 0x400, len(symbols), 2), (3, 0x600, len(names), 0)]
    headers = b"".join(
        struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, link, 0, 8, 24) for kind, offset, size, link in sections
    )
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, 0x300, 0, 64, 56, 2, 64, 3, 2)
    loads = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, FILE_SIZE, 0x6000, 0x1000)
    loads += struct.pack("<IIQQQQQQ", 0x6474E550, 4, 0x800, 0x800, 0x800, len(index), len(index), 4)
    image = bytearray(FILE_SIZE)
    for offset, part in ((0, header), (64, loads), (0x300, headers), (0x400, symbols), (0x600, names), (0x800, index)):
        image[offset : offset + len(part)] = part
    path.write_bytes(image)
    return path


class OneLibrary(Image):
    def __init__(self, path: Optional[Path]) -> None:
        self._elf = Elf(str(path)) if path is not None else None

    @property
    def files(self) -> List[MappedFile]:
        return [MappedFile(BASE, BASE + FILE_SIZE, 0, PATH)]

    def elf(self, path: str) -> Optional[Elf]:
        return self._elf


def test_the_variable_that_covers_an_address(tmp_path: Path) -> None:
    """Its first byte, one inside it, but not the one behind it; .bss lies behind what is mapped of the file."""
    image = OneLibrary(library(tmp_path / "a.so", [("table_lock", DATA, 40), ("seen", DATA + 40, 4)]))
    assert [variable_at(image, BASE + DATA + at) for at in (0, 39)] == [(PATH, "table_lock")] * 2
    assert variable_at(image, BASE + DATA + 40) == (PATH, "seen")
    assert variable_at(image, BASE + DATA + 44) == (PATH, None)


def test_what_lies_in_no_library(tmp_path: Path) -> None:
    """The heap belongs to nobody; of a file that is not at hand only the mapping is known."""
    image = OneLibrary(library(tmp_path / "a.so", [("table_lock", DATA, 40)]))
    assert variable_at(image, BASE + 0x6000) is None
    assert variable_at(image, BASE - 8) is None
    assert variable_at(OneLibrary(None), BASE + 0x100) == (PATH, None)


def test_functions_begin_where_the_unwind_tables_say(tmp_path: Path) -> None:
    """Also in a stripped library; before the first function there is none, and other encodings are not guessed at."""
    image = OneLibrary(library(tmp_path / "a.so", [], [TEXT, TEXT + 0x40, TEXT + 0x90]))
    assert function_at(image, BASE + TEXT + 0x3F) == (PATH, TEXT)
    assert function_at(image, BASE + TEXT + 0x40) == function_at(image, BASE + TEXT + 0x8F) == (PATH, TEXT + 0x40)
    assert function_at(image, BASE + TEXT - 1) is None
    assert function_at(OneLibrary(library(tmp_path / "b.so", [], [TEXT], encoding=0x1B)), BASE + TEXT) is None
    assert function_at(OneLibrary(None), BASE + TEXT) is None


def test_damaged_tables_are_no_tables(tmp_path: Path) -> None:
    """Any byte of the symbol table, its names or the index may be wrong: some answer, or none, and no other error."""
    whole = library(tmp_path / "a.so", [("table_lock", DATA, 40)], [TEXT]).read_bytes()
    for at in [*range(0x40, 0xB0), *range(0x340, 0x3C0), *range(0x400, 0x430), *range(0x800, 0x814)]:
        (tmp_path / "b.so").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        image = OneLibrary(tmp_path / "b.so")
        variable_at(image, BASE + DATA)
        function_at(image, BASE + TEXT)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("table_lock", "table_lock"),
        ("_ZL10table_lock", "table_lock"),
        ("_ZN5cache4lockE", "cache::lock"),
        ("_ZN12_GLOBAL__N_15stateE", "(anonymous namespace)::state"),
        ("_ZGVZN12_GLOBAL__N_16tablesEP7_objectE8instance", "instance"),
        ("_ZZN3foo3barEvE1m_0", "m"),
        ("_ZNSt3mapIiiE", "_ZNSt3mapIiiE"),
        ("_ZN99999999999999999999x", "_ZN99999999999999999999x"),
        ("_ZGVZ", "_ZGVZ"),
        ("_Z", "_Z"),
    ],
)
def test_mangled_names_are_read_as_far_as_they_are_names(symbol: str, name: str) -> None:
    """Names in each other, and what a local static is called; templates and damage stay as they are."""
    assert readable(symbol) == name
