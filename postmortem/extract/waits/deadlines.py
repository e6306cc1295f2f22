"""When a thread's timed system call gives up.

- Absolute deadlines lie in memory: futexes, ``clock_nanosleep`` with TIMER_ABSTIME.
- What remains of a relative one is written there when a signal or a stop interrupts the call: ``select``, ``ppoll``,
  ``nanosleep``.
- ``poll``, ``epoll_wait`` and FUTEX_WAIT leave nothing. CPython keeps their deadline meanwhile, in a variable of the
  C function that waits: it resumes a call that a signal ended with the time that is left.

Sources: futex(2), clock_nanosleep(2), select(2), ppoll(2); kernel/futex/syscalls.c; poll_select_finish in fs/select.c;
do_nanosleep in kernel/time/hrtimer.c. sock_call_ex in Modules/socketmodule.c; poll, epoll and devpoll in
Modules/selectmodule.c; acquire_timed in Modules/_threadmodule.c: 3.8-3.15, ``deadline`` or ``endtime`` in nanoseconds
of CLOCK_MONOTONIC.
"""

from __future__ import annotations

from typing import Dict, List, Optional

from ...arch.registersets import is_aarch64, stack_pointer
from ...libc.futexes import LOCK_PI, WAIT, FutexCall
from ...memory import Fault, Memory
from ..recorded.clocks import Clocks
from .threadwaits import SystemCall, timespec

_CLOCK_REALTIME, _CLOCK_MONOTONIC, _TIMER_ABSTIME = 0, 1, 1
_FUTEX_CLOCK_REALTIME = 0x100
#: Registers that a function leaves as they were (System V ABI of x86-64, AAPCS64).
_KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")
_KEPT_OF_AARCH64 = tuple(f"x{number}" for number in range(19, 30))
#: Errors from ERESTARTSYS to ERESTART_RESTARTBLOCK (include/linux/errno.h): what an interrupted call returned.
_RESTARTS = range(-516, -511)
#: Where the remaining time is written: argument of the call.
_LEFT = {"select": 4, "pselect6": 4, "ppoll": 2, "nanosleep": 1, "clock_nanosleep": 3}
_RELATIVE = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "rt_sigtimedwait")
#: Words of the stack above its pointer in which the waiting C function keeps its variables: its own frame and those of
#: the few functions between it and the call.
_NEAR = 256
_NANO = 10**9
#: Nanoseconds by which poll's milliseconds may exceed the time that was given, and a clock tick the start of the process.
_ROUNDED = 10**7


def remaining(
    call: SystemCall,
    regs: Dict[str, int],
    memory: Memory,
    clocks: Clocks,
    given: Optional[float],
    in_python: bool,
) -> Optional[float]:
    """Return the seconds until a system call gives up, at the stop; None if unknown or without a limit.

    - ``given``: the limit of a relative call in seconds; None if unknown
    - ``in_python``: whether a C function of the interpreter made the call
    """
    name, args = call
    if name == "futex":
        futex = FutexCall.of(args)
        if not futex.timeout or not futex.sleeps:
            return None
        then = timespec(memory, futex.timeout)
        if futex.command == WAIT:
            return _kept(regs, memory, clocks, then) if in_python else None
        by_date = futex.operation & _FUTEX_CLOCK_REALTIME or futex.command == LOCK_PI
        return clocks.until_date(then) if by_date else clocks.until(then)
    if name == "clock_nanosleep" and args[1] & _TIMER_ABSTIME:
        then = timespec(memory, args[2])
        if args[0] == _CLOCK_REALTIME:
            return clocks.until_date(then)
        return clocks.until(then) if args[0] == _CLOCK_MONOTONIC else None
    left = _written(name, args[_LEFT[name]], regs, memory) if name in _LEFT else None
    if left is None and in_python and name in _RELATIVE:
        left = _kept(regs, memory, clocks, given)
    return None if left is None else round(left, clocks.digits)


def _written(name: str, address: int, regs: Dict[str, int], memory: Memory) -> Optional[float]:
    """Return the remaining time that the kernel wrote when it interrupted a call; None if it did not."""
    if not address or not _interrupted(regs):
        return None
    return timespec(memory, address, 10**6 if name == "select" else _NANO)


def _interrupted(regs: Dict[str, int]) -> bool:
    """Return whether a thread was taken out of its call.

    On aarch64 it always was: the instruction is made ready to be executed again. Elsewhere a thread that could not be
    stopped shows the call as it began.
    """
    if is_aarch64(regs):
        return True
    returned = regs.get("rax", 0)
    return (returned - (1 << 64) if returned >> 63 else returned) in _RESTARTS


def _kept(regs: Dict[str, int], memory: Memory, clocks: Clocks, given: Optional[float]) -> Optional[float]:
    """Return what remains until the deadline that a C function keeps, by its registers and stack; None unless unique.

    A word is taken for it if it lies ahead, by no more than ``given``. Of several, those are not that are addresses, the limit
    itself, or the end of a wait that would have begun before the process did.
    """
    if given is None or clocks.monotonic is None:
        return None
    now, limit = int(clocks.monotonic * _NANO), int(given * _NANO)
    found = {word for word in _words(regs, memory) if now < word <= now + limit + _ROUNDED}
    if len(found) > 1:
        earliest = int(((clocks.started or 0.0) + given) * _NANO) - _ROUNDED
        found = {word for word in found if word >= earliest and word != limit and not _is_address(memory, word)}
    return round((found.pop() - now) / _NANO, clocks.digits) if len(found) == 1 else None


def _words(regs: Dict[str, int], memory: Memory) -> List[int]:
    """Return the kept registers and the words above the stack pointer."""
    words = [regs.get(name, 0) for name in (_KEPT_OF_AARCH64 if is_aarch64(regs) else _KEPT)]
    at, count = stack_pointer(regs), _NEAR
    end = at + 8 * _NEAR
    while at and count and at < end:
        try:
            words += memory.words(at, count)
            at += 8 * count
        except Fault:
            count //= 2  # the stack ends before
    return words


def _is_address(memory: Memory, word: int) -> bool:
    try:
        memory.read(word, 1)
    except Fault:
        return False
    return True
