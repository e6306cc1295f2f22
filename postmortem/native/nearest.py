"""Function names that gdb guessed wrong: it takes the nearest symbol before an address, however far away.

musl's assembler routines have no sizes. Behind the last of them, ``memset``, lies the unnamed code that makes all
blocking system calls (src/thread/x86_64/syscall_cp.s): gdb calls it ``memset``. The routines make no system calls.
"""

from __future__ import annotations

from typing import Dict, Mapping, Tuple

from ..evidence import NativeFrame
from ..evidence import replace as changed
from ..libc.musl import is_of_musl
from ..memory import Fault, Image

#: ``syscall``, just before the address to which the kernel returns (x86-64).
_SYSCALL = b"\x0f\x05"
_MAKE_NO_CALL = frozenset(("memset", "memcpy", "memmove", "sigsetjmp", "__sigsetjmp"))


def without_guesses(stacks: Mapping[int, Tuple[NativeFrame, ...]], image: Image) -> Dict[int, Tuple[NativeFrame, ...]]:
    """Return the stacks without such a name on a musl frame that is in a system call."""
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
