"""Positions of the registers in NT_PRSTATUS, by machine, and the roles of these registers.

Both machines store their registers 112 bytes into the note (<linux/elfcore.h>).

Sources:
- x86-64: user_regs_struct of <sys/user.h>.
- aarch64: user_pt_regs (regs[31], sp, pc, pstate) of <asm/ptrace.h>; the thread pointer has a note of its own
  (NT_ARM_TLS, <linux/elf.h>).
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple

EM_X86_64, EM_AARCH64 = 62, 183
#: Machines whose cores are read, as ``memory.elf.MACHINES`` names them.
READ = ("x86-64", "aarch64")
#: Name under which the value of NT_ARM_TLS (the register tpidr_el0) is stored.
THREAD_POINTER = "tpidr_el0"


class Registers(NamedTuple):
    """Layout of ``pr_reg``: its size in 64-bit ``words``, and ``places``, register name → index."""

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
    """Return whether registers belong to an aarch64 thread."""
    return "x8" in registers


def stack_pointer(registers: Mapping[str, int]) -> int:
    """Return the stack pointer; 0 if unknown."""
    return registers.get("rsp") or registers.get("sp") or 0


def program_counter(registers: Mapping[str, int]) -> int:
    """Return the program counter; 0 if unknown."""
    return registers.get("rip") or registers.get("pc") or 0
