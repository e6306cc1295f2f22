"""Progress for a user who waits."""

from __future__ import annotations

import sys

from .narration import Narration


class Progress:
    """One line on stderr that is overwritten, and erased at the end; nothing when stderr is no terminal."""

    def __init__(self) -> None:
        self._narration = Narration(sys.stderr, who="")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, text: str) -> None:
        """Show a progress message."""
        self._narration.draw(text)

    def clear(self) -> None:
        """Erase the line."""
        self._narration.clear()
