"""Remaining time of a system call, from its arguments, its registers and its stack."""

from __future__ import annotations

import struct
from typing import Dict, Optional

import pytest

from postmortem.extract.recorded.clocks import NO_CLOCKS, Clocks
from postmortem.extract.waits.deadlines import remaining
from postmortem.extract.waits.threadwaits import SystemCall
from postmortem.memory import Segments

CLOCKS = Clocks(1_700_000_000.0, 5_000.0)
THEN, STACK = 0x1000, 0x7000
RESTARTED = (1 << 64) - 514  # -ERESTARTNOHAND


def left(
    name: str,
    *args: int,
    then: float = 0.0,
    stack: bytes = b"",
    regs: Optional[Dict[str, int]] = None,
    given: Optional[float] = None,
    clocks: Clocks = CLOCKS,
    in_python: bool = True,
    unit: int = 10**9,
) -> Optional[float]:
    """Return the remaining time of a call with a timespec of ``then`` at THEN, and these bytes above the stack pointer."""
    whole = int(then)
    memory = Segments({THEN: struct.pack("<qq", whole, round((then - whole) * unit)), STACK: stack})
    call = SystemCall(name, (*args, 0, 0, 0, 0, 0, 0)[:6])  # type: ignore[arg-type]
    return remaining(call, {"rsp": STACK, **(regs or {})}, memory, clocks, given, in_python)


@pytest.mark.parametrize(
    ("operation", "then", "seconds"),
    [
        (0x89, 5_012.5, 12.5),  # FUTEX_WAIT_BITSET, private: CLOCK_MONOTONIC
        (0x189, 1_700_000_060.0, 60.0),  # with FUTEX_CLOCK_REALTIME
        (0x89, 4_999.0, -1.0),
        (0x86, 1_700_000_001.0, 1.0),  # FUTEX_LOCK_PI has always been by the date
        (0x8D, 5_001.0, 1.0),  # FUTEX_LOCK_PI2
        (0x80, 30.0, None),  # FUTEX_WAIT is relative
        (0x81, 5_001.0, None),  # FUTEX_WAKE
    ],
)
def test_futexes(operation: int, then: float, seconds: Optional[float]) -> None:
    """Absolute, by the clock that the operation names."""
    assert left("futex", 0x10, operation, 0, THEN, then=then) == seconds


def test_a_futex_without_a_limit_or_with_an_unreadable_one() -> None:
    """Nothing remains of what has no limit; what cannot be read, or cannot be a time, is unknown."""
    assert left("futex", 0x10, 0x89, 0, 0) is None
    assert left("futex", 0x10, 0x89, 0, 0x9999) is None
    assert left("futex", 0x10, 0x89, 0, THEN, then=-5.0) is None
    assert left("futex", 0x10, 0x89, 0, THEN, then=2.0**50) is None


def test_without_clocks_nothing_is_told() -> None:
    """A core holds no now; another time namespace has a CLOCK_MONOTONIC of its own; an estimate has no fraction."""
    for operation in (0x89, 0x189):
        assert left("futex", 0x10, operation, 0, THEN, then=5_001.0, clocks=NO_CLOCKS) is None
    assert left("futex", 0x10, 0x89, 0, THEN, then=5_001.0, clocks=Clocks(1_700_000_000.0, None)) is None
    assert left("futex", 0x10, 0x89, 0, THEN, then=5_001.4, clocks=CLOCKS._replace(digits=0)) == 1.0


def test_sleeps() -> None:
    """Absolute ones by their clock; of relative ones the kernel wrote what is left, if it interrupted them."""
    assert left("clock_nanosleep", 1, 1, THEN, then=5_030.0) == 30.0
    assert left("clock_nanosleep", 0, 1, THEN, then=1_700_000_030.0) == 30.0
    assert left("clock_nanosleep", 7, 1, THEN, then=5_030.0) is None  # CLOCK_BOOTTIME
    interrupted = {"rax": (1 << 64) - 516}
    assert left("clock_nanosleep", 1, 0, 0x9999, THEN, then=3.5, regs=interrupted) == 3.5
    assert left("nanosleep", 0x9999, THEN, then=3.5, regs=interrupted) == 3.5
    assert left("nanosleep", 0x9999, 0, regs=interrupted) is None
    assert left("nanosleep", 0x9999, THEN, then=3.5, regs={"rax": 0}) is None


def test_select_tells_what_is_left_once_it_was_interrupted() -> None:
    """The kernel writes it over the limit; a thread that could not be stopped shows the limit as it was given."""
    assert left("pselect6", 1, 0, 0, 0, THEN, then=7.25, regs={"rax": RESTARTED}) == 7.25
    assert left("select", 1, 0, 0, 0, THEN, then=7.25, unit=10**6, regs={"rax": RESTARTED}) == 7.25
    assert left("ppoll", 0, 1, THEN, then=7.25, regs={"x8": 73}) == 7.25  # aarch64
    assert left("pselect6", 1, 0, 0, 0, THEN, then=7.25, given=7.25) is None


def nanos(*seconds: float) -> bytes:
    return b"".join(struct.pack("<Q", round(each * 1e9)) for each in seconds)


def test_a_poll_by_the_deadline_that_its_function_keeps() -> None:
    """On the stack or in a register that is kept; the one word that lies ahead by no more than the limit."""
    stale = nanos(4_999.0, 30.0, 5_030.1) + b"\xff" * 64
    for name in ("poll", "epoll_wait", "epoll_pwait2", "rt_sigtimedwait"):
        assert left(name, 0, 1, 30_000, given=30.0, stack=stale + nanos(5_012.5)) == 12.5
    assert left("poll", 0, 1, 30_000, given=30.0, stack=stale, regs={"r12": 5_012_500_000_000}) == 12.5
    assert left("poll", 0, 1, 30_000, given=30.0, regs={"r12": 5_012_500_000_000}) == 12.5  # no stack was read
    assert left("futex", 0x10, 0x80, 0, THEN, then=30.0, stack=nanos(5_012.5)) == 12.5  # as on musl


def test_a_poll_beside_words_that_are_no_deadline() -> None:
    """A constant, or the limit itself, may lie ahead; a wait cannot have begun before its process, nor before the machine."""
    started = CLOCKS._replace(started=4_990.0)
    assert left("poll", 0, 1, 30_000, given=30.0, stack=nanos(5_025.0, 5_012.5), clocks=started) == 25.0
    assert left("poll", 0, 1, 30_000, given=30.0, stack=nanos(5_019.998, 5_025.0), clocks=started) is None
    fresh = CLOCKS._replace(monotonic=20.0)
    assert left("poll", 0, 1, 30_000, given=30.0, stack=nanos(30.0, 42.5), clocks=fresh) == 22.5


def test_a_poll_whose_deadline_is_not_certain() -> None:
    """Two words that could be it, none, an unknown limit, a call that the interpreter did not make."""
    assert left("poll", 0, 1, 30_000, given=30.0, stack=nanos(5_012.5, 5_013.0)) is None
    assert left("poll", 0, 1, 30_000, given=30.0, stack=nanos(5_012.5, 5_012.5)) == 12.5
    assert left("poll", 0, 1, 30_000, given=30.0, stack=b"\0" * 4096) is None
    assert left("poll", 0, 1, 30_000, stack=nanos(5_012.5)) is None
    assert left("poll", 0, 1, 30_000, given=30.0, stack=nanos(5_012.5), in_python=False) is None
    assert left("read", 0, stack=nanos(5_012.5), given=30.0) is None
