"""Suspended greenlets: where they are, their state, and the Python frames saved in them.

greenlet copies the part of the C stack that another greenlet needs to the heap, and keeps the interpreter's state:

- 1.x: in the object itself, ``PyGreenlet`` (greenlet.h of 1.1.3): stack_start, stack_stop, stack_copy, stack_saved,
  stack_prev, parent, run_info, top_frame.
- Since 2.0: behind ``pimpl`` (greenlet.h and greenlet_greenlet.hpp of 2.0.2, TGreenlet.hpp of 3.0.0-3.5.6), a C++
  object whose size depends on both releases. Five words (``StackState``) precede the context, and that precedes
  ``_top_frame``: the place is found by the first suspended greenlet that shows a frame there.

``stack_stop`` is NULL before the start; ``stack_start`` is NULL after the end; ``stack_stop`` of a thread's main greenlet
is -1 (TStackState.cpp of 3.0.0). A running greenlet has no ``_top_frame``, nor has a suspended one that runs compiled code
alone: since 2.0 a thread's main greenlet leads to ``ThreadState``, whose first two words are the main and the current
greenlet (TThreadState.hpp of 3.5.6, greenlet_thread_state.hpp of 2.0.2).

Frames, by interpreter:

- Up to 3.10: ``top_frame`` and its ``f_back``.
- 3.11: interpreter frames are on the heap, all of them.
- Since 3.12: those by which C code entered the interpreter lie on the C stack. Since greenlet 3.0.3 a switch rewrites
  ``previous`` to skip them (TGreenlet.cpp, ``expose_frames``). 3.0.0-3.0.2 cut the chain behind the first frame and
  keep the rest as ``_prev_frame``, four words behind ``current_frame`` (greenlet_greenlet.hpp of 3.0.0); frames on the
  C stack are then read from its copy.

Sources: TPythonState.cpp (``operator<<``) of 3.0.0-3.5.6; greenlet.c of 1.1.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Literal, NamedTuple, Optional, Sequence, Set, Tuple

from ...cpython.frames.chains import read_chain
from ...cpython.frames.frame import Frame, Frames
from ...cpython.objects.builtins import NotThat
from ...cpython.runtime import layouts as L
from ...cpython.state.interpreter import Python
from ...memory import Fault

TYPE = "greenlet.greenlet"
#: new: not started; unknown: the layout was not found.
GreenletPhase = Literal["new", "running", "suspended", "ended", "unknown"]
_MAIN = (1 << 64) - 1  # stack_stop of a main greenlet
#: Size of PyGreenlet since 2.0: header, weakreflist, dict, pimpl.
_SMALL, _PIMPL = 40, 32
#: 1.x: offsets of stack_start and top_frame.
_OLD_STACK, _OLD_FRAME = 16, 72
#: Words of the C++ object that are searched for the frame; the first that may be one.
_MOST_WORDS, _FIRST_FRAME = 32, 6
#: Words from ``_top_frame`` back to ``_stack_start``.
_BACK = 6
#: Words from ``current_frame`` to ``_prev_frame``.
_BEHIND = 4
_PAGE = 1 << 12
_MAX_STACK, _MAX_FRAMES = 1 << 32, 10_000


class Spilled(NamedTuple):
    """The saved stack of a greenlet: ``saved`` bytes from ``start`` on are at ``copy``; it ends at ``stop``."""

    start: int
    stop: int
    copy: int
    saved: int

    @property
    def plausible(self) -> bool:
        """Whether the fields agree with each other for a greenlet that has started and not ended."""
        if not 0x1000 <= self.start < self.stop or bool(self.copy) < bool(self.saved):
            return False
        if self.stop == _MAIN:
            return self.saved < _MAX_STACK
        return self.stop - self.start < _MAX_STACK and self.saved <= self.stop - self.start

    def translated(self, address: int) -> int:
        """Return where the bytes of an address are now."""
        inside = 0 <= address - self.start < self.saved
        return self.copy + address - self.start if inside else address


@dataclass
class GreenletState:
    """A greenlet at the time of the read."""

    address: int
    phase: GreenletPhase
    stack: Spilled
    frames: List[Frame] = field(default_factory=list)  # of a suspended one, most recent call first
    cut: Optional[str] = None  # reason why the frames end early

    @property
    def main(self) -> bool:
        """Whether it is the main greenlet of a thread: what ran before the first switch."""
        return self.stack.stop == _MAIN

    @property
    def place(self) -> int:
        """An address on the C stack of its thread; 0 if none is recorded."""
        return self.stack.start if self.main else self.stack.stop


class Greenlets:
    """Reader of greenlets; methods never raise."""

    def __init__(self, python: Python) -> None:
        self._python = python
        self._objects = python.objects
        self._known: Dict[int, bool] = {}  # type → derived from greenlet
        self._at: Optional[int] = None  # words from the start of the C++ object to `_top_frame`

    def is_greenlet(self, address: int) -> bool:
        """Return whether an object is a greenlet or of a derived class."""
        try:
            type_ = self._objects.type_of(address).address
        except (Fault, NotThat):
            return False
        known = self._known.get(type_)
        if known is None:
            known = self._known[type_] = self._objects.is_instance(address, TYPE)
        return known

    def read(self, addresses: Sequence[int]) -> List[GreenletState]:
        """Return the state of each of these greenlets, in the same order."""
        for address in addresses if self._at is None else ():
            self._at = self._probe(address)
            if self._at is not None:
                break
        states = [self._state(address) for address in addresses]
        running = {found for state in states if state.main for found in self._current(state.address)}
        for state in states:
            if running and state.phase == "running" and state.address not in running:
                state.phase = "suspended"  # in compiled code alone
        return states

    def _current(self, main: int) -> Iterator[int]:
        """Yield the greenlet that runs in the thread of a main greenlet; nothing if the thread has ended, or in 1.x."""
        try:
            for word in self._words(main) if not self._is_old(main) else ():
                if word & 7 or word < _PAGE or word == main:
                    continue
                try:
                    first, second = self._objects.memory.words(word, 2)
                except Fault:
                    continue
                if first == main and self.is_greenlet(second):
                    yield second
        except (Fault, NotThat):
            return

    # ------------------------------------------------------------------ layout

    def _is_old(self, address: int) -> bool:
        """Return whether a greenlet is one of 1.x. Raises Fault or NotThat."""
        info = self._objects.type_of(address)
        for _ in range(32):
            if info.name == TYPE:
                return info.basicsize > _SMALL + self._objects.layout.ob_extra
            info = self._objects.type_at(info.base)
        raise NotThat("no greenlet")

    def _words(self, address: int) -> Tuple[int, ...]:
        """Return the leading words of the C++ object, fewer at the end of a mapping. Raises Fault or NotThat."""
        inner = self._objects.field(address, _PIMPL)
        for count in (_MOST_WORDS, _MOST_WORDS // 2, _MOST_WORDS // 4):
            try:
                return self._objects.memory.words(inner, count)
            except Fault:
                continue
        raise NotThat("a greenlet without state")

    def _probe(self, address: int) -> Optional[int]:
        """Return the index of the word that is ``_top_frame``; None if this greenlet does not show it."""
        try:
            if self._is_old(address):
                return 0
            words = self._words(address)
        except (Fault, NotThat):
            return None
        for index in range(_FIRST_FRAME, len(words)):
            if self._objects.type_name(words[index]) == "frame" and _spilled(words, index).plausible:
                return index
        return None

    def _fields(self, address: int) -> Tuple[Spilled, int]:
        """Return (saved stack, top frame). Raises Fault or NotThat."""
        if self._is_old(address):
            start = address + self._objects.layout.ob_extra
            stack = self._objects.memory.words(start + _OLD_STACK, 4)
            return Spilled(*stack), self._objects.field(address, _OLD_FRAME)
        words = self._words(address)
        if self._at is None or self._at >= len(words):
            raise NotThat("a greenlet of unknown layout")
        return _spilled(words, self._at), words[self._at]

    # ------------------------------------------------------------------ state

    def _state(self, address: int) -> GreenletState:
        try:
            stack, top = self._fields(address)
        except (Fault, NotThat) as exc:
            return GreenletState(address, "unknown", Spilled(0, 0, 0, 0), cut=str(exc))
        if not stack.stop:
            return GreenletState(address, "new", stack)
        if not stack.start:
            return GreenletState(address, "ended", stack)
        if not top:
            return GreenletState(address, "running", stack)
        if not stack.plausible or self._objects.type_name(top) != "frame":
            return GreenletState(address, "unknown", stack, cut="implausible fields")
        state = GreenletState(address, "suspended", stack)
        state.frames, state.cut = self._frames_from(address, top, stack)
        return state

    def _frames_from(self, address: int, top: int, stack: Spilled) -> Tuple[List[Frame], Optional[str]]:
        """Return (frames, reason why they end early) from a frame object on."""
        frames, layout = self._python.frames, self._objects.layout
        if layout.heap_frames:
            chain = read_chain(frames, top)
            return chain.frames, chain.cut
        try:
            first = self._objects.memory.u64(top + layout.fo_frame)
        except Fault as exc:
            return [], str(exc)
        if layout.version < (3, 12):
            chain = read_chain(frames, first)
            return chain.frames, chain.cut
        found: List[Frame] = []
        try:
            for frame in _walk(frames, first, stack):
                found.append(frame)
            behind = self._cut_off(address, first) if len(found) == 1 else 0
            for frame in _walk(frames, behind, stack):
                found.append(frame)
        except (Fault, NotThat) as exc:
            return found, str(exc)
        return found, None

    def _cut_off(self, address: int, first: int) -> int:
        """Return the frame behind the first one where greenlet 3.0.0-3.0.2 cut the chain; 0 if it did not.

        Raises Fault or NotThat.
        """
        words = self._words(address)[(self._at or 0) + 1 :]
        if first not in words or self._objects.memory.u64(first + self._objects.layout.fr_previous):
            return 0
        behind = words[words.index(first) + _BEHIND :][:1]
        # later releases have a greenlet there, or nothing
        return behind[0] if behind and behind[0] and self._objects.type_name(behind[0]) is None else 0


def _walk(frames: Frames, address: int, stack: Spilled) -> Iterator[Frame]:
    """Yield the frames of a chain that may lead through the saved stack. Raises Fault or NotThat."""
    layout, memory = frames.objects.layout, frames.objects.memory
    seen: Set[int] = set()
    while address:
        if address in seen or len(seen) >= _MAX_FRAMES:
            raise NotThat("the chain of frames is circular, or too long")
        seen.add(address)
        moved = stack.translated(address)
        if moved != address:
            if memory.u8(moved + layout.fr_owner) <= L.OWNED_BY_FRAME_OBJECT:
                raise NotThat("a frame on the C stack that is no entry from C")
            address = memory.u64(moved + layout.fr_previous)
            continue
        visit = frames.visit(address)
        if visit.frame is not None:
            yield visit.frame
        address = visit.previous


def _spilled(words: Sequence[int], at: int) -> Spilled:
    start, stop, copy, saved = words[at - _BACK : at - _BACK + 4]
    return Spilled(start, stop, copy, saved)
