"""What stays in pytest's process to its very end, and so refers to nothing of pytest: the interpreter would keep it all, and
look through it for garbage several times on its way out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from . import page


class Leaver:
    """The handler of the watchdog's signal while the interpreter ends."""

    def __init__(self, shared: page.Page) -> None:
        self._page = shared

    def handle(self, _number: int, _frame: Any) -> None:
        if self._page.words[page.ORDER] == page.EXIT:
            leave(self._page.words[page.STATUS])


def leave(status: int) -> None:
    """The end, at once, with what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or without a reader
            stream.flush()
    os._exit(status)
