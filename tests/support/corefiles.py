"""Write core files byte by byte: notes, registers, segments."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import List, Sequence, Tuple

REGS = 27


def note(kind: int, desc: bytes, name: bytes = b"CORE\0") -> bytes:
    """Return one ELF note."""
    padded = name + b"\0" * (-len(name) % 4)
    return struct.pack("<III", len(name), len(desc), kind) + padded + desc + b"\0" * (-len(desc) % 4)


def prstatus(tid: int, **regs: int) -> bytes:
    """Return the content of NT_PRSTATUS of an x86-64 thread that got signal 11."""
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


def core(
    path: Path, notes: bytes, loads: List[Tuple[int, bytes, int]], kind: int = 4, guards: Sequence[int] = ()
) -> Path:
    """Write an ELF file.

    ``loads``: (address, bytes in the file, size in memory); ``guards``: addresses of pages without any right.
    """
    count = 1 + len(loads) + len(guards)
    at = 64 + 56 * count
    headers = struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 4)
    body = notes
    for address, data, memsz in loads:
        headers += struct.pack("<IIQQQQQQ", 1, 6, at + len(body), address, 0, len(data), memsz, 4096)
        body += data
    for address in guards:
        headers += struct.pack("<IIQQQQQQ", 1, 0, at + len(body), address, 0, 0, 4096, 4096)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
    path.write_bytes(
        struct.pack("<16sHHIQQQIHHHHHH", ident, kind, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0) + headers + body
    )
    return path


def files(*rows: Tuple[int, int, int, str]) -> bytes:
    """Return the content of NT_FILE; ``rows``: (start, end, offset in pages, path)."""
    names = b"".join(row[3].encode() + b"\0" for row in rows)
    body = b"".join(struct.pack("<QQQ", start, end, offset) for start, end, offset, _ in rows)
    return struct.pack("<QQ", len(rows), 4096) + body + names
