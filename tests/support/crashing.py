"""Cores of crashes, made byte by byte: a thread's registers, a siginfo, memory with the rights that it has."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from postmortem.memory import ElfCore

_ORDER = {"rbp": 4, "rbx": 5, "rax": 10, "rdi": 14, "rip": 16, "rsp": 19, "fs_base": 21}
_AT_EXECFN = 31
R, W, X = 4, 2, 1


class Part(NamedTuple):
    """Memory at an address; ``size`` when it is more than the core holds."""

    address: int
    data: bytes = b""
    flags: int = R | W
    size: int = 0


def siginfo(number: int, code: int, union: bytes) -> bytes:
    return struct.pack("<iiii", number, 0, code, 0) + union.ljust(112, b"\0")


def fault(number: int, code: int, address: int) -> bytes:
    return siginfo(number, code, struct.pack("<Q", address))


def sent(number: int, code: int, pid: int, uid: int = 1000) -> bytes:
    return siginfo(number, code, struct.pack("<iI", pid, uid))


def crashed(
    path: Path,
    parts: Sequence[Part] = (),
    info: bytes = b"",
    *,
    tid: int = 77,
    number: int = 11,
    files: Sequence[Tuple[int, int, int, str]] = (),
    strings: int = 0,
    **regs: int,
) -> ElfCore:
    """A core of one process (pid 77). ``strings``: where the first thread's stack keeps those of execve."""
    notes = _note(1, _prstatus(tid, number, regs)) + _note(3, struct.pack("<24xii", 77, 1) + b"\0" * 104)
    notes += _note(0x53494749, info) if info else b""
    notes += _note(6, struct.pack("<QQ", _AT_EXECFN, strings)) if strings else b""
    notes += _note(0x46494C45, _files(files)) if files else b""
    at = 64 + 56 * (1 + len(parts))
    headers, body = struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 4), notes
    for part in parts:
        size = max(part.size, len(part.data))
        headers += struct.pack("<IIQQQQQQ", 1, part.flags, at + len(body), part.address, 0, len(part.data), size, 4096)
        body += part.data
    ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
    count = 1 + len(parts)
    path.write_bytes(
        struct.pack("<16sHHIQQQIHHHHHH", ident, 4, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0) + headers + body
    )
    return ElfCore(str(path))


def _note(kind: int, desc: bytes) -> bytes:
    return struct.pack("<III", 5, len(desc), kind) + b"CORE\0\0\0\0" + desc + b"\0" * (-len(desc) % 4)


def _prstatus(tid: int, number: int, regs: Dict[str, int]) -> bytes:
    values: List[int] = [0] * 27
    for name, value in regs.items():
        values[_ORDER[name]] = value
    head = struct.pack("<iiihhQQiiii", 0, 0, 0, number, 0, 0, 0, tid, 1, 1, 1)
    return head + b"\0" * 64 + struct.pack("<27Q", *values) + b"\0" * 8


def _files(rows: Sequence[Tuple[int, int, int, str]]) -> bytes:
    body = b"".join(struct.pack("<QQQ", start, end, offset) for start, end, offset, _name in rows)
    return struct.pack("<QQ", len(rows), 4096) + body + b"".join(row[3].encode() + b"\0" for row in rows)
