"""Bounds of a thread's stack.

Cases:
- glibc thread: ``struct pthread``, to which fs points, has consecutive words stackblock, stackblock_size, guardsize,
  reported_guardsize. Their offset varies, so four consecutive words are sought that fit together.
- musl thread: ``musl.stack_of``.
- main thread: the kernel's stack ends with the strings of execve, to which AT_EXECFN and AT_RANDOM point, and grows
  until RLIMIT_STACK or the next mapping.

Sources:
- nptl/descr.h of glibc 2.3.3 to 2.41 (reported_guardsize since 2.4).
- mm/mmap.c of Linux: acct_stack_growth(), stack_guard_gap (256 pages).
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from ..memory import ElfCore, Fault
from . import musl

AT_RANDOM, AT_EXECFN = 25, 31
_PAGE = 4096
GAP = 256 * _PAGE
#: Words searched: struct pthread has 2304 bytes in glibc 2.31 to 2.41 on x86-64 and lies at the top of the thread's
#: stack.
_PTHREAD_WORDS = 320
_MOST = 1 << 40
_PF_W = 2


class Bounds(NamedTuple):
    """Addresses of a stack: [low, high) is usable, [guard, low) is not writable.

    ``limit``: size in bytes up to which the stack may grow; None if unknown.
    """

    guard: int
    low: int
    high: int
    limit: Optional[int] = None

    def near(self, sp: int) -> bool:
        """Return whether a stack pointer belongs to this stack, allowing for one large frame below the guard."""
        return self.guard - GAP <= sp <= self.high


def bounds(core: ElfCore, regs: Mapping[str, int], sp: int) -> Optional[Bounds]:
    """Return the bounds of the stack at ``sp``.

    None if it is neither the thread's original stack nor a mapping with a guard below it.
    """
    own = _of_pthread(core, regs.get("fs_base"))
    found = own or _of_main(core) or _of_mapping(core, sp)
    if found is not None and not found.near(sp):
        found = _of_mapping(core, sp)
    return found


def _of_pthread(core: ElfCore, pthread: Optional[int]) -> Optional[Bounds]:
    """Return the bounds recorded in a thread's descriptor; None for the main thread."""
    mapping = core.mapping(pthread) if pthread else None
    if not pthread or mapping is None:
        return None
    if musl.is_musl(core.files):
        stack = musl.stack_of(core, pthread)
        return Bounds(stack.guard, stack.low, stack.high, stack.high - stack.low) if stack is not None else None
    try:
        words = core.words(pthread, min(_PTHREAD_WORDS, (mapping.end - pthread) // 8))
    except Fault:
        return None
    for index in range(len(words) - 3):
        block, size, guard, reported = words[index : index + 4]
        aligned = not (block | guard) % _PAGE and 0 < size < _MOST
        if block and aligned and block < pthread < block + size and guard < size and reported <= guard:
            return Bounds(block, block + guard, block + size, size - guard)
    return None


def _of_main(core: ElfCore) -> Optional[Bounds]:
    """Return the bounds of the main thread's stack; its guard is the kernel's gap."""
    strings = core.auxv.get(AT_EXECFN) or core.auxv.get(AT_RANDOM)
    mapping = core.mapping(strings) if strings else None
    if mapping is None or not mapping.flags & _PF_W:
        return None
    return Bounds(mapping.start - GAP, mapping.start, mapping.end)


def _of_mapping(core: ElfCore, sp: int) -> Optional[Bounds]:
    """Return the bounds of a mapping that has a guard below it: a stack that another library or the program made."""
    mapping = core.mapping(sp)
    if mapping is None:
        return None
    if not mapping.flags:  # the stack pointer is in the guard already
        guard, mapping = mapping, core.mapping(mapping.end)
    else:
        below = core.mapping(mapping.start - 1)
        if below is None or below.flags:
            return None
        guard = below
    if mapping is None or not mapping.flags & _PF_W:
        return None
    return Bounds(guard.start, mapping.start, mapping.end)
