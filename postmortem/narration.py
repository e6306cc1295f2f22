"""Messages while postmortem works: to stderr only, short, and apart from the output of the command.

Imported at the deadline of a hung program, perhaps with hardly a free descriptor or page: so it imports almost nothing
of ours.
"""

from __future__ import annotations

import os
from typing import Any, Optional, TextIO, cast

from .runners import defused

_WIPE = "\r\x1b[2K"
_NARROW = 80


class Narration:
    """Messages on a stream.

    - ``stream``: None, closed or without a reader: nothing is written
    - ``draws``: cleared while the command writes to the terminal
    - ``who``: prefix of every message
    """

    def __init__(self, stream: Optional[TextIO], who: str = "postmortem: ") -> None:
        self._stream = stream
        self._who = who
        self._live = _is_terminal(stream)
        self._drawn = False
        self.draws = True

    def say(self, sentence: str) -> None:
        """Write a sentence on a line of its own."""
        self.clear()
        self._write(f"{self._who}{escaped(sentence)}\n")

    def step(self, text: str) -> None:
        """Show progress: on a terminal one line that is overwritten, else a line of its own."""
        if self._live:
            self.draw(text)
        else:
            self._write(f"{self._who}{escaped(text)}\n")

    def draw(self, text: str) -> None:
        """Show progress on a terminal only."""
        if self._live and self.draws:
            self._write(_WIPE + _fitting(f"{self._who}{text}", self._stream))
            self._drawn = True

    def clear(self) -> None:
        """Erase the progress line."""
        if self._drawn:
            self._drawn = False
            self._write(_WIPE)

    @property
    def report(self) -> TextIO:
        """The stream for the report, which erases the progress line first; /dev/null without a stream."""
        return cast(TextIO, _Wiped(self, self._stream or open(os.devnull, "w")))

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None  # stderr was closed; the bundle has the same facts


def escaped(sentence: str) -> str:
    """Escape a sentence to one line without cursor movements or commands to a CI runner."""
    if not sentence.isprintable():
        sentence = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in sentence)
    return defused(sentence)


class _Wiped:
    """A stream that erases the progress line before each write."""

    def __init__(self, narration: Narration, stream: TextIO) -> None:
        self._narration, self._stream = narration, stream

    def write(self, text: str) -> int:
        """Erase the progress line; write the text."""
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
    """Return one line of the terminal's width, without unprintable characters."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream is not None else 0
    except (OSError, ValueError):
        width = 0
    width = width or _NARROW
    plain = defused("".join(char if char.isprintable() else "?" for char in text))
    return plain if len(plain) < width else plain[: max(width - 2, 0)] + "…"
