"""Progress for a person who waits."""

from __future__ import annotations

import sys

from .narration import Narration


class Progress:
    """One line on stderr that is drawn over; nothing at all when stderr is no terminal. Clears itself at the end."""

    def __init__(self) -> None:
        self._narration = Narration(sys.stderr, who="")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, text: str) -> None:
        self._narration.draw(text)

    def clear(self) -> None:
        self._narration.clear()
