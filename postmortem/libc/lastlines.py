"""The line that native code printed to stderr before it called abort().

stderr has no buffer of its own: vfprintf of glibc writes into one of 8 kB on the stack (stdio-common/vfprintf-internal.c,
libio/vtables: buffered_vfprintf), in a part that is unused again when abort() is called, and that abort() hardly overwrites.

Limit: what was printed there earlier may be found as well. Only a line that speaks of a failure, or cites a source line, counts.
"""

from __future__ import annotations

import re
from typing import List, Optional

from ..memory import Fault, Memory

#: Bytes below the stack pointer that are searched, and size of a piece that is present in a core or not.
_BELOW, _PIECE = 16 << 10, 4096
_LINE = re.compile(rb"[\t\x20-\x7e]{12,400}\n")
_PLACE = re.compile(r"[\w./+-]+\.(c|cc|cpp|cxx|h|hh|hpp|rs|go|cu|inl)\b[:(, ]+(line )?\d+")
_FAILURE = re.compile(r"assert|abort|fail|fatal|panic|check|terminat|invalid|corrupt|cannot|error", re.IGNORECASE)


def last_line(memory: Memory, sp: int) -> Optional[str]:
    """Return the line left below a stack pointer that tells of a failure, the most telling one; None without any."""
    raw = b"".join(_piece(memory, at) for at in range((sp - _BELOW) & -_PIECE, sp, _PIECE))
    lines: List[str] = [found.group().decode("ascii").strip() for found in _LINE.finditer(raw)]
    told = [line for line in lines if _PLACE.search(line) or _FAILURE.search(line)]
    return max(told, key=lambda line: (bool(_PLACE.search(line)), bool(_FAILURE.search(line))), default=None)


def _piece(memory: Memory, at: int) -> bytes:
    try:
        return memory.read(at, _PIECE)
    except Fault:
        return bytes(_PIECE)
