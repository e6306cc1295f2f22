"""Frames, and facts about whole stacks. Lists of frames run from the most recent call to the oldest."""

from __future__ import annotations

from typing import Optional, Tuple, Union

import msgspec

from .structs import replace
from .vocabulary import ExceptionState, FrameRole, FrameTrust


class Local(msgspec.Struct, frozen=True):
    """A variable of a frame, read only on request. ``text`` is bounded in length; likely secrets are masked."""

    name: str
    type: str
    text: str


class PythonFrame(msgspec.Struct, frozen=True, tag="python", tag_field="kind"):
    """A frame of Python code. ``file`` is the interpreter's path (``co_filename``).

    Frames are equal if they are at the same line of the same function; the current expression (columns) and the
    values of the variables are not compared.
    """

    file: str
    line: Optional[int]
    function: str  # co_name
    qualname: Optional[str] = None  # co_qualname, from 3.11 on
    module: Optional[str] = None  # __name__ of the frame's globals
    role: Optional[FrameRole] = None
    end_line: Optional[int] = None  # last line of the current expression, from 3.11 on
    column: Optional[int] = None  # start of the expression: bytes of the line's UTF-8 before it
    end_column: Optional[int] = None  # end of the expression: bytes of end_line's UTF-8 up to it
    locals: Optional[Tuple[Local, ...]] = None  # None: not requested, or not read

    def _place(self) -> Tuple[object, ...]:
        return (self.file, self.line, self.function, self.qualname, self.module, self.role)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PythonFrame) and self._place() == other._place()

    def __ne__(self, other: object) -> bool:
        return not self == other  # the method inherited from msgspec.Struct compares every field

    def __hash__(self) -> int:
        return hash(self._place())

    def at(self, line: Optional[int]) -> PythonFrame:
        """Return the same function at another line, without columns."""
        return replace(self, line=line, end_line=None, column=None, end_column=None)


class NativeFrame(msgspec.Struct, frozen=True, tag="native", tag_field="kind"):
    """A native frame as unwound by gdb."""

    function: Optional[str]
    module: Optional[str]  # path of the mapped file
    address: int
    file: Optional[str] = None
    line: Optional[int] = None
    trust: FrameTrust = "unwind"


class Calling(msgspec.Struct, frozen=True):
    """The C function called by a thread's innermost Python frame, as its value stack shows.

    It explains a long stay in native code. The call may have returned already if the thread runs Python code again.
    """

    function: str  # qualified by module or class: "re.Pattern.match", "gc.collect"
    detail: Optional[str] = None  # one phrase for the reader: the pattern of a regular expression, for instance
    text: Optional[int] = None  # length of its longest text argument, in characters or bytes
    lasts_s: Optional[float] = None  # lower bound of its duration; None: unknown


#: Prefixes of the names of C functions below which SQLite runs: its Python modules'.
_SQLITE = ("sqlite3.", "_sqlite3.", "apsw.", "pysqlite3.")


def is_sqlite(function: str) -> bool:
    """Return whether a C function is one of SQLite's Python modules; ``function``: as in ``Calling``."""
    return function.startswith(_SQLITE)


Frame = Union[PythonFrame, NativeFrame]


class Recursion(msgspec.Struct, frozen=True):
    """The repeating part of a deep Python stack."""

    depth: int  # total number of Python frames
    times: int
    cycle: Tuple[PythonFrame, ...]  # one period, most recent call first
    same_lines: bool = True  # False: the functions repeat, but their lines differ between periods


class LeftOut(msgspec.Struct, frozen=True):
    """The frames of a deep stack that were not kept in the evidence."""

    behind: int  # index in Thread.stack: the frames before it are the innermost ones
    frames: int


class Sample(msgspec.Struct, frozen=True):
    """A distinct Python stack of a thread, as sampled by py-spy during the window."""

    count: int  # number of samples with this stack
    first_s: float  # seconds since the start of the window
    last_s: float
    frames: Tuple[PythonFrame, ...]
    left_out: Optional[LeftOut] = None  # for a deep stack

    @property
    def depth(self) -> int:
        """Return the number of frames, including those left out."""
        return len(self.frames) + (self.left_out.frames if self.left_out is not None else 0)


class ThreadException(msgspec.Struct, frozen=True):
    """An exception that a thread is handling or propagating, with the place it was raised if its traceback is known."""

    state: ExceptionState
    type: str
    file: Optional[str] = None
    line: Optional[int] = None
    function: Optional[str] = None
    message: Optional[str] = None  # may hold secrets: read only if locals are
