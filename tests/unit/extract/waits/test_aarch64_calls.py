"""System calls told by the registers and the code of an aarch64 thread."""

from __future__ import annotations

from typing import Dict, Optional

import pytest

from postmortem.arch import syscalls
from postmortem.extract.waits import threadwaits
from postmortem.extract.waits.aarch64_calls import Untold, made
from postmortem.extract.waits.threadwaits import SystemCall
from postmortem.memory import Segments

CODE, WORD = 0x1000, 0x2000
SVC, NOP = b"\x01\x00\x00\xd4", b"\x1f\x20\x03\xd5"
EINTR = (1 << 64) - 4
WAIT_BITSET = 0x189


def _registers(number: int, pc: int, *args: int) -> Dict[str, int]:
    given = {f"x{index}": value for index, value in enumerate([*args, *[0] * (6 - len(args))])}
    return {**given, "x8": number, "pc": pc, "sp": 0x7000}


def _memory(code: Optional[bytes]) -> Segments:
    return Segments({WORD: bytes(8), **({CODE: code} if code is not None else {})})


def test_a_call_that_is_made_again_stands_on_svc() -> None:
    """The kernel has put the first argument back."""
    assert made(_registers(63, CODE + 4, 3, 0x5000, 1), _memory(NOP + SVC + NOP)) == ("read", (3, 0x5000, 1, 0, 0, 0))


def test_a_call_that_was_interrupted_stands_behind_svc() -> None:
    """Its first argument is lost: what is there is no descriptor."""
    found = made(_registers(22, CODE + 8, EINTR, 0x5000, 8), _memory(NOP + SVC + NOP))
    assert found == ("epoll_pwait", (EINTR, 0x5000, 8, 0, 0, 0))


def test_a_thread_that_runs_code_is_in_no_call() -> None:
    """Whatever its registers are left with."""
    assert made(_registers(98, CODE, WORD, WAIT_BITSET), _memory(NOP + NOP + SVC)) is None
    assert threadwaits.in_core(_registers(98, CODE, WORD, WAIT_BITSET), None, _memory(NOP + NOP + SVC)) is None


def test_a_futex_that_has_just_returned_is_over() -> None:
    """Behind svc, with a result that is no word to wait on."""
    assert made(_registers(98, CODE + 8, 0, WAIT_BITSET), _memory(NOP + SVC + NOP)) is None
    assert (
        made(_registers(98, CODE + 8, WORD, WAIT_BITSET), _memory(NOP + SVC + NOP)) is not None
    )  # as qemu-user has it


def test_without_the_code_only_a_futex_is_told() -> None:
    """Its arguments are a word that is there and an operation that waits; everything else is untold, never "running"."""
    assert made(_registers(98, CODE, WORD, WAIT_BITSET), _memory(None)) == ("futex", (WORD, WAIT_BITSET, 0, 0, 0, 0))
    for registers in (
        _registers(63, CODE, 3, 0x5000, 1),
        _registers(98, CODE, WORD + 1, WAIT_BITSET),
        _registers(98, CODE, 0x9000, WAIT_BITSET),
        _registers(98, CODE, WORD, 1),  # a wake
        _registers(98, CODE, WORD, 0x12345600),
    ):
        with pytest.raises(Untold, match="not in the core"):
            made(registers, _memory(None))


def test_a_restarted_call_is_what_it_was_before() -> None:
    """As /proc said before the stop, or not known."""
    registers = _registers(128, CODE + 4, 1, 2)
    before = SystemCall("ppoll", (1, 2, 3, 4, 5, 6))
    assert threadwaits.in_core(registers, before, _memory(NOP + SVC)) == before
    assert not threadwaits.is_known(threadwaits.in_core(registers, None, _memory(NOP + SVC)))


def test_the_numbers_are_the_machines_own() -> None:
    """Those from 424 on are the same everywhere."""
    for number, name in (
        (98, "futex"),
        (101, "nanosleep"),
        (115, "clock_nanosleep"),
        (260, "wait4"),
        (73, "ppoll"),
        (243, "recvmmsg"),
        (291, "statx"),
        (434, "pidfd_open"),
    ):
        assert syscalls.name(number, "aarch64") == name
    assert syscalls.name(250, "aarch64") == "syscall_250"
    assert (syscalls.name(98), syscalls.name(98, "riscv64")) == ("getrusage", "syscall_98")
