"""Causes of signal handlers, from the frames that the kernel made for them.

The frame contains the return state and the processor's report of the last fault (arch/x86/include/asm/sigframe.h,
struct rt_sigframe; uapi/asm/sigcontext.h; asm/trapnr.h). It contains a siginfo only if the handler requested one
(SA_SIGINFO), which faulthandler does not.
"""

from __future__ import annotations

import signal
from typing import NamedTuple, Optional, Sequence

from ...arch import siginfo as si
from ...arch.instructions import operands
from ...arch.siginfo import SigInfo
from ...memory import ElfCore, Fault
from ...memory.elf import PF_W, PF_X
from ...native.stacks import CrashFrame, CrashPlace

#: Signals that handlers raise again for a fault of the program.
FAULTS = {
    signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS,
}  # fmt: skip
#: Offsets from the ucontext, which is at the stack pointer when the handler returns. On aarch64 the siginfo is there,
#: and nothing else is read (arch/arm64/kernel/signal.c, struct rt_sigframe).
_ERR, _TRAPNO, _CR2, _SIGINFO = 40 + 8 * 19, 40 + 8 * 20, 40 + 8 * 22, 304
#: Numbers of traps, and bits of a page fault's error code (asm/trap_pf.h).
_DIVIDE, _UNDEFINED, _PROTECTION, _PAGE_FAULT, _WRITES, _FETCHES = 0, 6, 13, 14, 2, 16
PF_R = 4
#: Bytes; operands are no wider.
_WIDE = 64
_ABORTS = ("abort", "__GI_abort")


class Interrupted(NamedTuple):
    """The signal that a handler was called for, and the memory access of a page fault."""

    cause: SigInfo
    access: Optional[str] = None


class _Context(NamedTuple):
    trap: int
    error: int
    address: int


def interrupted(
    core: ElfCore, ended: SigInfo, frames: Sequence[CrashFrame], place: CrashPlace
) -> Optional[Interrupted]:
    """Return the fault that a handler was called for; None if it was something else.

    - ``ended``: the signal that ended the process
    - ``place``: a frame below a handler's
    """
    before = frames[place.frame - 1] if 0 < place.frame < len(frames) else None
    if before is None or not before.trampoline or before.sp is None:
        return None
    on_x86 = core.machine_name == "x86-64"
    context = _context(core, before.sp) if on_x86 else None
    told = _told(core, before.sp + (_SIGINFO if on_x86 else 0))
    if told is not None:
        return Interrupted(told, _access(context) if context and _faulted(context, place) else None)
    if context is not None and ended.signal in (signal.SIGSEGV, signal.SIGABRT) and _faulted(context, place):
        return Interrupted(_segv(core, context), _access(context))
    return _raised_again(core, ended, frames, place, context)


def _raised_again(
    core: ElfCore, ended: SigInfo, frames: Sequence[CrashFrame], place: CrashPlace, context: Optional[_Context]
) -> Optional[Interrupted]:
    """Return the fault of a signal that its handler raised again; its cause is known for some traps only."""
    own = ended.sender is not None and ended.sender[0] in (core.pid, core.threads[0].tid)
    if ended.signal not in FAULTS or not own:
        return None
    below = [frame.function for frame in frames[place.frame : place.frame + 6]]
    if ended.signal == signal.SIGABRT and not any(name in _ABORTS for name in below):
        return None  # the handler of another signal aborted
    cause = SigInfo(ended.signal, None)
    text, trap = place.instruction or "", context.trap if context is not None else None
    if ended.signal == signal.SIGSEGV and trap == _PROTECTION:
        return Interrupted(cause._replace(code=si.SI_KERNEL))
    if ended.signal == signal.SIGFPE and trap == _DIVIDE and text.startswith(("div", "idiv")):
        return Interrupted(cause._replace(code=1))  # FPE_INTDIV
    if ended.signal == signal.SIGILL and trap == _UNDEFINED:
        return Interrupted(cause._replace(code=2))  # ILL_ILLOPN
    if ended.signal == signal.SIGBUS and context is not None and _faulted(context, place):
        return Interrupted(cause._replace(address=context.address), _access(context))
    return Interrupted(cause)


def _segv(core: ElfCore, context: _Context) -> SigInfo:
    """Return a SIGSEGV with the kernel's code: SEGV_ACCERR if a mapping refuses the access.

    A guard that glibc 2.42 puts into a mapping (madvise) counts as no mapping.
    """
    mapping = core.mapping(context.address)
    needed = {"read": PF_R, "write": PF_W, "execute": PF_X}[_access(context)]
    refused = mapping is not None and not mapping.flags & needed
    return SigInfo(signal.SIGSEGV, 2 if refused else 1, address=context.address)


def _told(core: ElfCore, at: int) -> Optional[SigInfo]:
    """Return the handler's siginfo; None if it requested none and the memory contains something else."""
    try:
        raw = core.read(at, si.SIZE)
    except Fault:
        return None
    cause = si.parse(raw)
    padded = int.from_bytes(raw[12:16], "little") == 0 and int.from_bytes(raw[4:8], "little") < 134
    return cause if cause is not None and cause.signal in FAULTS and cause.code_name and padded else None


def _context(core: ElfCore, ucontext: int) -> Optional[_Context]:
    try:
        return _Context(*(core.u64(ucontext + offset) for offset in (_TRAPNO, _ERR, _CR2)))
    except Fault:
        return None


def _faulted(context: _Context, place: CrashPlace) -> bool:
    """Return whether the handler was called for this page fault: its instruction touches the address."""
    if context.trap != _PAGE_FAULT:
        return False
    if context.address == place.registers.get("rip"):
        return True
    touched = [o.address for o in operands(place.instruction or "", place.registers)]
    return not touched or any(a is None or abs(context.address - a) < _WIDE for a in touched)


def _access(context: _Context) -> str:
    return "execute" if context.error & _FETCHES else "write" if context.error & _WRITES else "read"
