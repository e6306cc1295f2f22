"""The contract of Memory, held against the synthetic ones; the real ones are in tests/live and tests/gdb."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Callable

import pytest

from postmortem.memory import ElfCore, Memory, Segments

from ...support.corefiles import core, note, prstatus
from ...support.memorycontract import CHECKS, PAGE, Facts

START = 0x7F0000000000
HEAD = bytearray((7 * i + i // 256) % 251 + 1 for i in range(2 * PAGE))
HEAD[100:107] = b"a name\0"
NUMBERS = struct.pack("<BxHIqQd", 200, 60000, 4_000_000_000, -5, 2**64 - 3, 2.5) + struct.pack("<i", -7)
TAIL = NUMBERS + bytes(PAGE - 4 - len(NUMBERS)) + b"end\0"
FACTS = Facts(json.dumps({"start": START, "head": HEAD.hex(), "tail": TAIL.hex()}))


def segments(_folder: Path) -> Memory:
    return Segments({START: bytes(HEAD) + bytes(2 * PAGE) + TAIL})


def elf_core(folder: Path) -> Memory:
    """Three segments side by side, in the file in another order than in memory."""
    loads = [
        (START + 2 * PAGE, bytes(2 * PAGE) + TAIL, 3 * PAGE),
        (START, bytes(HEAD[:PAGE]), PAGE),
        (START + PAGE, bytes(HEAD[PAGE:]), PAGE),
    ]
    return ElfCore(str(core(folder / "core", note(1, prstatus(5)), loads)))


@pytest.mark.parametrize("make", [segments, elf_core])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[Memory, Any], None], make: Callable[[Path], Memory], tmp_path: Path) -> None:
    """Segments and a core made by hand keep what every Memory promises."""
    check(make(tmp_path), FACTS)
