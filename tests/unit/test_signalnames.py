"""Names of signals, real-time ones too."""

from __future__ import annotations

import signal

import pytest

from postmortem.signalnames import signal_name


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (11, "SIGSEGV"),
        (int(signal.SIGRTMIN), "SIGRTMIN"),
        (int(signal.SIGRTMIN) + 3, "SIGRTMIN+3"),
        (int(signal.SIGRTMAX), "SIGRTMAX"),
        (0, "signal 0"),
        (99, "signal 99"),
        (-5, "signal -5"),
    ],
)
def test_every_number_has_a_name(number: int, name: str) -> None:
    """Its own, its distance from the first real-time signal, or its number."""
    assert signal_name(number) == name
