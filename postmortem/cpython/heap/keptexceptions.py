"""Exceptions kept alive with their tracebacks, frames, and all that these refer to.

- Tracebacks are found in memory by the address of their type, even if only a cycle refers to them: one through a frame
  of the traceback itself stays until the cyclic collector runs, for ever if that is disabled.
- A freed object keeps its type but not its reference count: pymalloc and malloc put a pointer or zero into the first
  word of a free block (Objects/obmalloc.c, 3.8-3.15).

Limit: free-threaded builds are not searched.
"""

from __future__ import annotations

from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...memory import Fault, Memory
from ...timelimits import TimeLimit
from ..frames.exceptions import is_exception, qualified
from ..frames.frame import Frame
from ..objects.attributes import attributes
from ..objects.builtins import NotThat, Objects
from ..objects.links import linked
from ..objects.wordsearch import WordSearch
from ..state.interpreter import Python
from .variablesearch import CONTAINERS

_TYPE = 8  # ob_type
_MOST_TRACEBACKS, MOST_EXCEPTIONS = 20_000, 300
_MOST_FRAMES = 100  # most frames of one traceback
_MOST_COUNT = 1 << 20  # most plausible references to a traceback or exception
_MOST_INSIDE = 200  # most items of a container, or attributes of an object, that are measured
_DEEPEST = 3


class Found(NamedTuple):
    """Result of a search.

    - ``exceptions``: addresses, a sample if there are many.
    - ``tracebacks``: number of tracebacks that begin a chain: those of an exception, and orphans.
    """

    exceptions: List[int]
    tracebacks: int


class Kept(NamedTuple):
    """An exception with the frames that it keeps alive, outermost (the handler) first."""

    address: int
    type: str
    frames: List[Tuple[Frame, int]]  # with the line that the exception passed
    cyclic: bool
    bytes: int
    variable: Optional[str]


def find(python: Python, memory: Memory, ranges: Sequence[Tuple[int, int]], limit: TimeLimit) -> Found:
    """Search ranges of memory, and return what was found within the time limit."""
    if python.runtime.free_threaded or not python.interpreters:
        return Found([], 0)
    kind = _traceback_type(python)
    if kind is None:
        return Found([], 0)
    objects = python.objects
    search = WordSearch(memory, ranges, limit)
    found = {place - _TYPE for place in search.some(kind, _MOST_TRACEBACKS)}
    alive = [address for address in sorted(found) if _is_alive(objects, address)]
    following = {_word(objects, address, objects.layout.tb_next) for address in alive}
    heads = [address for address in alive if address not in following]
    if not heads:
        return Found([], 0)
    offset = objects.layout.be_traceback
    step = max(1, len(heads) // MOST_EXCEPTIONS)
    places = search.places_in_time(heads[::step][:MOST_EXCEPTIONS])
    owners = (place - offset for several in places.values() for place in several)
    exceptions = [at for at in dict.fromkeys(owners) if is_exception(objects, at) and _is_alive(objects, at)]
    return Found(exceptions, len(heads))


def _traceback_type(python: Python) -> Optional[int]:
    """Return the type of tracebacks from module ``types``, else from the exported symbol; None if unknown."""
    found = python.module_value(python.interpreters[0], "types", "TracebackType")
    if found is not None:
        return found
    for file in python.memory.files:
        elf = python.memory.elf(file.path) if file.offset == 0 and "python" in file.path else None
        address = elf.symbol("PyTraceBack_Type") if elf is not None else None
        if elf is not None and address is not None:
            return address + file.start - elf.first_vaddr
    return None


def _word(objects: Objects, address: int, offset: int) -> int:
    """Return a word of an object; 0 if unreadable."""
    try:
        return objects.memory.u64(address + offset)
    except Fault:
        return 0


def _is_alive(objects: Objects, address: int) -> bool:
    """Return whether an object's reference count is plausible; 3.14 has flags in the word's highest bits."""
    return 0 < _word(objects, address, 0) & ((1 << 48) - 1) < _MOST_COUNT


class Reader:
    """Measurement of the exceptions that were found."""

    def __init__(self, python: Python) -> None:
        self._python = python
        self._objects = python.objects
        self._measured: Set[int] = set()

    def leave_out(self, addresses: Iterable[int]) -> None:
        """Exclude objects from the measurement: something else keeps them alive."""
        self._measured.update(addresses)

    def kept(self, address: int) -> Optional[Kept]:
        """Return the exception with its frames; None if it no longer is one with a traceback."""
        try:
            if not is_exception(self._objects, address):
                return None
            frames = list(self._frames(self._objects.memory.u64(address + self._objects.layout.be_traceback)))
        except (Fault, NotThat):
            return None
        if not frames:
            return None
        cyclic, size, largest, variable = False, 0, 0, None
        for frame, _line in frames:
            for name, value in self._python.frames.locals(frame):
                cyclic = cyclic or self._leads_to(value, address)
                bytes_ = self._size(value, 0)
                size += bytes_
                if bytes_ > largest:
                    largest, variable = bytes_, f"{name} in {frame.function}"
        return Kept(address, qualified(self._objects, address), frames, cyclic, size, variable)

    def _frames(self, traceback: int) -> Iterator[Tuple[Frame, int]]:
        """Yield (frame, line) of a traceback. Raises Fault or NotThat."""
        objects, layout = self._objects, self._objects.layout
        memory = objects.memory
        if not traceback or objects.type_name(traceback) != "traceback":
            return
        for entry in linked(traceback, lambda entry: memory.u64(entry + layout.tb_next), _MOST_FRAMES):
            frame = memory.u64(entry + layout.tb_frame)
            made = self._python.frames.frame(memory.u64(frame + layout.fo_frame) if layout.fo_frame >= 0 else frame)
            if made is None:
                continue
            line = memory.i32(entry + layout.tb_lineno)
            yield made, line if line > 0 else made.code.line(memory.i32(entry + layout.tb_lasti)) or 0

    def _leads_to(self, value: int, wanted: int) -> bool:
        """Return whether a value is the object, or has it as an attribute or item."""
        if value == wanted:
            return True
        try:
            return any(item == wanted for item in self.inside(value))
        except (Fault, NotThat):
            return False

    def inside(self, value: int) -> Iterable[int]:
        """Return the first items of a container, or attributes. Raises Fault or NotThat."""
        objects = self._objects
        kind = objects.type_name(value)
        if kind == "dict":
            return [item for _key, item in zip(range(_MOST_INSIDE), (v for _k, v in objects.dict_items(value)))]
        if kind in ("set", "frozenset"):
            return [item for _n, item in zip(range(_MOST_INSIDE), objects.set_items(value))]
        if kind == "collections.deque":
            return list(objects.deque_items(value, _MOST_INSIDE))
        if kind in CONTAINERS:
            return objects.first_items(value, _MOST_INSIDE)
        return list(attributes(objects, value).values())[:_MOST_INSIDE]

    def _size(self, value: int, depth: int) -> int:
        """Return a lower bound of an object's bytes with its contents; 0 if it was measured before."""
        if value in self._measured or len(self._measured) > 50_000:
            return 0
        self._measured.add(value)
        try:
            return self._own_size(value, depth)
        except (Fault, NotThat):
            return 0

    def _own_size(self, value: int, depth: int) -> int:
        """Return a lower bound of an object's bytes with its contents. Raises Fault or NotThat."""
        objects = self._objects
        info = objects.type_of(value)
        if info.name in ("type", "module", "function", "code", "frame", "traceback"):
            return 0
        size = info.basicsize
        if info.name in ("str", "bytes", "bytearray"):
            size += objects.memory.u64(value + objects.layout.ob_size)  # for a str its length, at the same offset
        elif info.name in ("list", "tuple", "dict", "set", "frozenset", "collections.deque"):
            count = objects.length_or_none(value) or 0
            items = list(self.inside(value)) if depth < _DEEPEST else []
            known = sum(self._size(item, depth + 1) for item in items)
            size += 8 * count + (known * count // len(items) if items else 0)
        elif depth < _DEEPEST:
            size += sum(self._size(item, depth + 1) for item in self.inside(value))
        return size
