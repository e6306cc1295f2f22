"""References to an object: every place in memory with its address, and the holder of that place.

The reference count is the check:
- If as many counted references were found in live places as the object counts, all other places are stale: freed
  memory, remains on C stacks, unused slots of a value stack.
- If fewer were found, an unknown reference exists, in C code or in memory that is not available.

Source: Include/object.h and refcount.h: ob_refcnt is a word up to 3.11, its lower 32 bits since 3.12, where values with
the top bits set mark immortal objects.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ...memory import Fault
from ..frames.callheights import copies_arguments, least_height, leaves_with, may_call_method
from ..frames.frame import Frame
from ..objects.builtins import NotThat
from ..objects.wordsearch import WordSearch
from ..state.interpreter import Python, ThreadState
from .likely import Likely
from .owners import Holder, ReferenceHolders, slot_of
from .registries import Registries, Registry
from .slots import DICT, FIELD, STACK, WEAK, Slot
from .tables import Tables

_IMMORTAL = 1 << 30
#: PyMethodObject: im_func, im_self (Include/cpython/classobject.h).
_METHOD_FUNCTION = 16
#: Most objects whose references are remembered.
_MOST_KNOWN = 20_000


class Reference(NamedTuple):
    """A place that refers to an object.

    - ``counted``: True if part of the reference count, None if possibly, False if weak.
    - ``presumed``: it fits into the count, and nothing shows for certain that it is what is counted.
    """

    place: int
    counted: Optional[bool]
    how: Slot
    holder: Optional[Holder] = None
    thread: Optional[ThreadState] = None  # the place is in a frame on its stack
    frame: Optional[Frame] = None
    task: Optional[int] = None  # the place is in a frame of this suspended greenlet
    registry: Optional[Registry] = None  # the place is outside of all objects
    presumed: bool = False


@dataclass
class References:
    """References to an object.

    - ``stray``: places without a known holder.
    - ``weak``: number of weak references that could not be followed.
    """

    count: Optional[int]  # its reference count; None: immortal, damaged, or too many places
    found: List[Reference] = field(default_factory=list)
    stray: List[int] = field(default_factory=list)
    weak: int = 0

    @property
    def counted(self) -> int:
        """Number of references that are part of the count."""
        return sum(1 for reference in self.found if reference.counted)


class _Span(NamedTuple):
    """The memory of a frame on a thread's stack, or on that of a suspended greenlet."""

    start: int
    end: int
    frame: Frame
    thread: Optional[ThreadState]
    inner: Optional[Frame]  # the frame that it has called
    task: Optional[int] = None  # the greenlet


class Referrers:
    """Search for references in one process; ``greenlets``: address of a suspended one → its frames."""

    def __init__(
        self, python: Python, search: WordSearch, greenlets: Optional[Mapping[int, Sequence[Frame]]] = None
    ) -> None:
        self._python = python
        self._search = search
        self.holders = ReferenceHolders(python)
        self._tables = Tables(python, self.holders, search)
        self.registries = Registries(python, self.holders.allocations)
        threads = [thread for interpreter in python.interpreters for thread in interpreter.threads]
        self._known: Dict[int, References] = {}
        self._predicted: Sequence[int] = ()
        spans = [*self._frames_of(threads), *self._frames_in(greenlets or {})]
        self._spans = sorted(spans, key=lambda span: span.start)
        self._span_starts = [span.start for span in self._spans]

    def _frames_of(self, threads: Sequence[ThreadState]) -> List[_Span]:
        """Return the spans of all frames on these threads' stacks."""
        return [
            _Span(frame.address, self._end(frame), frame, thread, inner)
            for thread in threads
            for inner, frame in zip([None, *thread.frames], thread.frames)
        ]

    def _frames_in(self, greenlets: Mapping[int, Sequence[Frame]]) -> List[_Span]:
        """Return the spans of all frames of suspended greenlets."""
        return [
            _Span(frame.address, self._end(frame), frame, None, inner, address)
            for address, frames in greenlets.items()
            for inner, frame in zip([None, *frames], frames)
        ]

    def _end(self, frame: Frame) -> int:
        layout = self._python.layout
        return frame.address + layout.fr_localsplus + 8 * (frame.code.nlocalsplus + frame.code.stacksize)

    def expect(self, targets: Collection[int], roots: Iterable[int]) -> None:
        """Predict what is on the way from frames, and from some further roots, to targets. Never raises.

        The next search includes it, which saves most of the passes after it, at the cost of some tenths of a second.
        """
        self._predicted = Likely(self._python, self.holders, self._search.check).above(targets, roots)

    def of(self, addresses: Sequence[int]) -> Dict[int, References]:
        """Return the references to each of some objects, in one or two passes over memory.

        Objects that were asked for before cost nothing. Raises: NotThat past the search's deadline.
        """
        missing = [address for address in dict.fromkeys(addresses) if address not in self._known]
        if missing:
            self._search.check()
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
                missing = list(dict.fromkeys(addresses))
            predicted, self._predicted = self._predicted, ()
            self._known.update(self._searched(list(dict.fromkeys([*missing, *predicted]))))
        return {address: self._known[address] for address in addresses}

    def _searched(self, addresses: Sequence[int]) -> Dict[int, References]:
        """Search the references to each of some objects. Raises NotThat."""
        places = self._search.places(addresses)
        found = {address: self._sorted_out(address, places.get(address)) for address in addresses}
        short = [r for r in found.values() if r.count is not None and r.counted < r.count]
        wanted = {place for r in short for place in r.stray if not self.registries.is_static(place)}
        owners = self._tables.owners(sorted(wanted)) if wanted else {}
        for references in found.values():
            for place in [place for place in references.stray if place in owners]:
                entry = owners[place]
                references.found.append(Reference(place, True, entry.how, entry.holder))
                references.stray.remove(place)
        for address, references in found.items():
            if references.count is not None and references.counted < references.count:
                self._add_registered(address, references)
            if references.count == references.counted + 1:
                references.found += self._called_method(address)
            if references.count is not None and references.counted < references.count:
                references.found += self._under_construction(address, references.count - references.counted)
        return found

    def _called_method(self, address: int) -> List[Reference]:
        """Return the reference to a bound method that a frame is calling, at most one.

        Meanwhile ``self`` is in its place on the value stack (Objects/classobject.c, method_vectorcall; 3.8-3.13), or it is on
        none, where a `with` of 3.8 ends. Presumed, unless it is the only method that binds this function to this object.
        """
        frames, objects = self._python.frames, self._python.objects
        if objects.type_name(address) != "method":
            return []
        with contextlib.suppress(Fault):
            function, instance = self._python.memory.words(address + _METHOD_FUNCTION, 2)
            code = objects.field(function, self._python.layout.func_code)
            for span in self._spans:
                frame, inner = span.frame, span.inner
                if inner is None or inner.code.address != code or self._first(inner) != instance:
                    continue
                leaves = leaves_with(frames, frame)
                if not leaves and not may_call_method(frames, frame):
                    continue
                start = frame.address + self._python.layout.fr_localsplus + 8 * frame.code.nlocalsplus
                values = self._python.memory.words(start, (span.end - start) // 8)
                if leaves or (instance in values and function not in values):
                    place = start + 8 * (values.index(instance) if instance in values else 0)
                    alone = self._binds_alone(address, function, instance)
                    return [Reference(place, True, STACK, None, span.thread, frame, span.task, presumed=not alone)]
        return []

    def _binds_alone(self, method: int, function: int, instance: int) -> bool:
        """Return whether no other method than this one binds a function to an object; False if that is unknown."""
        known = self._known.get(instance)
        if known is None or known.counted != known.count:
            return False
        holders = {one.holder.address for one in known.found if one.holder is not None}
        bound = {at for at in holders if self._python.objects.type_name(at) == "method"}
        with contextlib.suppress(Fault):
            return {at for at in bound if self._python.memory.u64(at + _METHOD_FUNCTION) == function} == {method}
        return False

    def _under_construction(self, address: int, missing: int) -> List[Reference]:
        """Return the references that C code has to an object while its ``__init__`` runs; none unless all missing are among them.

        The call of the class has one (type_call in Objects/typeobject.c; 3.8-3.15). Where arguments are passed by keyword, their
        copy has another (_PyStack_UnpackDict in Objects/call.c; 3.8-3.14).
        """
        caller = self._under_way.get(address)
        if caller is None or missing > (2 if copies_arguments(self._python.frames, caller.frame) else 1):
            return []
        return [Reference(caller.start, True, STACK, None, caller.thread, caller.frame, caller.task)] * missing

    def _first(self, frame: Frame) -> Optional[int]:
        """Return the value of a function's first argument; None if it is unbound."""
        names = frame.code.local_names()
        return self._python.frames.local(frame, names[0]) if names else None

    @cached_property
    def _under_way(self) -> Dict[int, _Span]:
        """Objects whose ``__init__`` runs → the frame that called their class."""
        frames, objects = self._python.frames, self._python.objects
        found: Dict[int, _Span] = {}
        for span in self._spans:
            if span.inner is None or span.inner.code.name != "__init__":
                continue
            made = self._first(span.inner)
            with contextlib.suppress(Fault, NotThat):
                if made is not None and objects.type_of(made).address in frames.value_stack(span.frame):
                    found.setdefault(made, span)
        return found

    def _add_registered(self, address: int, references: References) -> None:
        """Add the references that C code keeps outside of objects. Raises NotThat past the deadline.

        Lists of freed objects, which interpreters and libraries keep for reuse, have stale ones, and so have stacks: of
        variables, of the interpreter's state and of lost stacks only as many count as are missing.
        """
        for find, vague in ((self.registries.exact, False), (self.registries.vague, True)):
            for place in list(references.stray):
                self._search.check()
                if vague and references.count is not None and references.counted >= references.count:
                    return
                registry = find(place, address)
                if registry is not None:
                    references.found.append(Reference(place, True, FIELD, registry=registry, presumed=vague))
                    references.stray.remove(place)

    def _sorted_out(self, address: int, places: Optional[Sequence[int]]) -> References:
        """Divide the places of an object's address into references and strays. Raises NotThat."""
        references = References(self.count(address) if places is not None else None)
        for place in places or ():
            self._search.check()
            reference = self._reference(place)
            if reference is None:
                references.stray.append(place)
            else:
                references.found.append(reference)
        self._add_weak(address, references)
        return references

    def count(self, address: int) -> Optional[int]:
        """Return an object's reference count; None if immortal or implausible, and in free-threaded builds."""
        if self._python.layout.ob_extra:
            return None  # free-threaded: two counts, and deferred references
        with contextlib.suppress(Fault):
            word = self._python.memory.u64(address)
            count = word & 0xFFFFFFFF if self._python.layout.version >= (3, 12) else word
            return count if 0 < count < _IMMORTAL else None
        return None

    def _reference(self, place: int) -> Optional[Reference]:
        """Return the reference at a place in a frame or object; None if it may be in a table, or is stray."""
        index = bisect_right(self._span_starts, place) - 1
        span = self._spans[index] if index >= 0 else None
        if span is not None and place < span.end:
            least = least_height(self._python.frames, span.frame, span.inner)
            counted, how = slot_of(self._python, span.frame, place, least)
            return Reference(place, counted, how, None, span.thread, span.frame, span.task)
        return self._in_object(place)

    def _in_object(self, place: int) -> Optional[Reference]:
        """Return the reference at a place in or before a live object; None if it is not counted."""
        layout = self._python.layout
        if layout.managed_dict < -8:
            owner = self.holders.with_dict(place - layout.managed_dict)
            if owner is not None:
                return Reference(place, True, DICT, owner)
        holder = self.holders.around(place)
        if holder is None:
            cache = self.holders.cache_of(place)
            return Reference(place, True, FIELD, cache) if cache is not None else None
        try:
            counted, how = self.holders.counts(holder, place)
        except (Fault, NotThat):
            return None
        if how.kind == "attribute":
            how = self._tables.attribute_at(holder, place)
        frame = self.holders.frame_in(holder.address, holder.kind) if holder.kind == "generator" else None
        return Reference(place, True, how, holder, None, frame, presumed=holder.kind == "presumed") if counted else None

    def _add_weak(self, address: int, references: References) -> None:
        """Add the weak references from the object's own list; an unreadable list counts as one missing."""
        try:
            for weak in self.holders.weak_references(address):
                holder = self.holders.at(weak)
                if holder is None:
                    references.weak += 1
                else:
                    references.found.append(Reference(weak, False, WEAK, holder))
        except (Fault, NotThat):
            references.weak += 1
