"""Tables shared by the data of a page: thousands of threads are at a few places, each written once."""

from __future__ import annotations

import re
from typing import Dict, Hashable, List, Optional, Sequence, Set, Tuple

from ...evidence import Evidence, Frame, LeftOut, PythonFrame
from ..phrases import labels
from .markup import visible
from .source import pieces

#: Most innermost and outermost frames of one stack on a page.
_INNER, _OUTER = 150, 50
_LINES = 3000  # most source lines coloured on one page

#: A name with a numeric suffix that JavaScript can represent exactly.
_NUMBERED = re.compile(r"(.*[^0-9])(0|[1-9][0-9]{0,8})\Z", re.S)

OWN, LIBRARY, NATIVE = 0, 1, 2

FrameRow = List[object]


class Tables:
    """Strings, frames, stacks and source lines by number. All text is made printable here."""

    def __init__(self, evidence: Evidence) -> None:
        self.strings: List[object] = []
        self.frames: List[FrameRow] = []
        self.stacks: List[List[object]] = []
        self.lines: Dict[str, List[str]] = {}
        self._evidence = evidence
        self._string: Dict[str, int] = {}
        self._beginnings: Set[str] = set()
        self._frame: Dict[Hashable, int] = {}
        self._stack: Dict[Hashable, int] = {}

    def string(self, value: Optional[str]) -> int:
        """Return the number of a string; -1 for None."""
        if value is None:
            return -1
        known = self._string.get(value)
        if known is None:
            written = self._written(visible(value))
            known = self._string[value] = len(self.strings)
            self.strings.append(written)
        return known

    def _written(self, value: str) -> object:
        """Return a string as written in the table.

        Of ``Task-1``, ``Task-2``, … the first is written whole, the others as [number of the string ``Task-``, suffix].
        """
        found = _NUMBERED.match(value)
        if found is None:
            return value
        beginning, digits = found.groups()
        if beginning not in self._beginnings:
            self._beginnings.add(beginning)
            return value
        return [self.string(beginning), int(digits)]

    def stack(self, frames: Sequence[Frame], left_out: Optional[LeftOut] = None) -> int:
        """Return the number of a stack. Row: [numbers of its frames, number left out, number of frames before the gap]."""
        behind, missing = (left_out.behind, left_out.frames) if left_out is not None else (0, 0)
        if len(frames) > _INNER + _OUTER:
            missing += len(frames) - _INNER - _OUTER
            behind = _INNER
            frames = (*frames[:_INNER], *frames[-_OUTER:])
        row = [self.frame(frame) for frame in frames]
        key = (tuple(row), missing, behind)
        known = self._stack.get(key)
        if known is None:
            known = self._stack[key] = len(self.stacks)
            self.stacks.append([row, missing, behind] if missing else [row])
        return known

    def frame(self, frame: Frame) -> int:
        """Return the number of a frame.

        Row: [kind, function, file, line, whole path or module]. A native frame without a name has its address as function.
        """
        key: Hashable
        if isinstance(frame, PythonFrame):
            key = (frame.file, frame.line, frame.qualname or frame.function)
        else:
            key = (
                frame.function,
                frame.module,
                frame.file,
                frame.line,
                frame.address if frame.function is None else None,
            )
        known = self._frame.get(key)
        if known is None:
            known = self._frame[key] = len(self.frames)
            self.frames.append(self._python(frame) if isinstance(frame, PythonFrame) else self._native(frame))
        return known

    def _python(self, frame: PythonFrame) -> FrameRow:
        short = labels.short_path(frame.file)
        foreign = short != frame.file or frame.file.startswith("<frozen ")
        row: FrameRow = [LIBRARY if foreign else OWN, self.string(frame.qualname or frame.function), self.string(short)]
        row.append(frame.line if frame.line is not None else -1)
        if short != frame.file:
            row.append(self.string(frame.file))
        self._source(frame, row)
        return row

    def _source(self, frame: PythonFrame, row: FrameRow) -> None:
        """Add the source line of a frame to the page, if there is room."""
        line = self._evidence.source(frame.file, frame.line)
        key = f"{row[2]}:{frame.line}"
        if line is None or not line.strip() or key in self.lines or len(self.lines) >= _LINES:
            return
        self.lines[key] = [part for piece in pieces(line.strip()) for part in piece]

    def _native(self, frame: Frame) -> FrameRow:
        assert not isinstance(frame, PythonFrame)
        function = frame.function or f"{frame.address:#x}"
        where = labels.short_path(frame.file) if frame.file else (frame.module or "").rsplit("/", 1)[-1]
        row: FrameRow = [
            NATIVE,
            self.string(function),
            self.string(where),
            frame.line if frame.line is not None else -1,
        ]
        if frame.module and frame.module != where:
            row.append(self.string(frame.module))
        return row

    def place(self, file: str, line: Optional[int]) -> Tuple[int, int]:
        """Return a culprit's place, as in the rows of frames."""
        return self.string(labels.short_path(file)), -1 if line is None else line
