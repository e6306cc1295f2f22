"""Chains of frames: the Python stack of a thread, however deep.

A stack of 100,000 frames is walked to its end, a few bytes kept of each; the frames themselves only at both ends.
"""

from __future__ import annotations

from array import array
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat
from .frame import Frame, Frames, Visit
from .recursion import find_repeat

#: Frames of one thread that are walked over: a few seconds at most.
MAX_FRAMES = 1_000_000
#: Of a deeper stack only the innermost and the outermost frames are kept; what lies between is counted.
KEEP_INNER, KEEP_OUTER = 4_000, 1_000
#: A recursion is looked for in stacks that nobody reads to their end.
DEEP = 200


class LeftOut(NamedTuple):
    """Frames of a deep stack that were counted only: ``frames`` of them behind the first ``behind`` kept ones, with
    ``entries`` native interpreter loops among them."""

    behind: int
    frames: int
    entries: int


class Recursion(NamedTuple):
    """One turn of it, most recent call first, and how often it repeats from frame number ``start`` on."""

    frames: List[Frame]
    times: int
    start: int
    same_lines: bool  # False: the functions repeat, their lines differ from turn to turn


class Chain(NamedTuple):
    """The frames of a thread, most recent call first."""

    frames: List[Frame]
    cut: Optional[str]  # why it ended early, None when it did not
    depth: int  # how many there are, kept or not
    left_out: Optional[LeftOut] = None
    recursion: Optional[Recursion] = None


def read_chain(frames: Frames, address: int) -> Chain:
    """The stack whose most recent call has its frame at an address. A damaged chain ends early and says why."""
    walk = _Walk()
    cut: Optional[str] = None
    while address and cut is None:
        if walk.is_circular(address):
            walk.unroll()
            cut = "the chain of frames is circular"
        elif walk.visited >= MAX_FRAMES:
            cut = f"more than {MAX_FRAMES:,} frames"
        else:
            try:
                visit = frames.visit(address)
            except (Fault, NotThat) as exc:
                cut = f"frame at {address:#x}: {exc}"
            else:
                walk.note(address, visit)
                address = visit.previous
    if cut is None and walk.last is not None:
        walk.last.entry = True
    return walk.chain(cut, _recursion(frames, walk))


def joined(inner: Chain, outer: Chain) -> Chain:
    """Two stacks of one thread, the inner one called by the outer one. Behind an inner one that ends early nobody knows
    the place of the outer one's frames."""
    if inner.cut is not None:
        return inner
    behind = outer.left_out
    if behind is not None:
        behind = behind._replace(behind=behind.behind + len(inner.frames))
    return Chain(
        [*inner.frames, *outer.frames],
        outer.cut,
        inner.depth + outer.depth,
        inner.left_out or behind,
        inner.recursion or outer.recursion,
    )


def _recursion(frames: Frames, walk: _Walk) -> Optional[Recursion]:
    """By function and line; where the lines differ from turn to turn, by function alone."""
    if len(walk.addresses) < DEEP:
        return None
    for keys in (_places(frames, walk), walk.codes):
        found = find_repeat(keys)
        if found is not None:
            try:
                turn = [frames.frame(a) for a in walk.addresses[found.start : found.start + found.period]]
            except (Fault, NotThat):
                return None
            return Recursion([f for f in turn if f is not None], found.times, found.start, keys is not walk.codes)
    return None


def _places(frames: Frames, walk: _Walk) -> array[int]:
    """A number for each frame, the same for the same line of the same function."""
    numbers: Dict[Tuple[int, Optional[int]], int] = {}
    known: Dict[Tuple[int, int], int] = {}
    found = array("I")
    for key in zip(walk.codes, walk.offsets):
        number = known.get(key)
        if number is None:
            line = frames.codes.get(key[0]).line(key[1])
            number = known[key] = numbers.setdefault((key[0], line), len(numbers))
        found.append(number)
    return found


class _Walk:
    """What a walk has seen, in a few bytes a frame."""

    def __init__(self) -> None:
        self.addresses = array("Q")
        self.codes = array("Q")
        self.offsets = array("l")  # of the current instruction, in bytes
        self.inner: List[Frame] = []
        self.last: Optional[Frame] = None
        self.visited = 0
        self._recent: Dict[int, Frame] = {}  # number → frame, of the last KEEP_OUTER or a little more
        self._entries = 0
        self._mark, self._next_mark = 0, 1

    def is_circular(self, address: int) -> bool:
        """Brent's algorithm: compares with one earlier address, which moves up at every power of two."""
        if address == self._mark:
            return True
        if self.visited == self._next_mark:
            self._mark, self._next_mark = address, self._next_mark * 2
        return False

    def note(self, address: int, visit: Visit) -> None:
        self.visited += 1
        if visit.shim and self.last is not None:
            self.last.entry = True
        frame = visit.frame
        if frame is None:
            return
        if self.last is not None:
            self._entries += self.last.entry
        if len(self.inner) < KEEP_INNER:
            self.inner.append(frame)
        else:
            self._recent[len(self.addresses)] = frame
            self._recent.pop(len(self.addresses) - KEEP_OUTER, None)
        self.last = frame
        self.addresses.append(address)
        self.codes.append(frame.code.address)
        self.offsets.append(frame.lasti)

    def chain(self, cut: Optional[str], recursion: Optional[Recursion]) -> Chain:
        kept = [*self.inner, *self._recent.values()]
        depth, left_out = len(self.addresses), None
        if depth > len(kept):
            entries = self._entries + (self.last.entry if self.last is not None else 0)
            left_out = LeftOut(len(self.inner), depth - len(kept), entries - sum(f.entry for f in kept))
        return Chain(kept, cut, depth, left_out, recursion)

    def unroll(self) -> None:
        """Of a circular chain, each frame once."""
        seen: Dict[int, None] = dict.fromkeys(self.addresses)
        del self.addresses[len(seen) :], self.codes[len(seen) :], self.offsets[len(seen) :]
        del self.inner[len(seen) :]
        self._recent = {number: frame for number, frame in self._recent.items() if number < len(seen)}
