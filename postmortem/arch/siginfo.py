"""``siginfo_t``: which signal it was, who or what sent it, and what it is about.

Layout: <asm-generic/siginfo.h> on x86-64, unchanged since Linux 2.6: si_signo, si_errno, si_code, 4 bytes of padding,
a union. Codes: the same file; those of SIGSYS and SIGTRAP up to Linux 6.12.
"""

from __future__ import annotations

import signal
import struct
from typing import Dict, NamedTuple, Optional, Tuple

#: Bytes of it that are looked at; the kernel writes 128.
SIZE = 32
_HEAD, _SENDER, _ADDRESS, _CALL = struct.Struct("<iii"), struct.Struct("<iI"), struct.Struct("<Q"), struct.Struct("<i")
_UNION, _CALL_AT = 16, 24

SI_USER, SI_KERNEL, SI_QUEUE, SI_TKILL = 0, 0x80, -1, -6
SENT = (SI_USER, SI_QUEUE, SI_TKILL)
_ANY = {
    SI_USER: "SI_USER", SI_KERNEL: "SI_KERNEL", SI_QUEUE: "SI_QUEUE", -2: "SI_TIMER", -3: "SI_MESGQ",
    -4: "SI_ASYNCIO", -5: "SI_SIGIO", SI_TKILL: "SI_TKILL", -7: "SI_DETHREAD", -60: "SI_ASYNCNL",
}  # fmt: skip
_NAMES: Dict[int, Tuple[str, ...]] = {
    signal.SIGSEGV: ("SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR", "SEGV_ACCADI", "SEGV_ADIDERR",
                     "SEGV_ADIPERR", "SEGV_MTEAERR", "SEGV_MTESERR", "SEGV_CPERR"),
    signal.SIGBUS: ("BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"),
    signal.SIGFPE: ("FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV",
                    "FPE_FLTSUB"),
    signal.SIGILL: ("ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC",
                    "ILL_BADSTK", "ILL_BADIADDR"),
    signal.SIGTRAP: ("TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"),
    signal.SIGSYS: ("SYS_SECCOMP", "SYS_USER_DISPATCH"),
}  # fmt: skip


class SigInfo(NamedTuple):
    """``address`` is what the kernel wrote there, for faults alone; ``sender``: (pid, uid), for signals that were sent."""

    signal: int
    code: Optional[int]  # None: it is not known
    address: Optional[int] = None
    sender: Optional[Tuple[int, int]] = None
    syscall: Optional[int] = None

    @property
    def code_name(self) -> Optional[str]:
        if self.code is None:
            return None
        names = _NAMES.get(self.signal, ())
        if 0 < self.code <= len(names):
            return names[self.code - 1]
        return _ANY.get(self.code)

    @property
    def is_fault(self) -> bool:
        """An instruction of the thread itself caused it."""
        return self.code is not None and self.code > 0 and self.signal in _NAMES and self.signal != signal.SIGSYS


def parse(raw: bytes) -> Optional[SigInfo]:
    """None when there is too little of it, or no signal in it."""
    if len(raw) < SIZE:
        return None
    number, _errno, code = _HEAD.unpack_from(raw)
    if not 0 < number <= 64:
        return None
    if code in SENT:
        return SigInfo(number, code, sender=_SENDER.unpack_from(raw, _UNION))
    if number == signal.SIGSYS:
        return SigInfo(number, code, syscall=_CALL.unpack_from(raw, _CALL_AT)[0])
    found = SigInfo(number, code)
    # With SI_KERNEL (a general protection fault) the kernel knows no address, and writes 0.
    known = found.is_fault and code != SI_KERNEL
    return found._replace(address=_ADDRESS.unpack_from(raw, _UNION)[0]) if known else found
