"""A loop that turns without getting further: looks at the frames of a thread that computes, while it runs.

Each look reads the stack and, of the deepest frames that all looks have in common, the fingerprints of their variables. The
loop turns if one of these frames was seen to step back. It does not get further if every variable of these frames, and every
global that they use, returns to values that it had before.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...sourcepaths import is_stdlib
from ..frames.frame import Frame
from .interpreter import Python, current_frame
from .prints import Prints

#: Looks that decide, frames of one that are read, and of a stack.
LEAST_LOOKS, _FRAMES, _MOST_FRAMES = 8, 3, 200
#: Frames around those of which only what counts their rounds is read.
_CALLERS = 20
_MOST_CHANGED = 8
#: Steps back that show that a loop turns.
_LEAST_TURNS = 3
#: Seconds that the looks at one thread may take, all together.
_MOST_S = 0.25
#: Names of functions, used by the frames that a look finds, whose answers depend on more than the program's variables: on the
#: clock, on chance, on other threads and processes, on files.
_OUTSIDE: FrozenSet[str] = frozenset((
    "time", "monotonic", "perf_counter", "process_time", "thread_time", "time_ns", "monotonic_ns", "perf_counter_ns", "now",
    "utcnow", "today", "random", "randint", "randrange", "choice", "shuffle", "uniform", "getrandbits", "urandom", "is_set",
    "is_alive", "poll", "qsize", "empty", "full", "done", "cancelled", "exists", "is_file", "isfile", "stat", "getsize",
    "listdir", "scandir", "read", "readline", "recv", "send", "write", "getrusage", "get_nowait", "put_nowait", "acquire",
    "locked", "sched_yield", "wait", "select", "exit_code", "returncode", "next", "send", "__next__",
))  # fmt: skip


#: Name → fingerprint; None: not read in full.
_Prints = Mapping[str, Optional[int]]


class _Seen(NamedTuple):
    """A frame at one look."""

    frame: Frame
    prints: Optional[_Prints]  # by name of a variable; None if the frame was not read
    whole: bool = False  # all of its variables were read, not only those that count a caller's rounds


class Rounds(NamedTuple):
    """What the looks at a thread showed.

    - ``function``, ``file``, ``first_line``: of the innermost frame that all looks have in common
    - ``turns``: how often it, or one below it, was seen to step back
    - ``same``: whether all variables of these frames returned to their values; None if one was not read in full
    - ``changed``: names of variables that did not
    """

    function: str
    file: str
    first_line: int
    looks: int
    turns: int
    same: Optional[bool]
    changed: Tuple[str, ...]


class Looks:
    """The looks at one thread state of a running process."""

    def __init__(self, python: Python, state: int) -> None:
        self._python, self._state = python, state
        self._looks: List[List[_Seen]] = []  # outermost frame first
        self._globals: List[Mapping[Tuple[int, str], Optional[int]]] = []
        self._common = _MOST_FRAMES  # number of outer frames that all looks have in common
        self._watched: Optional[Frame] = None  # the innermost frame that all looks have in common so far
        self._instruction = self._steps_back = 0  # of that frame, between two looks
        self._spent = 0.0
        self._depends = False  # on what is outside of the program's variables

    def look(self) -> None:
        """Look once. Raises Fault, NotThat or UnicodeDecodeError when the stack changes meanwhile."""
        if self._spent > _MOST_S:
            return
        began = time.thread_time()
        try:
            self._look()
        finally:
            self._spent += time.thread_time() - began

    def glance(self) -> None:
        """Read only where the innermost common frame is. Raises Fault."""
        if self._watched is not None:
            layout, memory = self._python.layout, self._python.memory
            at = self._watched.address + layout.fr_instr
            now = memory.u32(at) if layout.heap_frames else memory.u64(at)
            self._steps_back += now < self._instruction
            self._instruction = now

    def _look(self) -> None:
        python = self._python
        frames: List[Frame] = []
        at = current_frame(python.memory, python.runtime, self._state)
        while at and len(frames) < _MOST_FRAMES:
            visit = python.frames.visit(at)
            at = visit.previous
            if visit.frame is not None:
                frames.append(visit.frame)
        if at or not frames:
            return
        frames.reverse()
        if self._looks and not _is_same(self._looks[0][0].frame, frames[0]):
            return  # the chain was read while a generator left it
        if self._looks:
            same = zip(self._looks[-1], frames)
            number = next((n for n, (old, new) in enumerate(same) if not _is_same(old.frame, new)), None)
            self._common = min(self._common, len(frames), len(self._looks[-1]), *(() if number is None else (number,)))
        last = min(self._common, len(frames))
        if self._watched is None or not _is_same(self._watched, frames[last - 1]):
            self._watched, self._instruction, self._steps_back = frames[last - 1], 0, 0
        prints = Prints(python.frames)
        first = _first(frames[:last])
        inside: List[Optional[Frame]] = [*frames[1:], None]
        read = [_Seen(frame, prints.of_frame(frame, inside[at]), True) for at, frame in _backwards(frames, first, last)]
        least = max(0, first - _CALLERS)
        callers = [_Seen(frame, prints.of_caller(frame, inside[at])) for at, frame in _backwards(frames, least, first)]
        used: Dict[Tuple[int, str], Optional[int]] = {}
        codes = Counter(frame.code.address for frame in frames)
        # of a recursion, the stack itself tells how far it has got
        self._depends = self._depends or any(codes[seen.frame.code.address] > 1 for seen in read)
        for frame in frames[first:]:
            if not is_stdlib(frame.code.filename):
                used.update(prints.of_globals(frame))
                self._depends = self._depends or not _OUTSIDE.isdisjoint(frame.code.used_names())
        self._globals.append(used)
        outermost = [_Seen(frame, None) for frame in frames[:least]]
        self._looks.append([*outermost, *reversed(callers), *reversed(read)])

    def rounds(self) -> Optional[Rounds]:
        """Return what the looks showed; None if they have too little in common."""
        if len(self._looks) < LEAST_LOOKS or not self._common:
            return None
        first = _first([seen.frame for seen in self._looks[-1][: self._common]])
        positions = range(max(0, first - _CALLERS), self._common)
        columns = [
            [
                look[n]
                for look in self._looks
                if len(look) > n and look[n].prints is not None and look[n].whole == (n >= first)
            ]
            for n in positions
        ]
        if any(len(column) < LEAST_LOOKS for column in columns[-(self._common - first) :]):
            return None
        turns = max(self._steps_back, sum(_steps_back(column) for column in columns))
        answers = [*map(_returned, columns), _of_globals(self._globals)]
        moved = {name for answer in answers for name in answer.moved}
        unknown = self._depends or any(answer.unknown for answer in answers) or turns < _LEAST_TURNS
        same, changed = False if moved else None if unknown else True, sorted(moved - {""})
        code = self._looks[-1][self._common - 1].frame.code
        return Rounds(
            code.name, code.filename, code.firstlineno, len(self._looks), turns, same, tuple(changed[:_MOST_CHANGED])
        )


def _backwards(frames: Sequence[Frame], first: int, last: int) -> Iterator[Tuple[int, Frame]]:
    """Yield the frames between two positions with their position, the innermost one first."""
    for at in range(last - 1, first - 1, -1):
        yield at, frames[at]


def _first(frames: Sequence[Frame]) -> int:
    """Return the index of the outermost frame that is read: without library code that called the program's."""
    first = len(frames)
    own = False
    while first and len(frames) - first < _FRAMES:
        library = is_stdlib(frames[first - 1].code.filename)
        if library and own:
            break
        own = own or not library
        first -= 1
    return first


def _is_same(old: Frame, new: Frame) -> bool:
    return old.address == new.address and old.code.address == new.code.address


def _steps_back(column: List[_Seen]) -> int:
    return sum(new.frame.lasti < old.frame.lasti for old, new in zip(column, column[1:]))


class _Answer(NamedTuple):
    """Which variables went on to new values, and whether that is not known of one."""

    moved: Set[str]
    unknown: bool


def _returned(column: List[_Seen]) -> _Answer:
    """Compare a frame's variables where it was seen most often: elsewhere in its loop they may have other values."""
    often = Counter(seen.frame.lasti for seen in column).most_common(1)[0][0]
    there = [seen.prints for seen in column if seen.frame.lasti == often and seen.prints is not None]
    names = {name for prints in there for name in prints}
    return _compared({name: [prints[name] for prints in there if name in prints] for name in names})


def _of_globals(looks: List[Mapping[Tuple[int, str], Optional[int]]]) -> _Answer:
    """Compare globals, each over the looks at which a frame was there that uses it."""
    names = {name for look in looks for name in look}
    return _compared({name[1]: [look[name] for look in looks if name in look] for name in names})


def _compared(values: Mapping[str, List[Optional[int]]]) -> _Answer:
    """Compare the fingerprints that each variable had, in the order of the looks.

    It goes on if most of them are new; it returns if the last value is one that it had before another, or the only one.
    """
    moved: Set[str] = set()
    unknown = False
    for name, found in values.items():
        runs = [value for at, value in enumerate(found) if not at or value != found[at - 1]]
        if None in runs:
            unknown = True
        elif len(set(runs)) > max(2, len(found) // 3):
            moved.add(name)
        elif len(runs) > 1 and runs[-1] not in runs[:-1]:
            unknown = True
    return _Answer(moved, unknown)
