"""The terminal that postmortem and the command share, and how to get it back from a program that was killed."""

from __future__ import annotations

import os
import termios

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any


class Terminal:
    """The terminal of which we are the foreground, and its modes before the command could change them."""

    def __init__(self, modes: list[Any], group: int) -> None:
        self._modes, self._group = modes, group

    def take_back(self) -> None:
        """A killed program leaves the terminal as it was using it: without echo, or another group's."""
        import signal  # noqa: PLC0415 - not needed before the command's start

        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # we may be in the background by now
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                os.tcsetpgrp(terminal, self._group)
                termios.tcsetattr(terminal, termios.TCSADRAIN, self._modes)
            finally:
                os.close(terminal)
        except (OSError, termios.error):
            pass  # it has been closed
        finally:
            signal.signal(signal.SIGTTOU, before)


def foreground(descriptor: int) -> Terminal | None:
    """The terminal that is open as ``descriptor``; None when another job is its foreground."""
    try:
        group = os.getpgrp()
        return Terminal(termios.tcgetattr(descriptor), group) if os.tcgetpgrp(descriptor) == group else None
    except (OSError, termios.error):
        return None
