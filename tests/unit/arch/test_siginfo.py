"""What a siginfo says, by signal and code."""

from __future__ import annotations

import signal
import struct
from typing import Optional, Tuple

import pytest

from postmortem.arch.siginfo import SigInfo, parse

from ...support.crashing import fault, sent, siginfo


@pytest.mark.parametrize(
    ("raw", "name", "address"),
    [
        (fault(signal.SIGSEGV, 1, 0x10), "SEGV_MAPERR", 0x10),
        (fault(signal.SIGSEGV, 2, 0x10), "SEGV_ACCERR", 0x10),
        (fault(signal.SIGBUS, 2, 0x7000), "BUS_ADRERR", 0x7000),
        (fault(signal.SIGFPE, 1, 0x55), "FPE_INTDIV", 0x55),
        (fault(signal.SIGILL, 2, 0x55), "ILL_ILLOPN", 0x55),
        (fault(signal.SIGSEGV, 0x80, 0), "SI_KERNEL", None),
        (fault(signal.SIGSEGV, 77, 0), None, 0),
    ],
)
def test_a_fault_has_an_address(raw: bytes, name: Optional[str], address: Optional[int]) -> None:
    """But for one that the kernel has no address of: its 0 is no null pointer. A code that is not known has no name."""
    found = parse(raw)
    assert found is not None
    assert (found.code_name, found.address, found.sender, found.is_fault) == (name, address, None, True)


@pytest.mark.parametrize(("code", "name"), [(0, "SI_USER"), (-6, "SI_TKILL"), (-1, "SI_QUEUE")])
def test_a_signal_that_was_sent_has_a_sender(code: int, name: str) -> None:
    """And no address, although its bytes stand where that would be."""
    found = parse(sent(signal.SIGSEGV, code, 4711, 33))
    assert found == SigInfo(signal.SIGSEGV, code, None, (4711, 33))
    assert (found.code_name, found.is_fault) == (name, False)


def test_a_refused_system_call_has_its_number() -> None:
    """SIGSYS: the call's address, its number, the architecture."""
    found = parse(siginfo(signal.SIGSYS, 1, struct.pack("<QiI", 0x5555, 59, 0xC000003E)))
    assert found is not None and (found.code_name, found.syscall, found.address) == ("SYS_SECCOMP", 59, None)


@pytest.mark.parametrize("raw", [b"", b"\x0b" * 31, bytes(128), b"\xff" * 128])
def test_what_is_no_siginfo_is_none(raw: bytes) -> None:
    """Too short, or without a signal."""
    assert parse(raw) is None


@pytest.mark.parametrize("unknown", [(SigInfo(11, None), None, False)])
def test_a_code_may_be_unknown(unknown: Tuple[SigInfo, None, bool]) -> None:
    """Then nothing is said of a fault."""
    info, name, is_fault = unknown
    assert (info.code_name, info.is_fault) == (name, is_fault)
