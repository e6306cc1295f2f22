"""System calls of threads in aarch64 cores.

The kernel discards the number before it writes the core (NT_ARM_SYSTEM_CALL is -1). The registers remain: the number in
x8, arguments from x0 on (arch/arm64/kernel/signal.c, do_signal):

- a call to be restarted: x0 as before the call, the instruction pointer on ``svc``
- any other interrupted call: the result (-EINTR) in x0, the instruction pointer behind ``svc``
- qemu-user: x0 as before the call, the instruction pointer behind ``svc``

The code at the instruction pointer therefore shows whether it is a call. Where that code is unavailable, only a futex
can be recognised: it has too many arguments to match by chance.
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
    """Unknown whether the thread is in a system call; the message gives the reason."""


def made(registers: Mapping[str, int], memory: Memory) -> Optional[Call]:
    """Return (name, arguments) of the current system call; None if the thread was running code.

    An argument overwritten by the kernel with an error code is returned unchanged: it is neither an address nor a
    descriptor. Raises Untold.
    """
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
    """Return whether the call before the instruction pointer is unfinished.

    True if x0 is an error code, for a futex with plausible arguments (qemu keeps x0), and for every other call.
    """
    return _WORD - args[0] <= _MOST_ERRORS or number != _FUTEX or _is_futex(number, args, memory)


def _is_futex(number: int, args: Tuple[int, ...], memory: Memory) -> bool:
    """Return whether the arguments are those of a futex wait on a readable word."""
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
