"""What postmortem says while it works: to stderr alone, short, and never in the way of what a command writes.

Imported at the deadline of a hung program, perhaps with no descriptor or page to spare: so it needs next to nothing of ours.
"""

from __future__ import annotations

import os
from typing import Any, Optional, TextIO, cast

from .runners import defused

_WIPE = "\r\x1b[2K"
_NARROW = 80


class Narration:
    """``say`` for what is to stay; ``step`` for progress: on a terminal one line that is drawn over, else a line each.

    ``stream`` may be None, closed, or without a reader: then nothing is said. ``draws`` may be cleared while somebody
    else writes to the terminal. ``who`` stands before everything that is said.
    """

    def __init__(self, stream: Optional[TextIO], who: str = "postmortem: ") -> None:
        self._stream = stream
        self._who = who
        self._live = _is_terminal(stream)
        self._drawn = False
        self.draws = True

    def say(self, sentence: str) -> None:
        self.clear()
        self._write(f"{self._who}{escaped(sentence)}\n")

    def step(self, text: str) -> None:
        if self._live:
            self.draw(text)
        else:
            self._write(f"{self._who}{escaped(text)}\n")

    def draw(self, text: str) -> None:
        """Progress that is worth a look and not a line: on a terminal only."""
        if self._live and self.draws:
            self._write(_WIPE + _fitting(f"{self._who}{text}", self._stream))
            self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            self._drawn = False
            self._write(_WIPE)

    @property
    def report(self) -> TextIO:
        """Where the report goes: the stream, once the drawn line is wiped off it; nowhere when there is none."""
        return cast(TextIO, _Wiped(self, self._stream or open(os.devnull, "w")))

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # nobody listens any more; the bundle says it too


def escaped(sentence: str) -> str:
    """One line that moves no cursor and gives a CI runner no orders, whatever a file's name has in it."""
    if not sentence.isprintable():
        sentence = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in sentence)
    return defused(sentence)


class _Wiped:
    """A stream that wipes off the drawn line before the first word."""

    def __init__(self, narration: Narration, stream: TextIO) -> None:
        self._narration, self._stream = narration, stream

    def write(self, text: str) -> int:
        self._narration.clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _is_terminal(stream: Optional[TextIO]) -> bool:
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def _fitting(text: str, stream: Optional[TextIO]) -> str:
    """One line of the terminal's width, without what would move its cursor."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream is not None else 0
    except (OSError, ValueError):
        width = 0
    width = width or _NARROW
    plain = defused("".join(char if char.isprintable() else "?" for char in text))
    return plain if len(plain) < width else plain[: max(width - 2, 0)] + "…"
