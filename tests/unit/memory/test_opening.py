"""How cores and their files are opened: by descriptor or by path, never twice, and left closed where they are of no use."""

from __future__ import annotations

import gc
import os
import struct
import sys
from pathlib import Path
from typing import Callable, List, Union

import pytest

from postmortem.foreign.files import Unfit
from postmortem.memory import Elf, ElfCore, Fault, NotElf
from postmortem.memory.elf import MAX_TABLE, Section
from postmortem.memory.linkmap import _pieces

from ...support.corefiles import core, files, note, prstatus

PROGRAM = Path(sys.executable).resolve()
#: The C library of this process.
LIBRARY = next(
    line.split(None, 5)[5].strip()
    for line in Path("/proc/self/maps").read_text().splitlines()
    if line.endswith(("/libc.so.6", "ld-musl-x86_64.so.1"))
)


@pytest.fixture(autouse=True)
def _nothing_left_to_collect() -> None:
    """Collect what earlier tests left in cycles, so that none of their files is closed during this one."""
    gc.collect()


def opened(path: Union[str, Path]) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def descriptors() -> List[str]:
    return sorted(os.listdir("/proc/self/fd"))


def of_a_library(folder: Path, name: str, locate: Callable[[str], Union[str, int, None]]) -> ElfCore:
    """A core that leaves out two pages of a library."""
    mapped = note(0x46494C45, files((0x4000, 0x6000, 0, name)))
    return ElfCore(str(core(folder / "core", mapped, [(0x4000, b"", 0x2000)])), locate)


def test_a_core_by_its_descriptor(tmp_path: Path) -> None:
    """The path is only what it is called; the descriptor is the core's from then on, and closed with it."""
    path = core(tmp_path / "core", note(1, prstatus(5)), [(0x1000, b"x" * 16, 16)])
    before = descriptors()
    read = ElfCore("/called/so", descriptor=opened(path))
    path.unlink()
    assert (read.path, read.read(0x1000, 4), [t.tid for t in read.threads]) == ("/called/so", b"xxxx", [5])
    assert os.fstat(read.descriptor).st_nlink == 0
    read.close()
    assert descriptors() == before
    with pytest.raises(Fault):
        read.read(0x1000, 4)


def test_what_is_no_core_is_closed_again(tmp_path: Path) -> None:
    """Whatever a descriptor leads to, a refusal leaves none open."""
    (tmp_path / "text").write_bytes(b"hello" * 40)
    (tmp_path / "short").write_bytes(b"\x7fELF")
    before = descriptors()
    for path, refusal in (
        (tmp_path / "text", NotElf),
        (tmp_path / "short", NotElf),
        (PROGRAM, NotElf),
        (Path("/dev/null"), NotElf),
        (tmp_path, IsADirectoryError),
    ):
        for descriptor in (None, opened(path)):
            with pytest.raises(refusal):
                ElfCore(str(path), descriptor=descriptor)
    with pytest.raises(NotElf):
        Elf("text", opened(tmp_path / "text"))
    assert descriptors() == before


def test_a_forgotten_core_closes_its_files(tmp_path: Path) -> None:
    """Nobody is made to close what he no longer has."""
    before = descriptors()
    read = of_a_library(tmp_path, "/lib.so", lambda name: str(PROGRAM))
    assert read.read(0x4000, 4) == b"\x7fELF"
    assert len(descriptors()) == len(before) + 2
    del read
    assert descriptors() == before


def test_a_library_by_its_descriptor(tmp_path: Path) -> None:
    """What is located may be a descriptor: it serves, under the name that the core has for it, and is closed with the core."""
    before = descriptors()
    asked: List[str] = []

    def locate(name: str) -> int:
        asked.append(name)
        return opened(PROGRAM)

    read = of_a_library(tmp_path, "/lib.so", locate)
    assert read.read(0x4000, 64) == PROGRAM.read_bytes()[:64]
    elf = read.elf("/lib.so")
    assert elf is not None and elf.path == "/lib.so" and asked == ["/lib.so"]
    read.close()
    assert descriptors() == before


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (None, "not found"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (Unfit("is not a regular file"), "not an ELF file"),
        (OSError("something else"), "cannot be opened"),
    ],
)
def test_why_a_library_is_not_there_is_told(tmp_path: Path, why: Union[OSError, None], said: str) -> None:
    """Not located, or with an error: the reason is kept, and reading faults."""

    def locate(name: str) -> None:
        if why is not None:
            raise why

    read = of_a_library(tmp_path, "/lib.so", locate)
    with pytest.raises(Fault):
        read.read(0x4000, 8)
    assert read.unusable["/lib.so"].text == said


def test_a_library_of_no_use_is_closed(tmp_path: Path) -> None:
    """A file of another machine, or one that is no library, is reported and its descriptor closed."""
    head = bytearray(PROGRAM.read_bytes()[:4096])
    head[18:20] = struct.pack("<H", 183)
    (tmp_path / "other").write_bytes(head)
    (tmp_path / "text").write_bytes(b"hello" * 40)
    before = descriptors()
    for name, said in (("other", "aarch64"), ("text", "not an ELF file")):
        path = tmp_path / name
        read = of_a_library(tmp_path, "/lib.so", lambda _name, path=path: opened(path))  # type: ignore[misc]
        assert read.elf("/lib.so") is None and said in read.unusable["/lib.so"].text
        read.close()
    assert descriptors() == before


def test_the_loader_s_list_takes_descriptors_and_refusals() -> None:
    """The same for the libraries of a core without a list of files: located by descriptor they have all their pieces, with an
    error the first page."""
    before = descriptors()
    whole = list(_pieces(0x7F0000000000, "/lib/libc.so", lambda name: opened(LIBRARY)))

    def refuse(name: str) -> str:
        raise PermissionError(13, "Permission denied")

    bare = list(_pieces(0x7F0000000000, "/lib/libc.so", refuse))
    assert len(whole) > 1 and len(bare) == 1
    assert {file.path for file in whole + bare} == {"/lib/libc.so"}
    assert descriptors() == before


def test_a_core_cut_off_while_it_is_read(tmp_path: Path) -> None:
    """What was not read before faults as cut off; the core knows that it was changed, and closing and searching still work."""
    path = core(tmp_path / "core", note(1, prstatus(5)), [(0x1000, b"x" * 0x40000, 0x40000)])
    read = ElfCore(str(path))
    assert read.u64(0x1000) == int.from_bytes(b"x" * 8, "little")
    assert read.altered == []
    os.truncate(path, 5000)
    for ask in (lambda: read.read(0x40000, 8), lambda: read.u64(0x40000), lambda: read.words(0x40000, 2)):
        with pytest.raises(Fault, match="cut off"):
            ask()
    with pytest.raises(Fault, match="cut off"):
        read.read(0x1000, 0x40000)
    assert read.altered == [str(path)]
    assert all(start < end for start, end in read.written)
    read.close()


def test_a_library_cut_off_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages fault, its symbols are unknown, and other copies of the same build are not said to lack them."""
    monkeypatch.setattr("postmortem.memory.elf._SYMBOLS", {})
    library = tmp_path / "lib.so"
    library.write_bytes(Path(LIBRARY).read_bytes())
    read = of_a_library(tmp_path, str(library), lambda name: name)
    elf = read.elf(str(library))
    assert elf is not None and elf.build_id
    os.truncate(library, 0)
    elf.data._blocks.clear()
    assert elf.symbol("malloc") is None and elf.sections() == []
    with pytest.raises(Fault):
        read.read(0x4000, 8)
    assert read.altered == [str(library)]
    assert Elf(LIBRARY).symbol("malloc") is not None


def test_a_table_larger_than_any_is_absent(tmp_path: Path) -> None:
    """A sparse file may announce gigabytes of names: they are not read."""
    path = tmp_path / "lib.so"
    path.write_bytes(PROGRAM.read_bytes()[:4096])
    os.truncate(path, 16 << 30)
    elf = Elf(str(path))
    assert elf.table(0, MAX_TABLE + 1) == b"" and len(elf.table(0, 8192)) == 8192
    assert list(elf.entries(Section(".symtab", 2, 0, 0, 15 << 30, 1, 24))) == []
    elf.close()


def test_pages_are_kept_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over more pages than are kept reads every one of them aright, and keeps no more than its share."""
    monkeypatch.setattr("postmortem.memory.elfcore._MOST_PAGES", 8)
    data = b"".join(struct.pack("<Q", number) * 512 for number in range(64))
    read = ElfCore(str(core(tmp_path / "core", note(1, prstatus(5)), [(0x10000, data, len(data))])))
    for _ in range(2):
        assert [read.u64(0x10000 + 4096 * number + 8) for number in range(64)] == list(range(64))
    assert len(read._kept) <= 8
