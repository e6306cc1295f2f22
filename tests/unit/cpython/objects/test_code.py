"""Exception handlers of an instruction, from a code object's table."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Optional, Tuple

import pytest

from postmortem.cpython.objects.code import Code, Handler
from postmortem.memory import Segments

AT, START = 0x5000, 0x5100
BODY = Handler(14, 50, 70, 1)


def code(version: Tuple[int, int], instructions: bytes) -> Code:
    """Code whose `with` covers offsets 14 to 50; ``instructions`` begin at 48."""
    found = Code.__new__(Code)
    memory = Segments({AT: struct.pack("<QQQ", 0, 0, 64), START: (bytes(48) + instructions).ljust(128, b"\0")})
    layout = SimpleNamespace(version=version, heap_frames=False, ob_size=16, co_exceptiontable=0)
    found._objects = SimpleNamespace(memory=memory, layout=layout)  # type: ignore[assignment]
    found.address, found.start, found._handlers, found._at = AT, START, [BODY], {}
    return found


@pytest.mark.parametrize(
    ("version", "instructions", "offset", "handler"),
    [
        ((3, 12), bytes([114, 1, 140, 11]), 50, BODY),  # JUMP_BACKWARD to 30
        ((3, 12), bytes([114, 1, 246, 11]), 50, BODY),  # traced
        ((3, 13), bytes([97, 1, 77, 12]), 50, BODY),  # with a cache
        ((3, 12), bytes([114, 1, 140, 21]), 50, None),  # to 10: outside of the `with`
        ((3, 12), bytes([114, 1, 144, 1, 140, 11]), 52, None),  # an extended one leads further back
        ((3, 12), bytes([114, 1, 100, 11]), 50, None),  # another instruction behind the body
        ((3, 14), bytes([114, 1, 140, 11]), 50, None),  # its table has the jump
        ((3, 12), b"", 20, BODY),
        ((3, 12), b"", 400, None),
    ],
)
def test_a_jump_back_belongs_to_its_loop(
    version: Tuple[int, int], instructions: bytes, offset: int, handler: Optional[Handler]
) -> None:
    """3.12 and 3.13 leave it out of the table, though signal handlers and finalizers run there."""
    assert code(version, instructions).handler_at(offset) == handler
