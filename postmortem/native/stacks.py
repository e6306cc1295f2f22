"""The output of ``gdb/stacks.py``: complete, truncated or damaged.

The lines are written by our own script, but names in them come from the core and its files, and the last line may be
incomplete: a malformed line is left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Literal, NamedTuple, Optional, Tuple

import msgspec

from ..evidence import Gap, NativeFrame

#: Address → path of the module mapped there; None for memory without a file.
ModuleOf = Callable[[int], Optional[str]]


class CrashFrame(msgspec.Struct):
    """A frame of the crashed thread."""

    address: int
    function: Optional[str] = None
    sp: Optional[int] = None
    trampoline: bool = False  # the return address of a signal handler: the kernel interrupted the next frame


class CrashPlace(msgspec.Struct):
    """The code and registers at a frame of the crashed thread."""

    frame: int  # index in the frames
    instruction: Optional[str] = None
    code: Optional[str] = None  # its bytes as read by gdb, in hex
    registers: Dict[str, int] = {}


class Said(msgspec.Struct):
    """A text with which a function of CPython's fatal errors was called."""

    function: Optional[str]
    name: str  # name of the argument
    text: str


class CrashLine(msgspec.Struct):
    """The output of gdb/crash.py about the crashed thread."""

    crash: int
    whole: bool = False
    frames: Tuple[CrashFrame, ...] = ()
    places: Tuple[CrashPlace, ...] = ()
    said: Tuple[Said, ...] = ()
    error: Optional[str] = None


@dataclass(frozen=True)
class NativeStacks:
    """The native stacks of a core.

    - ``stacks``: tid → frames, most recent call first
    - ``seconds``: duration of the run of gdb
    """

    stacks: Dict[int, Tuple[NativeFrame, ...]] = field(default_factory=dict)
    gaps: Tuple[Gap, ...] = ()
    seconds: float = 0.0
    crash: Optional[CrashLine] = None


class _FrameLine(msgspec.Struct):
    function: Optional[str]
    module: Optional[str]
    address: int
    file: Optional[str] = None
    line: Optional[int] = None


#: Why a stack ends early: out of time, too many frames, unreadable memory.
Cause = Literal["late", "many", "memory"]


class EndsEarly(NamedTuple):
    """The reason why a stack ends early.

    - ``text``: the message of gdb, or of its script
    - ``cause``: None for any other cause
    """

    text: str
    cause: Optional[Cause] = None


class _Line(msgspec.Struct):
    """Any of the three kinds of line: see gdb/stacks.py."""

    gdb: Optional[str] = None
    threads: Optional[int] = None
    tid: Optional[int] = None
    frames: Tuple[_FrameLine, ...] = ()
    error: Optional[str] = None
    cause: Optional[Cause] = None
    end: Optional[bool] = None
    stopped: Optional[str] = None


@dataclass
class Transcript:
    """The lines read of one run.

    - ``version``: of gdb; None when the script never ran
    - ``errors``: tid → why its stack ends early
    """

    version: Optional[str] = None
    announced: int = 0  # number of threads seen by gdb
    complete: bool = False
    stopped: Optional[str] = None  # why the script stopped before the last thread
    damaged: int = 0  # number of lines left out
    stacks: Dict[int, Tuple[_FrameLine, ...]] = field(default_factory=dict)
    errors: Dict[int, EndsEarly] = field(default_factory=dict)
    crash: Optional[CrashLine] = None


def read_transcript(path: Path) -> Transcript:
    """Read a file of JSON lines written by gdb/stacks.py; a missing file is read as empty."""
    found = Transcript()
    decode = msgspec.json.Decoder(_Line).decode
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return found
    with file:
        for text in file:
            try:
                if text.startswith(b'{"crash":'):
                    found.crash = msgspec.json.decode(text, type=CrashLine)
                else:
                    _take(found, decode(text))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                found.damaged += 1
    return found


def _take(found: Transcript, line: _Line) -> None:
    if line.tid is not None:
        _take_stack(found, line.tid, line)
    elif line.end is not None:
        found.complete, found.stopped = line.end, line.stopped
    elif line.gdb is not None:
        found.version = line.gdb
        found.announced = line.threads or 0


def _take_stack(found: Transcript, tid: int, line: _Line) -> None:
    """Add a thread's stack; a second one replaces the first unless it is shorter."""
    if line.error and len(line.frames) < len(found.stacks.get(tid, ())):
        return
    found.stacks[tid] = line.frames
    found.errors.pop(tid, None)
    if line.error:
        found.errors[tid] = EndsEarly(line.error, line.cause)


def to_frames(
    stacks: Dict[int, Tuple[_FrameLine, ...]], module_of: ModuleOf, blind: Callable[[Optional[str], bool], bool]
) -> Dict[int, Tuple[NativeFrame, ...]]:
    """Return tid → evidence frames, with modules named by the core's own mappings, and the trust in each frame.

    ``blind(module, known)`` tells whether gdb had no unwind tables for code of that module; ``known``: gdb had a
    library or a symbol there. A frame reached through such code was guessed from the stack: trust "scan". Guesses that
    lead nowhere (an overwritten stack makes hundreds) are cut off.
    """
    made: Dict[Tuple[int, Optional[str], bool], NativeFrame] = {}
    result: Dict[int, Tuple[NativeFrame, ...]] = {}
    for tid, lines in stacks.items():
        frames: List[NativeFrame] = []
        guessed = False
        for line in lines:
            key = (line.address, line.function, guessed)
            frame = made.get(key)
            if frame is None:
                frame = made[key] = _frame(line, module_of, guessed)
            frames.append(frame)
            guessed = guessed or blind(frame.module, line.function is not None or line.module is not None)
        while frames and _is_nowhere(frames[-1]):
            frames.pop()
        result[tid] = tuple(frames)
    return result


def _is_nowhere(frame: NativeFrame) -> bool:
    return frame.trust == "scan" and frame.module is None and frame.function is None


def _frame(line: _FrameLine, module_of: ModuleOf, guessed: bool) -> NativeFrame:
    module = module_of(line.address)
    module = module or line.module
    return NativeFrame(line.function, module, line.address, line.file, line.line, "scan" if guessed else "unwind")
