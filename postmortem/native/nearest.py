"""Names that gdb gives to code for want of a better one: of the nearest symbol before it, however far that is.

musl exports its routines in assembler without sizes, and behind the last of them, ``memset``, lies without any name the one
place from which all system calls are made that may block (src/thread/x86_64/syscall_cp.s). These routines make none.
"""

from __future__ import annotations

from typing import Dict, Mapping, Tuple

from ..evidence import NativeFrame
from ..evidence import replace as changed
from ..libc.musl import is_of_musl
from ..memory import Fault, Image

#: ``syscall``, before the address to which the kernel returns (x86-64).
_SYSCALL = b"\x0f\x05"
_MAKE_NO_CALL = frozenset(("memset", "memcpy", "memmove", "sigsetjmp", "__sigsetjmp"))


def without_guesses(stacks: Mapping[int, Tuple[NativeFrame, ...]], image: Image) -> Dict[int, Tuple[NativeFrame, ...]]:
    """The stacks; an innermost frame of musl's that is in a system call has no such name in them."""
    return {tid: _without_guess(frames, image) for tid, frames in stacks.items()}


def _without_guess(frames: Tuple[NativeFrame, ...], image: Image) -> Tuple[NativeFrame, ...]:
    if not frames or frames[0].function not in _MAKE_NO_CALL or not is_of_musl(frames[0].module or ""):
        return frames
    try:
        if image.read(frames[0].address - len(_SYSCALL), len(_SYSCALL)) != _SYSCALL:
            return frames
    except Fault:
        return frames
    return (changed(frames[0], function=None), *frames[1:])
