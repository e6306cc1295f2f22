"""Who refers to an object: every place in memory where its address stands, and whose place that is.

The reference count is the check. When as many counted references have been found, in places known to be live, as the
object counts, all others are stale copies: what was freed, what C functions left on their stacks, slots beyond the end of
a value stack. When fewer were found, somebody unknown has one, in C code or in memory that is not at hand.

Source: Include/object.h and refcount.h: ob_refcnt is a word up to 3.11, its lower 32 bits since 3.12, where values with
the top bits set make an object immortal.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..memory import Fault
from .callheights import least_height
from .frames import Frame
from .holders import Holder, Holders, slot_of
from .interpreter import Python, ThreadState
from .objects import NotThat
from .tables import Tables
from .wordsearch import WordSearch

_IMMORTAL = 1 << 30
#: Bytes of a PyThreadState that are surely its own: 3.8's has 280, all later ones more (Include/cpython/pystate.h).
_STATE = 240


class Stack(NamedTuple):
    """What a thread uses of its C stack: from its stack pointer to the end of the mapping. ``registers``: its values."""

    low: int
    high: int
    thread: ThreadState
    registers: Tuple[int, ...] = ()


class Reference(NamedTuple):
    """One place that refers to an object.

    counted: True, it is part of the count; None, it may be; False, it is borrowed, weak or stale.
    """

    place: int
    counted: Optional[bool]
    how: str
    holder: Optional[Holder] = None
    thread: Optional[ThreadState] = None  # on its stack, in its state
    frame: Optional[Frame] = None


@dataclass
class References:
    """All places that refer to an object. ``stray``: places that are nobody's, as far as is known."""

    count: Optional[int]  # its own count; None: it keeps none, or it is damaged
    found: List[Reference] = field(default_factory=list)
    stray: List[int] = field(default_factory=list)

    @property
    def counted(self) -> int:
        return sum(1 for reference in self.found if reference.counted)


class _Span(NamedTuple):
    start: int
    end: int
    frame: Frame
    thread: ThreadState
    inner: Optional[Frame]  # what it has called


class Referrers:
    """Finds references in one process. ``stacks``: of all its threads."""

    def __init__(self, python: Python, search: WordSearch, stacks: Sequence[Stack]) -> None:
        self._python = python
        self._search = search
        self.holders = Holders(python)
        self._tables = Tables(python, self.holders, search)
        self._stacks = sorted(stacks, key=lambda stack: stack.low)
        self._stack_starts = [stack.low for stack in self._stacks]
        threads = [thread for interpreter in python.interpreters for thread in interpreter.threads]
        self._states = sorted(threads, key=lambda thread: thread.address)
        self._state_starts = [thread.address for thread in self._states]
        self._spans = sorted(self._frames_of(threads), key=lambda span: span.start)
        self._span_starts = [span.start for span in self._spans]

    def _frames_of(self, threads: Sequence[ThreadState]) -> List[_Span]:
        layout, found = self._python.layout, []
        for thread in threads:
            for inner, frame in zip([None, *thread.frames], thread.frames):
                end = frame.address + layout.fr_localsplus + 8 * (frame.code.nlocalsplus + frame.code.stacksize)
                found.append(_Span(frame.address, end, frame, thread, inner))
        return found

    def of(self, addresses: Sequence[int]) -> Dict[int, References]:
        """The references to each of some objects, in one or two passes over memory. Raises NotThat when that takes more
        than it may."""
        places = self._search.places(addresses)
        found = {address: self._sorted_out(address, places[address]) for address in addresses}
        wanted = {p for r in found.values() if r.count is None or r.counted < r.count for p in r.stray}
        owners = self._tables.owners(sorted(wanted)) if wanted else {}
        for references in found.values():
            for place in [place for place in references.stray if place in owners]:
                entry = owners[place]
                references.found.append(Reference(place, True, entry.how, entry.holder))
                references.stray.remove(place)
        return found

    def _sorted_out(self, address: int, places: Sequence[int]) -> References:
        references = References(self.count(address))
        for place in places:
            reference = self._reference(place)
            if reference is None:
                references.stray.append(place)
            else:
                references.found.append(reference)
        for stack in self._stacks:
            if address in stack.registers:
                references.found.append(Reference(0, None, "a register", None, stack.thread))
        return references

    def count(self, address: int) -> Optional[int]:
        """Its reference count; None for what is immortal, or no object."""
        if self._python.layout.ob_extra:
            return None  # free-threaded: two counts, and references that are deferred
        with contextlib.suppress(Fault):
            word = self._python.memory.u64(address)
            count = word & 0xFFFFFFFF if self._python.layout.version >= (3, 12) else word
            return count if 0 < count < _IMMORTAL else None
        return None

    def _reference(self, place: int) -> Optional[Reference]:
        """What is known of a place without looking for the owner of a table."""
        span = _at(self._spans, self._span_starts, place)
        if span is not None and place < span.end:
            least = least_height(self._python.frames, span.frame, span.inner)
            counted, how = slot_of(self._python, span.frame, place, least)
            return Reference(place, counted, how, None, span.thread, span.frame)
        stack = _at(self._stacks, self._stack_starts, place)
        if stack is not None and place < stack.high:
            return Reference(place, None, "a C function", None, stack.thread)
        state = _at(self._states, self._state_starts, place)
        if state is not None and place < state.address + _STATE:
            return Reference(place, None, "its state", None, state)
        return self._in_object(place)

    def _in_object(self, place: int) -> Optional[Reference]:
        layout = self._python.layout
        if layout.managed_dict < -8:
            owner = self.holders.with_dict(place - layout.managed_dict)
            if owner is not None:
                return Reference(place, True, "__dict__", owner)
        holder = self.holders.around(place)
        if holder is None:
            return None
        try:
            counted, how = self.holders.counts(holder, place)
        except (Fault, NotThat):
            return None
        if how == "attribute":
            how = self._tables.attribute_at(holder, place)
        frame = self.holders.frame_in(holder.address, holder.kind) if holder.kind == "generator" else None
        return Reference(place, counted, how, holder, None, frame) if counted is not None else None


def _at(items: Sequence, starts: Sequence[int], place: int):  # type: ignore[no-untyped-def,type-arg]
    index = bisect_right(starts, place) - 1
    return items[index] if index >= 0 else None
