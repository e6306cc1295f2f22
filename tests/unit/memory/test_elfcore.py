"""Cores, made here byte by byte: what is read, what faults, what damage does."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path
from typing import List, Tuple

import pytest

from postmortem.memory import Elf, ElfCore, Fault, NotElf

REGS = 27


def note(kind: int, desc: bytes, name: bytes = b"CORE\0") -> bytes:
    padded = name + b"\0" * (-len(name) % 4)
    return struct.pack("<III", len(name), len(desc), kind) + padded + desc + b"\0" * (-len(desc) % 4)


def prstatus(tid: int, **regs: int) -> bytes:
    order = {"rdi": 14, "orig_rax": 15, "fs_base": 21}
    values = [0] * REGS
    for name, value in regs.items():
        values[order[name]] = value
    return (
        struct.pack("<iiihhQQiiii", 0, 0, 0, 11, 0, 0, 0, tid, 1, 1, 1)
        + b"\0" * 64
        + struct.pack(f"<{REGS}Q", *values)
        + b"\0" * 8
    )


def core(path: Path, notes: bytes, loads: List[Tuple[int, bytes, int]], kind: int = 4) -> Path:
    """``loads``: (address, bytes in the file, size in memory)."""
    count = 1 + len(loads)
    at = 64 + 56 * count
    headers = struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 4)
    body = notes
    for address, data, memsz in loads:
        headers += struct.pack("<IIQQQQQQ", 1, 6, at + len(body), address, 0, len(data), memsz, 4096)
        body += data
    ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
    path.write_bytes(
        struct.pack("<16sHHIQQQIHHHHHH", ident, kind, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0) + headers + body
    )
    return path


def files(*rows: Tuple[int, int, int, str]) -> bytes:
    names = b"".join(row[3].encode() + b"\0" for row in rows)
    body = b"".join(struct.pack("<QQQ", start, end, offset) for start, end, offset, _ in rows)
    return struct.pack("<QQ", len(rows), 4096) + body + names


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


def test_pages_left_out_come_from_the_file(tmp_path: Path) -> None:
    """What the core leaves out is read from the mapped file; without it, that is a fault with the file's name."""
    library = tmp_path / "lib.so"
    library.write_bytes(Path(sys.executable).resolve().read_bytes()[:8192])
    mapped = note(0x46494C45, files((0x4000, 0x6000, 0, str(library)), (0x8000, 0x9000, 0, "/nowhere/lib.so")))
    read = ElfCore(str(core(tmp_path / "core", mapped, [(0x4000, b"", 0x2000), (0x8000, b"", 0x1000)])))
    assert read.read(0x4000, 64) == library.read_bytes()[:64]
    with pytest.raises(Fault, match=r"/nowhere/lib\.so"):
        read.read(0x8000, 8)
    assert read.unusable == {"/nowhere/lib.so": "No such file or directory"}


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
