"""Progress for a person who waits."""

from __future__ import annotations

import sys

from . import publish
from .report.escape import clean, cut


class Progress:
    """One line on stderr that is drawn over; nothing at all when stderr is no terminal. Clears itself at the end."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, text: str) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[2K" + cut(clean(text), publish.columns(sys.stderr) - 1))
            sys.stderr.flush()

    def clear(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
