"""Chains of frames: the Python stack of a thread, however deep.

A stack of 100,000 frames is walked to its end with a few bytes kept per frame; frame objects are kept at both ends
only.
"""

from __future__ import annotations

from array import array
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat
from .frame import Frame, Frames, Visit
from .recursion import find_repeat

#: Most frames walked per thread, a few seconds' work.
MAX_FRAMES = 1_000_000
#: Innermost and outermost frames kept of a deeper stack; those between are counted.
KEEP_INNER, KEEP_OUTER = 4_000, 1_000
#: Fewest frames of a stack that is searched for a recursion.
DEEP = 200


class LeftOut(NamedTuple):
    """Frames of a deep stack that were counted but not kept.

    Fields:
    - ``behind``: number of kept frames before the gap.
    - ``frames``: number of frames left out.
    - ``entries``: number of frames among them that were entered from C.
    """

    behind: int
    frames: int
    entries: int


class Recursion(NamedTuple):
    """A repeating part of a stack.

    Fields:
    - ``frames``: one turn, most recent call first.
    - ``times``: number of turns.
    - ``start``: index of the first frame.
    - ``same_lines``: False if only the functions repeat and their lines differ between turns.
    """

    frames: List[Frame]
    times: int
    start: int
    same_lines: bool


class Chain(NamedTuple):
    """The frames of a thread, most recent call first."""

    frames: List[Frame]
    cut: Optional[str]  # reason why it ended early; None if complete
    depth: int  # number of frames, kept or not
    left_out: Optional[LeftOut] = None
    recursion: Optional[Recursion] = None


def read_chain(frames: Frames, address: int) -> Chain:
    """Read the stack from the most recent call's frame on; a damaged chain ends early with a reason in ``cut``."""
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
    """Join two stacks of one thread, where ``outer`` called ``inner``.

    An inner stack that ends early is returned alone: the position of the outer frames is then unknown.
    """
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
    """Find a recursion by function and line, or by function alone if the lines differ between turns."""
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
    """Return a number per frame, equal for the same line of the same function."""
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
    """A walk along a chain, recorded in a few bytes per frame."""

    def __init__(self) -> None:
        self.addresses = array("Q")
        self.codes = array("Q")
        self.offsets = array("l")  # of the current instructions, in bytes
        self.inner: List[Frame] = []
        self.last: Optional[Frame] = None
        self.visited = 0
        self._recent: Dict[int, Frame] = {}  # index → frame, of about the last KEEP_OUTER
        self._entries = 0
        self._mark, self._next_mark = 0, 1

    def is_circular(self, address: int) -> bool:
        """Return whether an address repeats.

        Brent's algorithm: compare with one earlier address, which moves up at every power of two.
        """
        if address == self._mark:
            return True
        if self.visited == self._next_mark:
            self._mark, self._next_mark = address, self._next_mark * 2
        return False

    def note(self, address: int, visit: Visit) -> None:
        """Record one step."""
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
        """Build the chain from what was recorded."""
        kept = [*self.inner, *self._recent.values()]
        depth, left_out = len(self.addresses), None
        if depth > len(kept):
            entries = self._entries + (self.last.entry if self.last is not None else 0)
            left_out = LeftOut(len(self.inner), depth - len(kept), entries - sum(f.entry for f in kept))
        return Chain(kept, cut, depth, left_out, recursion)

    def unroll(self) -> None:
        """Remove the repeated frames of a circular chain."""
        seen: Dict[int, None] = dict.fromkeys(self.addresses)
        del self.addresses[len(seen) :], self.codes[len(seen) :], self.offsets[len(seen) :]
        del self.inner[len(seen) :]
        self._recent = {number: frame for number, frame in self._recent.items() if number < len(seen)}
