"""The terminal that postmortem shares with the command, and its recovery after the command was killed."""

from __future__ import annotations

import os
import termios

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any


class Terminal:
    """The terminal in whose foreground we are, and its modes before the command's start."""

    def __init__(self, modes: list[Any], group: int) -> None:
        self._modes, self._group = modes, group

    def take_back(self) -> None:
        """Restore foreground group and modes; a killed program may leave it without echo, or to another group."""
        import signal  # noqa: PLC0415 - not needed before the command's start

        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # tcsetpgrp from the background would stop us
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                os.tcsetpgrp(terminal, self._group)
                termios.tcsetattr(terminal, termios.TCSADRAIN, self._modes)
            finally:
                os.close(terminal)
        except (OSError, termios.error):
            pass  # the terminal has been closed
        finally:
            signal.signal(signal.SIGTTOU, before)


def foreground(descriptor: int) -> Terminal | None:
    """Return the terminal open as ``descriptor``; None when another job is in its foreground."""
    try:
        group = os.getpgrp()
        return Terminal(termios.tcgetattr(descriptor), group) if os.tcgetpgrp(descriptor) == group else None
    except (OSError, termios.error):
        return None
