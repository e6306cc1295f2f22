"""Cores, made here byte by byte: what is read, what faults, what damage does."""

from __future__ import annotations

import os
import random
import struct
import sys
from pathlib import Path

import pytest

from postmortem.memory import Elf, ElfCore, Fault, NotElf

from ...support.corefiles import core, files, note, prstatus
from ...support.work import ends, lines_run


def test_threads_memory_and_notes(tmp_path: Path) -> None:
    """Threads come with their registers, memory is read across segments, the process's ids and line are known."""
    info = struct.pack("<BcBBQIIiiii16s80s", 0, b"R", 0, 0, 0, 0, 0, 77, 1, 77, 77, b"prog", b"prog --flag")
    info = info[:4] + b"\0" * 4 + info[4:]
    notes = note(1, prstatus(77, orig_rax=202, fs_base=0x5000)) + note(1, prstatus(78)) + note(3, info[:136])
    read = ElfCore(str(core(tmp_path / "core", notes, [(0x1000, b"a" * 16, 16), (0x1010, b"b" * 8, 8)])))
    assert [(t.tid, t.signal) for t in read.threads] == [(77, 11), (78, 11)]
    assert read.threads[0].regs["orig_rax"] == 202 and read.threads[0].regs["fs_base"] == 0x5000
    assert read.read(0x100C, 8) == b"aaaabbbb"
    assert read.machine_name == "x86-64" and not read.truncated


def test_a_thread_that_a_damaged_core_has_twice(tmp_path: Path) -> None:
    """Its first registers count: two threads of one number are nothing that a kernel writes."""
    notes = b"".join(note(1, prstatus(tid, orig_rax=call)) for tid, call in ((77, 202), (78, 1), (77, 0)))
    read = ElfCore(str(core(tmp_path / "core", notes, [])))
    assert [(t.tid, t.regs["orig_rax"]) for t in read.threads] == [(77, 202), (78, 1)]


def test_pages_left_out_come_from_the_file(tmp_path: Path) -> None:
    """What the core leaves out is read from the mapped file; without it, that is a fault with the file's name."""
    library = tmp_path / "lib.so"
    library.write_bytes(Path(sys.executable).resolve().read_bytes()[:8192])
    mapped = note(0x46494C45, files((0x4000, 0x6000, 0, str(library)), (0x8000, 0x9000, 0, "/nowhere/lib.so")))
    read = ElfCore(str(core(tmp_path / "core", mapped, [(0x4000, b"", 0x2000), (0x8000, b"", 0x1000)])))
    assert read.read(0x4000, 64) == library.read_bytes()[:64]
    with pytest.raises(Fault, match=r"/nowhere/lib\.so"):
        read.read(0x8000, 8)
    assert {path: why.text for path, why in read.unusable.items()} == {"/nowhere/lib.so": "No such file or directory"}


def test_a_core_cut_short_opens_and_faults(tmp_path: Path) -> None:
    """What survives of a truncated core is read; what is cut off faults and says so."""
    whole = core(tmp_path / "core", note(1, prstatus(5)), [(0x1000, b"x" * 4096, 4096), (0x9000, b"y" * 4096, 4096)])
    whole.write_bytes(whole.read_bytes()[:-4000])
    read = ElfCore(str(whole))
    assert read.truncated and read.read(0x1000, 4) == b"xxxx" and read.read(0x9000, 4) == b"yyyy"
    with pytest.raises(Fault, match="truncated"):
        read.read(0x9800, 8)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "too short"), (b"hello" * 40, "no ELF magic"), (b"\x7fELF\x01\x01" + b"\0" * 80, "not 64-bit")],
)
def test_what_is_no_core_is_named(tmp_path: Path, data: bytes, why: str) -> None:
    """A file that is no core is refused with what it is instead."""
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(NotElf, match=why):
        ElfCore(str(path))


def test_a_program_is_no_core(tmp_path: Path) -> None:
    """An ELF program is told apart from a core."""
    with pytest.raises(NotElf, match="not a core"):
        ElfCore(sys.executable)


def test_random_damage_raises_nothing_else(tmp_path: Path) -> None:
    """Bytes flipped anywhere lead to a readable core, NotElf or Fault, never to another exception."""
    notes = (
        note(1, prstatus(5)) + note(6, struct.pack("<QQ", 3, 4)) + note(0x46494C45, files((0x4000, 0x5000, 0, "/x")))
    )
    original = core(tmp_path / "core", notes, [(0x1000, b"x" * 256, 256)]).read_bytes()
    chance = random.Random(7)
    path = tmp_path / "damaged"
    for _ in range(400):
        data = bytearray(original)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            read = ElfCore(str(path))
            read.read(0x1000, 64)
        except (NotElf, Fault):
            continue


def test_symbols_and_build_id_of_a_real_program() -> None:
    """The interpreter that runs this test has _PyRuntime (in itself or its library) and a way to tell its build."""
    with open("/proc/self/maps") as stream:
        paths = {line.split(None, 5)[5].strip() for line in stream if line.count("/") and "ython" in line}
    elves = [Elf(p) for p in sorted(paths) if Path(p).read_bytes()[:4] == b"\x7fELF"]
    assert any(elf.symbol("_PyRuntime") for elf in elves)
    assert all(elf.symbol("no_such_symbol_anywhere") is None for elf in elves)


@pytest.fixture
def library() -> str:
    """A file that this process maps, with a build-id and ``malloc``."""
    with open("/proc/self/maps") as stream:
        paths = {line.split(None, 5)[5].strip() for line in stream if "/" in line}
    elves = [p for p in sorted(paths) if Path(p).is_file() and Path(p).read_bytes()[:4] == b"\x7fELF"]
    return next(path for path in elves if Elf(path).build_id and Elf(path).symbol("malloc"))


def test_a_name_that_ends_another_one_is_found(library: str) -> None:
    """Linkers store it once: ``malloc`` as the tail of ``__libc_malloc``."""
    assert Elf(library).symbol("malloc")
    assert Elf(library).symbol("alloc_that_nobody_has") is None
    assert Elf(library).symbol("lloc") is None


def test_a_symbol_is_looked_up_once_for_all_that_map_the_file(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five hundred processes of one program are read with one search; a copy of the file is the same file."""
    (tmp_path / "copy").write_bytes(Path(library).read_bytes())
    known = Elf(library).symbol("malloc")
    monkeypatch.setattr(Elf, "_find_symbol", lambda elf, name: pytest.fail("searched again"))
    assert [Elf(path).symbol("malloc") for path in (library, str(tmp_path / "copy"))] == [known, known]


def test_a_stripped_copy_of_a_file_has_its_own_symbols(library: str, tmp_path: Path) -> None:
    """The build-id stays when the tables go, before or after somebody has looked something up."""
    (tmp_path / "cut").write_bytes(Path(library).read_bytes()[: Elf(library)._shoff])
    for _again in range(2):
        assert Elf(str(tmp_path / "cut")).build_id == Elf(library).build_id
        assert Elf(str(tmp_path / "cut")).symbol("malloc") is None
        assert Elf(library).symbol("malloc") is not None


def shared_object(path: Path, build_id: bytes, data: bytes, filesz: int, memsz: int) -> Path:
    """An ELF file whose one PT_LOAD, of offset 0, has ``filesz`` bytes of the file and ``memsz`` in memory."""
    built = note(3, build_id, b"GNU\0")
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + b"\0" * 9, 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    head += struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, filesz, memsz, 4096)
    head += struct.pack("<IIQQQQQQ", 4, 4, 176, 176, 176, len(built), len(built), 4)
    path.write_bytes((head + built).ljust(4096, b"\0") + data)
    return path


def test_what_the_loader_clears_is_zero(tmp_path: Path) -> None:
    """Past p_filesz a mapped page is .bss, though the file has section headers and debug data there."""
    library = shared_object(tmp_path / "lib.so", b"\1" * 20, b"D" * 4096, 4096 + 1000, 4096 + 3000)
    mapped = note(0x46494C45, files((0x4000, 0x6000, 0, str(library))))
    read = ElfCore(str(core(tmp_path / "core", mapped, [(0x4000, b"", 0x2000)])))
    assert read.read(0x5000, 1200) == b"D" * 1000 + bytes(200)
    assert read.read(0x5000 + 3000, 8) == b"D" * 8  # beyond the segment it is a plain mapping of the file


def test_a_core_without_written_pages_does_not_pass_initial_data_for_them(tmp_path: Path) -> None:
    """coredump_filter can leave out all that was written: then the file's .data is not what memory had."""
    library = shared_object(tmp_path / "lib.so", b"\1" * 20, b"D" * 4096, 8192, 8192)
    mapped = note(0x46494C45, files((0x4000, 0x6000, 0, str(library))))
    loads = [(0x4000, b"", 0x2000), (0x10000, b"", 0x1000)]
    with pytest.raises(Fault, match="only its initial content"):
        ElfCore(str(core(tmp_path / "without", mapped, loads))).read(0x5000, 8)
    loads[1] = (0x10000, b"heap", 0x1000)
    assert ElfCore(str(core(tmp_path / "with", mapped, loads))).read(0x5000, 8) == b"D" * 8


@pytest.mark.parametrize(("in_core", "usable"), [(b"\1" * 20, True), (b"\2" * 20, False), (None, False)])
def test_a_deleted_file_is_taken_by_build_id_alone(tmp_path: Path, in_core: bytes, usable: bool) -> None:
    """The kernel appends " (deleted)"; the file that is there now counts only when the core shows that it is the same."""
    library = shared_object(tmp_path / "lib.so", b"\1" * 20, b"D" * 4096, 8192, 8192)
    name = f"{library} (deleted)"
    page = shared_object(tmp_path / "old.so", in_core, b"", 8192, 8192).read_bytes() if in_core else b""
    mapped = note(0x46494C45, files((0x4000, 0x6000, 0, name)))
    read = ElfCore(str(core(tmp_path / "core", mapped, [(0x4000, page, 0x2000), (0x10000, b"heap", 4)])))
    assert (read.elf(name) is not None) is usable
    assert (read.unusable.get(name) is None) is usable


def test_files_that_are_no_programs_are_known(tmp_path: Path) -> None:
    """A table of data that is mapped, deleted or not, is none; a library is, by its first page or its right to be executed."""
    mapped = note(
        0x46494C45,
        files(
            (0x4000, 0x6000, 0, "/data (deleted)"),
            (0x7000, 0x8000, 0, "/lib.so"),
            (0x9000, 0xA000, 4096, "/left-out.so"),
        ),
    )
    path = core(
        tmp_path / "core", mapped, [(0x4000, b"rows", 0x2000), (0x7000, b"\x7fELF", 0x1000), (0x9000, b"", 0x1000)]
    )
    with path.open("r+b") as file:
        file.seek(64 + 3 * 56 + 4)
        file.write(struct.pack("<I", 5))  # may be read and executed
    read = ElfCore(str(path))
    assert [read.is_program(file.path) for file in read.files] == [False, True, True]


def test_a_given_file_stands_for_a_mapped_one(tmp_path: Path) -> None:
    """A program that moved is read from where it is now, if it is the same build."""
    page = shared_object(tmp_path / "old", b"\1" * 20, b"", 8192, 8192).read_bytes()
    moved = shared_object(tmp_path / "moved", b"\1" * 20, b"D" * 4096, 8192, 8192)
    other = shared_object(tmp_path / "other", b"\2" * 20, b"D" * 4096, 8192, 8192)
    mapped = note(0x46494C45, files((0x4000, 0x6000, 0, "/gone/prog")))
    read = ElfCore(str(core(tmp_path / "core", mapped, [(0x4000, page, 0x2000), (0x10000, b"heap", 4)])))
    assert read.elf("/gone/prog") is None
    read.stand_in("/gone/prog", str(moved))
    assert read.read(0x5000, 4) == b"DDDD" and read.unusable == {}
    read.stand_in("/gone/prog", str(other))
    assert read.elf("/gone/prog") is None and "build-ids differ" in read.unusable["/gone/prog"].text


def test_what_was_written_is_known_without_the_holes(tmp_path: Path) -> None:
    """A search looks through the parts of writable segments that the file has data for; holes in it are zeros. The path is not
    looked up again: another file may lie there."""
    path = core(tmp_path / "core", note(1, prstatus(7)), [(0x10000, b"a" * 4096, 4096)])
    size = path.stat().st_size
    at = -(-size // 4096) * 4096
    with path.open("r+b") as file:
        file.seek(64 + 56)
        file.write(struct.pack("<IIQQQQQQ", 1, 6, at, 0x40000, 0, 1 << 26, 1 << 26, 4096))
        file.seek(at + (1 << 25))
        file.write(b"b" * 4096)
        file.truncate(at + (1 << 26))
    read = ElfCore(str(path))
    assert read.writable == [(0x40000, 0x40000 + (1 << 26))]
    place = 0x40000 + (1 << 25)
    assert any(start <= place and place + 4096 <= end for start, end in read.written)
    assert sum(end - start for start, end in read.written) < 1 << 24  # but for a file system without holes
    before = read.written
    path.unlink()
    path.write_bytes(b"another file")
    assert read.written == before


def test_more_segments_than_the_header_can_count(tmp_path: Path) -> None:
    """Above 65534 mappings e_phnum is 0xFFFF, and section header 0 has the count (PN_XNUM)."""
    count = 70_000
    headers = struct.pack("<IIQQQQQQ", 4, 0, 0, 0, 0, 0, 0, 4)
    data_at = 64 + 56 * (count + 1) + 64
    headers += b"".join(
        struct.pack("<IIQQQQQQ", 1, 6, data_at + 8 * i, 0x10000 + 0x1000 * i, 0, 8, 8, 4096) for i in range(count)
    )
    section = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, count + 1, 0, 0)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
    section_at = 64 + len(headers)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 4, 62, 1, 0, 64, section_at, 0, 64, 56, 0xFFFF, 64, 1, 0)
    path = tmp_path / "core"
    path.write_bytes(head + headers + section + b"".join(struct.pack("<Q", i) for i in range(count)))
    read = ElfCore(str(path))
    assert not read.truncated
    assert [read.u64(0x10000 + 0x1000 * i) for i in (0, 65_535, count - 1)] == [0, 65_535, count - 1]


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9])
def test_a_core_cut_anywhere_keeps_what_is_left(tmp_path: Path, keep: float) -> None:
    """In its headers, its notes or its memory: it opens, says that it is cut, and reads what is there."""
    notes = note(1, prstatus(5)) + note(1, prstatus(6))
    whole = core(tmp_path / "core", notes, [(0x1000 * i, bytes([i]) * 4096, 4096) for i in range(1, 9)]).read_bytes()
    head = 64 + 56 * 9
    for at in (head - 30, head + 100, head + len(notes) - 4, head + len(notes) + int(keep * 8 * 4096)):
        path = tmp_path / f"cut{at}"
        path.write_bytes(whole[:at])
        read = ElfCore(str(path))
        assert read.truncated
        assert len(read.threads) == max(0, min(2, (at - head) // (len(notes) // 2)))
        for i in range(1, 9):
            begin = head + len(notes) + (i - 1) * 4096
            if begin + 4096 <= at:
                assert read.read(0x1000 * i, 4096) == bytes([i]) * 4096
            elif begin < at:
                assert read.read(0x1000 * i, at - begin) == bytes([i]) * (at - begin)
            else:
                with pytest.raises(Fault):
                    read.read(0x1000 * i, 1)


def test_notes_of_nothing_but_zeros_end(tmp_path: Path) -> None:
    """A hostile PT_NOTE of many GB of holes is given up after a bounded number of empty notes."""
    path = tmp_path / "core"
    size = 20 << 30
    headers = struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, size - 120, 0, 4)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
    with path.open("wb") as stream:
        stream.write(struct.pack("<16sHHIQQQIHHHHHH", ident, 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0) + headers)
        stream.truncate(size)
    assert ElfCore(str(path)).threads == []


def test_notes_that_are_none_are_given_up(tmp_path: Path) -> None:
    """Damaged headers make notes of anything: a few thousand that nobody writes, or many of the same bytes, end it."""
    note = struct.pack("<III4s", 4, 0, 1, b"NONE")
    large = struct.pack("<III8s", 5, 8 << 20, 1, b"CORE") + bytes(8 << 20)
    named = struct.pack("<III", 8 << 20, 0, 1) + bytes(8 << 20)
    for number, (one, times, segments) in enumerate(((note, 500_000, 20), (large, 4, 40_000), (named, 4, 40_000))):
        path, size = tmp_path / f"core{number}", len(one) * times
        headers = struct.pack("<IIQQQQQQ", 4, 0, 64 + 56 * segments, 0, 0, size, 0, 4) * segments
        ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
        ehdr = struct.pack("<16sHHIQQQIHHHHHH", ident, 4, 62, 1, 0, 64, 0, 0, 64, 56, segments, 0, 0, 0)
        path.write_bytes(ehdr + headers + one * times)
        with ends():  # 320 GB of copies take minutes
            assert lines_run(lambda: ElfCore(str(path)).close()) < 5_000_000  # noqa: B023 - called at once


@pytest.mark.parametrize(("width", "order", "what"), [(1, 1, "32-bit little-endian"), (2, 2, "64-bit big-endian")])
def test_cores_of_other_kinds_of_machines_are_named(tmp_path: Path, width: int, order: int, what: str) -> None:
    """A 32-bit or big-endian core is refused with what it is."""
    path = tmp_path / "core"
    path.write_bytes(b"\x7fELF" + bytes([width, order, 1]) + b"\0" * 100)
    with pytest.raises(NotElf, match=what):
        ElfCore(str(path))


def test_a_count_of_headers_that_nobody_can_have_is_bounded(tmp_path: Path) -> None:
    """Four billion program headers, all holes of a sparse file: given up after a bounded number."""
    path = tmp_path / "core"
    section = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0xFFFFFFFF, 0, 0)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
    with path.open("wb") as stream:
        head = struct.pack("<16sHHIQQQIHHHHHH", ident, 4, 62, 1, 0, 128, 64, 0, 64, 56, 0xFFFF, 64, 1, 0)
        stream.write(head + section)
        stream.truncate(400 << 30)
    with ends():
        read = ElfCore(str(path))
    assert read.threads == [] and read.writable == []


def test_files_that_are_no_plain_files_are_not_opened(tmp_path: Path) -> None:
    """A core that names a FIFO or a device as a mapped file must not stop or touch anything."""
    os.mkfifo(tmp_path / "fifo")
    mapped = note(0x46494C45, files((0x4000, 0x5000, 0, str(tmp_path / "fifo")), (0x6000, 0x7000, 0, "/dev/zero")))
    read = ElfCore(str(core(tmp_path / "core", mapped, [(0x4000, b"", 0x1000), (0x6000, b"", 0x1000)])))
    for address in (0x4000, 0x6000):
        with pytest.raises(Fault):
            read.read(address, 8)
    with pytest.raises(NotElf, match="plain file"):
        ElfCore(str(tmp_path / "fifo"))
