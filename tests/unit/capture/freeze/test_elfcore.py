"""The core format, written here and read by the package's own reader."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import List

from postmortem.capture.freeze import elfcore
from postmortem.capture.freeze.memcopy import Placement
from postmortem.capture.freeze.pages import PAGE
from postmortem.capture.freeze.segments import Segment
from postmortem.capture.freeze.stop import Registers
from postmortem.capture.procfs.parsers import Mapping
from postmortem.memory.elfcore import ElfCore

WHO = elfcore.Identity(
    100, 1, 90, 80, 1000, 1000, "S", -5, 0x400, b"a-name-longer-than-it-may-be", b"prog\0--flag\0" + b"x" * 200
)
MAPPINGS = [
    Mapping(0x1000, 0x3000, "r-xp", 0x2000, "00:00", 5, b"/bin/prog"),
    Mapping(0x5000, 0x9000, "rw-p", 0, "00:00", 0, b""),
]
SEGMENTS = [Segment(0x1000, 0x3000, 0, 5), Segment(0x5000, 0x9000, 0x4000, 6)]


def registers(tid: int, **values: int) -> Registers:
    """user_regs_struct with some fields set, by their index."""
    words = [0] * 27
    for name, value in values.items():
        words[{"rip": 16, "rsp": 19, "orig_rax": 15, "rdi": 14}[name]] = value
    return Registers(tid, struct.pack("<27Q", *words), {2: bytes(512), 0x202: bytes(832)})


def written(path: Path, threads: List[Registers]) -> Path:
    notes = elfcore.notes(WHO, threads, struct.pack("<4Q", 3, 0x40, 0, 0), MAPPINGS)
    offsets, size = elfcore.layout(SEGMENTS, len(notes))
    with path.open("w+b") as stream:
        stream.truncate(size)
        stream.write(elfcore.head("x86_64", SEGMENTS, notes, offsets))
        stream.flush()
        put = Placement(SEGMENTS, offsets).writer(stream)
        put(0x6000, memoryview(b"six" + bytes(PAGE - 3)))
        put(0x8000, memoryview(b"eight" + bytes(PAGE - 5)))
    return path


def test_threads_and_identity_survive(tmp_path: Path) -> None:
    """The main thread first; registers by name; names cut to the format's size."""
    core = ElfCore(str(written(tmp_path / "core", [registers(100, rip=7, orig_rax=202), registers(101, rsp=9)])))
    assert [(t.tid, t.signal) for t in core.threads] == [(100, 0), (101, 0)]
    assert (core.threads[0].regs["rip"], core.threads[0].regs["orig_rax"], core.threads[1].regs["rsp"]) == (7, 202, 9)
    assert (core.pid, core.ppid) == (100, 1)
    assert core.argv.startswith("prog --flag xxx")
    assert len(core.argv) == 79
    assert core.auxv[3] == 0x40


def test_memory_is_where_it_was(tmp_path: Path) -> None:
    """Written pages, and zeros for the holes between."""
    core = ElfCore(str(written(tmp_path / "core", [registers(100)])))
    assert core.read(0x6000, 3) == b"six"
    assert core.read(0x8000, 5) == b"eight"
    assert core.read(0x7000, PAGE) == bytes(PAGE)
    assert not core.truncated


def test_only_files_are_in_the_file_note(tmp_path: Path) -> None:
    """NT_FILE: start, end and offset of each mapped file."""
    core = ElfCore(str(written(tmp_path / "core", [registers(100)])))
    assert [(f.start, f.end, f.offset, f.path) for f in core.files] == [(0x1000, 0x3000, 0x2000, "/bin/prog")]


def test_notes_are_aligned_and_sized_as_the_kernel_has_them() -> None:
    """prstatus 336 bytes, prpsinfo 136 (some readers check), every note on a multiple of four."""
    data = elfcore.notes(WHO, [registers(100), registers(101)], bytes(16), MAPPINGS)
    position, sizes = 0, []
    while position < len(data):
        name_size, size, kind = struct.unpack_from("<III", data, position)
        name = data[position + 12 : position + 12 + name_size]
        assert name in (b"CORE\0", b"LINUX\0")
        sizes.append((kind, size))
        position += 12 + -(-name_size // 4) * 4 + -(-size // 4) * 4
    assert position == len(data)
    assert sizes[:4] == [(1, 336), (3, 136), (0x53494749, 128), (6, 16)]
    assert [size for kind, size in sizes if kind == 1] == [336, 336]
