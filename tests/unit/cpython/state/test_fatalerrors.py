"""A fatal error's message, found by what the stack points to."""

from __future__ import annotations

import struct
from typing import Any, Dict, Optional, Sequence

from postmortem.cpython.state.fatalerrors import FatalError, inferred, split
from postmortem.memory import Segments

STACK, TEXTS = 0x7FFC_0000, 0x40_0000
MESSAGE = "the function must be called with the GIL held, but the GIL is released"


def found(
    texts: Dict[int, str], words: Sequence[int], registers: Optional[Dict[str, int]] = None
) -> Optional[FatalError]:
    constants = bytearray(0x1000)
    for offset, text in texts.items():
        constants[offset : offset + len(text)] = text.encode()
    memory: Any = Segments({STACK: struct.pack(f"<{len(words)}Q", *words), TEXTS: bytes(constants)})
    high = STACK + 8 * len(words)
    return inferred(memory, STACK, high, registers or {}, lambda address: TEXTS <= address < TEXTS + 0x1000)


def test_name_and_message_stand_side_by_side() -> None:
    """As fatal_error keeps them, among other words."""
    words = [1, STACK, TEXTS + 0x100, TEXTS, 0, 0xDEADBEEF]
    assert found({0: MESSAGE, 0x100: "PyThreadState_Get"}, words) == FatalError(MESSAGE, "PyThreadState_Get")


def test_registers_that_calls_preserve_count_too() -> None:
    """A message need not have been put on the stack."""
    assert found({0: MESSAGE}, [1, 2], {"r12": TEXTS, "rdi": TEXTS}) == FatalError(MESSAGE)
    assert found({0: MESSAGE}, [1, 2], {"rdi": TEXTS}) is None


def test_the_message_beside_a_name_is_preferred() -> None:
    """Other sentences that a frame points to are left over from elsewhere."""
    words = [TEXTS + 0x200, 0, 0, 0, 0, 0, 0, 0, TEXTS + 0x100, TEXTS]
    texts = {0: MESSAGE, 0x100: "PyGILState_Release", 0x200: "some other text"}
    assert found(texts, words) == FatalError(MESSAGE, "PyGILState_Release")


def test_what_fatal_error_writes_itself_is_not_the_message() -> None:
    """Its own texts, single words, and bytes that nobody reads are none."""
    texts = {
        0: "Fatal Python error: ",
        0x100: "Python runtime state: ",
        0x200: "\n",
        0x300: "initialized",
        0x400: "a\x07 b c",
    }
    assert found(texts, [TEXTS + offset for offset in texts]) is None


def test_up_to_3_8_the_message_has_the_name() -> None:
    """It is taken off; another colon is not one."""
    assert split("PyThreadState_Get: no current thread", None) == FatalError("no current thread", "PyThreadState_Get")
    assert split("cannot open: no file", None) == FatalError("cannot open: no file")
    assert split("a: b", "f") == FatalError("a: b", "f")


def test_a_stack_that_is_not_there() -> None:
    """No words, no message."""
    memory: Any = Segments({})
    assert inferred(memory, 0, 4096, {"rbx": 8}, lambda address: True) is None
    assert inferred(memory, 4096, 0, {}, lambda address: True) is None
