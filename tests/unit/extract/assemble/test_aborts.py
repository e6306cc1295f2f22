"""Why native code called abort(), from the stack of its thread."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import List, Optional

import pytest

from postmortem.evidence import Abort
from postmortem.extract.assemble.aborts import abort_of
from postmortem.memory import ElfCore
from postmortem.native.stacks import CrashFrame

from ....support.crashing import Part, R, X, crashed, sent

LIBRARY, PYTHON, DATA = 0x40_0000, 0x50_0000, 0x60_0000
STACK, TOP = 0x7FFC_0000_0000, 0x7FFC_0001_0000
SP = TOP - 0x2000
HEADER, INFO, NAME, FILE, LOCATION = DATA + 0x100, DATA + 0x200, DATA + 0x300, DATA + 0x400, DATA + 0x500


def core(tmp_path: Path, *words: int, below: bytes = b"") -> ElfCore:
    """``words``: of the stack from SP on; ``below``: the text that ends the unused part of it."""
    data = bytearray(0x1000)
    data[0x100 - 80 : 0x100 - 72] = struct.pack("<Q", INFO)
    data[0x100:0x108] = struct.pack("<Q", int.from_bytes(b"GNUCC++\0", "big"))
    data[0x200:0x210] = struct.pack("<QQ", 1, NAME)
    data[0x300:0x30C] = b"St9bad_alloc"
    data[0x400:0x40C] = b"src/shelf.rs"
    data[0x500:0x518] = struct.pack("<QQII", FILE, 12, 88, 5)
    stack = below.rjust(SP - STACK, b"\0") + struct.pack(f"<{len(words)}Q", *words)
    parts = [Part(LIBRARY, bytes(64), R | X), Part(PYTHON, bytes(64), R | X), Part(DATA, bytes(data)),
             Part(STACK, stack.ljust(TOP - STACK, b"\0"))]  # fmt: skip
    files = [(LIBRARY, LIBRARY + 0x1000, 0, "/app/libgrid.so"), (PYTHON, PYTHON + 0x1000, 0, "/usr/bin/python3")]
    return crashed(tmp_path / "core", parts, sent(6, -6, 77), number=6, files=files, rsp=SP)


def frames(*names: Optional[str]) -> List[CrashFrame]:
    """abort(), functions of the library, then the interpreter, 512 bytes further up."""
    own = [CrashFrame(LIBRARY, name, SP + 64 * at) for at, name in enumerate(("abort", *names))]
    return [*own, CrashFrame(PYTHON, "cfunction_call", SP + 512)]


def test_an_exception_that_nobody_caught(tmp_path: Path) -> None:
    """Its class; recorded where std::terminate is on the stack, else only inferred."""
    found = abort_of(core(tmp_path, 0, HEADER), frames("std::terminate()", "grid_open"))
    assert found == Abort("exception", "std::bad_alloc", basis="recorded")
    found = abort_of(core(tmp_path, 0, HEADER), frames("grid_open"))
    assert found is not None and found.basis == "inferred"


def test_an_exception_of_the_caller_does_not_count(tmp_path: Path) -> None:
    """Only the stack of the code that gave up is searched, not that of the interpreter below it."""
    far = [0] * 64 + [HEADER]
    found = abort_of(core(tmp_path, *far), frames("std::terminate()", "grid_open"))
    assert found == Abort("terminate", basis="inferred")


@pytest.mark.parametrize(("name", "basis"), [("rust_panic", "recorded"), (None, "inferred")])
def test_a_panic(tmp_path: Path, name: Optional[str], basis: str) -> None:
    """Its line; a stripped library has no names, so that it is inferred from the line alone."""
    found = abort_of(core(tmp_path, 0, LOCATION), frames(name, "shelf_open"))
    assert found == Abort("panic", place="src/shelf.rs:88:5", basis=basis)  # type: ignore[arg-type]


def test_a_check_of_its_own(tmp_path: Path) -> None:
    """The line that it printed is all that is left."""
    found = abort_of(core(tmp_path, below=b"\0check failed: rows > 0 (grid.c:88)\n" + bytes(900)), frames("grid_open"))
    assert found == Abort("call", message="check failed: rows > 0 (grid.c:88)", basis="inferred")


def test_another_signal_is_none(tmp_path: Path) -> None:
    """Without abort() on the stack nobody gave up."""
    assert abort_of(core(tmp_path), [CrashFrame(LIBRARY, "grid_open", SP)]) is None
    assert abort_of(core(tmp_path), [CrashFrame(LIBRARY, "abort", None)]) is None
