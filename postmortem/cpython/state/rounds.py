"""A loop that turns without getting further: looks at the frames of a thread that computes, while it runs.

Each look reads the stack. Of the innermost frames that all looks have in common it takes the fingerprints of all variables, and
of the globals that these frames and those further in use.

- The loop is in the outermost frame that was seen at more than one instruction; what called that frame stays where it is.
- It turns if that frame, or one further in, was seen to step back.
- It does not get further if all that these frames use returns, together, to what it was before.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Dict, FrozenSet, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...sourcepaths import is_stdlib
from ..frames.frame import Frame
from .interpreter import Python, current_frame
from .prints import Prints

#: Fewest looks that decide, and fewest at one place of the loop.
_LEAST_LOOKS, _LEAST_AT = 8, 4
#: Number of frames of which the variables are read, of their callers that are watched, and of frames that a stack may have.
_FRAMES, _CALLERS, _MOST_FRAMES = 3, 20, 200
_MOST_CHANGED = 8
#: Fewest values that follow each other which show that a variable goes on.
_LEAST_RUNS = 4
#: Steps back that show that a loop turns.
_LEAST_TURNS = 3
#: Seconds of processor time that the looks at one thread may take, all together; and the largest share of the time since the
#: first, after some looks, so that they are spread over the window.
_MOST_S, _MOST_SHARE, _FREE_S = 0.15, 0.12, 0.02
#: Names of functions and attributes whose values depend on more than the program's variables: on the clock, on chance, on other
#: threads and processes, on files and connections. Of code that uses one it is not known whether its loop gets further.
_OUTSIDE: FrozenSet[str] = frozenset((
    "__next__", "access", "acquire", "active_count", "cancelled", "choice", "choices", "clock_gettime", "default_timer",
    "done", "empty", "execute", "exists", "exitcode", "fetchall", "fetchmany", "fetchone", "full", "gauss", "get_nowait",
    "getmtime", "getrandbits", "getrusage", "getsize", "glob", "is_alive", "is_dir", "is_file", "is_set", "isdir", "isfile",
    "iterdir", "kill", "lexists", "listdir", "localtime", "locked", "monotonic", "monotonic_ns", "next", "now",
    "perf_counter", "perf_counter_ns", "pid_exists", "poll", "print", "process_time", "put_nowait", "qsize", "randint",
    "random", "randrange", "read", "readinto", "readline", "readlines", "recv", "recv_into", "returncode", "running",
    "sample", "scandir", "sched_yield", "select", "send", "sendall", "shuffle", "sleep", "stat", "thread_time", "time",
    "time_ns", "today", "uniform", "urandom", "utcnow", "uuid4", "wait", "waitpid", "write", "writerow",
))  # fmt: skip


class _Look(NamedTuple):
    """One look.

    - ``frames``: those in common with the looks before, outermost first; ``first``: the first of which all variables are read
    - ``state``: (position, name of a variable) → fingerprint; None: not read in full
    - ``used``: (position, namespace, name of a global) → the same, further in as well
    - ``open``: positions of frames that say nothing: of code that depends on more than variables, or of a recursion, of which the
      stack tells how far it has got
    """

    frames: Sequence[Frame]
    first: int
    state: Mapping[Tuple[int, str], Optional[int]]
    used: Mapping[Tuple[int, int, str], Optional[int]]
    open: FrozenSet[int]


class Rounds(NamedTuple):
    """What the looks at a thread showed.

    - ``function``, ``file``, ``first_line``: of the innermost frame that all looks have in common
    - ``turns``: how often it, or a frame that called it, was seen to step back
    - ``same``: whether all that was read returned to its values; None if that is not known
    - ``changed``: names of variables that did not return
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
        self._looks: List[_Look] = []
        self._common = _MOST_FRAMES  # number of outer frames that all looks have in common
        #: The innermost frames that all looks have in common so far: position → (frame, its instruction).
        self._watched: Dict[int, Tuple[Frame, Optional[int]]] = {}
        self._glanced = self._steps_back = 0  # steps back of the innermost one since the last look, and before
        self._moved: Set[int] = set()  # positions of frames that were seen at another instruction
        self._spent, self._since = 0.0, time.monotonic()

    def look(self) -> None:
        """Look once, if the time allows. Raises Fault, NotThat or UnicodeDecodeError when the stack changes meanwhile."""
        if self._spent > min(_MOST_S, _FREE_S + _MOST_SHARE * (time.monotonic() - self._since)):
            self.glance()
            return
        began = time.thread_time()
        try:
            self._look()
        finally:
            self._spent += time.thread_time() - began

    def glance(self) -> None:
        """Read only where the innermost common frames are. Raises Fault."""
        layout, memory = self._python.layout, self._python.memory
        for at, (frame, before) in list(self._watched.items()):
            place = frame.address + layout.fr_instr
            now = memory.u32(place) if layout.heap_frames else memory.u64(place)
            self._watched[at] = frame, now
            if before is not None and now != before:
                self._moved.add(at)
                self._glanced += at == self._common - 1 and now < before

    def _look(self) -> None:
        frames = self._stack()
        if not frames or (self._looks and not _is_same(self._looks[0].frames[0], frames[0])):
            return  # the chain was read while a generator left it
        known = self._looks[-1].frames if self._looks else frames
        same = next((n for n, (old, new) in enumerate(zip(known, frames)) if not _is_same(old, new)), len(known))
        self._common = min(self._common, same, len(frames))
        self._watch(frames, self._common)
        self._looks.append(self._read(frames, self._common))

    def _stack(self) -> List[Frame]:
        """Return the frames, outermost first; empty if there are too many. Raises Fault or NotThat."""
        python = self._python
        frames: List[Frame] = []
        at = current_frame(python.memory, python.runtime, self._state)
        while at and len(frames) < _MOST_FRAMES:
            visit = python.frames.visit(at)
            at = visit.previous
            if visit.frame is not None:
                frames.append(visit.frame)
        return [] if at else frames[::-1]

    def _watch(self, frames: Sequence[Frame], last: int) -> None:
        """Watch the innermost common frames; count the glances at the very innermost one if it is still there."""
        known = self._watched.get(last - 1)
        if known is None or not _is_same(known[0], frames[last - 1]):
            self._steps_back = self._glanced = 0
        self._steps_back += self._glanced
        self._glanced = 0
        for at in [at for at in self._watched if at >= last]:
            del self._watched[at]
        for at in range(max(0, last - _FRAMES - _CALLERS), last):
            if at not in self._watched:
                self._watched[at] = frames[at], None

    def _read(self, frames: Sequence[Frame], last: int) -> _Look:
        """Read what a look needs, the innermost frames first."""
        prints, first = Prints(self._python.frames), _first(frames[:last])
        state: Dict[Tuple[int, str], Optional[int]] = {}
        used: Dict[Tuple[int, int, str], Optional[int]] = {}
        says_nothing: Set[int] = set()
        inside: List[Optional[Frame]] = [*frames[1:], None]
        codes = Counter(frame.code.address for frame in frames)
        for at in range(len(frames) - 1, first - 1, -1):
            frame = frames[at]
            if at < last:
                state.update(((at, name), value) for name, value in prints.of_frame(frame, inside[at]).items())
            if not is_stdlib(frame.code.filename):
                used.update(((at, *key), value) for key, value in prints.of_globals(frame).items())
                if not _OUTSIDE.isdisjoint(frame.code.used_names()):
                    says_nothing.add(at)
            if at < last and codes[frame.code.address] > 1:
                says_nothing.add(at)
        return _Look(frames[:last], first, state, used, frozenset(says_nothing))

    def rounds(self) -> Optional[Rounds]:
        """Return what the looks showed; None if they have too little in common, or nothing moved."""
        common = self._common
        if len(self._looks) < _LEAST_LOOKS or not common:
            return None
        moved = {at for at in range(common) if at in self._moved or not _stays(self._looks, at)}
        if not moved:
            return None
        loop, code = min(moved), self._looks[-1].frames[common - 1].code
        looks = [look for look in self._looks if look.first <= loop]
        at_place = _at_one_place(looks, loop, common)
        turns = max(self._steps_back, *(_steps_back(self._looks, at) for at in range(loop, common)))
        states = [_inside(look.state, loop, common) for look in at_place]
        used = [{key[1:]: value for key, value in look.used.items() if key[0] >= loop} for look in looks]
        going = _going_on(states) | _going_on(used)
        known = len(looks) >= _LEAST_LOOKS and len(at_place) >= _LEAST_AT and turns >= _LEAST_TURNS
        known = known and all(at < loop for look in looks for at in look.open)
        same = known and _returns([frozenset(state.items()) for state in states]) and _all_return(used)
        changed = tuple(sorted(going - {""})[:_MOST_CHANGED])
        answer = False if going else True if same else None
        return Rounds(code.name, code.filename, code.firstlineno, len(self._looks), turns, answer, changed)


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


def _steps_back(looks: Sequence[_Look], at: int) -> int:
    """Return how often a frame was before the instruction at which the look before had found it."""
    return sum(new.frames[at].lasti < old.frames[at].lasti for old, new in zip(looks, looks[1:]))


def _stays(looks: Sequence[_Look], at: int) -> bool:
    """Return whether a frame was at the same instruction at all looks."""
    return len({look.frames[at].lasti for look in looks}) == 1


def _inside(
    state: Mapping[Tuple[int, str], Optional[int]], first: int, last: int
) -> Dict[Tuple[int, str], Optional[int]]:
    """Return what was read of the frames between two positions."""
    return {key: value for key, value in state.items() if first <= key[0] < last}


def _at_one_place(looks: Sequence[_Look], first: int, last: int) -> List[_Look]:
    """Return the looks that found the frames at the instructions at which they were most often, and read them in full."""
    whole = [look for look in looks if None not in _inside(look.state, first, last).values()]
    places: Dict[Hashable, List[_Look]] = {}
    for look in whole:
        places.setdefault(tuple(frame.lasti for frame in look.frames[first:last]), []).append(look)
    return max(places.values(), key=len, default=[])


def _going_on(looks: Sequence[Mapping[Tuple[int, str], Optional[int]]]) -> FrozenSet[str]:
    """Return the names of variables that went on to new values, and hardly ever back."""
    going = set()
    for key in {key for look in looks for key in look}:
        runs = _runs([look[key] for look in looks if key in look])
        if None not in runs and len(runs) >= _LEAST_RUNS and len(set(runs)) * 4 > len(runs) * 3:
            going.add(key[1])
    return frozenset(going)


def _all_return(looks: Sequence[Mapping[Tuple[int, str], Optional[int]]]) -> bool:
    """Return whether all globals return to their values, each at the looks that found code which uses it."""
    keys = {key for look in looks for key in look}
    values = {key: [look[key] for look in looks if key in look] for key in keys}
    return all(None not in found and _returns(found) for found in values.values())


def _returns(values: Sequence[Hashable]) -> bool:
    """Return whether few values alternate: the last one is the only one, or there was another between it and itself."""
    runs = _runs(values)
    return bool(runs) and len(set(runs)) <= _few(len(runs)) and (len(runs) == 1 or runs[-1] in runs[:-1])


def _runs(values: Sequence[Hashable]) -> List[Hashable]:
    """Return the values without immediate repetitions: a thread that had no turn between two looks has not gone on."""
    return [value for at, value in enumerate(values) if not at or value != values[at - 1]]


def _few(runs: int) -> int:
    """Return the number of values, of so many that follow each other, up to which they alternate rather than go on.

    Of m values that come back in turn, n looks find m (1 - e^(-n/m)): half of the looks, when n is 1.6 m. Of values that go on
    they find n.
    """
    return max(2, runs // 2)
