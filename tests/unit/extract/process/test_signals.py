"""Which signals a process catches of its own accord."""

from __future__ import annotations

import signal

from postmortem.extract.process.signals import caught


def mask(*signals: int) -> int:
    return sum(1 << number - 1 for number in signals)


def test_what_the_runtime_catches_is_left_out() -> None:
    """Ctrl-C, faulthandler's signals and glibc's own are no sign of a handler that the program has."""
    own = (signal.SIGINT, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, 32, 33)
    assert caught(mask(*own)) == ()


def test_others_are_told_by_number() -> None:
    """An alarm and a real-time signal are the program's."""
    assert caught(mask(signal.SIGINT, signal.SIGALRM, 64)) == (signal.SIGALRM, 64)


def test_what_was_not_noted_is_unknown() -> None:
    """A lone core does not say what was caught."""
    assert caught(None) is None
    assert caught(True) is None
