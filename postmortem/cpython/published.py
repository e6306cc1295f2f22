"""What an interpreter says of itself: ``_Py_DebugOffsets`` at the start of ``_PyRuntime`` (3.13+)."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, NamedTuple, Optional, Tuple

from ..memory import Fault, Memory
from .layouts import Layout
from .releases import LAYOUTS

#: _Py_DebugOffsets of 3.13 (Include/internal/pycore_runtime.h): index of the 64-bit word after the cookie → field
#: of Layout. Word 0 is the version (hex), word 1 free_threaded.
DEBUG_COOKIE = b"xdebugpy"
DEBUG_OFFSETS_313: Dict[int, str] = {
    3: "rt_finalizing", 4: "rt_interpreters_head",
    6: "is_id", 7: "is_next", 8: "is_threads_head", 10: "is_modules", 11: "is_sysdict", 12: "is_builtins",
    13: "is_gil",
    20: "ts_next", 21: "ts_interp", 22: "ts_current_frame", 23: "ts_thread_id", 24: "ts_native_thread_id",
    28: "fr_previous", 29: "fr_code", 30: "fr_instr", 31: "fr_localsplus", 32: "fr_owner",
    34: "co_filename", 35: "co_name", 36: "co_qualname", 37: "co_linetable", 38: "co_firstlineno",
    40: "co_localsplusnames", 42: "co_code",
}  # fmt: skip


class Published(NamedTuple):
    """An interpreter's own account."""

    version: Tuple[int, int, int]
    free_threaded: bool
    layout: Layout
    warnings: Tuple[str, ...] = ()


def describe(memory: Memory, address: int) -> Optional[Published]:
    """The account at the start of a ``_PyRuntime``; None when there is none, or when it is garbage."""
    try:
        if memory.read(address, 8) != DEBUG_COOKIE:
            return None
        words = memory.words(address + 8, max(DEBUG_OFFSETS_313) + 1)
    except Fault:
        return None
    version = (words[0] >> 24 & 0xFF, words[0] >> 16 & 0xFF, words[0] >> 8 & 0xFF)
    row = LAYOUTS.get(version[:2])
    if row is None:
        return None
    layout = replace(row, **{name: words[index] for index, name in DEBUG_OFFSETS_313.items()})  # type: ignore[arg-type]
    return Published(version, bool(words[1]), layout)
