"""``siginfo_t``: a signal's number, cause, sender and fault address.

Layout: si_signo, si_errno, si_code, 4 bytes of padding, a union.

Sources:
- Layout on x86-64: <asm-generic/siginfo.h>, unchanged since Linux 2.6.
- Codes: the same file; for SIGSYS and SIGTRAP as of Linux 6.12.
"""

from __future__ import annotations

import signal
import struct
from typing import Dict, NamedTuple, Optional, Tuple

#: Bytes that ``parse`` needs; the kernel writes 128.
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
    """A decoded signal.

    Fields set only for some signals:
    - ``address``: fault address as the kernel wrote it; faults only.
    - ``sender``: (pid, uid); signals sent by a process only.
    - ``syscall``: system-call number; SIGSYS only.
    """

    signal: int
    code: Optional[int]  # None: unknown
    address: Optional[int] = None
    sender: Optional[Tuple[int, int]] = None
    syscall: Optional[int] = None

    @property
    def code_name(self) -> Optional[str]:
        """Symbolic name of the code, such as ``SEGV_MAPERR``; None if unknown."""
        if self.code is None:
            return None
        names = _NAMES.get(self.signal, ())
        if 0 < self.code <= len(names):
            return names[self.code - 1]
        return _ANY.get(self.code)

    @property
    def is_fault(self) -> bool:
        """Whether an instruction of the thread itself caused the signal."""
        return self.code is not None and self.code > 0 and self.signal in _NAMES and self.signal != signal.SIGSYS


def parse(raw: bytes) -> Optional[SigInfo]:
    """Decode a ``siginfo_t``; None if it is too short or holds no valid signal number."""
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
    # With SI_KERNEL (a general protection fault) the kernel does not know the address and writes 0.
    known = found.is_fault and code != SI_KERNEL
    return found._replace(address=_ADDRESS.unpack_from(raw, _UNION)[0]) if known else found
