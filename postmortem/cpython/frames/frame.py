"""Interpreter frames since 3.11, and the values that they hold; ``chains`` reads whole stacks.

- A frame's ``localsplus`` holds locals, cells and free variables, then the value stack.
- Since 3.14 these slots are ``_PyStackRef``: tagged pointers, including NULL and small integers.

Sources: Include/internal/pycore_frame.h and Objects/frameobject.c of 3.11-3.15; Include/internal/pycore_stackref.h.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat, Objects
from ..objects.code import Code, CodeCache
from ..runtime import layouts as L

_WORD = struct.Struct("<Q")


class Frame:
    """A Python frame.

    Fields:
    - ``address``: of the frame.
    - ``code``: its code object.
    - ``lasti``: byte offset of the current instruction.
    - ``owner``: _PyInterpreterFrame.owner.
    - ``entry``: True if it was entered from C: the next older frame belongs to an older native interpreter loop.
    """

    __slots__ = ("address", "code", "entry", "lasti", "owner")

    def __init__(self, address: int, code: Code, lasti: int, owner: int, entry: bool) -> None:
        self.address = address
        self.code = code
        self.lasti = lasti
        self.owner = owner
        self.entry = entry

    @property
    def line(self) -> Optional[int]:
        """Current source line; None if unknown."""
        return self.code.line(self.lasti)

    @property
    def function(self) -> str:
        """Name of the function, unqualified."""
        return self.code.name

    def is_in(self, function: str, *endings: str) -> bool:
        """Return whether this is a function of that name, in a file with one of these endings."""
        return self.code.name == function and self.code.filename.endswith(endings)


class Visit(NamedTuple):
    """One step along a chain."""

    frame: Optional[Frame]  # None: not started, or not a Python frame
    shim: bool  # stands for the C code that entered the previously visited frame
    previous: int


class Generator(NamedTuple):
    """State of a generator, coroutine or asynchronous generator."""

    state: str  # "created" | "suspended" | "running" | "finished"
    frame: Optional[Frame]  # None if finished


class Frames:
    """Frames of an interpreter since 3.11; ``heapframes`` reads those of older ones."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.codes = CodeCache(objects)
        layout = objects.layout
        offsets = (
            layout.fr_code,
            layout.fr_previous,
            layout.fr_instr,
            layout.fr_owner,
            layout.fr_is_entry,
            layout.fr_tlbc_index,
        )
        self._size = max(offsets) + 8
        self._modules: Dict[int, Optional[str]] = {}

    def visit(self, address: int) -> Visit:
        """Read one step of a chain in one read. Raises Fault or NotThat."""
        layout = self.objects.layout
        raw = self.objects.memory.read(address, self._size)
        previous = word(raw, layout.fr_previous)
        if layout.fr_is_entry < 0 and raw[layout.fr_owner] > L.OWNED_BY_FRAME_OBJECT:
            return Visit(None, True, previous)
        return Visit(self._made(address, raw), False, previous)

    def frame(self, address: int) -> Optional[Frame]:
        """Return the frame at an address; None if it has not started. Raises Fault or NotThat."""
        return self._made(address, self.objects.memory.read(address, self._size))

    def _made(self, address: int, raw: bytes) -> Optional[Frame]:
        """Build a frame from its bytes; None if it has not started. Raises Fault or NotThat."""
        layout = self.objects.layout
        code = self.codes.get(self._object(word(raw, layout.fr_code)))
        owner = raw[layout.fr_owner]
        lasti = word(raw, layout.fr_instr) - self._bytecode(code, raw)
        if lasti >> 63 or lasti == (1 << 64) - 2:
            lasti = -2
        if lasti > 1 << 31:
            raise NotThat("instruction pointer outside its code")
        if owner != L.OWNED_BY_GENERATOR and lasti < code.firsttraceable:
            return None
        entry = layout.fr_is_entry >= 0 and bool(raw[layout.fr_is_entry])
        return Frame(address, code, max(lasti, 0), owner, entry)

    def _object(self, slot: int) -> int:
        """Return the object that a slot refers to; 0 if none.

        Py_INT_TAG and Py_TAG_INVALID share a bit that references to objects never have.
        """
        tags = self.objects.layout.stackref_tags
        return (0 if slot & 2 else slot & ~tags) if tags else slot

    def _bytecode(self, code: Code, raw: bytes) -> int:
        """Return the address of the instructions that a frame runs. Raises Fault or NotThat.

        In free-threaded builds since 3.14 each thread may have a copy of its own (Include/cpython/code.h,
        _PyCodeArray); the first entry is the code object's.
        """
        layout, memory = self.objects.layout, self.objects.memory
        if layout.fr_tlbc_index < 0:
            return code.start
        index = word(raw, layout.fr_tlbc_index) & 0xFFFFFFFF
        copies = memory.u64(code.address + layout.co_tlbc) if index else 0
        if not copies:
            return code.start
        if not index < min(memory.u64(copies), 1 << 20):
            raise NotThat("the frame runs a copy of its bytecode that is missing")
        return memory.u64(copies + 8 + 8 * index)

    def local(self, frame: Frame, name: str) -> Optional[int]:
        """Return the address of a local variable's value (through its cell); None if unbound or unreadable."""
        for index, known in enumerate(frame.code.local_names()):
            if known == name:
                try:
                    value = self._slot(frame, index)
                except Fault:
                    return None
                if value:  # up to 3.10 an argument that is also a cell has two slots, the first one empty
                    return self._uncell(value)
        return None

    def locals(self, frame: Frame) -> Iterator[Tuple[str, int]]:
        """Yield (name, address) of the bound locals, through their cells."""
        try:
            values = self.objects.memory.words(
                frame.address + self.objects.layout.fr_localsplus, frame.code.nlocalsplus
            )
        except Fault:
            return
        for name, value in zip(frame.code.local_names(), map(self._object, values)):
            if value:
                opened = self._uncell(value)
                if opened:
                    yield name, opened

    def _uncell(self, value: int) -> Optional[int]:
        """Return the contents of a cell; any other value as it is."""
        if self.objects.type_name(value) != "cell":
            return value
        try:
            return self.objects.field(value, 16) or None
        except Fault:
            return None

    def _slot(self, frame: Frame, index: int) -> int:
        """Return the object in a slot of ``localsplus``. Raises Fault."""
        return self._object(self.objects.memory.u64(frame.address + self.objects.layout.fr_localsplus + 8 * index))

    def value_stack(self, frame: Frame) -> Tuple[int, ...]:
        """Return all slots of the value stack, in use or stale: callers must validate; empty if unreadable."""
        start = frame.address + self.objects.layout.fr_localsplus + 8 * frame.code.nlocalsplus
        try:
            return tuple(map(self._object, self.objects.memory.words(start, frame.code.stacksize)))
        except Fault:
            return ()

    def height(self, frame: Frame) -> Optional[int]:
        """Return the slots in use, locals and value stack together; None if the frame does not record it.

        Recorded while it waits for another Python function or is suspended; not while it runs or, before 3.14, calls a
        C function.
        """
        layout, memory = self.objects.layout, self.objects.memory
        try:
            if layout.fr_stackpointer >= 0:
                pointer = memory.u64(frame.address + layout.fr_stackpointer)
                top = (pointer - frame.address - layout.fr_localsplus) // 8
            else:
                top = memory.i32(frame.address + layout.fr_stacktop)
        except Fault:
            return None
        return top if frame.code.nlocalsplus <= top <= frame.code.nlocalsplus + frame.code.stacksize else None

    def stack_top(self, frame: Frame) -> Optional[int]:
        """Return the topmost value of a *suspended* frame; None if there is none, or the frame runs."""
        top = self.height(frame)
        if top is None or top == frame.code.nlocalsplus:
            return None
        try:
            # 3.15 has a second slot on top of an iterated object, with an index or NULL (SEND)
            for index in range(top - 1, max(top - 3, frame.code.nlocalsplus - 1), -1):
                value = self._slot(frame, index)
                if value or not self.objects.layout.stackref_tags:
                    return value or None
            return None
        except Fault:
            return None

    def generator(self, address: int) -> Generator:
        """Return the state of a generator or coroutine object. Raises Fault or NotThat."""
        layout = self.objects.layout
        state = self.objects.memory.u8(address + layout.gen_frame_state)
        state -= 256 if state > 127 else 0
        if state >= layout.gen_completed:
            return Generator("finished", None)
        frame = self.frame(address + layout.gen_iframe)
        if state == layout.gen_executing:
            return Generator("running", frame)
        return Generator("created" if state == layout.gen_created else "suspended", frame)

    # ------------------------------------------------------------------ blocks

    def kept_depth(self, frame: Frame) -> int:
        """Return how many slots of the value stack survive an exception at the current instruction.

        These belong to the enclosing `with`, `for` and `try` statements; 0 outside of any handler.
        """
        handler = frame.code.handler_at(frame.lasti)
        return handler.depth if handler is not None else 0

    def with_line(self, frame: Frame, slot: int) -> Optional[int]:
        """Return the line of the `with` whose ``__exit__`` is in a slot of the value stack; None if unknown.

        Its handler is the outermost of those that keep slot + 1 values (a `try` in the body keeps as many); the
        protected range starts right behind the call of ``__enter__``.
        """
        offset, found = frame.lasti, None
        for _ in range(50):
            handler = frame.code.handler_at(offset)
            if handler is None or handler.target == offset or handler.depth <= slot:
                break  # outside of the `with`
            if handler.depth == slot + 1:
                found = handler.target
            offset = handler.target
        if found is None:
            return None
        return frame.code.line(min(h.start for h in frame.code.handlers() if h.target == found))

    # ------------------------------------------------------------------ globals

    def module(self, frame: Frame) -> Optional[str]:
        """Return ``__name__`` of the frame's globals; None if unreadable."""
        try:
            address = self.objects.memory.u64(frame.address + self.objects.layout.fr_globals)
            if address not in self._modules:
                value = self.objects.lookup(address, "__name__")
                self._modules[address] = self.objects.text(value) if value else None
            return self._modules[address]
        except (Fault, NotThat):
            return None

    def globals(self, frame: Frame) -> Optional[int]:
        """Return the address of the frame's globals; None if unreadable."""
        try:
            return self.objects.memory.u64(frame.address + self.objects.layout.fr_globals)
        except Fault:
            return None


def word(raw: bytes, offset: int) -> int:
    """Return the unsigned 64-bit word at an offset."""
    return int(_WORD.unpack_from(raw, offset)[0])
