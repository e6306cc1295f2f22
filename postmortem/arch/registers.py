"""General registers as the kernel lays them out, and those that locate a thread.

Where a thread cannot be stopped, /proc/PID/task/TID/syscall (proc(5)) provides the registers that describe its wait.

Sources:
- x86-64: struct user_regs_struct of <sys/user.h>.
- aarch64: struct user_pt_regs of <asm/ptrace.h>.
"""

from __future__ import annotations

import struct
from typing import Dict, NamedTuple, Optional, Sequence, Tuple


class _Layout(NamedTuple):
    """The general register set of one machine: its size in 8-byte words, and the index of each register in it.

    thread_pointer: None where it is in a register set of its own (NT_ARM_TLS).
    """

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
    """Build a general register set from the fields of /proc/PID/syscall; all other registers are 0."""
    layout = _LAYOUTS[machine]
    words = [0] * layout.words
    for index, value in zip(layout.arguments, arguments):
        words[index] = value
    words[layout.number] = number & (1 << 64) - 1
    words[layout.sp], words[layout.pc] = sp, pc
    return struct.pack(f"<{layout.words}Q", *words)


class Places(NamedTuple):
    """Addresses that locate a thread: stack pointer, program counter, thread pointer; 0 if unknown."""

    sp: int
    pc: int
    thread_pointer: int


def places(machine: str, general: bytes) -> Places:
    """Extract the locating registers from a general register set.

    All are 0 if the set has another size (a 32-bit program).
    """
    layout = _LAYOUTS[machine]
    if len(general) != layout.words * 8:
        return Places(0, 0, 0)
    words = struct.unpack(f"<{layout.words}Q", general)
    pointer = words[layout.thread_pointer] if layout.thread_pointer is not None else 0
    return Places(words[layout.sp], words[layout.pc], pointer)
