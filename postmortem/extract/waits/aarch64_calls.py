"""The system call that a thread of an aarch64 core was in.

The kernel forgets the number before it writes the core (NT_ARM_SYSTEM_CALL is -1 then), and what remains are the registers:
the number in x8, arguments from x0 on, all as before the call where it would be restarted, with the instruction pointer back
on ``svc``; else with the result in x0, -EINTR here, and the instruction pointer behind it (arch/arm64/kernel/signal.c,
do_signal). So the code says whether it is a call. qemu-user leaves the instruction pointer behind ``svc``, and x0 as it was.
Where the code is not at hand, only a futex can be told: its arguments are too many to be there by chance.
"""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

from ...arch import syscalls
from ...libc.futexes import FutexCall
from ...memory import Fault, Memory

#: ``svc #0``
_SVC = 0xD4000001
_ARGUMENTS = ("x0", "x1", "x2", "x3", "x4", "x5")
_FUTEX = 98
_MOST_ERRORS = 4095
_WORD = 1 << 64

Call = Tuple[str, Tuple[int, int, int, int, int, int]]


class Untold(Exception):
    """Whether it is in a system call cannot be told; the message says why."""


def made(registers: Mapping[str, int], memory: Memory) -> Optional[Call]:
    """(name, arguments); None of a thread that ran code. An argument that the kernel has overwritten with an error is
    passed on as it is: it is no address and no descriptor. Raises Untold."""
    number, pc = registers["x8"], registers.get("pc", 0)
    args = tuple(registers.get(name, 0) for name in _ARGUMENTS)
    here, before = _code(memory, pc), _code(memory, pc - 4)
    if here is None and before is None:
        if _is_futex(number, args, memory):
            return "futex", args  # type: ignore[return-value]
        raise Untold("the code that it ran is not in the core, and its file not here")
    if here != _SVC and (before != _SVC or not _interrupted(number, args, memory)):
        return None
    return syscalls.name(number, "aarch64"), args  # type: ignore[return-value]


def _interrupted(number: int, args: Tuple[int, ...], memory: Memory) -> bool:
    """Behind the call: is it not over yet? A result other than an error was there already, but arguments may look so."""
    return _WORD - args[0] <= _MOST_ERRORS or number != _FUTEX or _is_futex(number, args, memory)


def _is_futex(number: int, args: Tuple[int, ...], memory: Memory) -> bool:
    """A wait, for a word that is there."""
    call = FutexCall.of(args)
    if number != _FUTEX or not call.sleeps or call.word % 4 or call.operation >> 9:
        return False
    try:
        memory.u32(call.word)
    except Fault:
        return False
    return True


def _code(memory: Memory, address: int) -> Optional[int]:
    try:
        return memory.u32(address)
    except Fault:
        return None
