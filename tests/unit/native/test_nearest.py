"""Names that gdb takes from the nearest symbol."""

from __future__ import annotations

import pytest

from postmortem.evidence import NativeFrame
from postmortem.memory import Segments
from postmortem.native.nearest import without_guesses

MUSL = "/lib/ld-musl-x86_64.so.1"
IN_CALL, COPYING, OUTSIDE = 0x1004, 0x1008, 0x5000
CODE = Segments({0x1000: b"\x90\x90\x0f\x05\x90\x90\xf3\xaa"})


@pytest.mark.parametrize(
    ("function", "module", "address", "name"),
    [
        ("memset", MUSL, IN_CALL, None),
        ("memset", "/usr/lib/x86_64-linux-musl/libc.so", IN_CALL, None),
        ("memset", MUSL, COPYING, "memset"),
        ("memset", MUSL, OUTSIDE, "memset"),
        ("poll", MUSL, IN_CALL, "poll"),
        ("memset", "/lib/x86_64-linux-gnu/libc.so.6", IN_CALL, "memset"),
    ],
)
def test_musls_memset_is_in_no_system_call(function: str, module: str, address: int, name: object) -> None:
    """Where the thread is in a system call the name is a neighbour's; anywhere else, and of any other library, it stays."""
    frames = (NativeFrame(function, module, address), NativeFrame("caller", "/usr/bin/python3", 0x2000))
    assert without_guesses({7: frames}, CODE)[7][0].function == name  # type: ignore[arg-type]
    assert without_guesses({7: frames, 8: ()}, CODE)[8] == ()  # type: ignore[arg-type]
