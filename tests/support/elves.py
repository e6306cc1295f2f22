"""Small ELF files: a program with a build-id, and a core that maps it."""

from __future__ import annotations

import struct
from typing import Dict, Optional, Sequence, Tuple

PAGE = 4096
_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_EXEC, _CORE, _LOAD, _NOTE = 2, 4, 1, 4


def _header(kind: int, segments: int) -> bytes:
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    return _EHDR.pack(ident, kind, 62, 1, 0, _EHDR.size, 0, 0, _EHDR.size, _PHDR.size, segments, 0, 0, 0)


def _note(name: bytes, kind: int, content: bytes) -> bytes:
    padded = content.ljust(-(-len(content) // 4) * 4, b"\0")
    return (
        struct.pack("<III", len(name) + 1, len(content), kind)
        + name.ljust(-(-(len(name) + 1) // 4) * 4, b"\0")
        + padded
    )


def program(build_id: Optional[bytes]) -> bytes:
    """One page: a header, and a build-id unless None."""
    notes = _note(b"GNU", 3, build_id) if build_id else b""
    at = _EHDR.size + _PHDR.size
    header = _header(_EXEC, 1) + _PHDR.pack(_NOTE, 4, at, at, at, len(notes), len(notes), 4)
    return (header + notes).ljust(PAGE, b"\0")


def core(files: Sequence[Tuple[int, int, int, str]], auxv: Dict[int, int], pages: Dict[int, bytes]) -> bytes:
    """files: (start, end, offset in bytes, path) as NT_FILE has them; pages: what memory the core holds."""
    table = b"".join(struct.pack("<QQQ", start, end, offset // PAGE) for start, end, offset, _path in files)
    names = b"".join(path.encode() + b"\0" for _s, _e, _o, path in files)
    notes = _note(b"CORE", 0x46494C45, struct.pack("<QQ", len(files), PAGE) + table + names)
    notes += _note(b"CORE", 6, b"".join(struct.pack("<QQ", *pair) for pair in [*auxv.items(), (0, 0)]))
    at = _EHDR.size + _PHDR.size * (1 + len(pages))
    headers = [_PHDR.pack(_NOTE, 0, at, 0, 0, len(notes), 0, 4)]
    at += len(notes)
    for address, content in sorted(pages.items()):
        headers.append(_PHDR.pack(_LOAD, 4, at, address, 0, len(content), len(content), 1))
        at += len(content)
    return _header(_CORE, 1 + len(pages)) + b"".join(headers) + notes + b"".join(pages[a] for a in sorted(pages))
