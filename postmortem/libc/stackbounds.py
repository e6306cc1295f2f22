"""Where the stack of a thread lies, and where it ends.

A thread of glibc's knows its own: ``struct pthread`` (nptl/descr.h), to which fs points, has the words stackblock,
stackblock_size, guardsize, reported_guardsize one after another, glibc 2.3.3 to 2.41 (the last one since 2.4); their
offset moves, so they are looked for by what they must say. musl's: memory/musl.py. The first thread's is what the kernel
made: it ends with the strings of execve, of which AT_EXECFN and AT_RANDOM are some, and grows until it meets its limit
(RLIMIT_STACK) or another mapping: mm/mmap.c, acct_stack_growth() and stack_guard_gap, 256 pages.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from ..memory import ElfCore, Fault
from . import musl

AT_RANDOM, AT_EXECFN = 25, 31
_PAGE = 4096
GAP = 256 * _PAGE
#: sizeof(struct pthread) is 2304 in glibc 2.31 to 2.41, x86-64; it lies at the top of the thread's stack.
_PTHREAD_WORDS = 320
_MOST = 1 << 40
_PF_W = 2


class Bounds(NamedTuple):
    """Usable are [low, high); below, down to ``guard``, nobody may write. ``limit``: bytes, None where it is not known."""

    guard: int
    low: int
    high: int
    limit: Optional[int] = None

    def near(self, sp: int) -> bool:
        """May a stack pointer be this stack's, be it as much as one large frame too deep?"""
        return self.guard - GAP <= sp <= self.high


def bounds(core: ElfCore, regs: Mapping[str, int], sp: int) -> Optional[Bounds]:
    """Of the stack that a thread uses; None when it is none that the thread was started with."""
    own = _of_pthread(core, regs.get("fs_base"))
    found = own or _of_main(core) or _of_mapping(core, sp)
    if found is not None and not found.near(sp):
        found = _of_mapping(core, sp)
    return found


def _of_pthread(core: ElfCore, pthread: Optional[int]) -> Optional[Bounds]:
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
    strings = core.auxv.get(AT_EXECFN) or core.auxv.get(AT_RANDOM)
    mapping = core.mapping(strings) if strings else None
    if mapping is None or not mapping.flags & _PF_W:
        return None
    return Bounds(mapping.start - GAP, mapping.start, mapping.end)


def _of_mapping(core: ElfCore, sp: int) -> Optional[Bounds]:
    """Another library's thread, or a stack of the program's own making: what has a guard below it is a stack."""
    mapping = core.mapping(sp)
    if mapping is None:
        return None
    if not mapping.flags:  # it has left it already
        guard, mapping = mapping, core.mapping(mapping.end)
    else:
        below = core.mapping(mapping.start - 1)
        if below is None or below.flags:
            return None
        guard = below
    if mapping is None or not mapping.flags & _PF_W:
        return None
    return Bounds(guard.start, mapping.start, mapping.end)
