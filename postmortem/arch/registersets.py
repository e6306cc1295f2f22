"""What differs between the machines whose cores are read: where NT_PRSTATUS has which register, and what these are for.

x86-64: <sys/user.h>, user_regs_struct. aarch64: <asm/ptrace.h>, user_pt_regs (regs[31], sp, pc, pstate); the thread pointer is
in a note of its own (NT_ARM_TLS, <linux/elf.h>). Both have their registers behind 112 bytes (<linux/elfcore.h>).
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple

EM_X86_64, EM_AARCH64 = 62, 183
#: Names of memory.elf: cores of others are not read.
READ = ("x86-64", "aarch64")
#: tpidr_el0; what NT_ARM_TLS says is kept under that name.
THREAD_POINTER = "tpidr_el0"


class Registers(NamedTuple):
    """``words``: of 64 bits, in pr_reg. ``places``: name → index, of what is asked for."""

    words: int
    places: Dict[str, int]


LAYOUTS: Dict[int, Registers] = {
    EM_X86_64: Registers(27, {
        "r15": 0, "r14": 1, "r13": 2, "r12": 3, "rbp": 4, "rbx": 5, "r10": 7, "r9": 8, "r8": 9, "rax": 10, "rcx": 11,
        "rdx": 12, "rsi": 13, "rdi": 14, "orig_rax": 15, "rip": 16, "rsp": 19, "fs_base": 21,
    }),
    EM_AARCH64: Registers(34, {**{f"x{number}": number for number in range(31)}, "sp": 31, "pc": 32}),
}  # fmt: skip


def is_aarch64(registers: Mapping[str, int]) -> bool:
    return "x8" in registers


def stack_pointer(registers: Mapping[str, int]) -> int:
    """0 where it is not known."""
    return registers.get("rsp") or registers.get("sp") or 0


def program_counter(registers: Mapping[str, int]) -> int:
    """0 where it is not known."""
    return registers.get("rip") or registers.get("pc") or 0
