"""Code that stays in pytest's process to its very end, and so must not refer to pytest.

Otherwise the interpreter would keep all of pytest alive, and search it for garbage several times during shutdown.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from . import page


class Leaver:
    """The handler of the watchdog's signal during the interpreter's exit."""

    def __init__(self, shared: page.Page) -> None:
        self._page = shared

    def handle(self, _number: int, _frame: Any) -> None:
        """End the process if the watchdog has ordered it."""
        if self._page.words[page.ORDER] == page.EXIT:
            leave(self._page.words[page.STATUS])


def leave(status: int) -> None:
    """Flush the standard streams and end the process at once."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or without a reader
            stream.flush()
    os._exit(status)
