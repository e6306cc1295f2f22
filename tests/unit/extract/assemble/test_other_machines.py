"""Cores of machines that are not read: made here, as their kernels would write them."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

from postmortem.__main__ import main
from postmortem.bundle import Bundle
from postmortem.errors import NotACore
from postmortem.extract.assemble import cores

LITTLE, BIG = "<", ">"


def made(machine: int, bits: int = 64, order: str = LITTLE, kind: int = 4) -> bytes:
    """One thread (NT_PRSTATUS), one page of memory. ``kind``: e_type, 4 for a core."""
    ident = b"\x7fELF" + bytes((bits // 32, 1 if order == LITTLE else 2, 1, 0)) + bytes(8)
    wide = bits == 64
    header = struct.Struct(order + ("16sHHIQQQIHHHHHH" if wide else "16sHHIIIIIHHHHHH"))
    segment = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    status = bytes(376 if wide else 144)
    notes = struct.pack(order + "III", 5, len(status), 1) + b"CORE\0\0\0\0" + status
    at = header.size + 2 * segment.size
    memory = at + len(notes)
    return b"".join(
        (
            header.pack(ident, kind, machine, 1, 0, header.size, 0, 0, header.size, segment.size, 2, 0, 0, 0),
            segment.pack(4, 0, at, 0, 0, len(notes), 0, 4) if wide else segment.pack(4, at, 0, 0, len(notes), 0, 0, 4),
            segment.pack(1, 6, memory, 0x1000, 0, 16, 4096, 4096)
            if wide
            else segment.pack(1, memory, 0x1000, 0, 16, 4096, 6, 4096),
            notes,
            bytes(16),
        )
    )


MACHINES = [
    (made(243), "riscv64"),
    (made(21), "ppc64le"),
    (made(258), "loongarch64"),
    (made(0xBEEF), "ELF machine 48879"),
    (made(22, 64, BIG), "s390x (64-bit big-endian)"),
    (made(21, 64, BIG), "ppc64 (64-bit big-endian)"),
    (made(3, 32), "i386 (32-bit little-endian)"),
    (made(40, 32), "arm (32-bit little-endian)"),
    (made(62, 32), "x86-64 (32-bit little-endian)"),
    (made(243, 32), "riscv (32-bit little-endian)"),
    (made(8, 32, BIG), "mips (32-bit big-endian)"),
]


@pytest.mark.parametrize(("data", "name"), MACHINES, ids=[name for _data, name in MACHINES])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_one_sentence_says_what_it_is(
    data: bytes, name: str, packed: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Status 1, which machine it is of, which are read, and what shows its stacks; no report, and nothing else."""
    path = tmp_path / ("core.gz" if packed else "core")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert main(["analyze", str(path)]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    (sentence,) = said.err.splitlines()
    assert sentence.startswith(f"postmortem: {path} is a core of {name}: only x86-64 and aarch64 can be read; ")
    assert sentence.endswith("gdb-multiarch shows its native stacks")


@pytest.mark.parametrize("data", [made(3, 32, kind=2), made(22, 64, BIG, kind=3)], ids=["i386", "s390x"])
def test_a_program_of_another_machine_is_no_core(data: bytes, tmp_path: Path) -> None:
    """It is not called one."""
    path = tmp_path / "program"
    path.write_bytes(data)
    with pytest.raises(NotACore, match="is not a core file: not 64-bit little-endian"):
        cores.from_core(path)


def test_without_a_known_width_or_order_it_is_damage(tmp_path: Path) -> None:
    """What names neither is not taken for a machine."""
    path = tmp_path / "core"
    for at in (4, 5):
        data = bytearray(made(62))
        data[at] = 9
        path.write_bytes(data)
        with pytest.raises(
            NotACore, match=r"is not a core file: not 64-bit little-endian but .*(neither|of unknown byte order)"
        ):
            cores.from_core(path)


@pytest.mark.parametrize(("data", "name"), MACHINES[:6], ids=[name for _data, name in MACHINES[:6]])
def test_in_a_bundle_it_is_a_gap(data: bytes, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The rest of the bundle is read, and the report says of the process what is missing."""
    bundle = Bundle.create(tmp_path / "bundle")
    bundle.manifest.update({"root_pid": 7, "processes": [7], "command": None, "trigger": None})
    bundle.try_to_save()
    with bundle.writing("raw/cores/7.core") as stream:
        stream.write(data)
    assert main(["analyze", "-f", "json", str(tmp_path / "bundle")]) == 0
    report = json.loads(capfd.readouterr().out)
    assert [g["subject"] for g in report["gaps"] if f"is a core of {name}: only" in g["reason"]] == ["process 7"]
