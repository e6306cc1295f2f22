"""References that C code of the interpreter, or of a library, keeps outside of all objects.

- A thread state: its variables by thread, its context, its exceptions. Only that thread uses them.
- The start of a thread: what it was told to call, with what (struct bootstate of Modules/_threadmodule.c: ``interp, func,
  args, kwargs, tstate``; in later releases of 3.11 and since 3.12 ``tstate, func, args, kwargs``). It lasts until the
  thread ends.
- The callbacks of ``atexit``, which the main thread calls when its code has ended. Up to 3.13 blocks of ``func, args,
  kwargs``, listed in an array that the module's state (up to 3.9, Modules/atexitmodule.c) or the interpreter's has
  (``atexit_state`` of Include/internal/pycore_interp.h and pycore_atexit.h); since 3.14 a list of tuples.
- The interpreter's state: hooks of the collector, of fork, of codecs.
- A stack of a thread that fork left behind: its calls keep what they had, and nobody runs them (3.11 and later; struct
  _PyStackChunk of Include/cpython/pystate.h: previous, size, top; pages of its own).
- A variable of C code, in the data of a program or library. Handlers of signals are among them.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from functools import cached_property
from typing import FrozenSet, Iterator, List, Literal, NamedTuple, Optional, Sequence, Set, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat
from ..runtime.candidates import data_segments
from ..state.interpreter import InterpreterState, Python, ThreadState
from ..state.signals import handlers
from .allocations import DEBUG_PREFIXES, Allocations

RegistryKind = Literal["thread", "start", "exit", "signal", "lost", "interpreter", "static"]

#: PyModuleObject.md_state (Objects/moduleobject.c of 3.8-3.9, Include/internal/pycore_moduleobject.h).
_MODULE_STATE = 32
#: Bytes of a thread state: that refer to objects in any version, and at most (3.8-3.15).
_LEAST_STATE, _MOST_STATE = 0xE0, 1 << 13
#: Bytes of the block with a thread's start.
_LEAST_START, _MOST_START = 32, 128
#: Bytes of an interpreter state, where the allocator does not say; and the most that are searched for the callbacks.
_INTERPRETER_STATE, _MOST_SEARCHED = 1 << 13, 1 << 18
#: Bytes of a piece of a stack (DATA_STACK_CHUNK_SIZE), and the most that are believed; slots of a frame.
_LEAST_STACK, _MOST_STACK, _MOST_SLOTS, _PAGE = 1 << 14, 1 << 20, 256, 1 << 12
_HIGHEST = 1 << 64
#: Entries for which ``atexit`` has room at least, and at most, when it is believed.
_ROOM, _MOST_CALLBACKS = 16, 1 << 16
#: Bytes of a callback of ``atexit``: func, args, kwargs.
_CALLBACK = 24


class Registry(NamedTuple):
    """What keeps a reference outside of objects; ``thread``: whose state or start it is."""

    kind: RegistryKind
    thread: Optional[ThreadState] = None


class Registries:
    """References outside of objects in one process."""

    def __init__(self, python: Python, allocations: Allocations) -> None:
        self._python = python
        self._memory = python.memory
        self._allocations = allocations
        threads = [thread for interpreter in python.interpreters for thread in interpreter.threads]
        self._threads = {thread.address: thread for thread in threads}
        self._interpreter_states = {interpreter.address for interpreter in python.interpreters}
        self._thread_starts = sorted(self._threads)

    def exact(self, place: int, target: int) -> Optional[Registry]:
        """Return what keeps the reference to ``target`` at a place that holds nothing else; None if unknown. Never raises."""
        started = self._started_by(place)
        if started is not None:
            return Registry("start", started)
        thread = self._thread_at(place)
        if thread is not None:
            return Registry("thread", thread)
        if place in self._exits:
            return Registry("exit")
        if target in self._handlers and self.is_static(place):
            return Registry("signal")
        return Registry("exit") if target == self._exit_list and self._is_of_interpreter(place) else None

    def vague(self, place: int, _target: int) -> Optional[Registry]:
        """Return what keeps a reference at a place that may hold a stale one as well; None if unknown. Never raises."""
        if self._is_of_interpreter(place):
            return Registry("interpreter")
        if self.is_static(place):
            return Registry("static")
        return Registry("lost") if self._is_lost(place) else None

    @cached_property
    def _areas(self) -> Sequence[Tuple[int, int]]:
        return data_segments(self._memory)

    def _area(self, place: int) -> Optional[Tuple[int, int]]:
        """Return the data of a program or library that a place is in; None for other places."""
        index = bisect_right(self._areas, (place, _HIGHEST)) - 1
        area = self._areas[index] if index >= 0 else None
        return area if area is not None and place < area[1] else None

    def is_static(self, place: int) -> bool:
        """Return whether a place is in the data of a program or library, where no table of an object is."""
        return self._area(place) is not None

    def _is_of_interpreter(self, place: int) -> bool:
        return any(start <= place < end for start, end in self._interpreters)

    # ------------------------------------------------------------------ threads

    def _thread_at(self, place: int) -> Optional[ThreadState]:
        """Return the thread in whose state a place is."""
        index = bisect_right(self._thread_starts, place) - 1
        start = self._thread_starts[index] if index >= 0 else None
        if start is None:
            return None
        size = self._allocated(start, _LEAST_STATE, _MOST_STATE) or _LEAST_STATE
        return self._threads[start] if place < start + size else None

    def _allocated(self, start: int, least: int, most: int) -> Optional[int]:
        """Return the bytes of glibc's block at an address (malloc/malloc.c, struct malloc_chunk); None if implausible."""
        if self.is_static(start):
            return None
        with contextlib.suppress(Fault):
            size = self._memory.u64(start - 8) & ~7
            return size if least <= size <= most else None
        return None

    def _started_by(self, place: int) -> Optional[ThreadState]:
        """Return the thread that was started with what is at a place: func, args or kwargs beside its thread state."""
        for number in (1, 2, 3):
            with contextlib.suppress(Fault):
                words = self._memory.words(place - 8 * number, 5)
                thread = self._threads.get(words[0])
                if thread is None and words[0] in self._interpreter_states:
                    thread = self._threads.get(words[4])
                if thread is not None and self._is_block(place - 8 * number):
                    return thread
        return None

    def _is_block(self, start: int) -> bool:
        """Return whether a small block of an allocator begins at an address; on musl, which has no sizes, any may."""
        block = self._allocations.block(start)
        return bool(
            (block is not None and block.sure and start - block.start in DEBUG_PREFIXES)
            or self._python.on_musl
            or any(self._allocated(start - prefix, _LEAST_START, _MOST_START) for prefix in DEBUG_PREFIXES)
        )

    def _is_lost(self, place: int) -> bool:
        """Return whether a place is a variable, or on the value stack, of a frame on a stack that no thread has."""
        layout, frames = self._python.layout, self._python.frames
        if layout.heap_frames:
            return False
        stack = self._stack_around(place)
        if stack is None or self._is_in_use(stack):
            return False
        first = place - layout.fr_localsplus
        for at in range(first, max(stack[0], first - 8 * _MOST_SLOTS), -8):
            try:
                frame = frames.frame(at) if self._is_code(self._memory.u64(at + layout.fr_code)) else None
            except (Fault, NotThat):
                continue
            if frame is not None:
                slots = frame.code.nlocalsplus + frame.code.stacksize
                return place < at + layout.fr_localsplus + 8 * slots
        return False

    def _is_code(self, word: int) -> bool:
        return word > _MOST_SEARCHED and self._python.objects.type_name(word & ~1) == "code"

    def _stack_around(self, place: int) -> Optional[Tuple[int, int]]:
        """Return where the piece of a stack around a place begins and ends."""
        for page in range(place & -_PAGE, max(place - _MOST_STACK, 0), -_PAGE):
            try:
                previous, size, top = self._memory.words(page, 3)
            except Fault:
                return None
            if _LEAST_STACK <= size <= _MOST_STACK and not size & (_PAGE - 1) and 8 * top < size and not previous & 7:
                return (page, page + size) if place < page + size else None
        return None

    def _is_in_use(self, stack: Tuple[int, int]) -> bool:
        """Return whether a thread has a frame on a piece of a stack."""
        index = bisect_right(self._live_frames, stack[0])
        return index < len(self._live_frames) and self._live_frames[index] < stack[1]

    @cached_property
    def _live_frames(self) -> Sequence[int]:
        return sorted(frame.address for thread in self._threads.values() for frame in thread.frames)

    # ------------------------------------------------------------------ the interpreter

    @cached_property
    def _interpreters(self) -> Sequence[Tuple[int, int]]:
        """Where the states of interpreters begin and end."""
        return tuple((one.address, one.address + self._size(one)) for one in self._python.interpreters)

    def _size(self, interpreter: InterpreterState) -> int:
        """Return the bytes of an interpreter's state: those of its block, or up to the end of the data that it is in."""
        area = self._area(interpreter.address)
        if area is not None:
            return min(area[1] - interpreter.address, _MOST_SEARCHED)
        return self._allocated(interpreter.address, _INTERPRETER_STATE // 8, _MOST_SEARCHED) or _INTERPRETER_STATE

    @cached_property
    def _handlers(self) -> FrozenSet[int]:
        return frozenset(handler.callable for handler in handlers(self._python) or ())

    # ------------------------------------------------------------------ atexit

    def exit_callables(self) -> Tuple[int, ...]:
        """Return the addresses of what ``atexit`` is to call. Never raises."""
        objects = self._python.objects
        with contextlib.suppress(Fault, NotThat):
            if self._exit_list is not None:
                return tuple(objects.items(entry)[0] for entry in objects.items(self._exit_list))
            return tuple(self._memory.u64(at) for at in self._blocks)
        return ()

    @cached_property
    def _exits(self) -> FrozenSet[int]:
        """The places of references in callbacks of ``atexit``, up to 3.13."""
        return frozenset(at + offset for at in self._blocks for offset in range(0, _CALLBACK, 8))

    @cached_property
    def _blocks(self) -> Sequence[int]:
        version = self._python.layout.version
        if version >= (3, 14) or not self._python.interpreters:
            return ()
        states = self._of_module() if version < (3, 10) else self._in_interpreter()
        found = (self._callbacks(array, counts & 0xFFFFFFFF, counts >> 32) for array, counts in states)
        return next((callbacks for callbacks in found if callbacks), ())

    def _of_module(self) -> Iterator[Tuple[int, int]]:
        """Yield the address of the array, and length and room in one word, from the module's state."""
        first, layout = self._python.interpreters[0], self._python.layout
        with contextlib.suppress(Fault, NotThat):
            modules = self._memory.u64(first.address + layout.is_modules)
            module = self._python.objects.lookup(modules, "atexit")
            state = self._python.objects.field(module, _MODULE_STATE) if module else 0
            if state:
                array, counts = self._memory.words(state, 2)
                yield array, counts

    def _in_interpreter(self) -> Iterator[Tuple[int, int]]:
        """Yield all pairs of words of the interpreter's state, of which one is the array's address and the counts."""
        words = self._words(*self._interpreters[0])
        yield from zip(words, words[1:])

    def _words(self, start: int, end: int) -> Sequence[int]:
        found: List[int] = []
        for page in range(start, end, _PAGE):
            try:
                found += self._memory.words(page, min(end - page, _PAGE) // 8)
            except Fault:
                break
        return found

    def _callbacks(self, array: int, count: int, room: int) -> Optional[List[int]]:
        """Return the addresses of the callbacks in an array; None if it is none."""
        if not 0 < count <= room or not _ROOM <= room <= _MOST_CALLBACKS or array & 7 or array <= _MOST_SEARCHED:
            return None
        try:
            found = [address for address in self._memory.words(array, count) if address]  # removed ones are NULL
            return found if all(map(self._is_callback, found)) else None
        except Fault:
            return None

    def _is_callback(self, address: int) -> bool:
        """Return whether a callable, a tuple and perhaps a dict are at an address. Raises Fault."""
        objects = self._python.objects
        function, args, kwargs = self._memory.words(address, 3)
        return (
            objects.type_name(function) is not None
            and objects.type_name(args) == "tuple"
            and (not kwargs or objects.type_name(kwargs) == "dict")
        )

    @cached_property
    def _exit_list(self) -> Optional[int]:
        """The list of callbacks since 3.14: in the interpreter's state, each a callable with its arguments."""
        if self._python.layout.version < (3, 14) or not self._python.interpreters:
            return None
        checked: Set[int] = set()
        for word in self._words(*self._interpreters[0]):
            if word > _MOST_SEARCHED and not word & 7 and word not in checked:
                checked.add(word)
                if self._lists_callbacks(word):
                    return word
        return None

    def _lists_callbacks(self, address: int) -> bool:
        objects = self._python.objects
        try:
            if objects.type_name(address) != "list":
                return False
            items = list(objects.items(address))
            entries = [list(objects.items(item)) for item in items if objects.type_name(item) == "tuple"]
        except (Fault, NotThat):
            return False
        return bool(items) and len(entries) == len(items) and all(self._is_entry(entry) for entry in entries)

    def _is_entry(self, entry: Sequence[int]) -> bool:
        name = self._python.objects.type_name
        return len(entry) == 3 and name(entry[1]) == "tuple" and name(entry[2]) in ("dict", "NoneType")
