"""Text for a terminal: bounded, and free of what could steer the terminal that shows it."""

from __future__ import annotations

import os
from typing import Iterable, List, Optional, Sequence

import gdb
from postmortem import runners
from postmortem.cpython.frames.chains import Recursion
from postmortem.cpython.frames.frame import Frame

MAX_NAME = 200  # characters of anything that the target names
INNER, OUTER = 60, 20  # frames of one stack
_STYLES = {"bold": "1", "faint": "2", "red": "31", "yellow": "33", "green": "32"}


def clean(text: object, limit: int = MAX_NAME) -> str:
    """One line, printable, no order to a CI runner, no longer than ``limit``."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape", "replace").decode() for char in str(text)
    )
    shown = runners.defused(shown)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def styled(text: str, style: Optional[str]) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style and _coloured() else text


def _coloured() -> bool:
    return bool(gdb.parameter("style enabled")) and os.isatty(1) and not os.environ.get("NO_COLOR")


def write(lines: Iterable[str]) -> None:
    """Through gdb, so that its pager and `set logging` see it."""
    for line in lines:
        gdb.write(f"{line}\n")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[Optional[str]] = ()) -> List[str]:
    """Columns as wide as their widest cell; the last is left as it is. ``styles``: one a row."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header) - 1)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths)), cells[-1]]).rstrip()

    given = [*styles, *[None] * (len(rows) - len(styles))]
    return [styled(line(header), "bold"), *(styled(line(row), style) for row, style in zip(rows, given))]


def place(frame: Frame) -> str:
    """``worker at /srv/app.py:12``, with the qualified name where the code has one."""
    name = frame.code.qualname or frame.code.name
    return f"{clean(name)} at {clean(frame.code.filename)}:{frame.line if frame.line is not None else '?'}"


def short_place(frame: Frame, line: Optional[int] = None) -> str:
    """``app.py:12 in worker``, as in a report's chains; at the line where it stands, or a given one."""
    line = frame.line if line is None else line
    file = frame.code.filename.rsplit("/", 1)[-1]
    return f"{clean(file)}:{line if line is not None else '?'} in {clean(frame.code.name)}"


def stack(lines: Sequence[str], recursion: Optional[Recursion], depth: int) -> List[str]:
    """A stack of numbered lines: a recursion shown once, the middle of what is still too long counted.

    ``depth``: how many frames there are; more than ``lines`` when some were only counted.
    """
    if recursion is not None and recursion.times > 2:
        turn = len(recursion.frames)
        begin, end = recursion.start, recursion.start + recursion.times * turn
        rest = list(lines[end - depth :]) if end < depth else []
        same = "" if recursion.same_lines else ", on other lines"
        note = (
            f"      … these {turn} frames {recursion.times - 1} more times{same}"
            if turn > 1
            else (f"      … this frame {recursion.times - 1} more times{same}")
        )
        return [*_bounded(lines[: begin + turn], begin + turn), note, *_bounded(rest, len(rest))]
    return _bounded(lines, depth)


def _bounded(lines: Sequence[str], depth: int) -> List[str]:
    if len(lines) <= INNER + OUTER and depth <= len(lines):
        return list(lines)
    left = max(depth, len(lines)) - INNER - OUTER
    return [*lines[:INNER], f"      … {left} frames are not shown", *lines[-OUTER:]]
