"""Names of signals."""

from __future__ import annotations

import signal


def signal_name(number: int) -> str:
    """Return ``SIGSEGV`` for 11, ``SIGRTMIN+3`` for 37, ``signal 99`` for what is no signal.

    Real-time signals have no names of their own but the first and the last (signal(7)).
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        pass
    if signal.SIGRTMIN < number < signal.SIGRTMAX:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"
    return f"signal {number}"
