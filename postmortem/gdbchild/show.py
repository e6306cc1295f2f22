"""Text for a terminal: bounded, and without control sequences."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from .. import runners
from ..cpython.frames.chains import Recursion
from ..cpython.frames.frame import Frame
from ..evidence import PythonFrame

#: (style known to gdb's scripts or "", text of one line).
Line = Tuple[str, str]
MAX_NAME = 200  # characters of any name from the target
INNER, OUTER = 60, 20  # frames of one stack


def clean(text: object, limit: int = MAX_NAME) -> str:
    """Return one printable line of at most ``limit`` characters, without commands to a CI runner."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape", "replace").decode() for char in str(text)
    )
    shown = runners.defused(shown)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = ()) -> List[Line]:
    """Return columns as wide as their widest cell; the last one is not padded.

    ``styles``: one per row.
    """
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header) - 1)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths)), cells[-1]]).rstrip()

    given = [*styles, *[""] * (len(rows) - len(styles))]
    return [("bold", line(header)), *((style, line(row)) for row, style in zip(rows, given))]


def place(frame: Frame) -> str:
    """Return ``worker at /srv/app.py:12``, with the qualified name if the code has one."""
    return _place(frame.code.qualname or frame.code.name, frame.code.filename, frame.line)


def place_of(frame: PythonFrame) -> str:
    """Return ``worker at /srv/app.py:12`` for a frame of the evidence."""
    return _place(frame.qualname or frame.function, frame.file, frame.line)


def _place(name: str, file: str, line: Optional[int]) -> str:
    return f"{clean(name)} at {clean(file)}:{line if line is not None else '?'}"


def tids(numbers: Sequence[int], most: int = 20) -> str:
    """Return text such as ``101, 102 and 3 more``; ``none`` if empty."""
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return (", ".join(map(str, numbers[:most])) + more) or "none"


def stack(lines: Sequence[Line], recursion: Optional[Recursion], depth: int) -> List[Line]:
    """Return a stack's numbered lines: a recursion is shown once, the middle of a long stack counted.

    ``depth``: number of frames; more than ``lines`` if some were only counted.
    """
    if recursion is not None and recursion.times > 2:
        turn = len(recursion.frames)
        begin, end = recursion.start, recursion.start + recursion.times * turn
        rest = list(lines[end - depth :]) if end < depth else []
        same = "" if recursion.same_lines else ", on other lines"
        what = "this frame" if turn == 1 else f"these {turn} frames"
        note = f"      … {what} {recursion.times - 1} more times{same}"
        return [*_bounded(lines[: begin + turn], begin + turn), ("", note), *_bounded(rest, len(rest))]
    return _bounded(lines, depth)


def _bounded(lines: Sequence[Line], depth: int) -> List[Line]:
    if len(lines) <= INNER + OUTER and depth <= len(lines):
        return list(lines)
    left = max(depth, len(lines)) - INNER - OUTER
    return [*lines[:INNER], ("", f"      … {left} frames not shown"), *lines[-OUTER:]]
