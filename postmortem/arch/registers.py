"""General registers as the kernel lays them out, and what of them is wanted here.

x86-64: struct user_regs_struct of <sys/user.h>; aarch64: struct user_pt_regs of <asm/ptrace.h>. Where a thread cannot be
stopped, /proc/PID/task/TID/syscall (proc(5)) tells the registers that matter for what it waits in.
"""

from __future__ import annotations

import struct
from typing import Dict, NamedTuple, Optional, Sequence, Tuple


class _Layout(NamedTuple):
    """Indices of 8-byte registers. ``thread_pointer`` is None where it is in a set of its own."""

    words: int
    arguments: Tuple[int, ...]
    number: int
    sp: int
    pc: int
    thread_pointer: Optional[int]


_LAYOUTS: Dict[str, _Layout] = {
    "x86_64": _Layout(27, (14, 13, 12, 7, 9, 8), 15, 19, 16, 21),  # rdi rsi rdx r10 r8 r9, orig_rax, rsp, rip, fs_base
    "aarch64": _Layout(34, (0, 1, 2, 3, 4, 5), 8, 31, 32, None),
}


def from_syscall(machine: str, number: int, arguments: Sequence[int], sp: int, pc: int) -> bytes:
    """The general registers of a thread in a system call, as far as /proc/PID/syscall tells them; the others are 0."""
    layout = _LAYOUTS[machine]
    words = [0] * layout.words
    for index, value in zip(layout.arguments, arguments):
        words[index] = value
    words[layout.number] = number & (1 << 64) - 1
    words[layout.sp], words[layout.pc] = sp, pc
    return struct.pack(f"<{layout.words}Q", *words)


class Places(NamedTuple):
    """Where a thread is: addresses, 0 where unknown."""

    sp: int
    pc: int
    thread_pointer: int


def places(machine: str, general: bytes) -> Places:
    """Out of a general register set. All 0 for one of another size (a 32-bit program)."""
    layout = _LAYOUTS[machine]
    if len(general) != layout.words * 8:
        return Places(0, 0, 0)
    words = struct.unpack(f"<{layout.words}Q", general)
    pointer = words[layout.thread_pointer] if layout.thread_pointer is not None else 0
    return Places(words[layout.sp], words[layout.pc], pointer)
