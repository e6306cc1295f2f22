"""Frames, and what is said of whole stacks. Lists of frames run from the most recent call to the oldest."""

from __future__ import annotations

from typing import Optional, Tuple, Union

import msgspec

from .structs import replace
from .vocabulary import ExceptionState, FrameRole, FrameTrust


class Local(msgspec.Struct, frozen=True):
    """A variable of a frame, read on request only. ``text`` is bounded; what looks like a secret is masked."""

    name: str
    type: str
    text: str


class PythonFrame(msgspec.Struct, frozen=True, tag="python", tag_field="kind"):
    """A frame of Python code. ``file`` is the path that the interpreter holds (``co_filename``).

    Two frames are equal when they are at the same line of the same function: which expression of the line runs, and
    what the variables hold, tells nothing about where it is.
    """

    file: str
    line: Optional[int]
    function: str  # co_name
    qualname: Optional[str] = None  # co_qualname, from 3.11 on
    module: Optional[str] = None  # __name__ of the frame's globals
    role: Optional[FrameRole] = None
    end_line: Optional[int] = None  # of the expression that runs, from 3.11 on
    column: Optional[int] = None  # bytes of the line's UTF-8 before it
    end_column: Optional[int] = None  # bytes of end_line's UTF-8 up to its end
    locals: Optional[Tuple[Local, ...]] = None  # None: not asked for, or not read

    def _place(self) -> Tuple[object, ...]:
        return (self.file, self.line, self.function, self.qualname, self.module, self.role)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PythonFrame) and self._place() == other._place()

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own compares every field

    def __hash__(self) -> int:
        return hash(self._place())

    def at(self, line: Optional[int]) -> PythonFrame:
        """The same function, at another line."""
        return replace(self, line=line, end_line=None, column=None, end_column=None)


class NativeFrame(msgspec.Struct, frozen=True, tag="native", tag_field="kind"):
    """A native frame as gdb unwound it."""

    function: Optional[str]
    module: Optional[str]  # path of the mapped file
    address: int
    file: Optional[str] = None
    line: Optional[int] = None
    trust: FrameTrust = "unwind"


class Calling(msgspec.Struct, frozen=True):
    """The function in C that the innermost Python frame of a thread has called, as its value stack shows: without it, a
    thread that is long in native code is only at a line. It may be over when the thread runs Python code again."""

    function: str  # with its module or class: "re.Pattern.match", "gc.collect"
    detail: Optional[str] = None  # one phrase for people: of a regular expression its pattern
    text: Optional[int] = None  # characters, or bytes, of the longest text that it was given
    lasts_s: Optional[float] = None  # it was the same call so long before already; None: it was not, or is not known


Frame = Union[PythonFrame, NativeFrame]


class Recursion(msgspec.Struct, frozen=True):
    """What a deep Python stack repeats."""

    depth: int  # Python frames of the thread, in all
    times: int
    cycle: Tuple[PythonFrame, ...]  # one turn, most recent call first
    same_lines: bool = True  # False: the functions repeat, their lines differ from turn to turn


class LeftOut(msgspec.Struct, frozen=True):
    """Frames of a deep stack that evidence does not keep."""

    behind: int  # index in Thread.stack: those before it are the innermost ones
    frames: int


class Sample(msgspec.Struct, frozen=True):
    """A distinct Python stack of a thread that py-spy saw during the window."""

    count: int  # how many samples showed it
    first_s: float  # seconds since the window began
    last_s: float
    frames: Tuple[PythonFrame, ...]
    left_out: Optional[LeftOut] = None  # of a deep stack

    @property
    def depth(self) -> int:
        """Frames that it had."""
        return len(self.frames) + (self.left_out.frames if self.left_out is not None else 0)


class ThreadException(msgspec.Struct, frozen=True):
    """An exception that a thread is busy with; where it was raised, as far as its traceback says."""

    state: ExceptionState
    type: str
    file: Optional[str] = None
    line: Optional[int] = None
    function: Optional[str] = None
    message: Optional[str] = None  # may hold secrets: read only where locals are
